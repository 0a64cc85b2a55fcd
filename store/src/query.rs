//! Queries: buckets of any step, merged from the tiers; and samples as they were stored.
//!
//! Rule: an answer is exact for the steps that the tiers can answer; every other part of an answer is named
//! with its tier. Its size is bounded, and a query that would exceed the bound is refused.

use crate::block::{HostNo, SeriesNo};
use crate::bucket::{Bucket, Previous};
use crate::exact::Exact;
use crate::mark::Mark;
use crate::plan::{Part, next, plan};
use crate::reader::{Found, Notes, Numbers, Reader, Selection, Visit};
use crate::tier::{Tier, floor};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// Values that are read for one answer, at most: about half a second of a core.
pub(crate) const READ_MAX: usize = 50_000_000;

/// Why a query is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// The answer is too large.
    #[error(
        "the answer would have more than {max} values; choose a larger step, a shorter time or fewer metrics"
    )]
    Answer {
        /// Values that an answer may have.
        max: usize,
    },
    /// Too much would have to be read for it.
    #[error(
        "more than {READ_MAX} stored values would have to be read; choose a step of whole minutes or hours, a \
         shorter time or fewer metrics"
    )]
    Read,
}

/// Which series are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// None: each is answered on its own.
    Series,
    /// Those of a host with the same name.
    Host,
    /// Those with the same value of this label.
    Label(String),
    /// Those of a host with the same value of this label.
    HostLabel(String),
    /// All with the same name.
    Name,
}

/// What a series of an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// Host; `None` if series of several hosts are merged.
    pub host: Option<HostName>,
    /// Metric; without labels that are merged.
    pub metric: Metric,
}

/// Values of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Start of the step.
    pub time: Time,
    /// Summary of the values, of all series that are merged.
    pub bucket: Bucket,
    /// Increase per second; of merged series the sum of theirs. `None` for metrics that are no counters.
    pub rate: Option<f64>,
    /// The values in ascending order, if they were requested: samples, or the means of finer buckets; of a counter
    /// the rates since the sample before, or those of finer buckets.
    pub values: Vec<f64>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer<P> {
    /// Series with their points, oldest first.
    pub series: Vec<(Subject, Vec<P>)>,
    /// The tiers that were read, and when.
    pub parts: Vec<Part>,
    /// Times whose minutes were read elsewhere.
    pub elsewhere: Vec<(Time, Time)>,
    /// Blocks and chunks that were damaged and are missing in the answer.
    pub damaged: u64,
    /// What happened meanwhile, as far as samples were read: on which host, and what.
    pub marks: Vec<(HostName, Mark)>,
}

impl Reader {
    pub(crate) fn add_samples(&self, numbers: &Numbers, part: &Part, steps: &mut Steps) -> Notes {
        let mut previous: BTreeMap<(HostNo, SeriesNo), Previous> = BTreeMap::new();
        self.samples(numbers, part.since, part.until, &mut |Found { host, series, time, value }| {
            let is_counter = numbers.metrics[&series].semantics == Semantics::Counter;
            let bucket = match is_counter {
                true => previous.entry((host, series)).or_default().next(*value, time, true),
                false => Previous::default().next(*value, time, false),
            };
            if let Some(bucket) = bucket.filter(|_| time >= part.since && time < part.until) {
                steps.add(host, series, time, &bucket);
            }
            steps.visit()
        })
    }

