//! A simulated log: line `n` starts at byte `100 * n`, and each line is an event. A writer that stops
//! anywhere continues from the state of the journal, and in the end the journal must hold every line once.

use crate::simulated::Simulated;
use log_filters::found::{Change, Found};
use sensor::journal::Config;
use sensor::journal::fold::Replay;
use sensor::journal::frame::{Batch, Birth, Identity, Print, Record, Status};
use sensor::journal::writer::{Journal, Memories};
use sensor::segments::Error;
use sensor::segments::disk::Disk;
use std::sync::Arc;
use wire::event::{Content, Event, Id, Kind, Value};
use wire::id::{Generation, SensorKey};
use wire::report::{Mark, StoreKey};
use wire::time::Time;

pub const LINE_LEN_BYTES: u64 = 100;
const PATH: &[u8] = b"/log";

/// State that the writer holds in memory, and restores from the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mind {
    /// Number of joined events, restored from the journal.
    pub joined: u64,
    /// The number in the last change.
    pub remembered: u64,
}

impl Replay for Mind {
    fn calls(&mut self, snapshot: &[u8]) {
        self.joined = snapshot.try_into().map_or(0, u64::from_le_bytes);
    }

    fn memory(&mut self, path: &[u8], _: &str, changes: Vec<Change>) {
        assert_eq!(path, PATH);
        if let Some(Change::Remember { offset, .. }) = changes.last() {
            self.remembered = *offset;
        }
    }

    fn record(&mut self, _: Id, _: &Record) {
        self.joined += 1;
    }
}

impl Memories for Mind {
    fn calls(&self) -> Vec<u8> {
        self.joined.to_le_bytes().to_vec()
    }

    fn memories(&self) -> Vec<(Vec<u8>, String, Vec<Change>)> {
        vec![(PATH.to_vec(), "filter".into(), vec![remember(self.remembered)])]
    }
}

fn remember(number: u64) -> Change {
    Change::Remember { key: "n".into(), values: Vec::new(), offset: number, time: None }
}

/// Creates a mark: the store of a receiver has everything before this event.
pub fn stored(next: u64) -> Mark {
    Mark { store: StoreKey(1), at: next, next }
}

/// A journal and its writer.
pub struct Writer {
    pub journal: Journal,
    pub mind: Mind,
    pub notes: Vec<String>,
}

impl Writer {
    pub fn open(disk: &Simulated, config: Config) -> Writer {
        Writer::try_open(disk, config).unwrap()
    }

    pub fn try_open(disk: &Simulated, config: Config) -> Result<Writer, Error> {
        Writer::on(Arc::new(disk.clone()), config)
    }

    pub fn on(disk: Arc<dyn Disk>, config: Config) -> Result<Writer, Error> {
        let mut mind = Mind::default();
        let (journal, notes) = Journal::open(disk, config, SensorKey(1), &mut mind)?;
        let mut writer = Writer { journal, mind, notes };
        if writer.journal.state().generations.is_empty() {
            let birth = Birth {
                generation: Generation(writer.journal.state().head.next_generation),
                path: PATH.to_vec(),
                filter: "filter".into(),
                host: "host".into(),
                identity: Identity::default(),
                directory: 0,
                offset: 0,
                before: Print::default(),
                within_line: false,
            };
            // If the disk refuses it, it stays pending until the next flush.
            drop(writer.journal.born(&birth));
        }
        Ok(writer)
    }

    /// The line where the journal says to continue.
    pub fn next_line(&self) -> u64 {
        self.journal.state().generations.values().next().unwrap().offset / LINE_LEN_BYTES
    }

    /// Reads this many lines and appends them to the journal as one batch.
    pub fn read(&mut self, lines: u64) -> Result<(), Error> {
        let from = self.next_line();
        let generation = *self.journal.state().generations.keys().next().unwrap();
        let mut batch = Batch::empty(generation);
        for line in from..from + lines {
            let mut content = Content::new(Kind::Message, Time::from_micros(i64::try_from(line).unwrap()));
            content.attributes =
                vec![("line".into(), Value::Text("x".repeat(usize::try_from(line % 90).unwrap()).into()))];
            let found = Found { offset: line * LINE_LEN_BYTES, number: 0, content, keys: None };
            batch.records.push(Record { found, call: "".into() });
        }
        batch.offset = (from + lines) * LINE_LEN_BYTES;
        batch.counted_to = batch.offset;
        batch.status = Status::Live;
        batch.counts.lines = lines;
        batch.changes = vec![remember(from + lines)];
        self.mind.joined += lines;
        self.mind.remembered = from + lines;
        self.journal.append(&mut batch)
    }

    pub fn events(&self) -> Vec<Event> {
        let page = self.journal.reader().read(0, usize::MAX, |_| true).unwrap();
        assert_eq!(page.missed, 0);
        page.events
    }

    /// Checks that the journal holds every line up to the next one, once and in order, and that the restored
    /// state is of the same line. Returns the next line.
    pub fn check(&self) -> u64 {
        let events = self.events();
        for (line, event) in events.iter().enumerate() {
            assert_eq!(event.id.offset, line as u64 * LINE_LEN_BYTES, "a line is missing or there twice");
        }
        let next = self.next_line();
        assert_eq!(events.len() as u64, next, "events and progress differ");
        assert_eq!(self.journal.state().head.next, next);
        assert_eq!(self.journal.state().files[PATH].totals.lines, next);
        assert_eq!(self.mind, Mind { joined: next, remembered: next }, "what is remembered differs");
        next
    }
}
