//! Table of one sweep over all collectors: the metrics and their values.
//!
//! Pure. Rule: names and labels are built once and shared; a sweep with the same metrics as the previous one
//! costs no more than its values. Not here: history, and the wire format of a sample.

use compact_str::CompactString;
use std::sync::Arc;
use wire::sample::{Metric, Number, Sample, Semantics};
use wire::time::Time;

/// Limit on the values of a table: a host of 4,096 CPUs with a thousand devices fits; runaway labels do not.
pub const ROWS_MAX: usize = 1 << 16;

/// The metrics of a table, in the order of its values; shared by all tables of the same shape.
pub type Metrics = Arc<[Arc<Metric>]>;

/// All metrics of a host at one moment.
#[derive(Clone, Debug)]
pub struct Table {
    metrics: Metrics,
    values: Vec<Number>,
    time: Time,
    number: u64,
}

impl Table {
    /// Start time of the sweep.
    #[must_use]
    pub fn time(&self) -> Time {
        self.time
    }

    /// Number of this table since the start, from 1 on.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The metrics, in the order of [`Table::values`].
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The values, in the order of [`Table::metrics`].
    #[must_use]
    pub fn values(&self) -> &[Number] {
        &self.values
    }

    /// Each metric with its value, collector by collector.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&Arc<Metric>, Number)> {
        self.metrics.iter().zip(self.values.iter().copied())
    }

    /// Converts the rows to the wire format.
    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        self.rows().map(|(metric, value)| Sample { metric: Metric::clone(metric), value, time: self.time })
    }

    /// The value of the metric with this name and these labels, which must be sorted by name.
    #[must_use]
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<Number> {
        let labelled = |metric: &Metric| {
            metric.labels.len() == labels.len()
                && metric.labels.iter().zip(labels).all(|((k, v), (name, value))| k == name && v == value)
        };
        self.rows().find(|(metric, _)| metric.name == name && labelled(metric)).map(|(_, value)| value)
    }
}

/// Builder of a table. It remembers the metrics of the previous table: as long as the same ones come in the
/// same order, adding a value is a comparison of pointers and a store.
#[derive(Debug)]
pub struct Rows {
    known: Metrics,
    /// The metrics of this table, once they differ from the known ones.
    fresh: Option<Vec<Arc<Metric>>>,
    values: Vec<Number>,
    refused_total: u64,
    finished_total: u64,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { known: Arc::new([]), fresh: None, values: Vec::new(), refused_total: 0, finished_total: 0 }
    }
}

impl Rows {
    /// Adds a value. A value beyond [`ROWS_MAX`] is dropped and counted.
    pub fn push(&mut self, metric: &Arc<Metric>, value: Number) {
        let at = self.values.len();
        if at == ROWS_MAX {
            self.refused_total += 1;
            return;
        }
        match &mut self.fresh {
            Some(fresh) => fresh.push(Arc::clone(metric)),
            None if self.known.get(at).is_some_and(|known| Arc::ptr_eq(known, metric)) => {}
            None => {
                let mut fresh = self.known[..at].to_vec();
                fresh.push(Arc::clone(metric));
                self.fresh = Some(fresh);
            }
        }
        self.values.push(value);
    }

    /// Adds a whole number.
    pub fn push_whole(&mut self, metric: &Arc<Metric>, value: u64) {
        self.push(metric, Number::Whole(value));
    }

    /// Adds a real number.
    pub fn push_real(&mut self, metric: &Arc<Metric>, value: f64) {
        self.push(metric, Number::Real(value));
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of values dropped because the table was full, since the start.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused_total
    }

    /// Removes everything after the first `len` values: a collector failed half way.
    pub fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        if let Some(fresh) = &mut self.fresh {
            fresh.truncate(len);
        }
    }

    /// Returns the table of a sweep that started at `time`, and starts the next table.
    pub fn finish(&mut self, time: Time) -> Table {
        let len = self.values.len();
        match self.fresh.take() {
            Some(fresh) => self.known = fresh.into(),
            None if self.known.len() > len => self.known = self.known[..len].into(),
            None => {}
        }
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(len));
        self.finished_total += 1;
        Table { metrics: Arc::clone(&self.known), values, time, number: self.finished_total }
    }
}

/// Builds the identity of a metric, for repeated use in [`Rows::push`].
#[must_use]
pub fn metric(name: &str, unit: &str, semantics: Semantics, labels: &[(&str, &str)]) -> Arc<Metric> {
    let mut labels: Vec<(CompactString, CompactString)> =
        labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    labels.sort_unstable();
    Arc::new(Metric { name: name.into(), labels, unit: unit.into(), semantics })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Arc<Metric> {
        metric(name, "", Semantics::Gauge, &[])
    }

    fn names(table: &Table) -> Vec<&str> {
        table.rows().map(|(metric, _)| metric.name.as_str()).collect()
    }

    fn fill(rows: &mut Rows, metrics: &[&Arc<Metric>]) -> Table {
        for (value, metric) in metrics.iter().enumerate() {
            rows.push_whole(metric, value as u64);
        }
        rows.finish(Time::default())
    }

    #[test]
    fn tables_of_one_shape_share_their_metrics() {
        let (a, b, c) = (named("a"), named("b"), named("c"));
        let mut rows = Rows::default();
        let first = fill(&mut rows, &[&a, &b, &c]);
        let same = fill(&mut rows, &[&a, &b, &c]);
        assert!(Arc::ptr_eq(first.metrics(), same.metrics()));
        let fewer = fill(&mut rows, &[&a, &b]);
        assert_eq!(names(&fewer), ["a", "b"]);
        let other = fill(&mut rows, &[&a, &c, &b, &a]);
        assert_eq!(names(&other), ["a", "c", "b", "a"]);
        assert_eq!(names(&first), ["a", "b", "c"], "what was published stays");
        assert_eq!(other.values().len(), 4);
    }

    #[test]
    fn what_is_taken_back_is_gone() {
        let (a, b) = (named("a"), named("b"));
        let mut rows = Rows::default();
        fill(&mut rows, &[&a, &b]);
        rows.push_whole(&a, 1);
        rows.push_whole(&a, 2);
        rows.truncate(1);
        rows.push_whole(&b, 3);
        let table = rows.finish(Time::default());
        assert_eq!(
            (names(&table), table.values()),
            (vec!["a", "b"], &[Number::Whole(1), Number::Whole(3)][..])
        );
    }

    #[test]
    fn a_full_table_drops_and_counts() {
        let a = named("a");
        let mut rows = Rows::default();
        for _ in 0..ROWS_MAX + 3 {
            rows.push_whole(&a, 0);
        }
        assert_eq!((rows.len(), rows.refused_total()), (ROWS_MAX, 3));
    }

    #[test]
    fn a_value_is_found_by_name_and_labels() {
        let mut rows = Rows::default();
        for cpu in ["0", "1"] {
            let metric = metric("m", "seconds", Semantics::Counter, &[("mode", "user"), ("cpu", cpu)]);
            rows.push_whole(&metric, cpu.parse().expect("a number"));
        }
        let table = rows.finish(Time::default());
        assert_eq!(table.get("m", &[("cpu", "1"), ("mode", "user")]), Some(Number::Whole(1)));
        assert_eq!(table.get("m", &[("cpu", "2"), ("mode", "user")]), None);
        assert_eq!(table.get("m", &[]), None);
    }
}
