//! Start time of a call, in its present run.
//!
//! Pure. Rule: a start reported together with the end is preferred to one reported when it happened.
//! Not here: whether a start belongs to this run (`progress`), starts implied by other events (`implied`).

use crate::reported_value::{ReportedValue, set_time};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use wire::call::Authority;
use wire::time::Time;

/// Start of a call, as far as it is known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Beginning {
    at: Option<ReportedValue<Time>>,
    /// Authority of the log that reported it together with the end.
    by_end: Option<Authority>,
}

impl Beginning {
    pub(crate) fn at(&self) -> Option<Time> {
        self.at.as_ref().map(|at| at.value)
    }

    /// Set an inferred start, unless one is known.
    pub(crate) fn suppose(&mut self, at: Option<Time>) {
        if self.at.is_none() {
            self.at = at.map(ReportedValue::supposed);
        }
    }

    /// Process a start that was reported when it happened.
    pub(crate) fn report(&mut self, at: Time, by: Authority) {
        if self.by_end < Some(by) {
            set_time(&mut self.at, at, by);
        }
    }

    /// Process a start that was reported together with the end.
    pub(crate) fn report_by_end(&mut self, at: Time, by: Authority) {
        if self.by_end > Some(by) {
            return;
        }
        if let Some(at) = &mut self.at {
            if at.by > Some(by) {
                return;
            }
            if self.by_end != Some(by) && at.by == Some(by) {
                at.by = None;
            }
        }
        set_time(&mut self.at, at, by);
        self.by_end = Some(by);
    }

    /// Merge the start of another call that is the same.
    pub(crate) fn absorb(&mut self, other: &Beginning) {
        match other.by_end.cmp(&self.by_end) {
            Ordering::Greater => self.clone_from(other),
            Ordering::Less => {}
            Ordering::Equal => {
                if let Some(ReportedValue { value, by: Some(by) }) = other.at {
                    set_time(&mut self.at, value, by);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Authority::{Accounting, Message};

    fn secs(at: i64) -> Time {
        Time::from_micros(at * 1_000_000)
    }

    /// Starts at 10 s and 11 s, the second reported together with the end; read and merged in either order.
    fn check(when_it_was: Authority, at_the_end: Authority, expected: i64) {
        let start_after = |order: [bool; 2]| {
            let mut beginning = Beginning::default();
            for by_end in order {
                if by_end {
                    beginning.report_by_end(secs(11), at_the_end);
                } else {
                    beginning.report(secs(10), when_it_was);
                }
            }
            beginning.at()
        };
        assert_eq!(start_after([false, true]), Some(secs(expected)));
        assert_eq!(start_after([true, false]), Some(secs(expected)));
        let (mut first, mut second) = (Beginning::default(), Beginning::default());
        first.report(secs(10), when_it_was);
        second.report_by_end(secs(11), at_the_end);
        if when_it_was == at_the_end {
            let early = first.clone();
            first.absorb(&second);
            second.absorb(&early);
            assert_eq!((first.at(), second.at()), (Some(secs(expected)), Some(secs(expected))));
        }
    }

    #[test]
    fn the_start_that_the_end_reports_is_believed() {
        check(Accounting, Accounting, 11);
        check(Message, Accounting, 11);
        check(Accounting, Message, 10);
    }
}
