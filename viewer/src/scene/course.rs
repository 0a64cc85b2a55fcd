//! Position of a call's mark at a time: moving to the scheduler, waiting, moving to a host, working, moving
//! back.
//!
//! Pure. Rule: the result depends only on the call, the time and the duration of a flight, so that a time
//! gives the same picture in playback and after a jump. A flight never lasts beyond the next step.

use crate::grid::call::Call;
use wire::time::Time;

/// A leg of the route of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    /// From the client to the scheduler.
    Submit,
    /// From the scheduler to a server that is offered.
    Offer,
    /// To the host, from the scheduler, or from the client where there is none.
    Assign,
    /// From the host back to the client.
    Return,
}

/// State of a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stand {
    /// Not visible: before its first step, or after it has returned.
    Nowhere,
    /// Moving, from 0 (just left) to 1 (about to arrive).
    Moving(Leg, f32),
    /// At the scheduler.
    Waiting,
    /// At its hosts.
    Working,
}

/// State of the mark of `call` at `time`, with flights of `flight_micros`.
#[must_use]
pub fn stand(call: &Call, time: Time, flight_micros: i64) -> Stand {
    let now = time.micros();
    let flight = flight_micros.max(1);
    let at = |step: Option<Time>| step.map(Time::micros);
    let (submitted, assigned, ended) = (at(call.submitted), at(call.assigned), at(call.ended));
    if let Some(ended) = ended.filter(|&ended| ended <= now) {
        return match now - ended < flight {
            true => Stand::Moving(Leg::Return, share(now, ended, ended + flight)),
            false => Stand::Nowhere,
        };
    }
    if let Some(assigned) = assigned.filter(|&assigned| assigned <= now) {
        let arrives = ended.map_or(assigned + flight, |ended| ended.min(assigned + flight));
        return match now < arrives {
            true => Stand::Moving(Leg::Assign, share(now, assigned, arrives)),
            false => Stand::Working,
        };
    }
    let Some(submitted) = submitted.filter(|&submitted| submitted <= now) else { return Stand::Nowhere };
    let next = assigned.into_iter().chain(ended).min();
    let arrives = next.map_or(submitted + flight, |next| next.min(submitted + flight));
    match now < arrives {
        true => Stand::Moving(Leg::Submit, share(now, submitted, arrives)),
        false => Stand::Waiting,
    }
}

/// Progress of the offers of a call, while they move.
#[must_use]
pub fn offering(call: &Call, time: Time, flight_micros: i64) -> Option<f32> {
    let (now, offered) = (time.micros(), call.offered?.micros());
    let flight = flight_micros.max(1);
    (offered <= now && now - offered < flight).then(|| share(now, offered, offered + flight))
}

#[allow(clippy::cast_precision_loss)]
fn share(now: i64, from: i64, until: i64) -> f32 {
    if until <= from {
        return 0.0;
    }
    ((now - from) as f32 / (until - from) as f32).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn a_call_goes_its_course() {
        let call = synthetic::drawn(Some(10), Some(20), Some(40));
        let at = |secs: f64| {
            let time = synthetic::time_f(secs);
            stand(&call, time, 4_000_000)
        };
        use Leg::{Assign, Return, Submit};
        use Stand::{Moving, Nowhere, Waiting, Working};
        let course = [9.9, 10.0, 12.0, 14.0, 19.0, 20.0, 21.0, 24.0, 39.9, 40.0, 43.0, 44.0].map(at);
        let expected = [
            Nowhere,
            Moving(Submit, 0.0),
            Moving(Submit, 0.5),
            Waiting,
            Waiting,
            Moving(Assign, 0.0),
            Moving(Assign, 0.25),
            Working,
            Working,
            Moving(Return, 0.0),
            Moving(Return, 0.75),
            Nowhere,
        ];
        assert_eq!(course, expected);
    }

    #[test]
    fn a_flight_ends_with_the_next_step() {
        let call = synthetic::drawn(Some(10), Some(11), Some(11));
        assert_eq!(stand(&call, synthetic::time_f(10.5), 4_000_000), Stand::Moving(Leg::Submit, 0.5));
        assert_eq!(stand(&call, synthetic::time_f(11.0), 4_000_000), Stand::Moving(Leg::Return, 0.0));
        let cancelled = synthetic::drawn(Some(10), None, Some(30));
        assert_eq!(stand(&cancelled, synthetic::time_f(20.0), 4_000_000), Stand::Waiting);
        let running = synthetic::drawn(None, Some(10), None);
        assert_eq!(stand(&running, synthetic::time_f(9e6), 4_000_000), Stand::Working);
    }

    #[test]
    fn times_at_the_ends_of_the_range_do_not_overflow() {
        let call = synthetic::drawn(Some(0), Some(0), Some(0));
        for time in [i64::MIN / 4, -1, 0, i64::MAX / 4] {
            let _ = stand(&call, Time::from_micros(time), i64::MAX / 4);
        }
    }
}
