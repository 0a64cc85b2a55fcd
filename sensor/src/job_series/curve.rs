//! Curves: the points of a measurement, summed up by steps of time.
//!
//! Pure. Rules: rates follow from the counters of the last points of two steps, so over any steps they add up to what was
//! used; of memory, processes and threads a step has the most. A step without a point is absent.
//! Not here: where the points are from (`log`).

use super::piece::{Point, Whose};
use std::time::Duration;
use wire::time::Time;

/// A step of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Time of its last point.
    pub time: Time,
    /// CPUs in use, on average since the step before.
    pub cpus: f64,
    /// Most memory, processes and threads.
    pub memory_bytes: u64,
    pub processes: u64,
    pub threads: u64,
    /// Bytes a second, on average since the step before.
    pub read_rate: f64,
    pub write_rate: f64,
}

/// Sums up points by steps of time, those after `since` and until `until`; the points may be in any order. The points
/// before `since` are needed for the first step.
#[must_use]
pub fn steps(
    whose: &Whose,
    mut points: Vec<Point>,
    step: Duration,
    (since, until): (Time, Time),
) -> Vec<Step> {
    points.retain(|point| point.time <= until);
    points.sort_by_key(|point| point.time);
    let width = i64::try_from(step.as_micros()).unwrap_or(i64::MAX).max(1);
    let of_step = |point: &Point| point.time.micros().div_euclid(width);
    // At its start a measurement has used nothing.
    let mut before = Point { time: whose.started, ..Point::default() };
    let mut steps = Vec::new();
    for points in points.chunk_by(|one, other| of_step(one) == of_step(other)) {
        let Some(last) = points.last() else { continue };
        if last.time >= since {
            steps.push(summed(&before, points, last));
        }
        before = *last;
    }
    steps
}

fn summed(before: &Point, points: &[Point], last: &Point) -> Step {
    let secs = last.time.secs_f64() - before.time.secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let rate = |counter: fn(&Point) -> u64| match secs > 0.0 {
        true => counter(last).saturating_sub(counter(before)) as f64 / secs,
        false => 0.0,
    };
    let most = |amount: fn(&Point) -> u64| points.iter().map(amount).max().unwrap_or_default();
    Step {
        time: last.time,
        cpus: rate(|point| point.cpu_us) / 1e6,
        memory_bytes: most(|point| point.memory_bytes),
        processes: most(|point| point.processes),
        threads: most(|point| point.threads),
        read_rate: rate(|point| point.read_bytes),
        write_rate: rate(|point| point.written_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::super::piece::tests::{points, whose};
    use super::*;

    const ALL: (Time, Time) = (Time::from_micros(0), Time::from_micros(i64::MAX));

    fn used_secs(whose: &Whose, steps: &[Step]) -> f64 {
        let mut before = whose.started;
        let used = steps.iter().map(|step| {
            let secs = step.time.secs_f64() - before.secs_f64();
            before = step.time;
            step.cpus * secs
        });
        used.sum()
    }

    #[test]
    fn rates_add_up_to_what_was_used_over_steps_of_any_width_and_gaps() {
        let whose = whose("slurm:17", 1000);
        let mut all = points(&whose, 1, 100, 4);
        all.drain(40..60);
        all.reverse();
        for secs in [1, 7, 60, 3600] {
            let steps = steps(&whose, all.clone(), Duration::from_secs(secs), ALL);
            assert!(
                (used_secs(&whose, &steps) - 400.0).abs() < 0.01,
                "{secs}: {}",
                used_secs(&whose, &steps)
            );
            assert_eq!(steps.last().map(|step| step.memory_bytes), Some(1400 * 1024));
        }
        let fine = steps(&whose, all, Duration::from_secs(1), ALL);
        assert_eq!(fine.len(), 80);
        assert!(fine.iter().all(|step| (step.cpus - 4.0).abs() < 0.02), "also over the gap: {fine:?}");
        assert_eq!((fine[0].processes, fine[0].threads), (3, 8));
        assert!((fine[5].read_rate - 512.0).abs() < 3.0 && fine[5].write_rate == 0.0);
    }

    #[test]
    fn a_part_begins_with_the_right_rate() {
        let whose = whose("slurm:17", 1000);
        let at = |secs| whose.started.plus(Duration::from_secs(secs));
        let some = steps(&whose, points(&whose, 1, 100, 2), Duration::from_secs(10), (at(50), at(79)));
        assert_eq!(some.len(), 3);
        assert!(some.iter().all(|step| (step.cpus - 2.0).abs() < 0.01), "{some:?}");
        assert_eq!(steps(&whose, Vec::new(), Duration::from_secs(1), ALL), []);
        let twice = [points(&whose, 5, 1, 2), points(&whose, 5, 1, 2)].concat();
        assert_eq!(steps(&whose, twice, Duration::ZERO, ALL).len(), 1);
    }
}
