//! How many lines a second the engine takes, on one core, log by log.
//!
//! Prints for each recorded log (in `log-filters/logs`, or where `VISPERF_LOGS` says) the median of several
//! passes: lines a second and megabytes a second through the engine alone, and with joining to calls.
//! Words after `--` choose logs whose path or filter holds one of them.
#![allow(clippy::print_stdout, clippy::disallowed_methods, clippy::cast_precision_loss)]

use log_filters::engine::{Engine, Source};
use log_filters::filter::Filter;
use log_filters::join::Joiner;
use log_filters::registry::Registry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::time::Time;

const PASSES: usize = 9;
const LINES_A_PASS: usize = 200_000;

fn main() {
    let logs = std::env::var("VISPERF_LOGS")
        .map_or_else(|_| Path::new(env!("CARGO_MANIFEST_DIR")).join("logs"), PathBuf::from);
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let registry = Registry::shipped();
    let mut files = Vec::new();
    collect(&logs, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no logs in {}; set VISPERF_LOGS", logs.display());
    println!("{:<52} {:>12} {:>9} {:>14}", "log (filter)", "lines/s", "MB/s", "with calls");
    for file in files {
        let Ok(bytes) = std::fs::read(&file) else { continue };
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(filter) = registry.choose(&name, &bytes) else { continue };
        let short = file.strip_prefix(&logs).unwrap_or(&file).display().to_string();
        let label = format!("{short} ({})", filter.name());
        if !words.is_empty() && !words.iter().any(|word| label.contains(word.as_str())) {
            continue;
        }
        let lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()).collect();
        let alone = median(|| pass(filter, &name, &lines, false));
        let joined = median(|| pass(filter, &name, &lines, true));
        let mean_len = bytes.len() as f64 / lines.len() as f64;
        println!("{label:<52} {:>12.0} {:>9.1} {:>14.0}", 1e9 / alone, mean_len * 1e3 / alone, 1e9 / joined);
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_none_or(|end| end != "json" && end != "jsonl" && end != "md") {
            files.push(path);
        }
    }
}

fn median(mut measure: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..PASSES).map(|_| measure()).collect();
    all.sort_by(f64::total_cmp);
    all[PASSES / 2]
}

/// Nanoseconds a line.
fn pass(filter: &Arc<Filter>, name: &str, lines: &[&[u8]], join: bool) -> f64 {
    let source = Source {
        file_name: name.to_owned(),
        host: "h".into(),
        cluster: String::new(),
        zone: jiff::tz::TimeZone::UTC,
    };
    let mut engine = Engine::new(Arc::clone(filter), &source);
    let mut joiner = Joiner::default();
    let (mut found, mut changes) = (Vec::new(), Vec::new());
    let seen = Time::from_secs_f64(1_795_220_000.0);
    let start = cpu_nanos();
    let mut offset = 0;
    for (number, line) in lines.iter().cycle().take(LINES_A_PASS).enumerate() {
        engine.line(line, offset, seen, &mut found);
        offset += line.len() as u64 + 1;
        if number % 1_000 == 0 {
            if join {
                for found in &found {
                    let id = Id {
                        sensor: SensorKey(1),
                        generation: Generation(1),
                        offset: found.offset,
                        number: found.number,
                    };
                    std::hint::black_box(joiner.join(found, id));
                }
            }
            found.clear();
            engine.take_changes(&mut changes);
            changes.clear();
        }
    }
    (cpu_nanos() - start) / LINES_A_PASS as f64
}

/// Processor time of this thread: others on the machine do not count.
fn cpu_nanos() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
