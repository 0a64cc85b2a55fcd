//! Waiting for a real process: a condition is polled, and there is an end to it.
//!
//! Rule: a wait that fails says what was waited for, how long, and what was last seen.
//! Not here: waiting for a time to pass, which no story does.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Time between two looks: short beside everything that is waited for, long beside a look.
pub const PAUSE: Duration = Duration::from_millis(10);

/// What one look found.
pub enum Seen<T> {
    /// What was waited for.
    Done(T),
    /// Not yet; this is how things stand.
    NotYet(String),
}

/// Looks until there is something or `limit` is over.
///
/// # Errors
/// If `limit` is over, or a look fails for good.
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

/// The clock of the stories.
#[must_use]
#[allow(clippy::disallowed_methods)] // Real processes run by the real clock; there is none to pass in.
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
