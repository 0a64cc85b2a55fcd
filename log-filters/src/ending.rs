//! End of a call: time, outcome, exit code and signal.
//!
//! Pure. Rule: an inferred end is used until one is reported or the call continues. Of the reported ends, the
//! one from the better authority is used, then the more specific one. Not here: whether the end belongs to
//! this run (`progress`), ends implied by other events (`implied`).

use crate::reported_value::{ReportedValue, set_time};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::{Authority, Call};
use wire::event::{Content, Outcome, Value};
use wire::time::Time;

/// The end of a job may be logged this long before the request to cancel it.
const ASKED_LATE_MICROS: i64 = 1_000_000;

/// End of a call, as far as it is known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ending {
    at: Option<ReportedValue<Time>>,
    outcome: Option<ReportedValue<Outcome>>,
    /// The log only inferred the outcome: an outcome from another log replaces it.
    is_presumed: bool,
    code: CompactString,
    signal: CompactString,
    /// The end was reported; the request to cancel a waiting job alone does not set this.
    is_final: bool,
}

impl Ending {
    pub(crate) fn at(&self) -> Option<Time> {
        self.at.as_ref().map(|at| at.value)
    }

    /// Outcome of a call for which cancellation was requested at `cancel_asked`: an end by signal after that
    /// counts as cancelled.
    pub(crate) fn outcome(&self, cancel_asked: Option<Time>) -> Option<Outcome> {
        let known = self.outcome.as_ref().map(|outcome| outcome.value);
        let asked = cancel_asked
            .zip(self.at())
            .is_some_and(|(asked, at)| asked.micros() <= at.micros() + ASKED_LATE_MICROS);
        match known {
            Some(Outcome::Failed) if asked && !self.signal.is_empty() => Some(Outcome::Cancelled),
            _ => known,
        }
    }

    /// Whether the outcome is cancelled, as reported or inferred, whatever was requested.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.value == Outcome::Cancelled)
    }

    pub(crate) fn code(&self) -> &CompactString {
        &self.code
    }

    pub(crate) fn signal(&self) -> &CompactString {
        &self.signal
    }

    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }

    /// The end if its time fits; an unknown one else.
    pub(crate) fn only_if(self, fits: impl FnOnce(Time) -> bool) -> Ending {
        if self.at().is_some_and(fits) { self } else { Ending::default() }
    }

    /// Set an inferred end.
    pub(crate) fn suppose(&mut self, at: Time, outcome: Outcome) {
        self.at = Some(ReportedValue::supposed(at));
        self.outcome = Some(ReportedValue::supposed(outcome));
    }

    /// Set an inferred outcome, unless one is known.
    pub(crate) fn suppose_outcome(&mut self, outcome: Option<Outcome>) {
        if self.outcome.is_none() {
            self.outcome = outcome.map(ReportedValue::supposed);
        }
    }

    /// Drop the end if it is only inferred.
    pub(crate) fn forget_supposed(&mut self) {
        if !self.is_final {
            *self = Ending::default();
        }
    }

    /// Process an event that ends the call.
    pub(crate) fn report(&mut self, content: &Content, by: Authority) {
        self.forget_supposed();
        self.is_final = true;
        let at = content.ended.unwrap_or(content.time);
        set_time(&mut self.at, at, by);
        let text = |name: &str| content.attribute(name).and_then(Value::as_text).unwrap_or_default();
        let outcome = content.outcome.unwrap_or(Outcome::Finished);
        self.set_outcome((outcome, !text("presumed").is_empty()), text("code"), text("signal"), by);
    }

    /// Merge the end of a part of the call that is being dropped.
    pub(crate) fn outlive(&mut self, part: &Call) {
        match (&mut self.at, part.ended) {
            (Some(at), Some(ended)) => at.value = at.value.max(ended),
            (Some(_), None) => {}
            (None, ended) => self.at = ended.map(ReportedValue::supposed),
        }
        self.suppose_outcome(part.outcome);
    }

    /// Merge the end of another call that is the same.
    pub(crate) fn absorb(&mut self, other: &Ending) {
        self.is_final |= other.is_final;
        if let Some(ReportedValue { value, by: Some(by) }) = other.at {
            set_time(&mut self.at, value, by);
        }
        if let Some(ReportedValue { value, by: Some(by) }) = other.outcome {
            self.set_outcome((value, other.is_presumed), &other.code, &other.signal, by);
        }
    }

    fn set_outcome(&mut self, new: (Outcome, bool), code: &str, signal: &str, by: Authority) {
        let worth = |(outcome, is_presumed): (Outcome, bool), by: Option<Authority>| {
            let says = outcome != Outcome::Finished;
            (says, says && !is_presumed, by, specific(outcome))
        };
        let known = self.outcome.as_ref().map(|known| worth((known.value, self.is_presumed), known.by));
        let replaces = known.is_none_or(|known| worth(new, Some(by)) > known);
        if replaces {
            self.outcome = Some(ReportedValue { value: new.0, by: Some(by) });
            self.is_presumed = new.1;
        }
        for (own, their) in [(&mut self.code, code), (&mut self.signal, signal)] {
            if !their.is_empty() && (own.is_empty() || replaces) {
                *own = their.into();
            }
        }
    }
}

