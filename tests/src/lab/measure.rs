//! Measurements: when a condition became true, and the distribution of a time over trials.
//!
//! Rule: the clock is monotonic, and a condition is polled every 10 ms, so that a time is accurate to that
//! and one poll. Not here: the conditions.

use crate::wait::{self, Seen};
use anyhow::Result;
use std::fmt;
use std::time::{Duration, Instant};

/// A stopwatch with marks of what happened since it was started.
#[derive(Clone, Debug)]
pub struct Stopwatch {
    began: Instant,
    marks: Vec<(String, Duration)>,
}

impl Stopwatch {
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch { began: wait::now(), marks: Vec::new() }
    }

    /// Time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        wait::now() - self.began
    }

    /// Mark that something happened now; returns the time since the start.
    pub fn mark(&mut self, what: &str) -> Duration {
        let at = self.elapsed();
        self.marks.push((what.to_owned(), at));
        at
    }

    /// Poll until a condition is true, and mark the time; returns the time since the start, and the value
    /// found.
    ///
    /// # Errors
    /// If `limit` has passed, or a poll fails.
    pub fn until<T>(
        &mut self,
        limit: Duration,
        what: &str,
        look: impl FnMut() -> Result<Seen<T>>,
    ) -> Result<(Duration, T)> {
        let found = wait::until(limit, what, look)?;
        Ok((self.mark(what), found))
    }

    /// The marks in order, each with the time since the start.
    #[must_use]
    pub fn marks(&self) -> &[(String, Duration)] {
        &self.marks
    }
}

/// Times of one measurement, from many trials.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    times: Vec<Duration>,
}

impl Trials {
    /// Add the time of one trial.
    pub fn add(&mut self, time: Duration) {
        let at = self.times.partition_point(|known| *known <= time);
        self.times.insert(at, time);
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// The time that this percentage of trials did not exceed (nearest rank).
    ///
    /// # Panics
    /// If there was no trial.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.times.len() * percent).div_ceil(100).max(1);
        *self.times.get(rank - 1).expect("a percentile of one trial at least, and of 100 at most")
    }

    /// The longest time.
    ///
    /// # Panics
    /// If there was no trial.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.percentile(100)
    }
}

impl fmt::Display for Trials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} trials", self.count())?;
        if self.count() > 0 {
            let ms = |percent| self.percentile(percent).as_secs_f64() * 1e3;
            write!(f, ": min {:.1} ms, p50 {:.1} ms, p90 {:.1} ms, ", ms(0), ms(50), ms(90))?;
            write!(f, "p99 {:.1} ms, max {:.1} ms", ms(99), ms(100))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let mut trials = Trials::default();
        assert_eq!(trials.to_string(), "0 trials");
        [30, 10, 50, 20, 40].map(Duration::from_millis).into_iter().for_each(|time| trials.add(time));
        let expected = "5 trials: min 10.0 ms, p50 30.0 ms, p90 50.0 ms, p99 50.0 ms, max 50.0 ms";
        assert_eq!(trials.to_string(), expected);
        assert_eq!(trials.percentile(40), Duration::from_millis(20));
    }

    #[test]
    fn what_happened_is_noted_in_order() {
        let mut watch = Stopwatch::start();
        let mut looks = 0;
        let (at, found) = watch
            .until(Duration::from_secs(5), "three looks", || {
                looks += 1;
                Ok(if looks == 3 { Seen::Done(looks) } else { Seen::NotYet(String::new()) })
            })
            .unwrap();
        assert!(found == 3 && at >= wait::PAUSE * 2, "{at:?}");
        let later = watch.mark("the end");
        assert_eq!(watch.marks(), [("three looks".to_owned(), at), ("the end".to_owned(), later)]);
    }
}
