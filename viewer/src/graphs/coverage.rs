//! Coverage of received samples: the stretches of time that they cover without a gap, for each metric of a host.
//!
//! Pure. Rule: a stretch ends where samples are farther apart than usual, and where the host could not be queried: a
//! sensor that was restarted in between no longer has in memory what it sampled before. Not here: the samples
//! (`series`), what is read from the store instead (`tiles`).

use super::metric::Metric;
use crate::series::{FRESH, HostSeries, Series};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::time::Time;

/// Shortest gap: hosts sample each second, and a sweep may slip.
const GAP_MIN: Duration = Duration::from_secs(3);
/// A gap is longer than this many usual intervals.
const GAP_INTERVALS: u32 = 3;
/// Interruptions that are remembered: more in the hours that a series has are of a host that is hardly ever there.
const INTERRUPTIONS_MAX: usize = 64;

/// The stretches that the samples of a host cover.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// First and last sample of each stretch of a metric, the oldest first.
    stretches: BTreeMap<Metric, Vec<(Time, Time)>>,
    /// The newest sample at the time of each interruption.
    interruptions: VecDeque<Time>,
}

impl Coverage {
    /// Find the stretches in the series of a host.
    pub fn update(&mut self, series: &HostSeries, metrics: &[Metric]) {
        let of_metric = |metric: &Metric| {
            let of_line = lines(metric, series).flat_map(|line| self.stretches_of(line));
            (metric.clone(), self.united(of_line.collect()))
        };
        self.stretches = metrics.iter().map(of_metric).collect();
    }

    /// The host cannot be queried from now on.
    pub fn interrupt(&mut self) {
        let Some(newest) = self.stretches.values().flatten().map(|(_, end)| *end).max() else { return };
        if self.interruptions.len() >= INTERRUPTIONS_MAX {
            self.interruptions.pop_front();
        }
        self.interruptions.push_back(newest);
    }

    /// The part of a range that has all gaps of the samples of a metric. Where the host `is_silent`, its samples
    /// are missing after the newest too.
    #[must_use]
    pub fn missing(
        &self,
        metric: &Metric,
        (from, to): (Time, Time),
        is_silent: bool,
    ) -> Option<(Time, Time)> {
        let stretches = self.stretches.get(metric).map_or(&[][..], Vec::as_slice);
        let mut gaps = stretches.windows(2).map(|pair| (pair[0].1, pair[1].0)).collect::<Vec<_>>();
        match (stretches.first(), stretches.last()) {
            (Some(&(first, _)), Some(&(_, last))) => {
                if first > from.plus(GAP_MIN) || first > to {
                    gaps.insert(0, (from, first));
                }
                if is_silent && last.plus(FRESH) < to {
                    gaps.push((last, to));
                }
            }
            // The other metrics show since when it is no longer sampled.
            _ => gaps.push((from, self.newest_start().filter(|_| !is_silent).unwrap_or(to))),
        }
        let mut within = gaps.into_iter().filter(|gap| gap.0 < gap.1 && gap.0 < to && gap.1 > from);
        let first = within.next()?;
        let last = within.next_back().unwrap_or(first);
        Some((first.0.max(from), last.1.min(to)))
    }

    /// Whether the samples of a metric cover a time.
    #[must_use]
    pub fn has(&self, metric: &Metric, time: Time) -> bool {
        let Some(stretches) = self.stretches.get(metric) else { return false };
        let next = stretches.partition_point(|(start, _)| *start <= time);
        next.checked_sub(1).is_some_and(|last| time <= stretches[last].1)
    }

    /// Start of the newest stretch of any metric.
    fn newest_start(&self) -> Option<Time> {
        self.stretches.values().filter_map(|stretches| stretches.last()).map(|(start, _)| *start).max()
    }

    fn stretches_of(&self, line: &Series) -> Vec<(Time, Time)> {
        let longest = longest_interval(line);
        let mut stretches: Vec<(Time, Time)> = Vec::new();
        for (time, _) in line.samples() {
            match stretches.last_mut() {
                Some((_, end)) if time.since(*end) <= longest && !self.is_interrupted(*end, time) => {
                    *end = time
                }
                Some(_) | None => stretches.push((time, time)),
            }
        }
        stretches
    }

    fn is_interrupted(&self, end: Time, next: Time) -> bool {
        self.interruptions.iter().any(|at| end <= *at && *at < next)
    }

