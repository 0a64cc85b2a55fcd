//! Test rig: a tail on a real directory; the test controls its clock, wakeups and crashes.

use compact_str::{CompactString, ToCompactString, format_compact};
use log_filters::found::{Change, Found};
use sensor::journal::lock::Lock;
use sensor::segments::disk::Disk;
use sensor::tail::follow::RecognitionMeans;
use sensor::tail::ingest::{Clock, Ingest, Parts};
use sensor::tail::interpret::{Filters, Interpret, Join};
use sensor::tail::status::FileStatus;
use sensor::tail::watch::Wake;
use sensor::tail::{Config, Spec};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use wire::call::{Authority, Keys, Naming};
use wire::event::{Content, Event, Id, Kind, Value};
use wire::id::SensorKey;
use wire::time::Time;

/// Clocks that advance only when the test advances them.
#[derive(Default)]
pub struct Clocks {
    pub wall_micros: AtomicI64,
    pub monotonic_micros: AtomicU64,
    pub work_micros: AtomicU64,
}

struct TestClock(Arc<Clocks>);

impl Clock for TestClock {
    fn wall(&self) -> Time {
        Time::from_micros(self.0.wall_micros.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.0.monotonic_micros.load(Ordering::SeqCst))
    }

    fn work(&self) -> Duration {
        Duration::from_micros(self.0.work_micros.load(Ordering::SeqCst))
    }
}

/// Filter that makes an event of every line, with its text and the number of lines before it. It remembers
/// that number from line to line. `+` starts a record, and lines that start with a blank continue it.
struct EachLine {
    lines: u64,
    changed: bool,
    record: Option<(u64, Vec<u8>)>,
    clocks: Arc<Clocks>,
    work_micros_per_line: u64,
}

impl EachLine {
    fn add_event(&mut self, offset: u64, text: &[u8], seen: Time, out: &mut Vec<Found>) {
        let mut content = Content::new(Kind::Workload, seen);
        let text = match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.into()),
            Err(_) => Value::Bytes(text.to_vec()),
        };
        content.attributes =
            vec![("line".into(), text), ("n".into(), Value::Text(self.lines.to_compact_string()))];
        let keys = Keys {
            scope: "test".into(),
            names: vec!["x".into()],
            parent: None,
            naming: Naming::Shared,
            authority: Authority::Message,
        };
        out.push(Found { offset, number: 0, content, keys: Some(keys) });
        self.lines += 1;
        self.changed = true;
    }

    fn remembered(&self) -> Change {
        let values = vec![("lines".into(), self.lines.to_compact_string())];
        Change::Remember { key: "count".into(), values, offset: 0, time: None }
    }
}

impl Interpret for EachLine {
    fn line(&mut self, line: &[u8], offset: u64, seen: Time, out: &mut Vec<Found>) {
        self.clocks.work_micros.fetch_add(self.work_micros_per_line, Ordering::SeqCst);
        if line.first() == Some(&b' ')
            && let Some((_, text)) = &mut self.record
        {
            text.extend_from_slice(line);
            return;
        }
        self.idle(seen, out);
        if line.first() == Some(&b'+') {
            self.record = Some((offset, line.to_vec()));
        } else {
            self.add_event(offset, line, seen, out);
        }
    }

    fn idle(&mut self, seen: Time, out: &mut Vec<Found>) {
        if let Some((offset, text)) = self.record.take() {
            self.add_event(offset, &text, seen, out);
        }
    }

    fn resume_offset(&self) -> Option<u64> {
        self.record.as_ref().map(|(offset, _)| *offset)
    }

    fn take_changes(&mut self, into: &mut Vec<Change>) {
        if std::mem::take(&mut self.changed) {
            into.push(self.remembered());
        }
    }

    fn apply(&mut self, change: Change) {
        if let Change::Remember { values, .. } = change {
            self.lines = values[0].1.parse().unwrap();
        }
    }

    fn snapshot(&self) -> Vec<Change> {
        vec![self.remembered()]
    }

    fn rejects(&self) -> u64 {
        0
    }
}

struct OneFilter {
    clocks: Arc<Clocks>,
    work_micros_per_line: u64,
}

impl Filters for OneFilter {
    fn choose(&self, _: Option<&str>, path: &Path, _: &[u8]) -> Option<CompactString> {
        (!path.to_string_lossy().contains("unknown")).then(|| "each-line".into())
    }

