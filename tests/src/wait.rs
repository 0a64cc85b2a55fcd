//! Waiting for real processes: a condition is polled, with a deadline.
//!
//! Rule: the error of a failed wait states what was waited for, how long, and what was last seen.
//! Not here: sleeping for a fixed time, which no test does.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Polling interval: short compared with everything that is waited for, long compared with one poll.
pub const PAUSE: Duration = Duration::from_millis(10);

/// Result of one poll.
pub enum Seen<T> {
    /// The value that was waited for.
    Done(T),
    /// Not yet; a description of the present state.
    NotYet(String),
}

/// Poll until there is a value or `limit` has passed.
///
/// # Errors
/// If `limit` has passed, or a poll fails.
pub fn until<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Result<Seen<T>>) -> Result<T> {
    let deadline = now() + limit;
    loop {
        match look()? {
            Seen::Done(found) => return Ok(found),
            Seen::NotYet(state) if now() >= deadline => {
                bail!("expected {what} within {} s; {state}", limit.as_secs_f64())
            }
            Seen::NotYet(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// The clock of the tests.
#[must_use]
#[allow(clippy::disallowed_methods)] // Real processes run on the real clock; there is none to pass in.
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_the_condition_holds() {
        let mut looks = 0;
        let found = until(Duration::from_secs(5), "three looks", || {
            looks += 1;
            Ok(if looks == 3 { Seen::Done(looks) } else { Seen::NotYet(String::new()) })
        });
        assert_eq!(found.unwrap(), 3);
    }

    #[test]
    fn it_ends_with_what_was_seen_when_the_time_is_over() {
        let never = || Ok(Seen::<()>::NotYet("found nothing".into()));
        let error = until(Duration::ZERO, "a thing", never).unwrap_err().to_string();
        assert_eq!(error, "expected a thing within 0 s; found nothing");
    }
}
