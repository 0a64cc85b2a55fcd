//! Answer of `sensor.take`: entries taken from a subscription.
//!
//! Pure. Not here: entries in the query interface (`wire::api`).

use crate::channel::hub::Answer;
use wire::api::entries::{Entry as Shown, TakeAnswer};
use wire::api::{Bytes, UnixTime};
use wire::channel::stream::{Body, Entry};
use wire::time::Time;

/// Returns the number in the journal of the first event that was not delivered, or was delivered in part, if
/// `waiting` entries are left of all before `looked_at`; `None` if the entries do not show it.
pub(super) fn place_after(entries: &[Entry], waiting: usize, looked_at: u64) -> Option<u64> {
    if waiting == 0 {
        return Some(looked_at);
    }
    entries.iter().rev().find_map(|entry| match &entry.body {
        Body::Event(event) => Some(event.number + 1),
        // One event may have two entries; the second may still wait.
        Body::Call(call) => Some(call.number),
        Body::Sample { .. }
        | Body::Readings { .. }
        | Body::Figures(_)
        | Body::Signal { .. }
        | Body::Missed(_)
        | Body::Quarantined(_) => None,
    })
}

/// Builds the answer of `sensor.take`, for a host with this time of boot.
pub(super) fn take_answer(answer: Answer, booted: Time, is_packed: bool) -> TakeAnswer {
    let Answer { entries, status: standing } = answer;
    let missed = |entry: &Entry| if let Body::Missed(count) = entry.body { count } else { 0 };
    let taken = TakeAnswer {
        next: entries.last().map_or(standing.next, |last| last.number + missed(last).max(1)),
        missed: entries.iter().map(missed).sum(),
        waiting: standing.waiting.0 as u64,
        revision: standing.revision,
        condition: standing.is_true,
        quarantined: standing.quarantined,
        ..TakeAnswer::default()
    };
    if is_packed {
        let bytes = postcard::to_stdvec(&entries).expect("a value of plain types is written into memory");
        return TakeAnswer { packed: Some(Bytes(bytes)), booted: Some(UnixTime(booted)), ..taken };
    }
    TakeAnswer { entries: entries.into_iter().map(|entry| Shown::of(entry, booted)).collect(), ..taken }
}
