//! Log of the series: collects points, packs them every half a minute, and stores them by the day.
//!
//! Shell. Rules: what is not on disk yet is read from memory, so a query misses nothing. If the disk refuses, packed records
//! wait, up to a bound, and the trouble is shown. A crash loses half a minute of moments at most.
//! Not here: the points (`job_usage`), what is made of them (`curve`).

use super::piece::{Piece, Point, Whose, pieces, record};
use crate::history::failure::Failure;
use crate::sample::ticker::locked;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::daily::{DailyLimit, DailyLog, DailyReader};
use wire::time::Time;
use wire::version::JOB_SERIES;

/// Folder in the state folder.
const FOLDER: &str = "job-series";

/// Seconds in a record.
const RECORD_SECS: u32 = 30;

/// How long before its time a record may begin.
const RECORD_SPAN: Duration = Duration::from_secs(60);

/// Records in memory while the disk refuses them: two hours.
const WAITING_MAX: usize = 240;

/// Points in memory that are not packed yet; the record is closed when there are more.
const POINTS_MAX: usize = 1 << 18;

/// The log, for its one writer.
pub struct SeriesLog {
    limit: DailyLimit,
    log: Option<DailyLog>,
    /// Seconds since the last record.
    secs: u32,
    handle: Handle,
}

/// Handle for queries and status; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    reader: DailyReader,
    memory: Mutex<InMemory>,
    failure: Failure,
    used_bytes: AtomicU64,
    damaged_bytes: AtomicU64,
    lost: AtomicU64,
}

/// What is not on disk.
#[derive(Default)]
struct InMemory {
    open: BTreeMap<Arc<Whose>, Vec<Point>>,
    count: usize,
    /// Packed records, with the times of their last points.
    waiting: VecDeque<(Time, Vec<u8>)>,
}

impl SeriesLog {
    /// Creates the log in the state folder. Nothing is opened before there is something to store.
    #[must_use]
    pub fn new(limit: DailyLimit, state: &Path) -> (SeriesLog, Handle) {
        let shared = Shared {
            reader: DailyReader::new(&state.join(FOLDER), JOB_SERIES),
            memory: Mutex::default(),
            failure: Failure::new("series of jobs"),
            used_bytes: AtomicU64::default(),
            damaged_bytes: AtomicU64::default(),
            lost: AtomicU64::default(),
        };
        let handle = Handle(Arc::new(shared));
        (SeriesLog { limit, log: None, secs: 0, handle: handle.clone() }, handle)
    }

    /// Adds the points of a second; there may be none.
    pub fn add(&mut self, points: Vec<(Arc<Whose>, Point)>) {
        let is_full = {
            let mut memory = locked(&self.handle.0.memory);
            memory.count += points.len();
            for (whose, point) in points {
                memory.open.entry(whose).or_default().push(point);
            }
            if memory.count == 0 {
                return;
            }
            memory.count > POINTS_MAX
        };
        self.secs += 1;
        if self.secs >= RECORD_SECS || is_full {
            self.close_record();
        }
    }

    /// Stores what waits, as far as the disk takes it.
    pub fn store(&mut self) {
        if locked(&self.handle.0.memory).waiting.is_empty() {
            return;
        }
        let stored = self.append();
        if let Some(log) = &self.log {
            self.handle.0.used_bytes.store(log.used_bytes(), Ordering::Relaxed);
            self.handle.0.damaged_bytes.store(log.damaged_bytes(), Ordering::Relaxed);
        }
        self.handle.0.failure.set(self.handle.0.reader.folder(), &stored);
    }

    /// Stores all points: at the end of the sensor.
    pub fn end(&mut self) {
        self.close_record();
        self.store();
    }

    fn close_record(&mut self) {
        self.secs = 0;
        let mut memory = locked(&self.handle.0.memory);
        let latest = memory.open.values().filter_map(|points| points.last()).map(|point| point.time).max();
        let Some(latest) = latest else { return };
        let packed: Vec<Piece<'_>> =
            memory.open.iter().map(|(whose, points)| Piece::pack(whose, points)).collect();
        let packed = record(&packed);
        memory.open.clear();
        memory.count = 0;
        if memory.waiting.len() >= WAITING_MAX {
            memory.waiting.pop_front();
            self.handle.0.lost.fetch_add(1, Ordering::Relaxed);
        }
        memory.waiting.push_back((latest, packed));
    }

    fn append(&mut self) -> io::Result<()> {
        let log = match &mut self.log {
            Some(log) => log,
            None => {
                let folder = self.handle.0.reader.folder();
                self.log.insert(DailyLog::open(folder, JOB_SERIES, self.limit)?)
            }
        };
        loop {
            // It remains in memory until it is on disk; this thread alone takes from the front.
            let Some((time, packed)) = locked(&self.handle.0.memory).waiting.front().cloned() else {
                return Ok(());
            };
            log.append(time, &packed)?;
            locked(&self.handle.0.memory).waiting.pop_front();
        }
    }
}

