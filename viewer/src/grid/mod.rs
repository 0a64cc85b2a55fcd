//! The grid as it is drawn: domains, places and calls, built from the facts of logs and daemons.
//!
//! Pure. Rule: the same facts give the same grid, in whatever order they arrive; all untrusted input is
//! bounded, and what is refused is counted ([`refused`]). Not here: positions (`layout`), what moves at a
//! time (`scene`).

pub mod builder;
pub mod call;
pub mod place;
pub mod refused;
pub mod text;

use call::Call;
use place::{Domain, DomainId, Place, PlaceId};
use refused::Refused;
use wire::time::Time;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    pub domains: Vec<Domain>,
    /// The places, by domain: first its clients, then schedulers, then servers, each by name.
    pub places: Vec<Place>,
    /// The calls, by their first known time, then by id.
    pub calls: Vec<Call>,
    /// Failures, by time.
    pub failures: Vec<Failure>,
    /// Counts of what was refused.
    pub refused: Refused,
    /// Times that may have calls that were not requested, from start to end.
    pub unloaded: Vec<(Time, Time)>,
}

/// A failure, for navigation from one to the next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    pub time: Time,
    pub of: FailureOf,
}

/// Subject of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureOf {
    /// The call with this index failed.
    Call(u32),
    /// The host went down.
    Host(PlaceId),
}

impl Grid {
    /// The place with this number.
    #[must_use]
    pub fn place(&self, id: PlaceId) -> &Place {
        &self.places[id.at()]
    }

    /// The domain with this number.
    #[must_use]
    pub fn domain(&self, id: DomainId) -> &Domain {
        &self.domains[id.at()]
    }

    /// The first and the last known time of all calls and state changes.
    #[must_use]
    pub fn span(&self) -> Option<(Time, Time)> {
        let changes = self.places.iter().flat_map(|place| place.changes.iter().map(|&(at, _)| at));
        let calls = self.calls.iter().flat_map(|call| [call.first(), call.last()]).flatten();
        changes.chain(calls).fold(None, |span, at| match span {
            None => Some((at, at)),
            Some((first, last)) => Some((first.min(at), last.max(at))),
        })
    }

    /// Servers, over all domains.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.domains.iter().map(|domain| domain.servers).sum()
    }

    /// The index of the call with this id.
    #[must_use]
    pub fn call_named(&self, id: &str) -> Option<u32> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        u32::try_from(at).ok()
    }
}