    /// The stretches of all lines as those of their metric: a line that comes and goes is no gap.
    fn united(&self, mut stretches: Vec<(Time, Time)>) -> Vec<(Time, Time)> {
        stretches.sort_unstable();
        let mut united: Vec<(Time, Time)> = Vec::new();
        for (start, end) in stretches {
            match united.last_mut() {
                Some((_, last)) if start <= last.plus(GAP_MIN) && !self.is_interrupted(*last, start) => {
                    *last = end.max(*last);
                }
                Some(_) | None => united.push((start, end)),
            }
        }
        united
    }
}

/// The longest time between two samples that is no gap.
pub fn longest_interval(line: &Series) -> Duration {
    GAP_MIN.max(line.usual_interval() * GAP_INTERVALS)
}

/// The lines that show when a metric was sampled: those of its parts have the same times as that of their sum.
fn lines<'a>(metric: &'a Metric, series: &'a HostSeries) -> impl Iterator<Item = &'a Series> {
    let whole = metric.whole();
    let is_of = move |name: &str| whole.map_or_else(|| metric.has(name), |whole| name == whole);
    series.iter().filter(move |(name, _)| is_of(name)).map(|(_, line)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn series(name: &str, times: impl IntoIterator<Item = i64>) -> HostSeries {
        let mut line = Series::default();
        times.into_iter().for_each(|secs| line.push(at(secs), 1.0));
        HostSeries::from([(name.to_owned(), line)])
    }

    fn coverage(series: &HostSeries) -> Coverage {
        let mut coverage = Coverage::default();
        coverage.update(series, &[Metric::Cpu, Metric::Named("gpu".into())]);
        coverage
    }

    fn missing(coverage: &Coverage, from: i64, to: i64) -> Option<(i64, i64)> {
        let found = coverage.missing(&Metric::Cpu, (at(from), at(to)), false)?;
        Some((found.0.micros() / 1_000_000, found.1.micros() / 1_000_000))
    }

    #[test]
    fn what_is_missing_is_before_the_first_sample_and_between_those_far_apart() {
        let coverage = coverage(&series("CPU", (100..200).chain(240..300)));
        assert_eq!(missing(&coverage, 50, 150), Some((50, 100)));
        assert_eq!(missing(&coverage, 150, 290), Some((199, 240)));
        assert_eq!(missing(&coverage, 210, 220), Some((210, 220)));
        assert_eq!(missing(&coverage, 50, 290), Some((50, 240)), "one part that has all");
        assert_eq!(missing(&coverage, 10, 20), Some((10, 20)));
        assert_eq!(missing(&coverage, 98, 199), None, "a moment is none");
        assert_eq!(missing(&coverage, 240, 400), None, "the newest samples are on their way");
        assert!(coverage.has(&Metric::Cpu, at(100)) && coverage.has(&Metric::Cpu, at(250)));
        assert!(!coverage.has(&Metric::Cpu, at(99)) && !coverage.has(&Metric::Cpu, at(220)));
    }

    #[test]
    fn samples_that_come_seldom_have_no_gaps() {
        let coverage = coverage(&series("CPU", (0..100).step_by(10)));
        assert_eq!(missing(&coverage, 0, 100), None);
    }

    #[test]
    fn of_a_silent_host_what_follows_is_missing_and_of_an_interruption_what_it_lasted() {
        let mut coverage = coverage(&series("CPU", 100..200));
        let silent = |coverage: &Coverage, to: i64| coverage.missing(&Metric::Cpu, (at(150), at(to)), true);
        assert_eq!(silent(&coverage, 300), Some((at(199), at(300))));
        assert_eq!(silent(&coverage, 210), None, "that may be the network");
        coverage.interrupt();
        coverage.update(&series("CPU", 100..300), &[Metric::Cpu]);
        assert_eq!(missing(&coverage, 150, 300), Some((199, 200)));
    }

    #[test]
    fn a_metric_without_samples_is_missing_until_the_others_are_there() {
        let mut both = series("CPU", 100..200);
        both.extend(series("user", 100..200));
        let of_gpu = |series: &HostSeries, is_silent: bool| {
            let gpu = Metric::Named("gpu".into());
            coverage(series).missing(&gpu, (at(50), at(250)), is_silent)
        };
        assert_eq!(of_gpu(&both, false), Some((at(50), at(100))));
        assert_eq!(of_gpu(&both, true), Some((at(50), at(250))));
        assert_eq!(of_gpu(&HostSeries::new(), false), Some((at(50), at(250))));
        both.extend(series("gpu card=0", 150..170));
        both.extend(series("gpu card=1", 172..200));
        assert_eq!(of_gpu(&both, false), Some((at(50), at(150))), "lines that come and go are no gap");
    }
}
