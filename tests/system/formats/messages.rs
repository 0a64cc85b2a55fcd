//! Samples of messages: a line each, with the format, the version and the bytes in hexadecimal digits.
//!
//! The messages that this program writes are also compared byte by byte, so that no change of a message goes
//! unnoticed.

use overlay::net::hello::Hello;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tunnel::carrier::frame::Opening;
use wire::at_end::AtEnd;
use wire::codec;
use wire::id::{HostName, SensorKey};
use wire::query::{Question, Viewer};
use wire::report::{self, FromMember};
use wire::time::Time;
use wire::version::{CARRIER, Format, HELLO, MODULE, REPORT};

const NOW: Time = Time::from_micros(1_795_622_400_000_000);

/// A question has no version except that of its protocol.
const QUESTION: Format = Format { name: "question", first: 3, written: 3, newest: 3 };

/// A message: its format, version, variant, its encoder if this program writes it, and its check.
type Message = (Format, u16, &'static str, Option<fn() -> Vec<u8>>, fn(&[u8]));

/// All messages.
pub(super) const SAMPLES: &[Message] = &[
    (HELLO, 1, "", Some(|| framed(&hello())), |bytes| assert_eq!(unframed::<Hello>(bytes), hello())),
    (HELLO, 1, "without-time", None, |bytes| {
        assert_eq!(unframed::<Hello>(bytes), Hello { time: AtEnd(None), ..hello() });
    }),
    (REPORT, 2, "", Some(|| framed(&report())), |bytes| assert_eq!(unframed::<FromMember>(bytes), report())),
    (CARRIER, 1, "", Some(|| opening().bytes()), |bytes| assert_eq!(Opening::read(bytes), Ok(opening()))),
    (MODULE, 1, "", None, |bytes| {
        assert_eq!(sensor::module::protocol::hello(bytes).unwrap().name, "gpu");
    }),
    (QUESTION, 3, "", Some(|| question().to_bytes()), |bytes| {
        assert_eq!(Question::from_bytes(bytes), Ok(question()));
    }),
    (QUESTION, 3, "without-viewer", None, |bytes| {
        assert_eq!(Question::from_bytes(bytes), Ok(Question { viewer: Viewer::Anonymous, ..question() }));
    }),
];

fn hello() -> Hello {
    let (version, program) = (1, "visperf 0.1.0".to_owned());
    Hello { version, start: 7, program, proof: vec![1, 2, 3], time: AtEnd(Some(NOW)) }
}

fn report() -> FromMember {
    FromMember::Hello(Box::new(report::Hello {
        version: 2,
        program: "0.1.0".into(),
        sensor: SensorKey(7),
        host: HostName::try_from("wn01").unwrap(),
        hosts: vec![HostName::try_from("head").unwrap()],
        boot: "b0".into(),
        started: NOW,
        clock: NOW,
        oldest: 3,
        next: 300,
        acknowledged: Some(200),
        marks: Vec::new(),
        stores: AtEnd(None),
    }))
}

fn opening() -> Opening {
    Opening { token: None, received: 513 }
}

fn question() -> Question {
    Question {
        method: "domain.hosts".into(),
        params: vec![9, 8],
        time_left_ms: 5_000,
        hops_left: 2,
        form: None,
        account: None,
        viewer: Viewer::User(1000),
    }
}

fn framed<T: serde::Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(value, &mut bytes).unwrap();
    bytes
}

fn unframed<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> T {
    let (value, len) = codec::decode(bytes).unwrap().unwrap();
    assert_eq!(len, bytes.len());
    value
}

fn name(format: Format, version: u16, variant: &str) -> String {
    let variant = if variant.is_empty() { String::new() } else { format!("-{variant}") };
    format!("{} {version}{variant}", format.name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Check every message in the file at `path`.
pub(super) fn check(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    let mut found: BTreeMap<String, &str> = lines.map(|(name, digits)| (name.to_owned(), digits)).collect();
    for (format, version, variant, write, read) in SAMPLES {
        let name = name(*format, *version, variant);
        let written = write.map(|write| hex(&write()));
        let digits = found.remove(&name).unwrap_or_else(|| panic!("expected a line `{name} {written:?}`"));
        read(&unhex(digits));
        if let Some(written) = written {
            assert_eq!(written, digits, "{name}: this program writes other bytes");
        }
    }
    assert_eq!(found, BTreeMap::new(), "lines that no check reads");
}
