//! Measuring: when a condition became true, and how a time is spread over trials.
//!
//! Rule: the clock is monotonic, and a condition is looked at each 10 ms, so that a time is right to that and
//! one look. Not here: what is waited for.

use crate::wait::{self, Seen};
use anyhow::Result;
use std::fmt;
use std::time::{Duration, Instant};

/// A stopwatch, with what happened since it was started.
#[derive(Clone, Debug)]
pub struct Stopwatch {
    began: Instant,
    marks: Vec<(String, Duration)>,
}

impl Stopwatch {
    /// Starts it.
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch { began: wait::now(), marks: Vec::new() }
    }

    /// The time since it was started.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        wait::now() - self.began
    }

    /// Notes that something happened just now; when that is.
    pub fn mark(&mut self, what: &str) -> Duration {
        let at = self.elapsed();
        self.marks.push((what.to_owned(), at));
        at
    }

    /// Looks until a condition is true, and notes when; that time since the start, and what was found.
    ///
    /// # Errors
    /// If `limit` is over, or a look fails for good.
    pub fn until<T>(
        &mut self,
        limit: Duration,
        what: &str,
        look: impl FnMut() -> Result<Seen<T>>,
    ) -> Result<(Duration, T)> {
        let found = wait::until(limit, what, look)?;
        Ok((self.mark(what), found))
    }

    /// What was noted, in order, each with the time since the start.
    #[must_use]
    pub fn marks(&self) -> &[(String, Duration)] {
        &self.marks
    }
}

/// One time, measured in many trials.
#[derive(Clone, Debug, Default)]
pub struct Trials {
    times: Vec<Duration>,
}

impl Trials {
    /// One more trial.
    pub fn add(&mut self, time: Duration) {
        let at = self.times.partition_point(|known| *known <= time);
        self.times.insert(at, time);
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// The time that so many in a hundred trials did not exceed (the nearest rank).
    ///
    /// # Panics
    /// If there was no trial.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.times.len() * percent).div_ceil(100).max(1);
        *self.times.get(rank - 1).expect("a percentile of one trial at least, and of 100 at most")
    }

    /// The longest.
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
        let told = "5 trials: min 10.0 ms, p50 30.0 ms, p90 50.0 ms, p99 50.0 ms, max 50.0 ms";
        assert_eq!(trials.to_string(), told);
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
