//! Recovery of a long-running program after an error: retry, restart, or end.
//!
//! Pure. Rules: after a daemon has answered once, the program waits for it without limit; an error that a
//! retry cannot help ends the program: missing permissions, an unknown method, wrong parameters, an answer
//! that is not a daemon's. The program does not wait for a daemon that never answered.
//! Not here: sending (`client`).

use crate::error::Error;
use std::time::Duration;
use wire::backoff::Backoff;
use wire::fault;

/// Faults that are temporary, also before the first answer.
const PASSING: [i32; 3] = [fault::TIMEOUT, fault::BUSY, fault::UNAVAILABLE];

/// Next step after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Send the same request again after a pause.
    Wait,
    /// The daemon does not know the subscription: it is another daemon, or it was restarted. Start over.
    Restart,
    /// End: a retry gives the same error.
    End,
}

/// Next step after `error`; `was_reached` is whether a daemon answered before.
#[must_use]
pub fn of(error: &Error, was_reached: bool) -> Recovery {
    match error {
        Error::Lost { .. } | Error::Late { .. } => Recovery::Wait,
        Error::Unreachable(_) if was_reached => Recovery::Wait,
        Error::Unreachable(_) | Error::Answer { .. } | Error::Mistake(_) => Recovery::End,
        Error::Fault { code, .. } => of_fault(*code, was_reached),
    }
}

/// Next step after a fault with this code.
#[must_use]
pub fn of_fault(code: i64, was_reached: bool) -> Recovery {
    let code = i32::try_from(code).unwrap_or_default();
    if PASSING.contains(&code) {
        Recovery::Wait
    } else if fault::is_final(code) || !was_reached {
        Recovery::End
    } else if code == fault::NOT_FOUND {
        Recovery::Restart
    } else {
        Recovery::Wait
    }
}

/// Exponential backoff: each pause is twice the one before, up to a maximum, and shortened at random by up to
/// a quarter, so that many clients of one daemon do not retry at the same moment.
#[derive(Clone, Debug)]
pub struct Retries {
    schedule: Backoff,
    failures: u32,
}

impl Retries {
    /// Pauses from `first`, which is at least a millisecond, to `most`.
    #[must_use]
    pub const fn new(schedule: Backoff) -> Retries {
        Retries { schedule, failures: 0 }
    }

    /// Length of the next pause.
    pub fn pause(&mut self) -> Duration {
        let pause = self.schedule.pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        pause.mul_f64(1.0 - fastrand::f64() / 4.0)
    }

    /// An attempt succeeded: start again with the first pause.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answered_once_is_waited_for_and_only_what_no_waiting_mends_ends_it() {
        let fault = |code: i32| Error::Fault { code: code.into(), message: "x".to_owned() };
        let lost = Error::Lost { address: "a:1".to_owned(), what: "it broke".to_owned() };
        let late = Error::Late { address: "a:1".to_owned(), after: Duration::from_secs(4) };
        let unreachable = Error::Unreachable("no daemon could be reached; tried:\n  a:1".to_owned());
        let answer = Error::Answer { address: "a:1".to_owned(), found: "SSH".to_owned() };
        let check = |error: &Error, at_first: Recovery, later: Recovery| {
            assert_eq!((of(error, false), of(error, true)), (at_first, later), "{error}");
        };
        check(&lost, Recovery::Wait, Recovery::Wait);
        check(&late, Recovery::Wait, Recovery::Wait);
        check(&unreachable, Recovery::End, Recovery::Wait);
        check(&answer, Recovery::End, Recovery::End);
        check(&fault(fault::UNAVAILABLE), Recovery::Wait, Recovery::Wait);
        check(&fault(fault::TIMEOUT), Recovery::Wait, Recovery::Wait);
        check(&fault(fault::BUSY), Recovery::Wait, Recovery::Wait);
        // Another host represents the domain now, or the domain has no representative at the moment.
        check(&fault(fault::NOT_FOUND), Recovery::End, Recovery::Restart);
        check(&fault(fault::INTERNAL), Recovery::End, Recovery::Wait);
        for code in [fault::FORBIDDEN, fault::REFUSED, fault::INVALID_PARAMS, fault::METHOD_NOT_FOUND] {
            check(&fault(code), Recovery::End, Recovery::End);
        }
        assert_eq!(unreachable.first_line(), "no daemon could be reached");
    }

    #[test]
    fn pauses_grow_to_the_longest_and_start_again_after_a_success() {
        let secs = Duration::from_secs;
        let mut retries = Retries::new(Backoff::new(secs(1), secs(5)));
        for nominal in [1, 2, 4, 5, 5] {
            let pause = retries.pause();
            assert!(
                pause <= secs(nominal) && pause >= secs(nominal).mul_f64(0.75),
                "{pause:?} of {nominal} s"
            );
        }
        retries.reset();
        assert!(retries.pause() <= secs(1));
    }
}