    fn interpreter(&self, filter: &str, _: &Path, _: &str) -> Option<Box<dyn Interpret>> {
        assert_eq!(filter, "each-line");
        Some(Box::new(EachLine {
            lines: 0,
            changed: false,
            record: None,
            clocks: self.clocks.clone(),
            work_micros_per_line: self.work_micros_per_line,
        }))
    }
}

/// The filter and the joining of this rig, for a tail in its own thread.
pub struct EachLineFilter;

impl EachLineFilter {
    pub fn boxed() -> Box<dyn Filters> {
        Box::new(OneFilter { clocks: Arc::default(), work_micros_per_line: 0 })
    }

    pub fn join() -> Box<dyn Join> {
        Box::new(Numbering(0))
    }
}

/// Numbers the events; the number must continue across every kind of stop.
struct Numbering(u64);

impl Join for Numbering {
    fn join(&mut self, found: &Found, _: Id) -> CompactString {
        if found.keys.is_none() {
            return CompactString::default();
        }
        self.0 += 1;
        format_compact!("call {}", self.0)
    }

    fn snapshot(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn restore(&mut self, snapshot: &[u8]) {
        self.0 = snapshot.try_into().map_or(0, u64::from_le_bytes);
    }
}

/// The directory of logs, the state directory, and a tail on them that can be started and stopped.
pub struct Rig {
    pub directory: tempfile::TempDir,
    pub config: Config,
    pub clocks: Arc<Clocks>,
    pub ingest: Option<Ingest>,
    pub disk: Option<Arc<dyn Disk>>,
    pub work_micros_per_line: u64,
    /// Filters for each start, in place of the one that makes an event of each line.
    pub filters: Option<fn() -> Box<dyn Filters>>,
}

impl Rig {
    /// Creates a tail on this glob in the directory of logs, not started.
    pub fn new(glob: &str) -> Rig {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("logs")).unwrap();
        let spec = Spec::new(directory.path().join("logs").join(glob).to_str().unwrap());
        let config = Config::new("host", vec![spec]);
        let clocks = Arc::new(Clocks::default());
        clocks.wall_micros.store(1_800_000_000_000_000, Ordering::SeqCst);
        Rig { directory, config, clocks, ingest: None, disk: None, work_micros_per_line: 0, filters: None }
    }

    /// Creates a tail on `log`, and starts it.
    pub fn started() -> Rig {
        let mut rig = Rig::new("log");
        rig.start();
        rig
    }

    pub fn with_means(mut self, change: impl FnOnce(&mut RecognitionMeans)) -> Rig {
        change(&mut self.config.means);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("logs").join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub fn start(&mut self) {
        assert!(self.ingest.is_none());
        let one = || -> Box<dyn Filters> {
            let clocks = self.clocks.clone();
            Box::new(OneFilter { clocks, work_micros_per_line: self.work_micros_per_line })
        };
        let parts = Parts {
            filters: self.filters.map_or_else(one, |make| make()),
            join: Box::new(Numbering(0)),
            clock: Box::new(TestClock(self.clocks.clone())),
            fresh_key: SensorKey(7),
        };
        let config = self.config.clone();
        let ingest = match &self.disk {
            None => Ingest::open(config, &self.state(), parts),
            Some(disk) => Ingest::on_disk(config, disk.clone(), parts),
        };
        self.ingest = Some(ingest.unwrap());
        self.look();
    }

    /// Stops as on a signal: reads everything and makes it durable.
    pub fn stop(&mut self) {
        self.ingest.take().unwrap().drain();
    }

    /// Stops as on `kill -9`: nothing more is written.
    pub fn kill(&mut self) {
        drop(self.ingest.take().unwrap());
    }

    /// Looks at everything, as after a wakeup, until nothing is left to do now.
    pub fn look(&mut self) {
        let ingest = self.ingest.as_mut().unwrap();
        for _ in 0..10_000 {
            if ingest.turn(&Wake::all()) > Duration::ZERO {
                return;
            }
        }
        panic!("the tail never rests");
    }

    /// Receives a notification of a change at this path and handles it, without looking at anything else.
    pub fn notify(&mut self, name: &str) {
        let path = self.path(name);
        let ingest = self.ingest.as_mut().unwrap();
        let mut wake = Wake { paths: [path].into(), ..Wake::default() };
        while ingest.turn(&wake) == Duration::ZERO {
            wake = Wake::default();
        }
    }

    /// Advances the clocks and does only what is due by then.
    pub fn pass(&mut self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap();
        self.clocks.monotonic_micros.fetch_add(micros, Ordering::SeqCst);
        self.clocks.wall_micros.fetch_add(i64::try_from(micros).unwrap(), Ordering::SeqCst);
        let ingest = self.ingest.as_mut().unwrap();
        for _ in 0..10_000 {
            if ingest.turn(&Wake::default()) > Duration::ZERO {
                return;
            }
        }
        panic!("the tail never rests");
    }

    pub fn append(&self, name: &str, text: impl AsRef<[u8]>) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(text.as_ref()).unwrap();
    }

