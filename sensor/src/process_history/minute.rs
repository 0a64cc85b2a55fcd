//! A minute of processes, and its bytes on disk.
//!
//! Pure. This is a format on disk ([`wire::version::PROCESS_HISTORY`]): the order of the fields is part of it.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::process::ProcessKey;
use wire::time::Time;

/// Longest unpacked minute.
const LEN_MAX_BYTES: usize = 4 << 20;

/// Level of the compression.
const LEVEL: i32 = 3;

/// The processes of a minute that used most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMinute {
    /// When it started.
    pub start: Time,
    /// Time of it that was observed, in microseconds; more than a minute if no sweep was made meanwhile.
    pub covered_us: u64,
    /// When the host was booted, by the calendar.
    pub booted: Time,
    /// Processes that lived at its end.
    pub processes: u32,
    /// Processes that ended in it and could not be counted.
    pub missed: u64,
    /// The processes.
    pub rows: Vec<ProcessRow>,
}

/// A process, and what it used in the minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRow {
    /// Identity of the process.
    pub key: ProcessKey,
    /// Process id of its parent.
    pub parent: u32,
    /// Its owner.
    pub uid: u32,
    /// Name in the kernel.
    pub name: CompactString,
    /// Arguments, joined by spaces; empty if unknown.
    pub command: CompactString,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory at the end of the minute, in KiB; 0 if it has ended.
    pub rss_kib: u64,
    /// Bytes read from and written to storage; `None` if the sensor may not read them.
    pub io_bytes: Option<(u64, u64)>,
    /// When it ended, in nanoseconds since boot, and its exit code as wait(2) reports it.
    pub end: Option<(u64, u32)>,
    /// Job that it serves.
    pub job: Option<CompactString>,
}

impl ProcessMinute {
    /// Converts it to bytes.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn pack(&self) -> std::io::Result<Vec<u8>> {
        let bytes = postcard::to_stdvec(self).map_err(std::io::Error::other)?;
        zstd::bulk::compress(&bytes, LEVEL)
    }

    /// Reads it from bytes; `None` if they are no minute.
    #[must_use]
    pub fn unpack(bytes: &[u8]) -> Option<ProcessMinute> {
        postcard::from_bytes(&zstd::bulk::decompress(bytes, LEN_MAX_BYTES).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_read_as_it_was_written() {
        let row = |pid| ProcessRow {
            key: ProcessKey { pid, start_ns: 5 },
            name: "work".into(),
            command: "work --hard".into(),
            io_bytes: Some((1, 2)),
            end: Some((7, 9)),
            job: Some("slurm:17".into()),
            ..ProcessRow::default()
        };
        let minute = ProcessMinute { rows: (0..60).map(row).collect(), ..ProcessMinute::default() };
        let bytes = minute.pack().expect("memory");
        assert_eq!(ProcessMinute::unpack(&bytes), Some(minute));
        assert_eq!(ProcessMinute::unpack(&bytes[1..]), None);
        assert_eq!(ProcessMinute::unpack(b""), None);
    }
}
