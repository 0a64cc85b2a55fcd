//! Queries by steps: buckets of this store, and of what is stored elsewhere, such as in exported days, merged to steps.
//!
//! Rule: the same buckets are the same steps, wherever they are stored. Not here: how steps are collected ([`crate::query`]),
//! which buckets are read ([`crate::plan`]).

use crate::block::{HostNo, SeriesNo};
use crate::bucket::Bucket;
use crate::plan::{Part, Piece, plan_with};
use crate::query::{Answer, By, Point, READ_MAX, Steps, Subject, TooLarge};
use crate::reader::{Notes, Numbers, Reader, Selection, Visit};
use crate::tier::Tier;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::id::HostName;
use wire::sample::Metric;
use wire::time::Time;

/// Steps that are being merged.
pub struct Merge {
    pub(crate) steps: Steps,
    pub(crate) numbers: Numbers,
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
        Merge::of_store(Steps::new(step, with_values, max, usize::MAX), numbers)
    }

    /// Steps of what a store has too, by its numbers.
    pub(crate) fn of_store(steps: Steps, numbers: Numbers) -> Merge {
        Merge { steps, numbers, hosts: BTreeMap::new(), metrics: BTreeMap::new(), latest: None }
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
        if self.hosts.is_empty() {
            // Most queries read a store alone, and need no names.
            let of_store = self.numbers.hosts.iter();
            self.hosts = of_store.map(|(number, host)| (host.clone(), *number)).collect();
        }
        if let Some(number) = self.hosts.get(name) {
            return *number;
        }
        // From the end, so that none is that of another host in the store.
        let number = HostNo::MAX - HostNo::try_from(self.hosts.len()).unwrap_or(HostNo::MAX);
        self.hosts.insert(name.clone(), number);
        self.numbers.hosts.insert(number, name.clone());
        number
    }

    fn series(&mut self, metric: &Arc<Metric>) -> SeriesNo {
        if self.metrics.is_empty() {
            let of_store = self.numbers.metrics.iter();
            self.metrics = of_store.map(|(number, metric)| (Arc::clone(metric), *number)).collect();
        }
        if let Some(number) = self.metrics.get(metric) {
            return *number;
        }
        let number = SeriesNo::MAX - SeriesNo::try_from(self.metrics.len()).unwrap_or(SeriesNo::MAX);
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

/// Minutes that are stored elsewhere.
pub struct Elsewhere<'a> {
    /// The times that they are of, oldest first, from and to whole hours; the last one may end within an hour, and hours of
    /// the store are read after it.
    pub spans: &'a [(Time, Time)],
    /// Adds the minutes from the first time on, before the second.
    pub read: &'a mut dyn FnMut((Time, Time), &mut Merge),
}

impl Reader {
    /// Answers with buckets of this step, for the selected time widened to whole steps. With `with_values` the
    /// values themselves are returned too, from which percentiles follow.
    ///
    /// # Errors
    /// If the answer would have more than `max` values, or too much would have to be read for it.
    pub fn steps(
        &self,
        selection: &Selection,
        step: Duration,
        by: &By,
        with_values: bool,
        max: usize,
    ) -> Result<Answer<Point>, TooLarge> {
        let mut nothing = |_: (Time, Time), _: &mut Merge| {};
        let elsewhere = Elsewhere { spans: &[], read: &mut nothing };
        self.steps_with(selection, step, by, (with_values, max), elsewhere)
    }

