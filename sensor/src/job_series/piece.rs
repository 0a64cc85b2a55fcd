//! Pieces of series: some seconds of a job, packed, as a record on disk has them.
//!
//! Pure. A record is a list of pieces ([`wire::version::JOB_SERIES`]). Times are in milliseconds since 1970, memory in KiB.
//! Not here: the file (`log`), curves (`curve`).

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use store::columns::{self, ROWS_MAX};
use wire::time::Time;

/// Columns of a piece.
const COLUMNS: usize = 7;

/// The measurement that points belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Whose {
    /// Names of the job, the best first: `slurm:94_1`, `slurm:95`.
    pub jobs: Vec<CompactString>,
    /// User of the processes.
    pub uid: u32,
    /// Whether the middleware assigned the processes, by a control group.
    pub is_proved: bool,
    /// Start of the first process.
    pub started: Time,
}

/// A job at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The moment, in milliseconds.
    pub time: Time,
    /// CPU time since the start of the measurement, in microseconds.
    pub cpu_us: u64,
    /// Memory of the moment, in bytes, to the KiB.
    pub memory_bytes: u64,
    /// Living processes, and their threads.
    pub processes: u64,
    pub threads: u64,
    /// Bytes read from storage and written to it since the start of the measurement.
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Point {
    fn columns(self) -> [u64; COLUMNS] {
        let millis = u64::try_from(self.time.micros() / 1000).unwrap_or_default();
        let Point { cpu_us, memory_bytes, processes, threads, read_bytes, written_bytes, .. } = self;
        [millis, cpu_us, memory_bytes / 1024, processes, threads, read_bytes, written_bytes]
    }

    fn of_columns(
        [millis, cpu_us, kib, processes, threads, read_bytes, written_bytes]: [u64; COLUMNS],
    ) -> Point {
        let micros = i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(1000);
        let (time, memory_bytes) = (Time::from_micros(micros), kib.saturating_mul(1024));
        Point { time, cpu_us, memory_bytes, processes, threads, read_bytes, written_bytes }
    }
}

/// Some seconds of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece<'a> {
    pub whose: Cow<'a, Whose>,
    rows: u32,
    #[serde(borrow)]
    packed: Cow<'a, [u8]>,
}

impl Piece<'_> {
    /// Packs points, at least one; what is beyond the longest piece is left out.
    #[must_use]
    pub fn pack<'a>(whose: &'a Whose, points: &[Point]) -> Piece<'a> {
        let points = &points[..points.len().min(ROWS_MAX)];
        let rows: Vec<[u64; COLUMNS]> = points.iter().map(|point| point.columns()).collect();
        let columns: Vec<Vec<u64>> =
            (0..COLUMNS).map(|column| rows.iter().map(|row| row[column]).collect()).collect();
        let rows = u32::try_from(rows.len()).unwrap_or_default();
        Piece { whose: Cow::Borrowed(whose), rows, packed: columns::pack(&columns).into() }
    }

    /// Returns its points; `None` if it is damaged.
    #[must_use]
    pub fn points(&self) -> Option<Vec<Point>> {
        let rows = usize::try_from(self.rows).ok()?;
        let columns = columns::unpack(&self.packed, COLUMNS, rows)?;
        let row = |row: usize| Point::of_columns(std::array::from_fn(|column| columns[column][row]));
        Some((0..rows).map(row).collect())
    }
}

/// Packs pieces as a record.
#[must_use]
pub fn record(pieces: &[Piece<'_>]) -> Vec<u8> {
    postcard::to_stdvec(pieces).expect("it can be written to memory")
}

/// Reads the pieces of a record; `None` if it is damaged.
#[must_use]
pub fn pieces(record: &[u8]) -> Option<Vec<Piece<'_>>> {
    postcard::from_bytes(record).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn whose(job: &str, uid: u32) -> Whose {
        let started = Time::from_micros(1_795_737_600_000_000);
        Whose { jobs: vec![job.into()], uid, is_proved: false, started }
    }

    /// `cpus` in use, and memory that grows by 4 KiB a second, from that second of the job on.
    pub(crate) fn points(whose: &Whose, from: u64, count: u64, cpus: u64) -> Vec<Point> {
        let point = |second: u64| Point {
            time: whose.started.plus(std::time::Duration::from_millis(second * 1000 + second % 3)),
            cpu_us: second * cpus * 1_000_000,
            memory_bytes: (1000 + second * 4) * 1024,
            processes: 3,
            threads: 8,
            read_bytes: second * 512,
            written_bytes: 0,
        };
        (from..from + count).map(point).collect()
    }

    #[test]
    fn points_are_read_as_they_were_packed() {
        let (one, other) = (whose("slurm:17", 1000), whose("slurm:18", 1001));
        let expected = [points(&one, 1, 30, 4), points(&other, 5, 1, 0)];
        let packed = record(&[Piece::pack(&one, &expected[0]), Piece::pack(&other, &expected[1])]);
        assert!(packed.len() < 400, "{}", packed.len());
        let read = pieces(&packed).expect("just packed");
        let found: Vec<Vec<Point>> = read.iter().filter_map(Piece::points).collect();
        assert_eq!(found, expected);
        assert_eq!((read[0].whose.as_ref(), read[1].whose.as_ref()), (&one, &other));
        let damaged = Piece { rows: 40, ..read[0].clone() };
        assert_eq!(damaged.points(), None);
        assert_eq!(pieces(&packed[..40]), None);
    }
}
