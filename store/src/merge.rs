//! Merging of buckets that are stored elsewhere, such as in exported days, as queries merge those of a store.
//!
//! Pure. Rule: the same steps as [`crate::reader::Reader::steps`] answers, from the same buckets. Not here: where buckets
//! come from.

use crate::block::{HostNo, SeriesNo};
use crate::bucket::Bucket;
use crate::query::{By, Point, Steps, Subject, TooLarge};
use crate::reader::{Numbers, Visit};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::id::HostName;
use wire::sample::Metric;
use wire::time::Time;

/// Steps that are being merged.
pub struct Merge {
    steps: Steps,
    numbers: Numbers,
    hosts: BTreeMap<HostName, HostNo>,
    metrics: BTreeMap<Arc<Metric>, SeriesNo>,
    /// The series of the latest bucket: buckets that follow each other are mostly of one.
    latest: Option<(HostName, HostNo, Arc<Metric>, SeriesNo)>,
}

impl Merge {
    /// Nothing yet. With `with_values` the means of the buckets are answered too; at most `max` values.
    #[must_use]
    pub fn new(step: Duration, with_values: bool, max: usize) -> Merge {
        let numbers = Numbers { hosts: BTreeMap::new(), metrics: BTreeMap::new() };
        let (hosts, metrics) = (BTreeMap::new(), BTreeMap::new());
        Merge { steps: Steps::new(step, with_values, max), numbers, hosts, metrics, latest: None }
    }

    /// Start of the first step, and end of the last one, of this time.
    #[must_use]
    pub fn span(&self, since: Time, until: Time) -> (Time, Time) {
        self.steps.span(since, until)
    }

    /// Adds a bucket that begins at this time, those of a series in the order of time; returns whether there is room for
    /// more.
    pub fn add(&mut self, host_name: &HostName, metric: &Arc<Metric>, time: Time, bucket: &Bucket) -> bool {
        let (host, series) = match &self.latest {
            Some((name, host, latest, series))
                if name.as_str() == host_name.as_str() && Arc::ptr_eq(latest, metric) =>
            {
                (*host, *series)
            }
            _ => {
                let (host, series) = (self.host(host_name), self.series(metric));
                self.latest = Some((host_name.clone(), host, Arc::clone(metric), series));
                (host, series)
            }
        };
        self.steps.add(host, series, time, bucket);
        self.steps.visit() == Visit::Continue
    }

    fn host(&mut self, name: &HostName) -> HostNo {
        if let Some(number) = self.hosts.get(name) {
            return *number;
        }
        let number = HostNo::try_from(self.hosts.len()).unwrap_or(HostNo::MAX);
        self.hosts.insert(name.clone(), number);
        self.numbers.hosts.insert(number, name.clone());
        number
    }

    fn series(&mut self, metric: &Arc<Metric>) -> SeriesNo {
        if let Some(number) = self.metrics.get(metric) {
            return *number;
        }
        let number = SeriesNo::try_from(self.metrics.len()).unwrap_or(SeriesNo::MAX);
        self.metrics.insert(Arc::clone(metric), number);
        self.numbers.metrics.insert(number, Arc::clone(metric));
        number
    }

    /// The series, merged.
    ///
    /// # Errors
    /// If they have more values than there is room for.
    pub fn finish(self, by: &By) -> Result<Vec<(Subject, Vec<Point>)>, TooLarge> {
        self.steps.finish(&self.numbers, by)
    }
}
