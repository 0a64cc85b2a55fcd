//! Cost of the copies of a domain: CPU and memory for a minute of all hosts, bytes sent, and a query over all of them.
//!
//! ```sh
//! cargo bench -p store --bench copies -- [HOSTS] [HOURS]
//! cargo bench -p store --bench copies -- [HOSTS] samples
//! ```
//! One host of 200 metrics is made up, and copied under the names of all hosts: its minutes, or two and a half hours of
//! its samples, two hours of them retained.

#![allow(clippy::print_stdout, clippy::disallowed_methods)] // It prints, and measures times.

use std::sync::Arc;
use std::time::{Duration, Instant};
use store::copied_names::Sent;
use store::query::{By, quantile};
use store::reader::{Reader, Selection};
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::at_end::AtEnd;
use wire::id::HostName;
use wire::report::minutes::{Fetch, Held, MinuteRow, Numbered};
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

const UNLIMITED: [Limit; 3] = [Limit { bytes: 1 << 40, age: Duration::from_secs(1 << 40) }; 3];
const METRICS: u64 = 200;
const START: Time = Time::from_micros(1_795_000_000_000_000);
/// As often a sensor stores what it has, in a minute.
const CALLS_A_MINUTE: u32 = 7;
/// What a representative of 500 hosts has: 32 GiB: 11/16 are minutes of 14 days, 4/16 hours of five years.
const LIMITS: [Limit; 3] = [
    Limit { bytes: 2 << 30, age: Duration::from_secs(14 * 86_400) },
    Limit { bytes: 22 << 30, age: Duration::from_secs(14 * 86_400) },
    Limit { bytes: 8 << 30, age: Duration::from_secs(1826 * 86_400) },
];
/// Sweeps are so far apart.
const EVERY: Duration = Duration::from_secs(10);

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let hosts = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(500);
    let names: Vec<HostName> =
        (0..hosts).map(|host| HostName::try_from(format!("wn{host}").as_str()).expect("a name")).collect();
    match arguments.next().as_deref() {
        Some("samples") => samples(&names),
        text => minutes(&names, text.and_then(|text| text.parse().ok()).unwrap_or(24)),
    }
}

