//! Conversion of host metrics into graph lines: shares of CPU, bytes per second, load, memory, and any metric
//! by its name.
//!
//! Pure. Counters become rates between neighbouring sweeps; one that went back (a host that restarted) gives
//! no value for that sweep. What does not grow is a value as it is: a gauge, or a rate that a daemon computed.
//! Metric names are node_exporter's. Not here: the requests (`live`).

use crate::graphs::metric::{LINES_MAX, Metric};
use crate::grid::text::shown;
use std::collections::BTreeMap;
use wire::time::Time;

/// A value at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub time: Time,
    pub value: f64,
}

/// A metric with its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    pub name: String,
    pub labels: Vec<(String, String)>,
    /// Whether it is a counter, which is shown as a rate.
    pub grows: bool,
    /// Its values, the oldest first.
    pub samples: Vec<Sample>,
}

/// Points of the lines of these metrics, by the lines' names.
#[must_use]
pub fn points(metrics: &[Metric], counters: &[Counter]) -> BTreeMap<String, Vec<Sample>> {
    let mut points = BTreeMap::new();
    for metric in metrics {
        match metric {
            Metric::Named(_) => named(metric, counters, &mut points),
            Metric::Cpu | Metric::Disk | Metric::Network | Metric::Memory | Metric::Load => {
                let lines = usual(metric, counters);
                if let Some(whole) = metric.whole() {
                    points.insert(whole.to_owned(), sum(&lines));
                }
                let named = metric.usual_lines().iter().zip(lines);
                points.extend(named.map(|(name, samples)| ((*name).to_owned(), samples)));
            }
        }
    }
    points
}

/// Points of the lines that a built-in metric always has, in their order.
fn usual(metric: &Metric, counters: &[Counter]) -> Vec<Vec<Sample>> {
    let of = |name: &'static str, has: fn(&Counter) -> bool| {
        rate(counters, move |counter| counter.name == name && has(counter))
    };
    let cpu = |modes: &'static [&'static str]| {
        rate(counters, move |counter| {
            counter.name == "node_cpu_seconds_total"
                && counter.label("mode").is_some_and(|mode| modes.contains(&mode))
        })
    };
    let whole_disk = |counter: &Counter| counter.label("device").is_none_or(|device| !is_part(device));
    let outside = |counter: &Counter| counter.label("device") != Some("lo");
    match metric {
        Metric::Cpu => {
            vec![cpu(&["user", "nice"]), cpu(&["system", "irq", "softirq", "steal"]), cpu(&["iowait"])]
        }
        Metric::Disk => {
            vec![
                of("node_disk_read_bytes_total", whole_disk),
                of("node_disk_written_bytes_total", whole_disk),
            ]
        }
        Metric::Network => vec![
            of("node_network_receive_bytes_total", outside),
            of("node_network_transmit_bytes_total", outside),
        ],
        Metric::Memory => vec![memory(counters)],
        Metric::Load => vec![gauge(counters, "node_load1")],
        Metric::Named(_) => Vec::new(),
    }
}

/// One line for each series of the named metric, up to the limit.
fn named(metric: &Metric, counters: &[Counter], points: &mut BTreeMap<String, Vec<Sample>>) {
    let mut of_name: Vec<_> = counters
        .iter()
        .filter(|counter| metric.has(&counter.name))
        .map(|counter| (shown(&counter.line()).text, counter))
        .collect();
    of_name.sort_by(|one, other| one.0.cmp(&other.0));
    for (line, counter) in of_name.into_iter().take(LINES_MAX) {
        let samples = match counter.grows {
            true => rate(std::slice::from_ref(counter), |_| true),
            false => counter.samples.clone(),
        };
        points.insert(line, samples);
    }
}

impl Counter {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Its name and labels, as the name of a line.
    fn line(&self) -> String {
        let labels = self.labels.iter().map(|(name, value)| format!(" {name}={value}"));
        self.name.clone() + &labels.collect::<String>()
    }
}

/// Whether a device is a partition or a layer, whose traffic its disk counts already.
fn is_part(device: &str) -> bool {
    let is_nvme_part = device.starts_with("nvme") && device.contains('p');
    let is_sd_part = (device.starts_with("sd") || device.starts_with("vd"))
        && device.ends_with(|char: char| char.is_ascii_digit());
    is_nvme_part
        || is_sd_part
        || device.starts_with("dm-")
        || device.starts_with("loop")
        || device.starts_with("md")
}