    /// Answers with the stored samples; where only coarser tiers remain, with the last value of each bucket.
    ///
    /// # Errors
    /// If the answer would have more than `max` values.
    pub fn values(&self, selection: &Selection, max: usize) -> Result<Answer<(Time, Number)>, TooLarge> {
        let numbers = self.numbers(selection);
        let oldest = self.oldest(selection.host);
        let parts = plan(None, selection.since, selection.until, oldest);
        let mut found: BTreeMap<(HostNo, SeriesNo), Vec<(Time, Number)>> = BTreeMap::new();
        let mut count = 0;
        let mut notes = Notes::default();
        for part in &parts {
            let mut add = |host, series, time, value: Exact| {
                if time >= part.since && time < part.until && count <= max {
                    count += 1;
                    found.entry((host, series)).or_default().push((time, value.into()));
                }
                if count > max { Visit::Stop } else { Visit::Continue }
            };
            for (part, numbers) in self.by_tier(part, &numbers) {
                let read = match part.tier {
                    Tier::Raw => self.samples(&numbers, part.since, part.until, &mut |found| {
                        add(found.host, found.series, found.time, *found.value)
                    }),
                    Tier::Minute | Tier::Hour => {
                        self.buckets(part.tier, &numbers, part.since, part.until, &mut |found| {
                            add(found.host, found.series, found.time, found.value.last)
                        })
                    }
                };
                notes.add(read, &part);
            }
        }
        if count > max {
            return Err(TooLarge::Answer { max });
        }
        let subject = |host: HostNo, series: SeriesNo| Subject {
            host: numbers.hosts.get(&host).cloned(),
            metric: Metric::clone(&numbers.metrics[&series]),
        };
        let series = found.into_iter().map(|((host, series), mut points)| {
            // After the clock was set back, times are stored out of order.
            points.sort_by_key(|(time, _)| *time);
            (subject(host, series), points)
        });
        Ok(notes.answer(&numbers, series.collect(), parts))
    }
}

impl Notes {
    pub(crate) fn add(&mut self, read: Notes, part: &Part) {
        self.damaged += read.damaged;
        let in_part = |mark: &Mark| mark.time() >= part.since && mark.time() < part.until;
        self.marks.extend(read.marks.into_iter().filter(|(_, mark)| in_part(mark)));
    }

    pub(crate) fn answer<P>(
        self,
        numbers: &Numbers,
        series: Vec<(Subject, Vec<P>)>,
        parts: Vec<Part>,
    ) -> Answer<P> {
        let named = |(host, mark)| numbers.hosts.get(&host).map(|host| (host.clone(), mark));
        let marks = self.marks.into_iter().filter_map(named).collect();
        Answer { series, parts, elsewhere: Vec::new(), damaged: self.damaged, marks }
    }
}

/// Steps of each series that are being collected.
pub(crate) struct Steps {
    step: Duration,
    with_values: bool,
    max: usize,
    read_max: usize,
    count: usize,
    /// Values that were read.
    read: usize,
    series: BTreeMap<(HostNo, SeriesNo), Vec<Point>>,
    /// The series that a value was added to last, which is not in `series` meanwhile: values come block by block.
    latest: ((HostNo, SeriesNo), Vec<Point>),
}

impl Steps {
    pub(crate) fn new(step: Duration, with_values: bool, max: usize, read_max: usize) -> Steps {
        let (series, latest) = (BTreeMap::new(), ((0, 0), Vec::new()));
        Steps { step, with_values, max, read_max, count: 0, read: 0, series, latest }
    }

    /// Start of the first step, and end of the last one, of this time.
    pub(crate) fn span(&self, since: Time, until: Time) -> (Time, Time) {
        (floor(since, self.step), next(until, self.step))
    }

    pub(crate) fn add(&mut self, host: HostNo, series: SeriesNo, time: Time, bucket: &Bucket) {
        if self.latest.0 != (host, series) {
            self.put_back();
            let points = self.series.remove(&(host, series)).unwrap_or_default();
            self.latest = ((host, series), points);
        }
        let points = &mut self.latest.1;
        let time = floor(time, self.step);
        // Values come in the order of time, unless the clock was set back.
        let found = match points.last() {
            Some(last) if last.time == time => Ok(points.len() - 1),
            Some(last) if last.time > time => points.binary_search_by_key(&time, |point| point.time),
            _ => Err(points.len()),
        };
        match found {
            Ok(at) => points[at].bucket.merge(bucket),
            Err(at) => points.insert(at, Point { time, bucket: *bucket, rate: None, values: Vec::new() }),
        }
        self.count += usize::from(found.is_err() || self.with_values);
        if self.with_values {
            let (Ok(at) | Err(at)) = found;
            let value = if bucket.increase.is_some() { bucket.rate() } else { Some(bucket.mean()) };
            points[at].values.extend(value);
        }
    }

