//! Benchmark of ingestion on one core: a log of a million lines on disk, through the shipped filter and the
//! joining of calls, into the journal with its checkpoints.
//!
//! Prints lines per second of CPU time (user and system, of the whole process) and of elapsed time, and the
//! maximum resident size. The lines are those of a recorded slurmctld log, with other job numbers in each
//! repetition; `VISPERF_LOGS` is the path of the recorded logs.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use compact_str::CompactString;
use log_filters::engine::{Engine, Source};
use log_filters::join::Joiner;
use log_filters::registry::Registry;
use sensor::tail::handle::MachineClock;
use sensor::tail::ingest::{Ingest, Parts};
use sensor::tail::interpret::{Filters, Interpret};
use sensor::tail::watch::Wake;
use sensor::tail::{Config, Spec};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wire::id::SensorKey;

const LINES: usize = 1_000_000;

struct Shipped(Registry);

impl Filters for Shipped {
    fn choose(&self, wanted: Option<&str>, path: &Path, first: &[u8]) -> Option<CompactString> {
        let name = path.file_name()?.to_str()?;
        let filter = match wanted {
            Some(wanted) => self.0.get(wanted),
            None => self.0.choose(name, first),
        };
        filter.map(|filter| filter.name().into())
    }

    fn interpreter(&self, filter: &str, path: &Path, cluster: &str) -> Option<Box<dyn Interpret>> {
        let source = Source {
            file_name: path.file_name()?.to_str()?.to_owned(),
            host: "host".into(),
            cluster: cluster.to_owned(),
            zone: jiff::tz::TimeZone::UTC,
        };
        Some(Box::new(Engine::new(self.0.get(filter)?.clone(), &source)))
    }
}

fn main() {
    let logs = std::env::var("VISPERF_LOGS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../log-filters/logs").to_owned());
    let recorded = PathBuf::from(logs).join("slurm/22.05.8-alpha/slurmctld.log");
    let Ok(text) = std::fs::read_to_string(&recorded) else {
        println!("no recorded log at {}; set VISPERF_LOGS", recorded.display());
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("slurmctld.log");
    let bytes = write_log(&log, &text);
    let parts = Parts {
        filters: Box::new(Shipped(Registry::shipped())),
        join: Box::new(Arc::new(Mutex::new(Joiner::default()))),
        clock: Box::new(MachineClock),
        fresh_key: SensorKey(1),
    };
    let config = Config::new("host", vec![Spec::new(log.to_str().unwrap())]);
    let mut ingest = Ingest::open(config, &directory.path().join("state"), parts).unwrap();
    let (began, work) = (Instant::now(), processor_time());
    while ingest.turn(&Wake::default()) == Duration::ZERO {}
    ingest.drain();
    let (wall, work) = (began.elapsed(), processor_time() - work);
    let file = &ingest.status().files()[0];
    assert_eq!((file.lines, file.lag_bytes), (LINES as u64, 0), "{file:?}");
    let per_sec = |span: Duration| LINES as f64 / span.as_secs_f64();
    println!("{LINES} lines, {} MB, {} events, {} rejects", bytes >> 20, file.events, file.rejects);
    println!("by processor time {:.0} lines/s ({work:?})", per_sec(work));
    println!("by the clock      {:.0} lines/s ({wall:?})", per_sec(wall));
    println!("largest resident size {} MiB", peak_resident_kib() >> 10);
}

/// Repeats the recorded lines with other job numbers until there are enough.
fn write_log(path: &Path, text: &str) -> u64 {
    let numbers = jobs_in(text);
    let mut out = BufWriter::new(std::fs::File::create(path).unwrap());
    let (mut lines, mut shift) = (0, 0);
    'all: loop {
        for line in text.lines() {
            if lines == LINES {
                break 'all;
            }
            renumber(line, shift, &mut out);
            lines += 1;
        }
        shift += numbers;
    }
    out.flush().unwrap();
    std::fs::metadata(path).unwrap().len()
}

/// Returns one more than the largest job number.
fn jobs_in(text: &str) -> u64 {
    let mut most = 0;
    for mark in ["JobId=", "job_id "] {
        for (at, _) in text.match_indices(mark) {
            let digits: String = text[at + mark.len()..].chars().take_while(char::is_ascii_digit).collect();
            most = most.max(digits.parse().unwrap_or(0));
        }
    }
    most + 1
}

fn renumber(line: &str, shift: u64, out: &mut impl Write) {
    const MARK: &str = "JobId=";
    let mut rest = line;
    while let Some(at) = rest.find(MARK) {
        let (before, after) = rest.split_at(at + MARK.len());
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        out.write_all(before.as_bytes()).unwrap();
        match after[..digits].parse::<u64>() {
            Ok(number) => write!(out, "{}", number + shift).unwrap(),
            Err(_) => out.write_all(&after.as_bytes()[..digits]).unwrap(),
        }
        rest = &after[digits..];
    }
    out.write_all(rest.as_bytes()).unwrap();
    out.write_all(b"\n").unwrap();
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn peak_resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
