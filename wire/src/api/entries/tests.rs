//! Entries as answers have them, and their packed form.
//!
//! Pure.

use super::*;
use crate::id::{Generation, SensorKey};
use crate::{event, process};
use serde_json::json;

fn entry(body: Body) -> serde_json::Value {
    let entry = stream::Entry { number: 3, revision: 1, at_ns: 500_000_000, body };
    serde_json::to_value(Entry::of(entry, Time::from_micros(2_000_000))).expect("it is written")
}

#[test]
fn an_entry_has_the_fields_of_its_kind_and_no_others() {
    let known = |entry: serde_json::Value| {
        let mut names: Vec<String> = entry.as_object().expect("a structure").keys().cloned().collect();
        names.retain(|name| !["number", "revision", "time", "what"].contains(&name.as_str()));
        names.sort_unstable();
        (entry["what"].as_str().expect("a word").to_owned(), names.join(" "))
    };
    let check = |body: Body, what: &str, expected: &str| {
        assert_eq!(known(entry(body)), (what.to_owned(), expected.to_owned()));
    };
    let figures = vec![("mean".into(), 2.5)];
    let records = vec![Record { cpu: Some(0.5), ..Record::default() }];
    let sample = Body::Sample { sweep: 7, gone: None, records, left_out: 0, figures: figures.clone() };
    check(sample.clone(), "sample", "figures left_out processes sweep");
    assert_eq!(entry(sample)["processes"][0]["cpu"], json!(0.5));
    let changes =
        Body::Sample { sweep: 7, gone: Some(vec![1]), records: vec![], left_out: 0, figures: vec![] };
    check(changes, "sample", "figures gone left_out processes sweep");
    let readings = Body::Readings { sweep: 7, readings: vec![], left_out: 0, figures: vec![] };
    check(readings, "sample", "figures left_out metrics sweep");
    check(Body::Figures(figures), "sample", "figures");
    check(Body::Signal { is_true: true, value: 2.0 }, "signal", "is_true value");
    check(Body::Signal { is_true: true, value: f64::NAN }, "signal", "is_true");
    check(Body::Missed(7), "missed", "count");
    check(Body::Quarantined("why".to_owned()), "quarantined", "reason");
    assert_eq!(entry(Body::Missed(7))["time"], json!(2.5));
    let missed = stream::Entry { number: 3, revision: 1, at_ns: 0, body: Body::Missed(7) };
    assert_eq!(Entry::of(missed, Time::default()).time, None);
}

fn event() -> event::Event {
    event::Event {
        id: event::Id { sensor: SensorKey(1), generation: Generation(2), offset: 3, number: 4 },
        seen: Time::from_micros(5),
        call: "slurm:1".into(),
        content: event::Content {
            outcome: Some(event::Outcome::NodeFail),
            submitted: Some(Time::from_micros(6)),
            attributes: vec![
                ("a".into(), event::Value::Text("b".into())),
                ("c".into(), event::Value::List(vec!["d".into()])),
                ("e".into(), event::Value::Bytes(vec![1])),
            ],
            ..event::Content::new(event::Kind::NodeDrain, Time::from_micros(7))
        },
        source: event::Source { host: "h".into(), file: "/f".into(), filter: "x".into() },
    }
}

fn process() -> process::Process {
    process::Process {
        key: process::ProcessKey { pid: 7, start_ns: 300 },
        parent: 1,
        uid: 1000,
        name: "cat".into(),
        state: process::State::Parked,
        threads: 2,
        rss_kib: 4,
        cgroup: Some(9),
        usage: process::Usage {
            cpu_ns: 1,
            minor_faults: 2,
            switches: Some(process::Switches { voluntary: 3, involuntary: 4 }),
            io: Some(process::Io { read_bytes: 5, ..process::Io::default() }),
            ..process::Usage::default()
        },
    }
}

fn call() -> crate::call::Call {
    crate::call::Call {
        id: "slurm:1".into(),
        job: "1".into(),
        name: "n".into(),
        user: "u".into(),
        from: "f".into(),
        state: crate::call::State::Ended,
        submitted: Some(Time::from_micros(1)),
        offered: None,
        selected: None,
        started: Some(Time::from_micros(2)),
        ended: Some(Time::from_micros(3)),
        offers: vec!["o".into()],
        hosts: vec!["h".into()],
        outcome: Some(event::Outcome::Timeout),
        code: "0".into(),
        signal: "9".into(),
        reason: "r".into(),
        tries: 2,
        events: 3,
        details: None,
    }
}

