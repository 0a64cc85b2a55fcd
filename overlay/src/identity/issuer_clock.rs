//! Check of an issuer's clock: whether the time that it would sign with can be right.
//!
//! Pure. Evidence, in this order: the operator's confirmation, which holds for a day; what the members'
//! clocks say; how long this host has run since the clock was last right, unless it was restarted since; the
//! newest time that was signed, which a correct clock has passed. Rule: after a long downtime, an issuer's
//! clock may be any time ahead of what the issuer signed.
//! Not here: the readings of members (`peer_clocks`), the file (`domain_files`).

use super::peer_clocks::{DIFFERENCE_MAX, Members};
use super::refused::Refused;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::time::{Moment, Time};

/// How long a confirmation outweighs what the members say.
pub const CONFIRMED_FOR: Duration = Duration::from_secs(86_400);

/// Age at which an anchor is renewed: the two clocks drift apart by seconds in this time.
const ANCHOR_AGE_MAX: Duration = Duration::from_secs(86_400);

/// The clocks of this host, read together.
#[derive(Clone, Copy, Debug)]
pub struct Clocks<'a> {
    /// Calendar time.
    pub now: Time,
    /// Time of the monotonic clock.
    pub at: Moment,
    /// Identifier of the boot since which `at` counts, if the system names it.
    pub boot: Option<&'a str>,
}

/// Anchor: when the clock was last right, as a pair of readings of both clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    boot: String,
    at_micros: u64,
    time: Time,
    is_confirmed: bool,
}

impl Anchor {
    /// An anchor for a clock that is right now; none if the boot identifier is not known.
    #[must_use]
    pub fn of(clocks: Clocks<'_>) -> Option<Anchor> {
        let boot = clocks.boot?.to_owned();
        let at_micros = u64::try_from(clocks.at.0.as_micros()).unwrap_or(u64::MAX);
        Some(Anchor { boot, at_micros, time: clocks.now, is_confirmed: false })
    }

    /// An anchor for a clock that the operator confirmed.
    #[must_use]
    pub fn confirmed(clocks: Clocks<'_>) -> Option<Anchor> {
        Anchor::of(clocks).map(|anchor| Anchor { is_confirmed: true, ..anchor })
    }

    fn age(&self, at: Moment) -> Duration {
        at.0.saturating_sub(Duration::from_micros(self.at_micros))
    }

    /// What the calendar should show now; none if the host was restarted since.
    fn expected(&self, clocks: Clocks<'_>) -> Option<Time> {
        (clocks.boot == Some(self.boot.as_str())).then(|| self.time.plus(self.age(clocks.at)))
    }
}

/// Check that the clock may be used for signing. Returns the anchor to store, if it changes.
///
/// # Errors
/// [`Refused::IssuerClock`], with the time that the clock shows and the time that it should show.
pub fn check(
    clocks: Clocks<'_>,
    anchor: Option<&Anchor>,
    signed: Option<Time>,
    members: Members,
) -> Result<Option<Anchor>, Refused> {
    let now = clocks.now;
    let refuse = |expected: Time, by: String| Err(Refused::IssuerClock { now, expected, by });
    let expected = anchor.and_then(|anchor| anchor.expected(clocks));
    let fits = expected.is_some_and(|expected| differs(now, expected) <= DIFFERENCE_MAX);
    let is_old = anchor.is_none_or(|anchor| anchor.age(clocks.at) >= ANCHOR_AGE_MAX);
    if fits && anchor.is_some_and(|anchor| anchor.is_confirmed && anchor.age(clocks.at) < CONFIRMED_FOR) {
        return Ok(None);
    }
    // If members agree with the clock, what the operator confirmed is no measure of a clock that was set
    // since.
    let is_confirmed = anchor.is_some_and(|anchor| anchor.is_confirmed);
    let expected = expected.filter(|_| !(is_confirmed && matches!(members, Members::Agree { .. })));
    match (members, expected) {
        (Members::Differ { time, members }, _) => {
            refuse(time, format!("the clocks of {members} members say"))
        }
        (Members::Unknown | Members::Agree { settled: false }, Some(expected)) if !fits => {
            refuse(expected, "by the time that this host ran since, it is".to_owned())
        }
        (Members::Unknown, None) if signed.is_some_and(|signed| now.plus(DIFFERENCE_MAX) < signed) => {
            refuse(signed.unwrap_or(now), "the newest certificate was signed at".to_owned())
        }
        _ if fits && !is_old => Ok(None),
        _ => Ok(Anchor::of(clocks)),
    }
}

