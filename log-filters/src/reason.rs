//! Reason why a call waits or ended, in the text of the middleware.
//!
//! Pure. Rule: the latest reason is used, and of one moment that of the better authority; a start, a release
//! and a successful end clear all earlier reasons. Not here: which lines report reasons (the filters: an
//! attribute `reason`).

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::{Authority, Call};
use wire::event::{Content, Kind, Outcome, Value};
use wire::time::Time;

/// Longest reason in characters: a longer text is log output, not a reason.
const SHOWN_CHARS: usize = 200;

/// The latest reason; empty after a release. Boxed, because most calls have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Reason(Option<Box<(Time, Authority, CompactString)>>);

impl Reason {
    /// Process an event.
    pub(crate) fn report(&mut self, content: &Content, by: Authority) {
        let given = content.attribute("reason").and_then(Value::as_text).map(str::trim);
        let text = match given.filter(|text| !text.is_empty()) {
            Some(text) => text.chars().take(SHOWN_CHARS).collect(),
            None if content.kind == Kind::JobRelease => CompactString::default(),
            None => return,
        };
        self.absorb(&Reason(Some(Box::new((content.time, by, text)))));
    }

    /// Merge the reason of another call that is the same.
    pub(crate) fn absorb(&mut self, other: &Reason) {
        if *other > *self {
            self.clone_from(other);
        }
    }

    /// The reason for the present state of `call`; empty if none was reported.
    pub(crate) fn of(&self, call: &Call) -> CompactString {
        let answered =
            |at: Time| call.outcome == Some(Outcome::Ok) || call.started.is_some_and(|started| started > at);
        let reported = self.0.as_deref().filter(|(at, _, _)| !answered(*at));
        reported.map(|(_, _, text)| text.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progress;

    fn event(kind: Kind, secs: i64, reason: &str) -> Content {
        let mut content = Content::new(kind, Time::from_micros(secs * 1_000_000));
        if !reason.is_empty() {
            content.attributes.push(("reason".into(), Value::Text(reason.into())));
        }
        content
    }

    fn check(events: &[(Kind, i64, &str)], outcome: Option<Outcome>, expected: &str) {
        let reason_after = |order: &mut dyn Iterator<Item = &(Kind, i64, &str)>| {
            let mut progress = Progress::new("p:1".into(), Time::from_micros(0));
            for (kind, secs, reason) in order {
                let mut content = event(*kind, *secs, reason);
                content.outcome = outcome.filter(|_| *kind == Kind::JobEnd);
                progress.apply(&content, Authority::Scheduler);
            }
            progress.call().reason
        };
        assert_eq!(reason_after(&mut events.iter()), expected, "{events:?}");
        assert_eq!(reason_after(&mut events.iter().rev()), expected, "{events:?} read backwards");
    }

    #[test]
    fn the_last_reason_holds_until_it_is_answered() {
        use Kind::{JobEnd, JobHold, JobRelease, JobRequeue, JobStart, JobSubmit, Message};
        check(&[(JobSubmit, 1, ""), (JobHold, 2, "no such file")], None, "no such file");
        check(&[(JobHold, 2, "no such file"), (JobRelease, 3, "")], None, "");
        check(&[(JobHold, 2, "no such file"), (JobStart, 3, "")], None, "");
        check(&[(JobHold, 2, "one"), (JobRequeue, 3, "two")], None, "two");
        let over = [(JobStart, 2, ""), (Message, 5, "over its time"), (JobEnd, 6, "")];
        check(&over, Some(Outcome::Failed), "over its time");
        check(&over, Some(Outcome::Ok), "");
    }
}
