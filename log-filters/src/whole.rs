//! Call that consists only of its parts, as an array of its tasks: its state follows from theirs.
//!
//! Pure. Rule: it runs while a part runs and ends with the last known part; it succeeded if all did. Its own
//! reports (submitted, cancelled while it waited) count as one more part.
//! Not here: finding the parts ([`crate::join`]).

use crate::progress::HOSTS_MAX;
use wire::call::{Call, State};
use wire::event::Outcome;

/// Combine `own` with its parts; unchanged if there are none.
pub(crate) fn with_parts(mut own: Call, parts: impl Iterator<Item = Call>) -> Call {
    let (mut open, mut running, mut count) = (false, own.state == State::Running, 0);
    for part in parts {
        count += 1;
        open |= part.state != State::Ended;
        running |= part.state == State::Running;
        own.started = [own.started, part.started].into_iter().flatten().min();
        own.ended = own.ended.max(part.ended);
        if worse(own.outcome, part.outcome) != own.outcome || own.reason.is_empty() {
            own.reason = part.reason;
        }
        own.outcome = worse(own.outcome, part.outcome);
        for host in part.hosts {
            if own.hosts.len() < HOSTS_MAX && !own.hosts.contains(&host) {
                own.hosts.push(host);
            }
        }
    }
    if count == 0 {
        return own;
    }
    own.details.get_or_insert_default().parts = count;
    own.tries = own.tries.max(u32::from(own.started.is_some()));
    own.state = match (open, running) {
        (false, _) => State::Ended,
        (true, true) => State::Running,
        // Between two parts: something was done, but nothing is running.
        (true, false) => State::Waiting,
    };
    if own.state != State::Ended {
        (own.ended, own.outcome) = (None, None);
    }
    own
}

/// The worse of two outcomes, which must be shown.
fn worse(one: Option<Outcome>, other: Option<Outcome>) -> Option<Outcome> {
    let rank = |outcome: Option<Outcome>| match outcome {
        None => 0,
        Some(Outcome::Ok) => 1,
        Some(Outcome::Finished) => 2,
        Some(Outcome::Cancelled) => 3,
        Some(Outcome::Timeout) => 4,
        Some(Outcome::NodeFail) => 5,
        Some(Outcome::Failed) => 6,
    };
    if rank(other) > rank(one) { other } else { one }
}
