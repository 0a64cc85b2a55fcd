//! The collection of real logs, and one log read through the filter that the program would choose for it.
//!
//! Rule: nothing is skipped; a missing collection fails the test. Its folder is `log-filters/logs`, or
//! `VISPERF_LOGS`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use log_filters::across::AcrossLogs;
use log_filters::engine::{Engine, Source};
use log_filters::found::Found;
use log_filters::join::Joiner;
use log_filters::registry::Registry;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use wire::call::Call;
use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// The host that a sensor would assume; logs that name their host must not use it.
pub(crate) const HOST_OF_LOG: &str = "host-of-the-log";
/// 2026-11-21T00:00:00Z: after every log of the collection.
pub(crate) const SEEN: Time = Time::from_micros(1_795_219_200_000_000);

/// The filters that come with the program, compiled once.
pub(crate) fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::shipped);
    &REGISTRY
}

pub(crate) fn folder() -> PathBuf {
    let folder = std::env::var_os("VISPERF_LOGS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("logs"), PathBuf::from);
    assert!(folder.is_dir(), "{} is no folder: the logs to test against are missing", folder.display());
    folder
}

/// All files under a folder, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The folders with the logs of a cluster.
pub(crate) fn clusters() -> Vec<PathBuf> {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut clusters: Vec<PathBuf> = folders(&folder()).iter().flat_map(|product| folders(product)).collect();
    clusters.sort();
    clusters
}

/// One log with the events of its filter.
pub(crate) struct Read {
    pub(crate) filter: String,
    pub(crate) found: Vec<Found>,
    /// Offset of each line.
    starts: Vec<u64>,
    /// Lines without a matching rule.
    pub(crate) unknown: Vec<String>,
}

impl Read {
    /// The line, from 1, at which an event's record starts.
    pub(crate) fn line(&self, found: &Found) -> usize {
        self.starts.partition_point(|&start| start <= found.offset)
    }
}

/// Read a log; `None` if no filter claims it.
pub(crate) fn read(registry: &Registry, path: &Path) -> Option<Read> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_name().unwrap().to_string_lossy();
    read_bytes(registry, &name, &bytes)
}

pub(crate) fn read_bytes(registry: &Registry, name: &str, bytes: &[u8]) -> Option<Read> {
    read_among(registry, name, bytes, &AcrossLogs::default()).map(|(read, _)| read)
}

/// Read a log that shares values with others; its shared values exist as long as the engine.
pub(crate) fn read_among(
    registry: &Registry,
    name: &str,
    bytes: &[u8],
    across: &AcrossLogs,
) -> Option<(Read, Engine)> {
    let filter = registry.choose(name, &bytes[..bytes.len().min(64 << 10)])?;
    let source = Source {
        file_name: name.to_owned(),
        host: HOST_OF_LOG.to_owned(),
        cluster: String::new(),
        zone: jiff::tz::TimeZone::UTC,
    };
    let mut engine = Engine::among(filter.clone(), &source, across);
    engine.keep_unknown();
    let (mut found, mut starts, mut offset) = (Vec::new(), Vec::new(), 0u64);
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        starts.push(offset);
        engine.line(line.strip_suffix(b"\n").unwrap_or(line), offset, SEEN, &mut found);
        offset += line.len() as u64;
    }
    engine.idle(SEEN, &mut found);
    let unknown = engine
        .take_unknown()
        .into_iter()
        .map(|(_, text)| String::from_utf8_lossy(&text).into_owned())
        .collect();
    Some((Read { filter: filter.name().to_owned(), found, starts, unknown }, engine))
}

/// Join the events of logs, one log after the other.
pub(crate) fn join<'a>(logs: impl IntoIterator<Item = &'a Read>) -> Vec<Call> {
    let mut joiner = Joiner::new(1_000_000);
    for (number, log) in logs.into_iter().enumerate() {
        for found in &log.found {
            let generation = Generation(u32::try_from(number + 1).unwrap());
            joiner.join(
                found,
                Id { sensor: SensorKey(1), generation, offset: found.offset, number: found.number },
            );
        }
    }
    assert_eq!(joiner.dropped(), 0);
    joiner.calls().collect()
}

/// Parse a time in UTC, `YYYY-MM-DDTHH:MM:SS`.
pub(crate) fn moment(text: &str) -> Time {
    let stamp: jiff::civil::DateTime = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    Time::from_micros(stamp.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().as_microsecond())
}