fn differs(one: Time, other: Time) -> Duration {
    one.since(other).max(other.since(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_795_240_800_000_000);
    const DAY: Duration = Duration::from_secs(86_400);
    const AGREE: Members = Members::Agree { settled: false };

    fn clocks(now: Time, secs: u64, boot: &str) -> Clocks<'_> {
        Clocks { now, at: Moment(Duration::from_secs(secs)), boot: Some(boot) }
    }

    fn refused(result: Result<Option<Anchor>, Refused>) -> (Time, Time) {
        match result {
            Err(Refused::IssuerClock { now, expected, .. }) => (now, expected),
            other => panic!("expected a refusal, found {other:?}"),
        }
    }

    #[test]
    fn a_clock_that_is_set_while_the_host_runs_is_not_signed_by() {
        let anchor = check(clocks(NOW, 100, "a"), None, None, Members::Unknown).expect("right");
        let ahead = NOW.plus(16 * DAY);
        for (now, members) in [(ahead, Members::Unknown), (ahead, AGREE), (NOW.minus(16 * DAY), AGREE)] {
            let found = refused(check(clocks(now, 200, "a"), anchor.as_ref(), Some(NOW), members));
            assert_eq!(found, (now, NOW.plus(Duration::from_secs(100))), "whatever else was set with it");
        }
        let right = clocks(NOW.plus(Duration::from_secs(3000)), 200, "a");
        assert_eq!(
            check(right, anchor.as_ref(), Some(NOW), Members::Unknown),
            Ok(None),
            "less than an hour off"
        );
        let settled = Members::Agree { settled: true };
        let again = check(clocks(ahead, 9000, "a"), anchor.as_ref(), Some(NOW), settled).expect("settled");
        assert_eq!(again, Anchor::of(clocks(ahead, 9000, "a")), "the clock was wrong before");
    }

    #[test]
    fn an_issuer_that_was_off_for_a_month_signs_unless_members_say_otherwise() {
        let anchor = Anchor::of(clocks(NOW, 100, "a"));
        let later = NOW.plus(31 * DAY);
        let found = check(clocks(later, 5, "b"), anchor.as_ref(), Some(NOW), Members::Unknown);
        assert_eq!(found, Ok(Anchor::of(clocks(later, 5, "b"))));
        let differ = Members::Differ { time: NOW, members: 3 };
        assert_eq!(refused(check(clocks(later, 5, "b"), anchor.as_ref(), Some(NOW), differ)), (later, NOW));
    }

    #[test]
    fn a_clock_behind_what_was_signed_is_not_signed_by_unless_members_agree() {
        let behind = clocks(NOW.minus(16 * DAY), 5, "b");
        assert_eq!(refused(check(behind, None, Some(NOW), Members::Unknown)), (behind.now, NOW));
        assert!(check(behind, None, Some(NOW), AGREE).is_ok(), "what was signed is from the future");
    }

    #[test]
    fn what_the_operator_confirms_holds_a_day_and_for_that_clock_alone() {
        let ahead = NOW.plus(16 * DAY);
        let confirmed = Anchor::confirmed(clocks(ahead, 100, "a"));
        let differ = Members::Differ { time: NOW, members: 3 };
        let check = |now, secs, boot| check(clocks(now, secs, boot), confirmed.as_ref(), Some(NOW), differ);
        assert_eq!(check(ahead, 200, "a"), Ok(None));
        assert!(check(ahead.plus(DAY), 100 + 86_400, "a").is_err(), "over");
        assert!(check(NOW.plus(40 * DAY), 200, "a").is_err(), "set again");
        let agree = super::check(clocks(NOW, 200, "a"), confirmed.as_ref(), Some(ahead), AGREE);
        assert_eq!(agree, Ok(Anchor::of(clocks(NOW, 200, "a"))), "confirmed by mistake");
        assert!(check(ahead, 200, "b").is_err(), "started again");
    }
}
