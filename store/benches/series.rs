//! Cost of storing series: bytes a value, values a second, time of queries.
//!
//! ```sh
//! cargo bench -p store --bench series -- RECORDING [HOURS]
//! ```
//! The recording is a file of JSON lines: `{"define": N, "metric": [NAME, {LABEL: VALUE}, UNIT, SEMANTICS]}` before
//! the first use of a number, and `{"t": SECONDS, "v": [[N, VALUE], …]}` for each sweep. It is repeated, with
//! counters that go on, until it has so many hours.

#![allow(clippy::print_stdout, clippy::disallowed_methods)] // It prints, and measures times.

use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::query::By;
use store::reader::Selection;
use store::tier::Tier;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

const UNLIMITED: [Limit; 3] = [Limit { bytes: 1 << 40, age: Duration::from_secs(1 << 40) }; 3];

/// Limits that a sensor has by default.
const DEFAULT: [Limit; 3] = [
    Limit { bytes: 384 << 20, age: Duration::from_secs(14 * 86_400) },
    Limit { bytes: 448 << 20, age: Duration::from_secs(90 * 86_400) },
    Limit { bytes: 192 << 20, age: Duration::from_secs(1826 * 86_400) },
];

/// A sweep of the recording.
struct Recorded {
    time: Time,
    metrics: Arc<[Arc<Metric>]>,
    values: Vec<Number>,
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(recording) = arguments.next() else {
        println!("no recording is named; see the head of this file");
        return;
    };
    let hours: f64 = arguments.next().and_then(|hours| hours.parse().ok()).unwrap_or(0.0);
    let sweeps = read(Path::new(&recording));
    let folder = tempfile::tempdir().expect("a folder");
    let repeated = repeat(&sweeps, hours);
    let values: usize = repeated.iter().map(|sweep| sweep.values.len()).sum();
    let span = repeated[repeated.len() - 1].time.since(repeated[0].time);
    println!("{} sweeps, {values} values, {:.1} h", repeated.len(), span.as_secs_f64() / 3600.0);
    let host = HostName::try_from("wn01").expect("a name");
    let mut writer = Writer::open(folder.path(), UNLIMITED).expect("opened");
    let started = cpu();
    for (number, sweep) in repeated.iter().enumerate() {
        writer.push(&host, Sweep { time: sweep.time, metrics: &sweep.metrics, values: &sweep.values });
        if number % 10 == 9 {
            writer.flush();
        }
    }
    let secs = cpu() - started;
    println!("append: {:.2} M values/s of CPU, all tiers", values as f64 / secs / 1e6);
    let state = writer.reader().state();
    for tier in Tier::ALL {
        let bytes = state.tiers[tier as usize].used_bytes;
        println!("{}: {bytes} bytes, {:.3} bytes a sample", tier.name(), bytes as f64 / values as f64);
    }
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    println!("{}", io.lines().find(|line| line.starts_with("write_bytes")).unwrap_or_default());
    queries(&writer, repeated[0].time, repeated[repeated.len() - 1].time);
    month(&sweeps, &host);
    drop(writer);
    let started = Instant::now();
    drop(Writer::open(folder.path(), UNLIMITED).expect("opened"));
    println!("open after a crash: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    let started = Instant::now();
    drop(Writer::open(folder.path(), UNLIMITED).expect("opened"));
    println!("open again: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
}

/// The recording as if it had been sampled once a minute, until it has 30 days.
fn month(sweeps: &[Recorded], host: &HostName) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = Writer::open(folder.path(), DEFAULT).expect("opened");
    let (start, minutes) = (sweeps[0].time, 30 * 24 * 60);
    for (minute, sweep) in (0..minutes).zip(sweeps.iter().cycle()) {
        let time = start.plus(Duration::from_secs(60) * minute);
        writer.push(host, Sweep { time, metrics: &sweep.metrics, values: &sweep.values });
        // A sensor does this each 8 seconds.
        writer.compact();
    }
    println!("30 days at a minute:");
    queries(&writer, start, start.plus(Duration::from_secs(60) * minutes));
}

fn queries(writer: &Writer, since: Time, until: Time) {
    let reader = writer.reader();
    for (what, step) in [("1 min", 60), ("10 s", 10), ("1 h", 3600)] {
        let selection =
            Selection { host: &|_| true, metric: &|metric| metric.name == "node_load1", since, until };
        let mut times: Vec<f64> = (0..11)
            .map(|_| {
                let started = Instant::now();
                let answer =
                    reader.steps(&selection, Duration::from_secs(step), &By::Series, false, usize::MAX);
                assert!(answer.is_ok_and(|answer| answer.series.len() == 1));
                started.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("one metric, all time at {what}: {:.2} ms", times[5]);
    }
}

fn read(path: &Path) -> Vec<Recorded> {
    let text = std::fs::read_to_string(path).expect("a recording");
    let mut metrics: HashMap<u64, Arc<Metric>> = HashMap::new();
    let mut shape: (Vec<u64>, Arc<[Arc<Metric>]>) = (Vec::new(), Arc::new([]));
    let mut sweeps = Vec::new();
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        if let Some(number) = line["define"].as_u64() {
            metrics.insert(number, Arc::new(metric(&line["metric"])));
            continue;
        }
        let row = line["v"].as_array().expect("values");
        let numbers: Vec<u64> = row.iter().map(|cell| cell[0].as_u64().expect("a number")).collect();
        if shape.0 != numbers {
            shape = (numbers.clone(), numbers.iter().map(|number| Arc::clone(&metrics[number])).collect());
        }
        let values = row.iter().map(|cell| match cell[1].as_u64() {
            Some(whole) => Number::Whole(whole),
            None => Number::Real(cell[1].as_f64().expect("a number")),
        });
        sweeps.push(Recorded {
            time: Time::from_secs_f64(line["t"].as_f64().expect("a time")),
            metrics: Arc::clone(&shape.1),
            values: values.collect(),
        });
    }
    sweeps
}

fn metric(parts: &Value) -> Metric {
    let labels = parts[1].as_object().expect("labels").iter();
    let labels = labels.map(|(name, value)| (name.into(), value.as_str().unwrap_or_default().into()));
    Metric {
        name: parts[0].as_str().expect("a name").into(),
        labels: labels.collect(),
        unit: parts[2].as_str().unwrap_or_default().into(),
        semantics: match parts[3].as_str() {
            Some("counter") => Semantics::Counter,
            Some("state") => Semantics::State,
            _ => Semantics::Gauge,
        },
    }
}

/// The recording again and again: times go on, and counters go on from their last values.
fn repeat(sweeps: &[Recorded], hours: f64) -> Vec<Recorded> {
    let span = sweeps[sweeps.len() - 1].time.since(sweeps[0].time) + Duration::from_secs(1);
    let times = (hours * 3600.0 / span.as_secs_f64()).ceil().max(1.0) as u32;
    let mut repeated = Vec::new();
    let (first, last) = (&sweeps[0], &sweeps[sweeps.len() - 1]);
    let gains: HashMap<&Metric, (Number, Number)> = first
        .metrics
        .iter()
        .zip(&first.values)
        .filter_map(|(metric, from)| {
            let at = last.metrics.iter().position(|other| other == metric)?;
            (metric.semantics == Semantics::Counter).then_some((&**metric, (*from, last.values[at])))
        })
        .collect();
    for time in 0..times {
        for sweep in sweeps {
            let gained = |(metric, value): (&Arc<Metric>, &Number)| match (value, gains.get(&**metric)) {
                (Number::Whole(value), Some((Number::Whole(from), Number::Whole(to)))) => {
                    Number::Whole(value + u64::from(time) * to.saturating_sub(*from))
                }
                (Number::Real(value), Some((from, to))) => {
                    let gained = value + f64::from(time) * (to.as_f64() - from.as_f64());
                    Number::Real((gained * 100.0).round() / 100.0)
                }
                (value, _) => *value,
            };
            let values = sweep.metrics.iter().zip(&sweep.values).map(gained).collect();
            let time = sweep.time.plus(span * time);
            repeated.push(Recorded { time, metrics: Arc::clone(&sweep.metrics), values });
        }
    }
    repeated
}

/// CPU time of the process, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("read");
    let fields: Vec<&str> = text.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: u64 =
        fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number");
    ticks as f64 / 100.0
}