    /// Answers as [`Reader::steps`] does, also with minutes that are stored elsewhere, where the tier that fits the step
    /// has none any more.
    ///
    /// # Errors
    /// As [`Reader::steps`].
    pub fn steps_with(
        &self,
        selection: &Selection,
        step: Duration,
        by: &By,
        (with_values, max): (bool, usize),
        elsewhere: Elsewhere<'_>,
    ) -> Result<Answer<Point>, TooLarge> {
        let mut merge =
            Merge::of_store(Steps::new(step, with_values, max, READ_MAX), self.numbers(selection));
        let (since, until) = merge.span(selection.since, selection.until);
        let pieces = plan_with(step, since, until, self.oldest(selection.host), elsewhere.spans);
        let (mut notes, mut parts, mut others) = (Notes::default(), Vec::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Tier(part) => {
                    for (part, numbers) in self.by_tier(&part, &merge.numbers) {
                        notes.add(self.add_part(&part, &numbers, &mut merge.steps), &part);
                    }
                    parts.push(part);
                }
                Piece::Elsewhere(since, until) => {
                    (elsewhere.read)((since, until), &mut merge);
                    others.push((since, until));
                }
            }
        }
        let Merge { steps, numbers, .. } = merge;
        let series = steps.finish(&numbers, by)?;
        Ok(Answer { elsewhere: others, ..notes.answer(&numbers, series, parts) })
    }

    fn add_part(&self, part: &Part, numbers: &Numbers, steps: &mut Steps) -> Notes {
        match part.tier {
            Tier::Raw => self.add_samples(numbers, part, steps),
            Tier::Minute | Tier::Hour => {
                self.buckets(part.tier, numbers, part.since, part.until, &mut |found| {
                    if found.time >= part.since && found.time < part.until {
                        steps.add(found.host, found.series, found.time, found.value);
                    }
                    steps.visit()
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::sample::{Number, Semantics};

    fn bucket(value: u64) -> Bucket {
        Bucket::of(Number::Whole(value).into())
    }

    #[test]
    fn buckets_of_each_host_and_label_are_merged_step_by_step() {
        let metric = |cpu: &str, mode: &str| {
            let labels = vec![("cpu".into(), cpu.into()), ("mode".into(), mode.into())];
            Arc::new(Metric { name: "t".into(), labels, unit: "".into(), semantics: Semantics::Gauge })
        };
        let metrics = [metric("0", "idle"), metric("1", "idle"), metric("0", "user")];
        let hosts = ["wn01", "wn02"].map(|host| HostName::try_from(host).expect("a name"));
        let at = |secs: i64| Time::from_micros(secs * 1_000_000);
        let merged = |by: &By| {
            let mut merge = Merge::new(Duration::from_secs(120), false, 100);
            assert_eq!(merge.span(at(130), at(250)), (at(120), at(360)));
            // A metric that is the same for several hosts, and hosts that take turns.
            for (minute, host) in [(0, 0), (0, 1), (1, 0), (2, 1)] {
                for (number, metric) in metrics.iter().enumerate() {
                    let value = 100 * host as u64 + 10 * number as u64;
                    assert!(merge.add(&hosts[host], metric, at(minute * 60), &bucket(value)));
                }
            }
            let series = merge.finish(by).expect("few values");
            let point =
                |point: &Point| (point.time.micros() / 1_000_000, point.bucket.count, point.bucket.sum);
            series
                .into_iter()
                .map(|(subject, points)| {
                    let labels: Vec<_> =
                        subject.metric.labels.iter().map(|(_, value)| value.to_string()).collect();
                    let host = subject.host.map(|host| host.as_str().to_owned()).unwrap_or_default();
                    (host, labels.join(" "), points.iter().map(point).collect::<Vec<_>>())
                })
                .collect::<Vec<_>>()
        };
        let number = |value: u64| -> crate::exact::Exact { Number::Whole(value).into() };
        let row = |host: &str, labels: &str, points: &[(i64, u64, u64)]| {
            let points = points.iter().map(|(time, count, sum)| (*time, *count, number(*sum))).collect();
            (host.to_owned(), labels.to_owned(), points)
        };
        assert_eq!(
            merged(&By::HostLabel("mode".into())),
            [
                row("wn01", "idle", &[(0, 4, 20)]),
                row("wn01", "user", &[(0, 2, 40)]),
                row("wn02", "idle", &[(0, 2, 210), (120, 2, 210)]),
                row("wn02", "user", &[(0, 1, 120), (120, 1, 120)]),
            ]
        );
        assert_eq!(
            merged(&By::Label("mode".into())),
            [row("", "idle", &[(0, 6, 230), (120, 2, 210)]), row("", "user", &[(0, 3, 160), (120, 1, 120)])]
        );
        assert_eq!(merged(&By::Series).len(), 6);
    }

    #[test]
    fn more_values_than_there_is_room_for_are_refused() {
        let metric = Arc::new(Metric {
            name: "t".into(),
            labels: Vec::new(),
            unit: "".into(),
            semantics: Semantics::Gauge,
        });
        let host = HostName::try_from("wn01").expect("a name");
        let mut merge = Merge::new(Duration::from_secs(60), false, 2);
        let added: Vec<bool> = (0..4)
            .map(|minute| merge.add(&host, &metric, Time::from_micros(minute * 60_000_000), &bucket(1)))
            .collect();
        assert_eq!(added, [true, true, false, false]);
        assert!(merge.finish(&By::Series).is_err());
    }
}
