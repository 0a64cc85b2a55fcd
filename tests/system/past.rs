//! A sensor's own past in its state folder, as after a restart.

use sensor::process_history::minute::{ProcessMinute, ProcessRow};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::daily::{DailyLimit, DailyLog};
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::id::HostName;
use wire::process::ProcessKey;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;
use wire::version::PROCESS_HISTORY;

const DAY: Duration = Duration::from_secs(86_400);
/// For so long samples, minutes and hours are stored by default.
const AGE_DAYS: [u32; 3] = [14, 90, 1_826];
/// Share of the CPU that is used: the same all the time, so that rates are exact over any steps.
const USER: f64 = 0.2375;
/// Metrics that have names of real ones.
const NAMED: usize = 5;

/// Store so many metrics of a host at these times, which have numbers, in the state folder of a sensor: CPU time, load,
/// memory, and made-up ones. What is too old is deleted in parts of a sixteenth of `tier_bytes`, the limit of each tier.
pub(super) fn store(
    state: &Path,
    (host, metrics): (&str, usize),
    tier_bytes: u64,
    times: impl Iterator<Item = (u64, Time)>,
) {
    let folder = state.join("sensor/history");
    std::fs::create_dir_all(&folder).unwrap();
    let limits = AGE_DAYS.map(|days| Limit { bytes: tier_bytes, age: DAY * days });
    let mut writer = Writer::open(&folder, limits).unwrap();
    let metrics = named(metrics);
    let host = HostName::try_from(host).unwrap();
    let (mut idle, mut user, mut last) = (0.0, 0.0, None);
    for (number, time) in times {
        let load = load(time, number);
        let secs = last.map_or(0.0, |last| time.since(last).as_secs_f64());
        (idle, user, last) = (idle + secs * (1.0 - USER), user + secs * USER, Some(time));
        let mut values = vec![
            Number::Real(idle),
            Number::Real(user),
            Number::Real(load),
            Number::Whole((1 << 34) - (number % 100_000) * 4_096),
            Number::Whole(1 << 35),
        ];
        values.resize(metrics.len(), Number::Whole(number % 7));
        writer.push(&host, Sweep { time, metrics: &metrics, values: &values });
    }
    writer.close();
}

/// Stores these minutes of processes of a host, which was booted at this time, in the state folder of a sensor.
pub(super) fn store_processes(
    state: &Path,
    booted: Time,
    minutes: impl Iterator<Item = (Time, Vec<ProcessRow>)>,
) {
    let limit = DailyLimit { bytes: 1 << 30, days: 14 };
    std::fs::create_dir_all(state.join("sensor")).unwrap();
    let mut log = DailyLog::open(&state.join("sensor/process-history"), PROCESS_HISTORY, limit).unwrap();
    for (start, rows) in minutes {
        let minute =
            ProcessMinute { start, covered_us: 60_000_000, booted, rows, ..ProcessMinute::default() };
        log.append(start, &minute.pack().unwrap()).unwrap();
    }
}

/// What a process used in a minute: 15 s of CPU time, 1 GiB of memory, and 4,097 bytes.
pub(super) fn row(pid: u32, uid: u32, name: &str) -> ProcessRow {
    ProcessRow {
        key: ProcessKey { pid, start_ns: u64::from(pid) * 1_000_000_000 },
        uid,
        name: name.into(),
        cpu_ns: 15_000_000_000,
        rss_kib: 1 << 20,
        io_bytes: Some((4096, 1)),
        ..ProcessRow::default()
    }
}

fn named(count: usize) -> Arc<[Arc<Metric>]> {
    let metric = |name: &str, unit: &str, semantics, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Arc::new(Metric { name: name.into(), labels, unit: unit.into(), semantics })
    };
    let cpu = |mode| {
        metric("node_cpu_seconds_total", "seconds", Semantics::Counter, &[("cpu", "0"), ("mode", mode)])
    };
    let mut metrics = vec![
        cpu("idle"),
        cpu("user"),
        metric("node_load1", "", Semantics::Gauge, &[]),
        metric("node_memory_MemAvailable_bytes", "bytes", Semantics::Gauge, &[]),
        metric("node_memory_MemTotal_bytes", "bytes", Semantics::Gauge, &[]),
    ];
    let made_up = |number: usize| metric("made_up", "", Semantics::State, &[("number", &number.to_string())]);
    metrics.extend((NAMED..count).map(made_up));
    metrics.into()
}

/// Higher at noon, on working days, and in some minutes; eighths, so that sums are exact in any order.
fn load(time: Time, number: u64) -> f64 {
    let days = time.secs_f64() / DAY.as_secs_f64();
    let is_free = (days + 4.0) as u64 % 7 < 2;
    let noon = 1.0 - (days.fract() * std::f64::consts::TAU).cos();
    let burst = if number % 97 < 3 { 4.0 } else { (number % 7) as f64 / 8.0 };
    let load = if is_free { 0.5 + burst / 2.0 } else { 1.0 + 3.0 * noon + burst };
    (load * 8.0).round() / 8.0
}
