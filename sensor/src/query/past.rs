//! What queries of the past have in common: the span of time, and the history that they read.
//!
//! Pure but for the handle. Not here: what is read of it.

use crate::history::handle::Handle;
use rpc::fault::Fault;
use std::time::Duration;
use store::reader::Reader;
use wire::api::UnixTime;
use wire::time::Time;

/// Returns the requested span of time: until now, and of this length, where it is not given.
pub(super) fn between(
    (since, until): (Option<UnixTime>, Option<UnixTime>),
    span: Duration,
    now: Time,
) -> Result<(Time, Time), Fault> {
    let until = until.map_or(now, |until| until.0);
    let since = since.map_or(until.min(now).minus(span), |since| since.0);
    match since < until {
        true => Ok((since, until)),
        false if since > now => {
            Err(Fault::invalid_params("since: expected a time in the past, found one in the future"))
        }
        false => Err(Fault::invalid_params("since: expected a time before until")),
    }
}

/// Returns the stored values; blocks for a limited time while they are being opened, as after a start.
pub(super) fn reader(history: &Handle) -> Result<&Reader, Fault> {
    history.await_opening();
    history.reader().map_err(|error| Fault::unavailable(format!("the history is not open: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_ends_now_and_is_of_the_default_length() {
        let (now, hour) = (Time::from_micros(7_200_000_000), Duration::from_secs(3600));
        let at = |secs: i64| Some(UnixTime(Time::from_micros(secs * 1_000_000)));
        let found = |since, until| {
            between((since, until), hour, now)
                .map(|(since, until)| (since.micros() / 1_000_000, until.micros() / 1_000_000))
        };
        assert_eq!(found(None, None).ok(), Some((3600, 7200)));
        assert_eq!(found(at(10), None).ok(), Some((10, 7200)));
        assert_eq!(found(None, at(5000)).ok(), Some((1400, 5000)));
        assert_eq!(found(None, at(9000)).ok(), Some((3600, 9000)), "the last hour, and what is to come");
        let error = |since, until| found(since, until).unwrap_err().to_string();
        assert!(error(at(20), at(10)).contains("before until"));
        assert!(error(at(8000), None).contains("in the future"));
    }
}