    fn put_back(&mut self) {
        let (key, points) = std::mem::take(&mut self.latest);
        if !points.is_empty() {
            self.series.insert(key, points);
        }
    }

    /// Counts a value that was read; whether more are wanted.
    pub(crate) fn visit(&mut self) -> Visit {
        self.read += 1;
        if self.count > self.max || self.read > self.read_max { Visit::Stop } else { Visit::Continue }
    }

    pub(crate) fn finish(
        mut self,
        numbers: &Numbers,
        by: &By,
    ) -> Result<Vec<(Subject, Vec<Point>)>, TooLarge> {
        if self.count > self.max {
            return Err(TooLarge::Answer { max: self.max });
        }
        if self.read > self.read_max {
            return Err(TooLarge::Read);
        }
        self.put_back();
        let mut groups: BTreeMap<Subject, Vec<Point>> = BTreeMap::new();
        for ((host, series), mut points) in std::mem::take(&mut self.series) {
            points.iter_mut().for_each(|point| point.rate = point.bucket.rate());
            let group = groups.entry(by.subject(numbers, host, series)).or_default();
            *group = merged(std::mem::take(group), points);
        }
        for point in groups.values_mut().flatten() {
            point.values.sort_by(f64::total_cmp);
        }
        Ok(groups.into_iter().collect())
    }
}

/// Merges the steps of two series; both are in the order of time, as are those of the result.
fn merged(one: Vec<Point>, other: Vec<Point>) -> Vec<Point> {
    if one.is_empty() {
        return other;
    }
    let mut all = Vec::with_capacity(one.len());
    let mut other = other.into_iter().peekable();
    for mut point in one {
        while let Some(earlier) = other.next_if(|next| next.time < point.time) {
            all.push(earlier);
        }
        if let Some(same) = other.next_if(|next| next.time == point.time) {
            point.merge(same);
        }
        all.push(point);
    }
    all.extend(other);
    all
}

impl By {
    /// What the merged series is about.
    fn subject(&self, numbers: &Numbers, host: HostNo, series: SeriesNo) -> Subject {
        let metric = &numbers.metrics[&series];
        let merged = |labels| Metric { labels, ..Metric::clone(metric) };
        let of_label =
            |label| metric.labels.iter().filter(|(name, _)| name == label).cloned().collect::<Vec<_>>();
        let name = || numbers.hosts.get(&host).cloned();
        match self {
            By::Series => Subject { host: name(), metric: Metric::clone(metric) },
            By::Host => Subject { host: name(), metric: merged(Vec::new()) },
            By::Label(label) => Subject { host: None, metric: merged(of_label(label)) },
            By::HostLabel(label) => Subject { host: name(), metric: merged(of_label(label)) },
            By::Name => Subject { host: None, metric: merged(Vec::new()) },
        }
    }
}

impl Point {
    /// Merges the same step of another series.
    fn merge(&mut self, other: Point) {
        self.bucket.merge(&other.bucket);
        self.rate = match (self.rate, other.rate) {
            (Some(rate), Some(other)) => Some(rate + other),
            (rate, None) | (None, rate) => rate,
        };
        self.values.extend(other.values);
    }
}

/// Value at this share of sorted values, between two of them by linear interpolation; `None` without values.
///
/// The same as `quantile_over_time` of Prometheus.
#[must_use]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = share.clamp(0.0, 1.0) * last as f64;
    let below = rank.floor() as usize;
    let above = (below + 1).min(last);
    let weight = rank - below as f64;
    Some(sorted[below] * (1.0 - weight) + sorted[above] * weight)
}

/// Names of the tiers that were read, oldest part first, for people.
#[must_use]
pub fn tier_names(parts: &[Part]) -> Vec<&'static str> {
    parts.iter().map(|part| part.tier.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_values() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (Some(1.0), Some(4.0)));
        assert_eq!((quantile(&[], 0.5), quantile(&[7.0], 0.95)), (None, Some(7.0)));
    }
}