/// The sum of the rates of the matching counters: of those that grow at each sweep that has one before it.
fn rate(counters: &[Counter], of: impl Fn(&Counter) -> bool) -> Vec<Sample> {
    let mut sums: BTreeMap<Time, f64> = BTreeMap::new();
    for counter in counters.iter().filter(|counter| of(counter)) {
        if !counter.grows {
            counter.samples.iter().for_each(|sample| *sums.entry(sample.time).or_default() += sample.value);
            continue;
        }
        for pair in counter.samples.windows(2) {
            let secs = pair[1].time.since(pair[0].time).as_secs_f64();
            let more = pair[1].value - pair[0].value;
            if secs > 0.0 && more >= 0.0 && more.is_finite() {
                *sums.entry(pair[1].time).or_default() += more / secs;
            }
        }
    }
    sums.into_iter().map(|(time, value)| Sample { time, value }).collect()
}

/// The sum of the lines, sweep by sweep.
fn sum(lines: &[Vec<Sample>]) -> Vec<Sample> {
    let mut sums: BTreeMap<Time, f64> = BTreeMap::new();
    for sample in lines.iter().flatten() {
        *sums.entry(sample.time).or_default() += sample.value;
    }
    sums.into_iter().map(|(time, value)| Sample { time, value }).collect()
}

fn gauge(counters: &[Counter], name: &str) -> Vec<Sample> {
    counters
        .iter()
        .find(|counter| counter.name == name)
        .map_or_else(Vec::new, |counter| counter.samples.clone())
}

fn memory(counters: &[Counter]) -> Vec<Sample> {
    let total = gauge(counters, "node_memory_MemTotal_bytes");
    let available = gauge(counters, "node_memory_MemAvailable_bytes");
    // Memory can be added to a host: each value has the total of its time, or the first that is known.
    let total_at = |time: Time| {
        let known = total.partition_point(|sample| sample.time <= time).max(1);
        total.get(known - 1).map(|sample| sample.value)
    };
    let used = |sample: &Sample| {
        Some(Sample { time: sample.time, value: (total_at(sample.time)? - sample.value).max(0.0) })
    };
    available.iter().filter_map(used).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(name: &str, label: (&str, &str), values: &[(i64, f64)]) -> Counter {
        let sample =
            |&(secs, value): &(i64, f64)| Sample { time: Time::from_micros(secs * 1_000_000), value };
        Counter {
            name: name.into(),
            labels: vec![(label.0.into(), label.1.into())],
            grows: name.ends_with("_total"),
            samples: values.iter().map(sample).collect(),
        }
    }

    #[test]
    fn counters_become_rates_and_are_added() {
        let counters = [
            counter("node_cpu_seconds_total", ("mode", "user"), &[(0, 10.0), (1, 10.5), (3, 11.5)]),
            counter("node_cpu_seconds_total", ("mode", "nice"), &[(0, 0.0), (1, 0.25), (3, 0.25)]),
            counter("node_cpu_seconds_total", ("mode", "idle"), &[(0, 0.0), (1, 9.0)]),
            counter(
                "node_disk_read_bytes_total",
                ("device", "sda"),
                &[(0, 5.0), (1, 105.0), (2, 7.0), (3, 8.0)],
            ),
            counter("node_disk_read_bytes_total", ("device", "sda1"), &[(0, 0.0), (1, 100.0)]),
            counter("node_memory_MemTotal_bytes", ("", ""), &[(1, 100.0), (3, 200.0)]),
            counter(
                "node_memory_MemAvailable_bytes",
                ("", ""),
                &[(0, 60.0), (1, 40.0), (2, 30.0), (3, 50.0)],
            ),
        ];
        let points = points(Metric::USUAL, &counters);
        let values = |name: &str| points[name].iter().map(|sample| sample.value).collect::<Vec<_>>();
        assert_eq!(values("user"), [0.75, 0.5]);
        assert_eq!(values("read"), [100.0, 1.0], "a counter that went back gives nothing");
        assert_eq!(values("memory"), [40.0, 60.0, 70.0, 150.0], "memory was added");
        assert!(values("sent").is_empty());
        assert_eq!((values("CPU"), values("disk")), (values("user"), values("read")));
        for metric in Metric::USUAL {
            assert!(metric.usual_lines().iter().all(|name| points.contains_key(*name)));
        }
    }

    #[test]
    fn any_metric_is_lines_by_its_labels_and_a_counter_its_rate() {
        let mut counters: Vec<Counter> = (0..40)
            .map(|number| counter(&format!("module.x.y{number:02}"), ("pool", "a"), &[(0, 7.0)]))
            .collect();
        counters.push(counter("node_forks_total", ("cpu", "0\u{202e}"), &[(0, 1.0), (2, 5.0)]));
        let metrics = ["module.x.*", "node_forks_total"].map(|name| Metric::parse(name).unwrap());
        let points = points(&metrics, &counters);
        assert_eq!(points.len(), LINES_MAX + 1);
        let values = |name: &str| points[name].iter().map(|sample| sample.value).collect::<Vec<_>>();
        assert_eq!(values("module.x.y00 pool=a"), [7.0]);
        assert_eq!(values("node_forks_total cpu=0\u{fffd}"), [2.0]);
    }
}
