//! A writer that is killed at arbitrary moments loses nothing that it had flushed, and changes nothing.
//!
//! `VISPERF_KILLS` sets the number of kills, `VISPERF_SEED` the seed of their moments.

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It starts the writer as a process of its own.

use crate::made::{Dice, UNLIMITED, host, metric};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::reader::Selection;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// Default number of kills.
const KILLS: u64 = 40;
/// Names the folder of the store to the process that is killed.
const FOLDER: &str = "VISPERF_KILLED_STORE";
/// Files of a day of minutes, which are compacted; nothing is deleted, however many kills there are.
const LIMITS: [Limit; 3] = [UNLIMITED[0], Limit { bytes: 1 << 20, ..UNLIMITED[1] }, UNLIMITED[2]];
/// Sweeps between two flushes.
const FLUSH_EVERY: u64 = 20;

fn open(folder: &Path) -> Writer {
    Writer::open(folder, LIMITS).expect("opened")
}

fn of_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn metrics() -> Arc<[Arc<Metric>]> {
    (0..20).map(|number| metric(&format!("m{number:02}"), Semantics::Counter, &[])).collect()
}

/// Value of a metric in a row: the same in every process.
fn value(row: u64, metric: u64) -> Number {
    match metric % 3 {
        0 => Number::Whole(row * metric),
        1 => Number::Real(((row * 37) % 1000) as f64 / 100.0),
        _ => Number::Whole(metric),
    }
}

fn time(row: u64) -> Time {
    Time::from_micros(1_795_000_000_000_000 + row.cast_signed() * 1_000_000)
}

/// Rows in the store, each checked.
fn stored(folder: &Path) -> u64 {
    let writer = open(folder);
    let until = Time::from_micros(i64::MAX);
    let selection = Selection { host: &|_| true, metric: &|_| true, since: Time::from_micros(0), until };
    let answer = writer.reader().values(&selection, usize::MAX).expect("any size");
    assert_eq!(answer.damaged, 0);
    let mut rows = 0;
    for (subject, points) in &answer.series {
        let number = subject.metric.name[1..].parse().expect("a number");
        for (row, point) in points.iter().enumerate() {
            assert_eq!(*point, (time(row as u64), value(row as u64, number)), "{}", subject.metric.name);
        }
        rows = points.len() as u64;
    }
    rows
}

/// The process that is killed.
fn write_until_killed(folder: &Path) {
    let first = stored(folder);
    let mut writer = open(folder);
    let (host, metrics) = (host("wn01"), metrics());
    for row in first.. {
        let values: Vec<Number> = (0..20).map(|metric| value(row, metric)).collect();
        writer.push(&host, Sweep { time: time(row), metrics: &metrics, values: &values });
        if row % FLUSH_EVERY == 0 {
            writer.flush();
            writer.compact();
            println!("flushed {}", row + 1);
        }
    }
}

fn start(folder: &Path) -> Child {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new(own);
    command.args(["--exact", "kill::a_killed_writer_loses_nothing_that_it_had_flushed", "--nocapture"]);
    command.env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("started")
}

#[test]
fn a_killed_writer_loses_nothing_that_it_had_flushed() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return write_until_killed(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut dice = Dice(of_environment("VISPERF_SEED", 17));
    let (mut flushed, mut longest) = (0, 0);
    for kill in 0..of_environment("VISPERF_KILLS", KILLS) {
        let mut child = start(folder.path());
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        for _ in 0..=dice.below(60) {
            let line = lines.by_ref().find(|line| line.starts_with("flushed ")).expect("it writes on");
            flushed = line[8..].parse().expect("a number");
        }
        std::thread::sleep(Duration::from_micros(dice.below(3000)));
        child.kill().expect("killed");
        // What it printed before it was killed was flushed as well.
        for line in lines.filter(|line| line.starts_with("flushed ")) {
            flushed = line[8..].parse().unwrap_or(flushed);
        }
        child.wait().expect("ended");
        let rows = stored(folder.path());
        assert!(rows >= flushed, "kill {kill}: {rows} rows, {flushed} were flushed");
        longest = longest.max(rows);
    }
    assert!(longest > 2048, "{longest} rows: blocks were sealed on the way");
}
