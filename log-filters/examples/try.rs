//! Run a filter over log files and print its events, the joined calls and the lines no rule took.
//!
//! For writers of filters inside this repository; users have `visperf filter try`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use log_filters::across::AcrossLogs;
use log_filters::engine::{Engine, Source};
use log_filters::join::Joiner;
use log_filters::registry::Registry;
use log_filters::test_lines;
use std::sync::Arc;
use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::time::Time;

fn main() {
    let mut registry = Registry::shipped();
    let (mut filter, mut files, mut quiet) = (None, Vec::new(), false);
    let mut zone = jiff::tz::TimeZone::UTC;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--filter" => {
                let file = args.next().expect("--filter FILE");
                let text = std::fs::read_to_string(&file).expect("readable");
                filter = Some(registry.add(&file, &text).unwrap_or_else(|error| panic!("{error}")));
            }
            "--zone" => {
                zone = log_filters::calendar::zone(&args.next().expect("--zone NAME")).expect("a zone")
            }
            "--quiet" => quiet = true,
            _ => files.push(arg),
        }
    }
    if let Some(filter) = &filter {
        for failure in test_lines::run(filter) {
            println!("TEST {}: {}", failure.test, failure.message);
        }
    }
    let mut joiner = Joiner::default();
    // Kept to the end: what a log remembers for others lasts as long as its engine.
    let (across, mut engines) = (AcrossLogs::default(), Vec::new());
    for (number, file) in files.iter().enumerate() {
        let bytes = std::fs::read(file).expect("readable");
        let name = std::path::Path::new(file).file_name().unwrap().to_string_lossy().into_owned();
        let Some(chosen) = filter.clone().or_else(|| registry.choose(&name, &bytes).map(Arc::clone)) else {
            println!("== {file}: no filter reads it");
            continue;
        };
        println!("== {file}: {}", chosen.name());
        let source =
            Source { file_name: name, host: "this-host".into(), cluster: String::new(), zone: zone.clone() };
        let mut engine = Engine::among(chosen, &source, &across);
        engine.keep_unknown();
        let seen = Time::from_secs_f64(1_795_220_000.0);
        let (mut found, mut offset, mut starts) = (Vec::new(), 0u64, Vec::new());
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            starts.push(offset);
            engine.line(line.strip_suffix(b"\n").unwrap_or(line), offset, seen, &mut found);
            offset += line.len() as u64;
        }
        engine.idle(seen, &mut found);
        let line_of = |offset: u64| starts.partition_point(|&start| start <= offset);
        for found in &found {
            if !quiet {
                println!("{}", test_lines::shown(found, line_of(found.offset)));
            }
            let generation = Generation(u32::try_from(number + 1).unwrap());
            joiner.join(
                found,
                Id { sensor: SensorKey(1), generation, offset: found.offset, number: found.number },
            );
        }
        for (offset, text) in engine.take_unknown() {
            println!("UNKNOWN line {}: {}", line_of(offset), String::from_utf8_lossy(&text));
        }
        println!("   {:?}", engine.counters());
        for (line, count) in engine.rule_counts().filter(|&(_, count)| count == 0) {
            println!("   rule at line {line} took {count}");
        }
        engines.push(engine);
    }
    for call in joiner.calls() {
        println!("CALL {call:?}");
    }
}
