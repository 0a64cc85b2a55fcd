//! The grid as it is drawn: domains, places and calls, put together from what logs and daemons tell.
//!
//! Pure. Rule: the same facts make the same grid, in whatever order they come; everything a stranger can send is
//! bounded, and what is not taken is counted ([`refused`]). Not here: where things are drawn (`layout`), what moves
//! at a time (`scene`).

pub mod builder;
pub mod call;
pub mod place;
pub mod refused;
pub mod text;

use call::Call;
use place::{Domain, DomainId, Place, PlaceId};
use refused::Refused;
use wire::time::Time;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// The domains, by name.
    pub domains: Vec<Domain>,
    /// The places: of each domain first its clients, then schedulers, then servers, each by name.
    pub places: Vec<Place>,
    /// The calls, by the time when they are first heard of, then by id.
    pub calls: Vec<Call>,
    /// What failed when, by time.
    pub failures: Vec<Failure>,
    /// What was not taken.
    pub refused: Refused,
}

/// Something that went wrong, for who looks for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// When.
    pub time: Time,
    /// Of what.
    pub of: FailureOf,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureOf {
    /// The call of this number.
    Call(u32),
    /// The host was lost.
    Host(PlaceId),
}

impl Grid {
    /// The place of this number.
    #[must_use]
    pub fn place(&self, id: PlaceId) -> &Place {
        &self.places[id.at()]
    }

    /// The domain of this number.
    #[must_use]
    pub fn domain(&self, id: DomainId) -> &Domain {
        &self.domains[id.at()]
    }

    /// From the first to the last that is heard of any call or host.
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

    /// The call of this id.
    #[must_use]
    pub fn call_named(&self, id: &str) -> Option<u32> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        u32::try_from(at).ok()
    }
}