/// How specific an outcome is.
fn specific(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Finished => 0,
        Outcome::Ok | Outcome::Failed => 1,
        Outcome::Cancelled | Outcome::Timeout | Outcome::NodeFail => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::Kind;

    fn secs(at: i64) -> Time {
        Time::from_micros(at * 1_000_000)
    }

    fn end(at: i64, outcome: Outcome, signal: &str) -> Content {
        let mut content = Content::new(Kind::JobEnd, secs(at));
        content.outcome = Some(outcome);
        content.attributes.push(("signal".into(), Value::Text(signal.into())));
        content
    }

    #[test]
    fn an_inferred_end_gives_way_to_a_reported_one() {
        for outcome in [Outcome::Ok, Outcome::Finished] {
            let mut ending = Ending::default();
            ending.suppose(secs(9), Outcome::Cancelled);
            assert_eq!((ending.at(), ending.is_final()), (Some(secs(9)), false));
            ending.report(&end(5, outcome, ""), Authority::Message);
            assert_eq!((ending.at(), ending.outcome(None)), (Some(secs(5)), Some(outcome)));
            ending.forget_supposed();
            assert_eq!(ending.at(), Some(secs(5)), "a logged end stays");
        }
    }

    #[test]
    fn a_signal_after_a_wish_to_cancel_is_that_wish_come_true() {
        for (asked, signal, expected) in [
            (None, "9", Outcome::Failed),
            (Some(8), "9", Outcome::Cancelled),
            (Some(8), "", Outcome::Failed),
            (Some(12), "9", Outcome::Failed),
        ] {
            let mut ending = Ending::default();
            ending.report(&end(10, Outcome::Failed, signal), Authority::Scheduler);
            assert_eq!(
                ending.outcome(asked.map(secs)),
                Some(expected),
                "asked at {asked:?}, signal {signal:?}"
            );
        }
    }

    #[test]
    fn the_better_account_holds_in_either_order_of_reading() {
        let accounts = [
            (end(5, Outcome::Finished, ""), Authority::Accounting),
            (end(6, Outcome::Failed, "6"), Authority::Scheduler),
            (end(7, Outcome::Timeout, "15"), Authority::Scheduler),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
            let (mut read, mut met) = (Ending::default(), Ending::default());
            for at in order {
                let (content, by) = &accounts[at];
                read.report(content, *by);
                let mut one = Ending::default();
                one.report(content, *by);
                met.absorb(&one);
            }
            for ending in [read, met] {
                assert_eq!(ending.at(), Some(secs(5)), "{order:?}");
                assert_eq!(
                    (ending.outcome(None), &**ending.signal()),
                    (Some(Outcome::Timeout), "15"),
                    "{order:?}"
                );
                assert!(ending.is_final());
            }
        }
    }
    #[test]
    fn a_presumed_outcome_holds_until_any_log_has_one() {
        let presumed = |by: Authority| {
            let mut content = end(5, Outcome::Cancelled, "9");
            content.attributes.push(("presumed".into(), Value::Text("yes".into())));
            (content, by)
        };
        let failed = (end(6, Outcome::Failed, "9"), Authority::Message);
        let finished = (end(6, Outcome::Finished, ""), Authority::Scheduler);
        let accounting = presumed(Authority::Accounting);
        for (accounts, expected) in [
            ([&accounting, &finished], Outcome::Cancelled),
            ([&accounting, &failed], Outcome::Failed),
            ([&presumed(Authority::Scheduler), &accounting], Outcome::Cancelled),
        ] {
            for order in [[0, 1], [1, 0]] {
                let mut ending = Ending::default();
                order.iter().for_each(|&at| ending.report(&accounts[at].0, accounts[at].1));
                assert_eq!((ending.at(), ending.outcome(None)), (Some(secs(5)), Some(expected)), "{order:?}");
            }
        }
    }
}
