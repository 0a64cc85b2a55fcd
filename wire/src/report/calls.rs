//! Copies of stored calls: a standby fetches those of its representative.
//!
//! ```text
//! standby                                representative
//!   FetchCalls: how far it has copied →
//!                                     ←   Calls: those that follow, and whether these are all
//! ```
//! Pure. A store gives each version of a call a larger key, so a copy continues after the last key that it has.
//! A sensor sends these frames only to one that has said that it knows them.
//! Not here: what is done with a call that is stored already (`call_store`).

use super::StoreKey;
use crate::at_end::AtEnd;
use crate::call::StoredCall;
use crate::call::job::JobDetails;
use crate::call::usage::Usage;
use serde::{Deserialize, Serialize};

/// Most stores of a fetch: representatives that the standby has copied from.
pub const POSITIONS_MAX: usize = 64;

/// How far the calls of a store are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPosition {
    /// Store that was copied.
    pub store: StoreKey,
    /// Key of the last call.
    pub key: u64,
}

/// Request for calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchCalls {
    /// How far stores are copied; all calls of another store are requested.
    pub held: Vec<CallPosition>,
    /// Approximate length of the answer, in bytes.
    pub len_bytes: u32,
}

/// Calls that follow those that were copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Encoded", into = "Encoded")]
pub struct Calls {
    /// Where they end: the position of the next request.
    pub position: CallPosition,
    /// The calls, by their keys.
    pub calls: Vec<StoredCall>,
    /// Nothing follows at the moment.
    pub is_end: bool,
}

/// Calls as they are sent: their details follow, as an older version knows none.
#[derive(Serialize, Deserialize)]
struct Encoded {
    position: CallPosition,
    calls: Vec<StoredCall>,
    is_end: bool,
    details: AtEnd<OfJobs>,
}

/// Values by the place of the call.
type ByCall<T> = Vec<(u32, T)>;

/// Details of jobs, then their usage, which an older version does not know.
type OfJobs = (ByCall<Box<JobDetails>>, AtEnd<ByCall<Vec<Usage>>>);

impl From<Calls> for Encoded {
    fn from(Calls { position, mut calls, is_end }: Calls) -> Encoded {
        let details = (0..).zip(&mut calls);
        let mut details: ByCall<Box<JobDetails>> =
            details.filter_map(|(at, stored)| Some((at, stored.call.details.take()?))).collect();
        let usage = details.iter_mut().map(|(at, details)| (*at, std::mem::take(&mut details.usage)));
        let usage = usage.filter(|(_, usage)| !usage.is_empty()).collect();
        Encoded { position, details: AtEnd(Some((details, AtEnd(Some(usage))))), calls, is_end }
    }
}

impl From<Encoded> for Calls {
    fn from(Encoded { position, mut calls, is_end, details }: Encoded) -> Calls {
        let (details, usage) = details.0.unwrap_or_default();
        for (at, details) in details {
            if let Some(stored) = usize::try_from(at).ok().and_then(|at| calls.get_mut(at)) {
                stored.call.details = Some(details);
            }
        }
        for (at, usage) in usage.0.unwrap_or_default() {
            let stored = usize::try_from(at).ok().and_then(|at| calls.get_mut(at));
            if let Some(details) = stored.and_then(|stored| stored.call.details.as_mut()) {
                details.usage = usage;
            }
        }
        Calls { position, calls, is_end }
    }
}

impl Calls {
    /// The answer of a store without any call: nothing follows, at no position.
    #[must_use]
    pub fn nothing() -> Calls {
        let position = CallPosition { store: StoreKey::default(), key: 0 };
        Calls { position, calls: Vec::new(), is_end: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::job::Line;
    use crate::call::usage::{Figure, MeasuredBy};
    use crate::call::{Call, State};
    use crate::event::Id;
    use crate::id::{Generation, SensorKey};
    use crate::time::Time;

    /// The frame as an earlier version has it.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Older {
        position: CallPosition,
        calls: Vec<StoredCall>,
        is_end: bool,
    }

    fn stored(job: &str, details: Option<JobDetails>) -> StoredCall {
        let call = Call {
            id: job.into(),
            job: job.into(),
            name: "".into(),
            user: "".into(),
            from: "".into(),
            state: State::Ended,
            submitted: None,
            offered: None,
            selected: None,
            started: None,
            ended: None,
            offers: Vec::new(),
            hosts: Vec::new(),
            outcome: None,
            code: "".into(),
            signal: "".into(),
            reason: "".into(),
            tries: 1,
            events: 1,
            details: details.map(Box::new),
        };
        StoredCall { call, first: Time::default(), aliases: Vec::new() }
    }

    fn usage() -> Usage {
        let event = Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 };
        Usage {
            host: "wn1".into(),
            user: "ada".into(),
            uid: 1000,
            is_proved: true,
            by: MeasuredBy::ControlGroup,
            started: Time::default(),
            until: Time::default(),
            is_over: true,
            figures: vec![(Figure::CpuTime, 7)],
            failed: Vec::new(),
            line: Line { event, time: Time::default() },
        }
    }

    /// The frame as the version before usage has it.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct WithDetails {
        position: CallPosition,
        calls: Vec<StoredCall>,
        is_end: bool,
        details: AtEnd<ByCall<Box<JobDetails>>>,
    }

    #[test]
    fn usage_follows_the_details_and_an_earlier_version_reads_and_sends_details_without_it() {
        let position = CallPosition { store: StoreKey(7), key: 9 };
        let details = |usage: Vec<Usage>| JobDetails { parts: 3, usage, ..JobDetails::default() };
        let sent = Calls { position, calls: vec![stored("2", Some(details(vec![usage()])))], is_end: true };
        let bytes = postcard::to_stdvec(&sent).expect("short");
        let older: WithDetails = postcard::from_bytes(&bytes).expect("as an earlier version reads it");
        assert_eq!(older.details, AtEnd(Some(vec![(0, Box::new(details(Vec::new())))])));
        let bytes = postcard::to_stdvec(&older).expect("short");
        let read: Calls = postcard::from_bytes(&bytes).expect("as an earlier version sent it");
        assert_eq!(read.calls, [stored("2", Some(details(Vec::new())))]);
    }

    #[test]
    fn details_follow_the_calls_and_an_earlier_version_reads_and_sends_calls_without_them() {
        let position = CallPosition { store: StoreKey(7), key: 9 };
        let details = JobDetails { parts: 3, usage: vec![usage()], ..JobDetails::default() };
        let calls = vec![stored("1", None), stored("2", Some(details))];
        let sent = Calls { position, calls, is_end: true };
        let bytes = postcard::to_stdvec(&sent).expect("short");
        assert_eq!(postcard::from_bytes::<Calls>(&bytes).expect("as sent"), sent);
        let older: Older = postcard::from_bytes(&bytes).expect("as an earlier version reads it");
        let without = vec![stored("1", None), stored("2", None)];
        assert_eq!(older, Older { position, calls: without.clone(), is_end: true });
        let bytes = postcard::to_stdvec(&older).expect("short");
        let read: Calls = postcard::from_bytes(&bytes).expect("as an earlier version sent it");
        assert_eq!(read, Calls { position, calls: without, is_end: true });
    }
}