impl Handle {
    /// Visits the pieces that may have points between two times, those on disk first. Returns the number of damaged bytes
    /// that were skipped.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn each(
        &self,
        since: Time,
        until: Time,
        mut visit: impl FnMut(&Whose, &dyn Fn() -> Option<Vec<Point>>),
    ) -> io::Result<u64> {
        // Before the disk is read: a record that is stored meanwhile is found twice, and none is missed.
        let (waiting, open) = {
            let memory = locked(&self.0.memory);
            (memory.waiting.clone(), memory.open.clone())
        };
        let mut damaged = each_stored(&self.0.reader, since, until, &mut visit)?;
        waiting.iter().for_each(|(_, bytes)| damaged += of_record(bytes, &mut visit));
        open.iter().for_each(|(whose, points)| visit(whose, &|| Some(points.clone())));
        Ok(damaged)
    }

    /// Returns a reader of what is on disk.
    #[must_use]
    pub fn reader(&self) -> DailyReader {
        self.0.reader.clone()
    }

    /// What is not stored at the moment, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.failure.trouble(None)
    }

    /// Statistics: name and value.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![
            ("series_used_bytes", read(&self.0.used_bytes)),
            ("series_damaged_bytes_total", read(&self.0.damaged_bytes)),
            ("series_records_lost_total", read(&self.0.lost)),
        ]
    }
}

/// Visits the pieces on disk that may have points between two times. Returns the number of damaged bytes that were skipped.
///
/// # Errors
/// If a file cannot be read.
pub fn each_stored(
    reader: &DailyReader,
    since: Time,
    until: Time,
    mut visit: impl FnMut(&Whose, &dyn Fn() -> Option<Vec<Point>>),
) -> io::Result<u64> {
    let mut damaged = 0;
    let skipped = reader.each(since, until.plus(RECORD_SPAN), |_, bytes| {
        damaged += of_record(bytes, &mut visit);
        true
    })?;
    Ok(skipped + damaged)
}

/// Visits the pieces of a record; returns its length if it is damaged.
fn of_record(bytes: &[u8], visit: &mut impl FnMut(&Whose, &dyn Fn() -> Option<Vec<Point>>)) -> u64 {
    match pieces(bytes) {
        Some(all) => {
            all.iter().for_each(|piece| visit(&piece.whose, &|| piece.points()));
            0
        }
        None => bytes.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::tests::{points, whose};
    use super::*;

    const LIMIT: DailyLimit = DailyLimit { bytes: 1 << 20, days: 9 };

    fn found(handle: &Handle, whose: &Whose) -> usize {
        let (mut found, since) = (Vec::new(), whose.started);
        let damaged = handle.each(since, since.plus(Duration::from_secs(86_400)), |of, read| {
            if of == whose {
                found.extend(read().expect("undamaged"));
            }
        });
        assert_eq!(damaged.expect("readable"), 0);
        found.sort_by_key(|point| point.time);
        found.dedup();
        found.len()
    }

    #[test]
    fn all_points_are_found_whether_they_are_on_disk_or_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut log, handle) = SeriesLog::new(LIMIT, folder.path());
        let (one, other) = (Arc::new(whose("slurm:17", 1000)), Arc::new(whose("slurm:18", 1001)));
        for second in 1..=100 {
            let point = |of: &Arc<Whose>| (Arc::clone(of), points(of, second, 1, 2)[0]);
            log.add([point(&one), point(&other)].into_iter().take(usize::from(second <= 50) + 1).collect());
            log.store();
            let expected = usize::try_from(second).expect("small");
            assert_eq!((found(&handle, &one), found(&handle, &other)), (expected, expected.min(50)));
        }
        (0..30).for_each(|_| log.add(Vec::new()));
        log.store();
        assert!(locked(&handle.0.memory).open.is_empty(), "the rest is stored though no job runs");
        log.end();
        drop(log);
        let (_, again) = SeriesLog::new(LIMIT, folder.path());
        assert_eq!((found(&again, &one), found(&again, &other)), (100, 50), "after a restart");
        assert!(handle.figures()[0].1 > 500 && handle.trouble().is_none());
        assert!(again.reader().oldest().expect("readable").is_some());
    }

    #[test]
    fn records_wait_while_the_disk_refuses_them_and_are_lost_only_beyond_the_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let in_its_place = folder.path().join(FOLDER);
        std::fs::write(&in_its_place, "another file").expect("written");
        let (mut log, handle) = SeriesLog::new(LIMIT, folder.path());
        let whose = Arc::new(whose("slurm:17", 1000));
        let add = |log: &mut SeriesLog, seconds: std::ops::RangeInclusive<u64>| {
            for second in seconds {
                log.add(vec![(Arc::clone(&whose), points(&whose, second, 1, 2)[0])]);
                log.store();
            }
        };
        add(&mut log, 1..=95);
        assert!(handle.trouble().is_some_and(|trouble| trouble.contains(FOLDER)));
        std::fs::remove_file(&in_its_place).expect("removed");
        add(&mut log, 96..=96);
        assert_eq!((found(&handle, &whose), handle.trouble()), (96, None));
        std::fs::remove_dir_all(&in_its_place).expect("removed");
        std::fs::remove_dir_all(folder.path()).expect("removed");
        log.log = None;
        add(&mut log, 97..=97 + 30 * 250);
        assert!(handle.trouble().is_some());
        assert_eq!(handle.figures()[2], ("series_records_lost_total", 10));
    }
}
