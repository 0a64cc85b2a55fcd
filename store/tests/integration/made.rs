//! Made-up sweeps: counters that are reset, gauges, metrics that come and go, a clock that is set back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::tier_files::Limit;
use store::writer::{Sweep, Writer};
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// Limits that nothing reaches.
pub(crate) const UNLIMITED: [Limit; 3] = [Limit { bytes: 1 << 40, age: Duration::from_secs(1 << 40) }; 3];

/// Limits that nothing reaches, and segments of two and a half hours, which are compacted.
pub(crate) const SHORT_SEGMENTS: [Limit; 3] =
    [Limit { bytes: 1 << 40, age: Duration::from_secs(16 * 9000) }; 3];

/// Number generator for tests; every run is the same.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, max: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % max
    }
}

/// A sweep that is not written yet.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) host: HostName,
    pub(crate) time: Time,
    pub(crate) metrics: Arc<[Arc<Metric>]>,
    pub(crate) values: Vec<Number>,
}

pub(crate) fn host(name: &str) -> HostName {
    HostName::try_from(name).expect("a name")
}

pub(crate) fn metric(name: &str, semantics: Semantics, labels: &[(&str, &str)]) -> Arc<Metric> {
    let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Arc::new(Metric { name: name.into(), labels, unit: "".into(), semantics })
}

/// Makes sweeps of a host about this many seconds apart.
pub(crate) struct Maker {
    pub(crate) dice: Dice,
    pub(crate) host: HostName,
    pub(crate) time: i64,
    pub(crate) period_micros: u64,
    all: Vec<Arc<Metric>>,
    counters: [u64; 2],
    shapes: [Arc<[Arc<Metric>]>; 2],
}

impl Maker {
    pub(crate) fn new(name: &str, seed: u64) -> Maker {
        let all = vec![
            metric("bytes_total", Semantics::Counter, &[("device", "sda")]),
            metric("seconds_total", Semantics::Counter, &[]),
            metric("memory_bytes", Semantics::Gauge, &[]),
            metric("load", Semantics::Gauge, &[]),
            metric("duration_seconds", Semantics::Gauge, &[]),
            metric("constant", Semantics::State, &[]),
        ];
        let shapes = [all.clone().into(), all[1..].into()];
        Maker {
            dice: Dice(seed),
            host: host(name),
            time: 1_795_000_000_000_000,
            period_micros: 3_000_000,
            all,
            counters: [1 << 40, 0],
            shapes,
        }
    }

    /// The next sweep. Seldom a gap, a reset, another set of metrics or a clock that is set back.
    pub(crate) fn next(&mut self) -> Made {
        let dice = &mut self.dice;
        self.time += (self.period_micros / 2 + dice.below(self.period_micros)).cast_signed();
        match dice.below(400) {
            0 => self.time += 500_000_000,
            1 => self.time -= 150_000_000,
            2 => self.counters[dice.below(2) as usize] = dice.below(50),
            _ => {}
        }
        self.counters[0] += dice.below(100_000);
        self.counters[1] += dice.below(300);
        let is_whole = dice.below(10) > 0;
        let metrics = Arc::clone(&self.shapes[usize::from(!is_whole)]);
        let values = [
            Number::Whole(self.counters[0]),
            Number::Real(self.counters[1] as f64 / 100.0),
            Number::Whole((1 << 33) + 4096 * dice.below(1000)),
            Number::Real(dice.below(3000) as f64 / 100.0),
            Number::Real(dice.below(1 << 30) as f64 / 1e9),
            Number::Whole(7),
        ];
        let skipped = self.all.len() - metrics.len();
        let values = values[skipped..].to_vec();
        Made { host: self.host.clone(), time: Time::from_micros(self.time), metrics, values }
    }
}

pub(crate) fn push(writer: &mut Writer, made: &Made) {
    let sweep = Sweep { time: made.time, metrics: &made.metrics, values: &made.values };
    writer.push(&made.host, sweep);
}

pub(crate) fn open(folder: &Path) -> Writer {
    Writer::open(folder, SHORT_SEGMENTS).expect("opened")
}
