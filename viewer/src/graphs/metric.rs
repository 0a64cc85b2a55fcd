//! Metrics of graphs: the built-in ones of a host, each computed from several counters, and any other by
//! name.
//!
//! Pure. Names are those of `sensor.metrics`. Not here: conversion of counters (`live::rates`).

use super::tiles::Pieces;
use crate::series::Series;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Maximum length of a metric name in the input field.
const NAME_LEN_MAX: usize = 128;
/// Maximum number of lines of one metric of one host; a name may match any number.
pub const LINES_MAX: usize = 12;

/// Which lines of a metric are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Its parts: user and system.
    Parts,
    /// Their sum if there is one, otherwise each: for a plot of several hosts.
    Total,
}

/// Values of a line.
pub trait Values {
    fn has_values(&self) -> bool;
}

impl Values for Series {
    fn has_values(&self) -> bool {
        self.newest().is_some()
    }
}

impl Values for Pieces<'_> {
    fn has_values(&self) -> bool {
        self.iter().next().is_some()
    }
}

/// A metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Cores in use, by mode.
    Cpu,
    /// Bytes per second, read and written.
    Disk,
    /// Bytes per second, received and sent.
    Network,
    /// Memory in use, in bytes.
    Memory,
    /// Load average of one minute.
    Load,
    /// Any other metric by name, in which `*` matches any characters: each series is a line, a counter as its
    /// rate.
    Named(String),
}

impl Metric {
    /// The built-in metrics, in display order.
    pub const USUAL: &[Metric] = &[Metric::Cpu, Metric::Disk, Metric::Network, Metric::Memory, Metric::Load];

    /// Parse the keyword of a built-in metric, or the name of any metric.
    ///
    /// # Errors
    /// If the text is no valid name; the error says what was expected.
    pub fn parse(text: &str) -> Result<Metric, String> {
        if let Some(usual) = Metric::USUAL.iter().find(|usual| usual.word() == text) {
            return Ok(usual.clone());
        }
        let is_of_name = |char: char| char.is_ascii_alphanumeric() || "_.:*-".contains(char);
        match !text.is_empty() && text.len() <= NAME_LEN_MAX && text.chars().all(is_of_name) {
            true => Ok(Metric::Named(text.to_owned())),
            false => Err(format!(
                "expected a metric such as node_load5 or module.gpu.*, of at most {NAME_LEN_MAX} letters, digits, \
                 _ . : - and *, found {text:?}"
            )),
        }
    }

    /// Its keyword, as stored in the settings.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Metric::Cpu => "cpu",
            Metric::Disk => "disk",
            Metric::Network => "network",
            Metric::Memory => "memory",
            Metric::Load => "load",
            Metric::Named(name) => name,
        }
    }

    /// Title of its plot, with the unit if it is known.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Metric::Cpu => "CPU, cores",
            Metric::Disk => "Disk, bytes a second",
            Metric::Network => "Network, bytes a second",
            Metric::Memory => "Memory used, bytes",
            Metric::Load => "Load",
            Metric::Named(name) => name,
        }
    }

    /// The title without the unit.
    #[must_use]
    pub fn short_title(&self) -> &str {
        self.title().split(',').next().unwrap_or_default()
    }

    /// The names to request from a daemon.
    #[must_use]
    pub fn asked(&self) -> Vec<&str> {
        match self {
            Metric::Cpu => vec!["node_cpu_seconds_total"],
            Metric::Disk => vec!["node_disk_read_bytes_total", "node_disk_written_bytes_total"],
            Metric::Network => vec!["node_network_receive_bytes_total", "node_network_transmit_bytes_total"],
            Metric::Memory => vec!["node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"],
            Metric::Load => vec!["node_load1"],
            Metric::Named(name) => vec![name],
        }
    }

    /// The names of its lines, if they are fixed.
    #[must_use]
    pub fn usual_lines(&self) -> &'static [&'static str] {
        match self {
            Metric::Cpu => &["user", "system", "I/O wait"],
            Metric::Disk => &["read", "written"],
            Metric::Network => &["received", "sent"],
            Metric::Memory => &["memory"],
            Metric::Load => &["load of 1 minute"],
            Metric::Named(_) => &[],
        }
    }

    /// Name of the line that is the sum of the others, or the only one; `None` if its lines are not fixed.
    #[must_use]
    pub fn whole(&self) -> Option<&'static str> {
        match self {
            Metric::Cpu => Some("CPU"),
            Metric::Disk => Some("disk"),
            Metric::Network => Some("network"),
            Metric::Memory => Some("memory"),
            Metric::Load => Some("load of 1 minute"),
            Metric::Named(_) => None,
        }
    }

    /// Its lines among those of a host, in display order, without empty ones.
    #[must_use]
    pub fn lines<'a, K: Borrow<str> + Ord, V: Values>(
        &self,
        series: &'a BTreeMap<K, V>,
        shows: Shows,
    ) -> Vec<(&'a str, &'a V)> {
        if let (Some(whole), Shows::Total) = (self.whole(), shows) {
            return series.get_key_value(whole).and_then(line).into_iter().collect();
        }
        let usual = self.usual_lines();
        if !usual.is_empty() {
            let known = usual.iter().filter_map(|name| series.get_key_value(*name));
            return known.filter_map(line).collect();
        }
        series
            .iter()
            .filter(|(name, _)| self.has((*name).borrow()))
            .filter_map(line)
            .take(LINES_MAX)
            .collect()
    }

    /// Whether a line belongs to it.
    #[must_use]
    pub fn has(&self, line: &str) -> bool {
        match self {
            Metric::Named(name) => {
                !is_usual_line(line) && line.split(' ').next().is_some_and(|first| fits(name, first))
            }
            Metric::Cpu | Metric::Disk | Metric::Network | Metric::Memory | Metric::Load => {
                self.usual_lines().contains(&line) || self.whole() == Some(line)
            }
        }
    }

    /// Minimum upper end of the scale, so that small values do not fill the plot.
    #[must_use]
    pub fn reaches_at_least(&self) -> f64 {
        match self {
            Metric::Cpu | Metric::Load => 1.0,
            Metric::Disk | Metric::Network | Metric::Memory => 1_000.0,
            Metric::Named(_) => 0.0,
        }
    }
}

