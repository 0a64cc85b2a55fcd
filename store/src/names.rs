//! Names: the numbers of metrics and hosts within a store.
//!
//! Pure. A number is given once and never again. Each file has the names of the numbers it uses.

use crate::block::{HostNo, SeriesNo};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use wire::id::HostName;
use wire::sample::Metric;

/// Names as stored in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Definitions {
    pub(crate) hosts: Vec<(HostNo, HostName)>,
    pub(crate) metrics: Vec<(SeriesNo, Metric)>,
}

impl Definitions {
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.metrics.is_empty()
    }
}

/// All names of a store.
#[derive(Debug, Default)]
pub(crate) struct Names {
    hosts: BTreeMap<HostNo, HostName>,
    metrics: BTreeMap<SeriesNo, Arc<Metric>>,
    host_numbers: HashMap<HostName, HostNo>,
    metric_numbers: HashMap<Arc<Metric>, SeriesNo>,
}

impl Names {
    /// Adds the names of a file.
    pub(crate) fn add(&mut self, definitions: &Definitions) {
        for (number, host) in &definitions.hosts {
            self.hosts.insert(*number, host.clone());
            self.host_numbers.insert(host.clone(), *number);
        }
        for (number, metric) in &definitions.metrics {
            if !self.metrics.contains_key(number) {
                let metric = Arc::new(metric.clone());
                self.metrics.insert(*number, Arc::clone(&metric));
                self.metric_numbers.insert(metric, *number);
            }
        }
    }

    /// Number of this host; a new one if it has none.
    pub(crate) fn host_number(&mut self, host: &HostName) -> HostNo {
        if let Some(number) = self.host_numbers.get(host) {
            return *number;
        }
        let number = self.hosts.last_key_value().map_or(0, |(number, _)| number + 1);
        self.hosts.insert(number, host.clone());
        self.host_numbers.insert(host.clone(), number);
        number
    }

    /// Number of this metric; a new one if it has none.
    pub(crate) fn series_number(&mut self, metric: &Arc<Metric>) -> SeriesNo {
        if let Some(number) = self.metric_numbers.get(metric) {
            return *number;
        }
        let number = self.metrics.last_key_value().map_or(0, |(number, _)| number + 1);
        self.metrics.insert(number, Arc::clone(metric));
        self.metric_numbers.insert(Arc::clone(metric), number);
        number
    }

    /// Number of this metric, if it has one.
    pub(crate) fn known_series(&self, metric: &Arc<Metric>) -> Option<SeriesNo> {
        self.metric_numbers.get(metric).copied()
    }

    pub(crate) fn metrics_len(&self) -> usize {
        self.metrics.len()
    }

    pub(crate) fn host(&self, number: HostNo) -> Option<&HostName> {
        self.hosts.get(&number)
    }

    pub(crate) fn metric(&self, number: SeriesNo) -> Option<&Arc<Metric>> {
        self.metrics.get(&number)
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = (HostNo, &HostName)> {
        self.hosts.iter().map(|(number, host)| (*number, host))
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = (SeriesNo, &Arc<Metric>)> {
        self.metrics.iter().map(|(number, metric)| (*number, metric))
    }

    /// Definitions of these numbers, for a file.
    pub(crate) fn definitions(
        &self,
        hosts: impl Iterator<Item = HostNo>,
        metrics: impl Iterator<Item = SeriesNo>,
    ) -> Definitions {
        let host = |number| self.hosts.get(&number).map(|host| (number, host.clone()));
        let metric = |number| self.metrics.get(&number).map(|metric| (number, Metric::clone(metric)));
        Definitions { hosts: hosts.filter_map(host).collect(), metrics: metrics.filter_map(metric).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::sample::Semantics;

    #[test]
    fn a_number_is_found_again_after_reading_its_file() {
        let metric = |name: &str| {
            let (labels, unit) = (Vec::new(), "".into());
            Arc::new(Metric { name: name.into(), labels, unit, semantics: Semantics::Gauge })
        };
        let host = HostName::try_from("wn01").expect("a name");
        let mut names = Names::default();
        assert_eq!((names.host_number(&host), names.series_number(&metric("a"))), (0, 0));
        assert_eq!((names.series_number(&metric("b")), names.series_number(&metric("a"))), (1, 0));
        let definitions = names.definitions([0].into_iter(), [1, 5].into_iter());
        let mut other = Names::default();
        other.add(&definitions);
        assert_eq!(other.series_number(&metric("b")), 1);
        assert_eq!(other.series_number(&metric("c")), 2, "a number is not used twice");
        assert_eq!((other.host(0), other.metric(0)), (Some(&host), None));
    }
}