    pub fn open(&self, name: &str) -> File {
        OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap()
    }

    pub fn rename(&self, from: &str, to: &str) {
        std::fs::rename(self.path(from), self.path(to)).unwrap();
    }

    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    pub fn truncate(&self, name: &str) {
        OpenOptions::new().write(true).open(self.path(name)).unwrap().set_len(0).unwrap();
    }

    /// Returns all stored events, read by a cursor in small steps.
    pub fn events(&self) -> Vec<Event> {
        let reader = self.ingest.as_ref().unwrap().reader();
        let (mut all, mut cursor) = (Vec::new(), 0);
        loop {
            let page = reader.read(cursor, 100, |_| true).unwrap();
            assert_eq!(page.missed, 0);
            if page.events.is_empty() {
                return all;
            }
            cursor = page.cursor;
            all.extend(page.events);
        }
    }

    /// Returns the lines of the events, in order. Also checks that no id occurs twice, and that neither the
    /// filter's memory nor the numbering of calls lost or repeated anything.
    pub fn lines(&self) -> Vec<String> {
        let events = self.events();
        let ids: std::collections::BTreeSet<_> = events.iter().map(|event| event.id).collect();
        assert_eq!(ids.len(), events.len(), "an event is there twice");
        let lines: Vec<_> = events.iter().filter(|event| event.content.kind == Kind::Workload).collect();
        let mut counts = std::collections::BTreeMap::new();
        for (index, event) in lines.iter().enumerate() {
            assert_eq!(event.call, format!("call {}", index + 1), "calls were numbered otherwise");
            let count = counts.entry(event.source.file.clone()).or_insert(0);
            assert_eq!(text(event, "n"), count.to_string(), "the filter's memory differs at {event:?}");
            *count += 1;
        }
        lines.iter().map(|event| text(event, "line")).collect()
    }

    /// Returns the reason and the reported bytes of each notice with this name.
    pub fn notices(&self, name: &str) -> Vec<(String, String)> {
        let events = self.events();
        let notices = events.iter().filter(|event| text(event, "name") == name);
        notices.map(|event| (text(event, "reason"), text(event, "bytes"))).collect()
    }

    pub fn file(&self, name: &str) -> FileStatus {
        let path = self.path(name);
        let files = self.ingest.as_ref().unwrap().status().files();
        files.into_iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{name} is not followed"))
    }

    /// Checks the gaps: notices and totals must equal the truth; `None` if nothing that was seen is lost. All
    /// except those of the budget may hide lines that were never seen.
    pub fn check_gaps(&self, name: &str, expected: &[(&str, Option<u64>)]) {
        let gaps = self.notices("gap");
        let truth: Vec<_> =
            expected.iter().map(|(why, lost)| ((*why).to_owned(), lost.unwrap_or(0).to_string())).collect();
        assert_eq!(gaps, truth);
        let file = self.file(name);
        let unknown = expected.iter().filter(|(why, _)| *why != "budget").count() as u64;
        let lost: u64 = expected.iter().filter_map(|(_, lost)| *lost).sum();
        assert_eq!((file.gaps, file.gaps_unknown, file.gap_bytes), (expected.len() as u64, unknown, lost));
    }
}

/// Returns the text of an attribute; empty if there is none.
pub fn text(event: &Event, name: &str) -> String {
    match event.content.attribute(name) {
        Some(Value::Text(text)) => text.to_string(),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::List(_)) | None => String::new(),
    }
}

/// Tries to lock the same state directory a second time.
pub fn second_start(rig: &Rig) -> Result<Lock, sensor::journal::lock::Error> {
    Lock::take(&rig.state(), Time::default())
}
