//! What jobs used over time: curves of hosts, and their means over columns of a picture.
//!
//! Pure. Rule: a value of a curve is the mean since the point before, so a mean over columns is weighted by time; where
//! nothing was measured a column has no value.

use crate::grid::text::shown;
use wire::api::job_series::JobCurve;
use wire::time::Time;

/// Columns of the curve in a row of the table.
pub const SPARK_COLUMNS: usize = 48;

/// What a job used on a host, by a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCurve {
    pub host: String,
    /// Host of the archive that has it, if the host did not answer with it.
    pub archive: Option<String>,
    pub started: Time,
    pub times: Vec<Time>,
    /// CPUs in use, on average since the point before.
    pub cpus: Vec<f64>,
    pub memory_bytes: Vec<f64>,
}

impl HostCurve {
    /// A curve of an answer, of the host itself or of an archive; lists of different lengths are cut to the shortest.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // It is drawn.
    pub fn new(host: &str, archive: Option<&str>, curve: JobCurve) -> HostCurve {
        let count = curve.times.len().min(curve.cpus.len()).min(curve.memory_bytes.len());
        HostCurve {
            host: shown(host).text,
            archive: archive.map(|archive| shown(archive).text),
            started: curve.started.0,
            times: curve.times.into_iter().take(count).map(|time| time.0).collect(),
            cpus: curve
                .cpus
                .into_iter()
                .take(count)
                .map(|cpus| if cpus.is_finite() { cpus } else { 0.0 })
                .collect(),
            memory_bytes: curve.memory_bytes.into_iter().take(count).map(|bytes| bytes as f64).collect(),
        }
    }

    /// The mean CPUs in use of each column of a range.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Columns are few.
    pub fn cpus_by_column(&self, (from, to): (Time, Time), columns: usize) -> Vec<Option<f64>> {
        let width = (seconds(from, to) / columns.max(1) as f64).max(1e-6);
        let mut sums = vec![(0.0, 0.0); columns];
        let mut before = self.started.max(from);
        for (&time, &cpus) in self.times.iter().zip(&self.cpus) {
            let (start, end) = (seconds(from, before).max(0.0), seconds(from, time.min(to)));
            before = before.max(time);
            if end <= start {
                continue;
            }
            let first = (start / width) as usize;
            for (at, (sum, covered)) in sums.iter_mut().enumerate().skip(first) {
                let (left, right) = (at as f64 * width, (at + 1) as f64 * width);
                if left >= end {
                    break;
                }
                let part = right.min(end) - left.max(start);
                (*sum, *covered) = (*sum + cpus * part, *covered + part);
            }
        }
        sums.into_iter().map(|(sum, covered)| (covered > 1e-9).then(|| sum / covered)).collect()
    }

    /// Seconds after a time, and values: what a plot draws.
    pub fn points<'a>(&'a self, from: Time, values: &'a [f64]) -> impl Iterator<Item = [f64; 2]> + 'a {
        self.times.iter().zip(values).map(move |(&time, &value)| [seconds(from, time), value])
    }
}

/// CPUs in use over the life of a job, on all of its hosts together.
#[derive(Clone, Debug, PartialEq)]
pub struct Spark {
    /// Of each column.
    pub cpus: Vec<Option<f64>>,
    pub greatest: f64,
    /// Hosts that did not answer.
    pub missing: usize,
}

/// The curve in a row of the table; `None` if no host measured anything.
#[must_use]
pub fn spark(curves: &[HostCurve], range: (Time, Time), missing: usize) -> Option<Spark> {
    let mut sums: Vec<Option<f64>> = vec![None; SPARK_COLUMNS];
    for curve in curves {
        for (sum, cpus) in sums.iter_mut().zip(curve.cpus_by_column(range, SPARK_COLUMNS)) {
            *sum = cpus.map(|cpus| sum.unwrap_or(0.0) + cpus).or(*sum);
        }
    }
    let greatest = sums.iter().flatten().copied().fold(0.0, f64::max);
    sums.iter().any(Option::is_some).then_some(Spark { cpus: sums, greatest, missing })
}

/// A row of the heat map: a host, and what it used of its share of the allocated CPUs in each column.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow {
    pub host: String,
    pub shares: Vec<Option<f64>>,
}