/// Copies samples of each second once a minute.
fn samples(names: &[HostName]) {
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut origin = Writer::open(folders[0].path(), UNLIMITED).expect("opened");
    let limits = [Limit { age: Duration::from_secs(7200), ..LIMITS[0] }, LIMITS[1], LIMITS[2]];
    let mut copies = Writer::open_copies(folders[1].path(), limits).expect("opened");
    let (mut sent, mut numbered) = (Sent::default(), Numbered::default());
    let (mut held, mut bytes, mut reading, mut copying) = (Vec::new(), 0, 0.0, 0.0);
    let (metrics, minutes) = (metrics(), 150);
    for second in 0..60 * minutes {
        let time = START.plus(Duration::from_secs(1) * u32::try_from(second).expect("some hours"));
        origin.push(&names[0], Sweep { time, metrics: &metrics, values: &values(second) });
        if second % 60 != 59 {
            continue;
        }
        let fetch = Fetch { held, since: START, len_bytes: 128 << 10, connected: AtEnd(None) };
        let started = Instant::now();
        let answer = origin.reader().samples_after(&fetch, &mut sent);
        reading += started.elapsed().as_secs_f64();
        bytes += postcard::to_stdvec(&answer).expect("in memory").len();
        held = fetch.held;
        let started = cpu();
        for of_host in answer.hosts {
            let metrics = numbered.learn(of_host.names).expect("few");
            for block in &of_host.blocks {
                held = vec![Held { host: names[0].clone(), next: block.next, latest: block.last }];
                names.iter().for_each(|name| copies.copy_samples(name, &metrics, block).expect("a block"));
            }
        }
        copies.flush();
        copying += cpu() - started;
    }
    println!("{} hosts, {METRICS} metrics each second, {minutes} minutes of samples copied", names.len());
    println!("sent: {:.0} bytes a minute and host", bytes as f64 / minutes as f64);
    println!("CPU of a host: {:.3} % of a core", 100.0 * reading / (minutes as f64 * 60.0));
    println!("CPU of the copies: {:.2} % of a core", 100.0 * copying / (minutes as f64 * 60.0));
    println!("memory of the process: {:.1} MiB", resident_mib());
    let used = copies.reader().state().tiers[0].used_bytes;
    println!("disk: {:.2} MB a host", used as f64 / 1e6 / names.len() as f64);
    let (since, until) = (time_of(120, minutes), time_of(0, minutes));
    let metric = |metric: &Metric| metric.name == "metric_1";
    let selection = Selection { host: &|_| true, metric: &metric, since, until };
    let started = Instant::now();
    let answer = copies.reader().steps(&selection, Duration::from_secs(10), &By::Host, false, usize::MAX);
    assert_eq!(answer.expect("any size").series.len(), names.len());
    println!("one metric of all hosts, 2 h at 10 s: {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
}

/// So many minutes before the end.
fn time_of(ago: u64, minutes: u64) -> Time {
    START.plus(Duration::from_secs(60) * u32::try_from(minutes - ago).expect("some hours"))
}

fn minutes(names: &[HostName], hours: u64) {
    let hosts = names.len();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut origin = Writer::open(folders[0].path(), UNLIMITED).expect("opened");
    let mut copies = Writer::open_copies(folders[1].path(), LIMITS).expect("opened");
    let (mut sent, mut numbered) = (Sent::default(), Numbered::default());
    let (mut held, mut minutes, mut bytes, mut copying) = (Vec::new(), 0u64, 0, 0.0);
    let metrics = metrics();
    for sweep in 0..hours * 360 {
        let time = START.plus(EVERY * u32::try_from(sweep).expect("some days"));
        origin.push(&names[0], Sweep { time, metrics: &metrics, values: &values(sweep) });
        if sweep % 6 != 5 {
            continue;
        }
        let fetch = Fetch { held, since: START, len_bytes: 1 << 20, connected: AtEnd(None) };
        let answer = origin.reader().minutes(&fetch, |_| true, &mut sent);
        bytes += postcard::to_stdvec(&answer).expect("in memory").len();
        held = fetch.held;
        let started = cpu();
        for of_host in answer.hosts {
            let metrics = numbered.learn(of_host.names).expect("few");
            for row in &of_host.rows {
                minutes += 1;
                held = vec![Held { host: names[0].clone(), next: row.number + 1, latest: row.start }];
                for name in names {
                    let row = MinuteRow { number: row.number, start: row.start, packed: row.packed.clone() };
                    copies.copy(name, &metrics, &row).expect("a row");
                }
            }
        }
        copies.flush();
        for _ in 0..CALLS_A_MINUTE {
            copies.compact();
        }
        copying += cpu() - started;
    }
    println!("{hosts} hosts, {METRICS} metrics, {hours} h: {minutes} minutes of each copied");
    println!("sent: {:.0} bytes a minute and host", bytes as f64 / minutes as f64);
    println!("CPU: {:.2} % of a core", 100.0 * copying / (minutes as f64 * 60.0));
    println!("memory of the process: {:.1} MiB", resident_mib());
    let used: u64 = copies.reader().state().tiers.iter().map(|tier| tier.used_bytes).sum();
    println!("disk: {:.2} MB a host and day", used as f64 / 1e6 / hosts as f64 * 24.0 / hours as f64);
    queries(&copies.reader(), hours);
    drop(copies);
    let started = Instant::now();
    drop(Writer::open_copies(folders[1].path(), LIMITS).expect("opened"));
    println!("open after a crash: {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
}

fn metrics() -> Arc<[Arc<Metric>]> {
    let metric = |number: u64| Metric {
        name: format!("metric_{number}").into(),
        labels: Vec::new(),
        unit: "".into(),
        semantics: if number.is_multiple_of(2) { Semantics::Counter } else { Semantics::Gauge },
    };
    (0..METRICS).map(|number| Arc::new(metric(number))).collect()
}

/// A third of the metrics are constant, as on a real host.
fn values(sweep: u64) -> Vec<Number> {
    let noise = |number: u64| (sweep * METRICS + number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let value = |number: u64| match (number % 3, number % 2) {
        (0, _) => Number::Whole(number * 1000),
        (_, 0) => Number::Whole(sweep * 10_000 + noise(number) % 10_000),
        _ => Number::Real((noise(number) % 10_000) as f64 / 100.0),
    };
    (0..METRICS).map(value).collect()
}

fn queries(reader: &Reader, hours: u64) {
    let until = START.plus(Duration::from_secs(3600) * u32::try_from(hours).expect("some days"));
    let metric = |metric: &Metric| metric.name == "metric_1";
    for (what, by, step) in
        [("p95 by host at 1 min", By::Host, 60), ("p95 of all hosts at 1 h", By::Name, 3600)]
    {
        let selection = Selection { host: &|_| true, metric: &metric, since: START, until };
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let started = Instant::now();
                let answer = reader.steps(&selection, Duration::from_secs(step), &by, true, usize::MAX);
                let series = answer.expect("any size").series;
                let points = series.iter().flat_map(|(_, points)| points);
                let p95: Vec<_> = points.filter_map(|point| quantile(&point.values, 0.95)).collect();
                assert!(!p95.is_empty());
                started.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("one metric of all hosts, {hours} h, {what}: {:.0} ms", times[2]);
    }
}

fn resident_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default() / 1024.0
}

/// CPU time of the process, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("read");
    let fields: Vec<&str> = text.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: u64 =
        fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number");
    ticks as f64 / 100.0
}