fn readings() -> Vec<Reading> {
    let metric = crate::sample::Metric {
        name: "node_load1".into(),
        labels: vec![("cpu".into(), "0".into())],
        unit: "".into(),
        semantics: crate::sample::Semantics::State,
    };
    vec![
        Reading { metric: metric.clone(), value: Number::Whole(3) },
        Reading { metric, value: Number::Real(0.5) },
    ]
}

/// One of each kind, with all that it may have.
fn bodies() -> Vec<Body> {
    let figures = vec![("a".into(), 2.0)];
    let records = vec![Record { process: process(), cpu: Some(0.5) }, Record::default()];
    let occurrence = stream::Occurrence { number: 8, event: event(), name: "n".into(), user: "u".into() };
    vec![
        Body::Sample { sweep: 9, gone: Some(vec![8]), records, left_out: 3, figures: figures.clone() },
        Body::Signal { is_true: true, value: 1.0 },
        Body::Missed(5),
        Body::Quarantined("why".to_owned()),
        Body::Readings { sweep: 9, readings: readings(), left_out: 1, figures: figures.clone() },
        Body::Event(Box::new(occurrence)),
        Body::Call(Box::new(stream::Change { number: 9, call: call() })),
        Body::Figures(figures),
    ]
}

const PACKED: &str = concat!(
    "080301f40300090101080207ac0201e8070207010904010000020001030401050000000363617401000000000000e03f0000",
    "0000000100000000000000000000000301016100000000000000400401f4030101000000000000f03f0501f40302050601f4",
    "0303037768790701f4030409020a6e6f64655f6c6f61643101036370750130000200030a6e6f64655f6c6f61643101036370",
    "750130000201000000000000e03f0101016100000000000000400801f4030508010203040a07736c75726d3a31120e000000",
    "0001040301610001620163010101640165020101010c00000168022f660178016e01750901f403060907736c75726d3a3101",
    "31016e0175016602010200000104010601016f010168010301300139017202030a01f403070101610000000000000040",
);

/// Daemons and programs of adjacent versions give each other packed entries: another form is another parameter.
#[test]
fn packed_entries_have_the_form_that_they_always_had() {
    let entry = |(number, body)| stream::Entry { number, revision: 1, at_ns: 500, body };
    let entries: Vec<stream::Entry> = (3..).zip(bodies()).map(entry).collect();
    let packed = data_encoding::HEXLOWER.decode(PACKED.as_bytes()).expect("hexadecimal");
    assert_eq!(postcard::to_stdvec(&entries).expect("written"), packed);
    let booted = UnixTime(Time::from_micros(1));
    let taken =
        TakeAnswer { packed: Some(Bytes(packed)), booted: Some(booted), next: 12, ..TakeAnswer::default() };
    assert_eq!(taken.packed_entries(), Some(Ok(entries.clone())));
    let shown: Vec<Entry> = entries.into_iter().map(|entry| Entry::of(entry, booted.0)).collect();
    let unpacked = TakeAnswer { entries: shown, next: 12, ..TakeAnswer::default() };
    assert_eq!(taken.unpacked(), Ok(unpacked.clone()));
    assert_eq!(unpacked.clone().unpacked(), Ok(unpacked), "as a representative gives them");
    let other = TakeAnswer { packed: Some(Bytes(vec![1, 2])), ..TakeAnswer::default() };
    assert!(other.unpacked().is_err());
}

#[test]
fn an_answer_of_one_that_packs_its_entries_is_read() {
    let taken: TakeAnswer =
        serde_json::from_value(json!({"packed": "AAE=", "booted": 5.5})).expect("it is read");
    assert_eq!(taken.packed, Some(Bytes(vec![0, 1])));
    assert_eq!(taken.booted, Some(UnixTime(Time::from_micros(5_500_000))));
    let many = json!({"entries": vec![json!({}); LIMIT_MAX + 1]});
    let refused = serde_json::from_value::<TakeAnswer>(many).map_err(|error| error.to_string());
    assert!(refused.as_ref().is_err_and(|error| error.contains("at most 1000 entries")), "{refused:?}");
    let odd: Entry = serde_json::from_value(json!({"figures": {"a": "NaN", "b": 2.5}})).expect("it is read");
    let figures: Vec<f64> =
        odd.figures.iter().flat_map(|all| &all.0).map(|(_, value)| value.as_f64()).collect();
    assert!(figures[0].is_nan() && figures[1] == 2.5, "{figures:?}");
    let later: Entry = serde_json::from_value(json!({"number": 1, "what": "later"})).expect("it is read");
    assert_eq!(later.what, EntryKind::Unknown);
}