/// The heat map of hosts; `allocated` are the CPUs of a host.
#[must_use]
pub fn heat<'a>(
    curves: impl Iterator<Item = &'a HostCurve>,
    range: (Time, Time),
    columns: usize,
    allocated: f64,
) -> Vec<HeatRow> {
    let mut rows: Vec<HeatRow> = Vec::new();
    for curve in curves {
        let shares = curve
            .cpus_by_column(range, columns)
            .into_iter()
            .map(|cpus| cpus.map(|cpus| cpus / allocated.max(1e-9)));
        match rows.iter_mut().find(|row| row.host == curve.host) {
            Some(row) => {
                for (sum, share) in row.shares.iter_mut().zip(shares) {
                    *sum = share.map(|share| sum.unwrap_or(0.0) + share).or(*sum);
                }
            }
            None => rows.push(HeatRow { host: curve.host.clone(), shares: shares.collect() }),
        }
    }
    rows
}

/// The greatest CPUs in use of any host at a moment.
#[must_use]
pub fn greatest_cpus<'a>(curves: impl Iterator<Item = &'a HostCurve>) -> f64 {
    curves.flat_map(|curve| &curve.cpus).copied().fold(0.0, f64::max)
}

/// Seconds from one time to another, which may be earlier.
#[allow(clippy::cast_precision_loss)]
fn seconds(from: Time, to: Time) -> f64 {
    to.micros().saturating_sub(from.micros()) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::UnixTime;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn curve(host: &str, points: &[(i64, f64)]) -> HostCurve {
        let curve = JobCurve {
            started: UnixTime(at(0)),
            times: points.iter().map(|point| UnixTime(at(point.0))).collect(),
            cpus: points.iter().map(|point| point.1).collect(),
            memory_bytes: points.iter().map(|_| 7).collect(),
            ..JobCurve::default()
        };
        HostCurve::new(host, None, curve)
    }

    #[test]
    fn means_of_columns_are_weighted_by_time() {
        let curve = curve("wn01", &[(10, 2.0), (15, 4.0), (30, 1.0)]);
        let columns = curve.cpus_by_column((at(0), at(40)), 4);
        assert_eq!(columns, [Some(2.0), Some(2.5), Some(1.0), None]);
        assert_eq!(curve.cpus_by_column((at(12), at(14)), 1), [Some(4.0)], "a part of it");
        assert_eq!(curve.cpus_by_column((at(0), at(0)), 2), [None, None]);
        assert!(curve.cpus_by_column((at(0), at(40)), 0).is_empty());
        let points: Vec<_> = curve.points(at(10), &curve.cpus).collect();
        assert_eq!(points, [[0.0, 2.0], [5.0, 4.0], [20.0, 1.0]]);
    }

    #[test]
    fn hosts_are_added_up_in_a_row_and_apart_in_the_heat_map() {
        let curves = [curve("wn01", &[(40, 2.0)]), curve("wn02", &[(20, 4.0)]), curve("wn02", &[(20, 1.0)])];
        let spark = spark(&curves, (at(0), at(40)), 1).expect("something was measured");
        assert_eq!((spark.cpus[0], spark.cpus[SPARK_COLUMNS - 1], spark.missing), (Some(7.0), Some(2.0), 1));
        assert_eq!(spark.greatest, 7.0);
        assert_eq!(super::spark(&[], (at(0), at(40)), 0), None);
        let rows = heat(curves.iter(), (at(0), at(40)), 2, 4.0);
        let shares: Vec<_> = rows.iter().map(|row| (row.host.as_str(), row.shares.clone())).collect();
        assert_eq!(shares, [("wn01", vec![Some(0.5); 2]), ("wn02", vec![Some(1.25), None])]);
        assert_eq!(greatest_cpus(curves.iter()), 4.0);
    }

    #[test]
    fn lists_of_different_lengths_are_cut() {
        let answer =
            JobCurve { times: vec![UnixTime(at(1)); 3], cpus: vec![f64::NAN; 2], ..JobCurve::default() };
        assert!(HostCurve::new("wn01", None, answer.clone()).times.is_empty());
        let answer = JobCurve { memory_bytes: vec![1; 9], ..answer };
        assert_eq!(HostCurve::new("wn01", None, answer).cpus, [0.0, 0.0]);
    }
}
