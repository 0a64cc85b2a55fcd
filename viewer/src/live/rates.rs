//! What graphs show, from what hosts count: shares of CPU, bytes a second, load and memory.
//!
//! Pure. Counters become rates between neighbouring sweeps; one that went back (a host that started anew) gives
//! nothing for that sweep. Names of metrics are node_exporter's. Not here: asking for them (`live`).

use std::collections::BTreeMap;
use wire::time::Time;

/// One figure at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub time: Time,
    /// How much.
    pub value: f64,
}

/// A metric with its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// What it was, the oldest first.
    pub samples: Vec<Sample>,
}

/// The names that a daemon is asked for.
pub const ASKED: &[&str] = &[
    "node_cpu_seconds_total",
    "node_disk_read_bytes_total",
    "node_disk_written_bytes_total",
    "node_network_receive_bytes_total",
    "node_network_transmit_bytes_total",
    "node_memory_MemAvailable_bytes",
    "node_memory_MemTotal_bytes",
    "node_load1",
];

/// The graphs of a host, and the series in each.
pub const GRAPHS: &[(&str, &[&str])] = &[
    ("CPU, cores", &["user", "system", "I/O wait"]),
    ("Disk, bytes a second", &["read", "written"]),
    ("Network, bytes a second", &["received", "sent"]),
    ("Memory used, bytes", &["memory"]),
    ("Load", &["load of 1 minute"]),
];

/// Points of each series of [`GRAPHS`].
#[must_use]
pub fn points(counters: &[Counter]) -> BTreeMap<&'static str, Vec<Sample>> {
    let mut points = BTreeMap::new();
    let mode = |modes: &'static [&'static str]| {
        move |counter: &Counter| {
            counter.name == "node_cpu_seconds_total"
                && counter.label("mode").is_some_and(|mode| modes.contains(&mode))
        }
    };
    points.insert("user", rate(counters, mode(&["user", "nice"])));
    points.insert("system", rate(counters, mode(&["system", "irq", "softirq", "steal"])));
    points.insert("I/O wait", rate(counters, mode(&["iowait"])));
    let whole_disk = |counter: &Counter| counter.label("device").is_none_or(|device| !is_part(device));
    points.insert("read", rate(counters, |one| one.name == "node_disk_read_bytes_total" && whole_disk(one)));
    points.insert(
        "written",
        rate(counters, |one| one.name == "node_disk_written_bytes_total" && whole_disk(one)),
    );
    let outside = |counter: &Counter| counter.label("device") != Some("lo");
    points.insert(
        "received",
        rate(counters, |one| one.name == "node_network_receive_bytes_total" && outside(one)),
    );
    points.insert(
        "sent",
        rate(counters, |one| one.name == "node_network_transmit_bytes_total" && outside(one)),
    );
    points.insert("load of 1 minute", gauge(counters, "node_load1"));
    points.insert("memory", memory(counters));
    points
}

impl Counter {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Partitions and layers count what their disk counts already.
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

/// The sum of the rates of some counters, at each sweep that has one before it.
fn rate(counters: &[Counter], of: impl Fn(&Counter) -> bool) -> Vec<Sample> {
    let mut sums: BTreeMap<Time, f64> = BTreeMap::new();
    for counter in counters.iter().filter(|counter| of(counter)) {
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

fn gauge(counters: &[Counter], name: &str) -> Vec<Sample> {
    counters
        .iter()
        .find(|counter| counter.name == name)
        .map_or_else(Vec::new, |counter| counter.samples.clone())
}

fn memory(counters: &[Counter]) -> Vec<Sample> {
    let total = gauge(counters, "node_memory_MemTotal_bytes");
    let available = gauge(counters, "node_memory_MemAvailable_bytes");
    let Some(total) = total.last() else { return Vec::new() };
    available
        .iter()
        .map(|sample| Sample { time: sample.time, value: (total.value - sample.value).max(0.0) })
        .collect()
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
            counter("node_memory_MemTotal_bytes", ("", ""), &[(1, 100.0)]),
            counter("node_memory_MemAvailable_bytes", ("", ""), &[(0, 60.0), (1, 40.0)]),
        ];
        let points = points(&counters);
        let values = |name: &str| points[name].iter().map(|sample| sample.value).collect::<Vec<_>>();
        assert_eq!(values("user"), [0.75, 0.5]);
        assert_eq!(values("read"), [100.0, 1.0], "a counter that went back gives nothing");
        assert_eq!(values("memory"), [40.0, 60.0]);
        assert!(values("sent").is_empty());
        for (_, series) in GRAPHS {
            assert!(series.iter().all(|name| points.contains_key(name)));
        }
    }
}
