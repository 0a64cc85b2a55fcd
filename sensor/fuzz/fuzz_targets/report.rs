//! Any bytes of a member, in any pieces: no panic, no memory beyond what the limits allow, and the store
//! holds no event twice. The frames' lengths and checksums are put right first in a second run, so that the
//! fuzzer gets behind them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sensor::segments::disk::{Disk, Stored};
use sensor::representative::domain::{Config, Domain, Now};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use wire::id::{HostName, PeerKey, SensorKey};
use wire::report::{FromMember, Hello, StoreKey, VERSION, encode};
use wire::time::{Moment, Time};

type Content = Arc<Mutex<Vec<u8>>>;

/// A disk in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, Content>>>);

struct Open(Content);

impl Disk for Memory {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().expect("one thread").keys().cloned().collect())
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        let files = self.0.lock().expect("one thread");
        Ok(Arc::new(Open(files.get(name).ok_or(io::ErrorKind::NotFound)?.clone())))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn Stored>> {
        let content = Content::default();
        self.0.lock().expect("one thread").insert(name.to_owned(), content.clone());
        Ok(Arc::new(Open(content)))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.lock().expect("one thread");
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().expect("one thread").remove(name);
        Ok(())
    }
    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Stored for Open {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let content = self.0.lock().expect("one thread");
        let rest = content.get(at as usize..).unwrap_or_default();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut content = self.0.lock().expect("one thread");
        let end = at as usize + bytes.len();
        if content.len() < end {
            content.resize(end, 0);
        }
        content[at as usize..end].copy_from_slice(bytes);
        Ok(())
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.lock().expect("one thread").resize(len as usize, 0);
        Ok(())
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("one thread").len() as u64)
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames with the right length, checksum and version around the bytes, as far as they go.
fn mend(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), bytes);
    while let Some((len, body)) = rest.split_first() {
        let (body, after) = body.split_at(usize::from(*len).min(body.len()));
        let mut framed = vec![wire::version::FRAME];
        framed.extend_from_slice(body);
        out.extend_from_slice(&u32::try_from(framed.len()).expect("short").to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(&framed).to_le_bytes());
        out.extend_from_slice(&framed);
        rest = after;
    }
    out
}

fn hello() -> Vec<u8> {
    let hello = Hello {
        version: VERSION,
        program: "fuzz".into(),
        sensor: SensorKey(5),
        host: HostName::try_from("h").expect("a name"),
        hosts: Vec::new(),
        boot: "".into(),
        started: Time::default(),
        clock: Time::default(),
        oldest: 0,
        next: 0,
        acknowledged: None,
        marks: Vec::new(),
        stores: wire::at_end::AtEnd(Some(wire::report::Stores {
            minutes: true,
            samples: wire::at_end::AtEnd(Some(true)),
        })),
    };
    let mut out = Vec::new();
    encode(&FromMember::Hello(Box::new(hello)), &mut out).expect("short");
    out
}

fn run(bytes: &[u8], step: usize, greeted: bool) {
    let disk = Memory::default();
    let open = || Domain::open(Arc::new(disk.clone()), Config::default(), StoreKey(1)).expect("memory");
    let (mut domain, _) = open();
    let host = HostName::try_from("h").expect("a name");
    let link = domain.connect(PeerKey([1; 32]), host, Moment::default()).expect("room");
    if greeted {
        domain.handle_bytes(link, &hello(), Now::default());
    }
    for piece in bytes.chunks(step) {
        domain.handle_bytes(link, piece, Now::default());
    }
    if let Some(mut commit) = domain.take_commit().expect("memory") {
        commit.run().expect("memory");
        domain.handle_committed(commit);
    }
    while domain.poll_output().is_some() {}
    drop(domain.hosts(Now::default().moment));
    drop(domain.summary(Now::default().moment));
    let read = |domain: &Domain| {
        let feed = domain.feed();
        let page = feed.read(&feed.oldest(), usize::MAX, |_| true).expect("memory");
        page.events.into_iter().map(|stored| (stored.event.id.sensor, stored.number)).collect::<Vec<_>>()
    };
    let stored = read(&domain);
    assert_eq!(stored.iter().collect::<BTreeSet<_>>().len(), stored.len(), "an event is stored twice");
    assert_eq!(read(&open().0), stored, "what was committed comes back");
}

fuzz_target!(|input: (u16, &[u8])| {
    let step = usize::from(input.0) + 1;
    run(input.1, step, false);
    run(&mend(input.1), step, true);
});