fn line<'a, K: Borrow<str>, V: Values>((name, values): (&'a K, &'a V)) -> Option<(&'a str, &'a V)> {
    values.has_values().then_some((name.borrow(), values))
}

/// Whether a line belongs to a built-in metric.
#[must_use]
pub fn is_usual_line(line: &str) -> bool {
    Metric::USUAL.iter().any(|usual| usual.has(line))
}

/// Whether a name matches a pattern in which `*` matches any characters.
#[must_use]
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(at) = rest.find(before) else { return false };
            rest = &rest[at + before.len()..];
        }
    }
    match last {
        Some(end) => rest.ends_with(end),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::HostSeries;
    use wire::time::Time;

    #[test]
    fn patterns_fit_as_daemons_take_them() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        };
        check("node_load1", "node_load1", true);
        check("node_load1", "node_load15", false);
        check("node_*_bytes", "node_memory_MemFree_bytes", true);
        check("node_*_bytes", "node_bytes", false);
        check("*a*b", "xaxbxb", true);
        check("*a*b", "xbxa", false);
        check("*", "", true);
        check("a*a", "a", false);
    }

    #[test]
    fn names_are_taken_and_what_is_none_refused() {
        for metric in Metric::USUAL {
            assert_eq!(Metric::parse(metric.word()).as_ref(), Ok(metric));
        }
        assert_eq!(Metric::parse("module.gpu.*"), Ok(Metric::Named("module.gpu.*".into())));
        for wrong in ["", "a b", "a\n", "é", &"n".repeat(129)] {
            assert!(Metric::parse(wrong).unwrap_err().contains("expected a metric"), "{wrong}");
        }
    }

    #[test]
    fn lines_are_a_metrics_own_in_their_order_and_bounded() {
        let mut host = HostSeries::new();
        let mut add = |name: &str| {
            let mut series = Series::default();
            series.push(Time::from_micros(1), 1.0);
            host.insert(name.to_owned(), series);
        };
        let names = ["system", "user", "CPU", "read", "node_load5", "node_filesystem_free_bytes device=a"];
        names.into_iter().for_each(&mut add);
        (0..40).for_each(|number| add(&format!("module.x.y n={number}")));
        host.insert("written".into(), Series::default());
        let names = |metric: &str| -> Vec<&str> {
            Metric::parse(metric)
                .unwrap()
                .lines(&host, Shows::Parts)
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        assert_eq!(names("cpu"), ["user", "system"]);
        assert_eq!(names("disk"), ["read"], "what has no figure is no line");
        assert_eq!(names("node_*"), ["node_filesystem_free_bytes device=a", "node_load5"]);
        assert_eq!(names("module.*").len(), LINES_MAX);
        assert!(!names("*").contains(&"CPU"), "that is no name of a host's");
        let together = |metric: &Metric| metric.lines(&host, Shows::Total).len();
        assert_eq!((together(&Metric::Cpu), together(&Metric::Load)), (1, 0));
        assert_eq!(Metric::Cpu.lines(&host, Shows::Total)[0].0, "CPU");
    }
}
