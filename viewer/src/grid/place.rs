//! Places on the map: domains, and in them clients, schedulers and servers.
//!
//! Pure. Not here: where they are drawn (`layout`).

use wire::time::Time;

/// Number of a domain in [`super::Grid::domains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u32);

/// Number of a place in [`super::Grid::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

impl DomainId {
    #[must_use]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

impl PlaceId {
    #[must_use]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// Role of a place in calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Source of calls: a user, or the host the user calls from.
    Client,
    /// Chooses hosts for calls.
    Scheduler,
    /// Host that does the work.
    Server,
}

impl Part {
    /// Display name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Part::Client => "client",
            Part::Scheduler => "scheduler",
            Part::Server => "host",
        }
    }
}

/// State of a host, as far as it is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// Not reported: only calls name it.
    #[default]
    Unknown,
    /// It reports, or accepts work.
    Live,
    /// It reported before, but has sent nothing for a while.
    Silent,
    /// It accepts no new work.
    Draining,
    /// It left the domain and announced it.
    Left,
    /// It should report and does not, or a log calls it down.
    Down,
}

impl HostState {
    /// Display name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            HostState::Unknown => "not monitored",
            HostState::Live => "live",
            HostState::Silent => "silent",
            HostState::Draining => "draining",
            HostState::Left => "left",
            HostState::Down => "down",
        }
    }
}

/// Report of a host's sensor; values that are no finite numbers are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Representative, standby or member, as the daemon names it.
    pub role: String,
    /// Used share of its CPUs, 0 to 1.
    pub cpu_used: Option<f64>,
    /// Used share of its memory, 0 to 1.
    pub memory_used: Option<f64>,
    /// Load average of the last minute.
    pub load1: Option<f64>,
    /// Number of CPUs.
    pub cpus: Option<f64>,
    /// Size of its memory, in bytes.
    pub memory_bytes: Option<f64>,
    /// Age of its last report when the answer was received, in seconds.
    pub age_secs: Option<f64>,
    /// Bytes of logs that its sensor has not read yet.
    pub lag_bytes: Option<u64>,
    /// Events that its representative has not received yet.
    pub events_behind: Option<u64>,
    /// Events that were deleted before they could be sent.
    pub events_lost: Option<u64>,
    /// Events that its representative rejected.
    pub events_refused: Option<u64>,
    /// Samples that were taken but not sent.
    pub samples_thinned: Option<u64>,
    /// Problems, as its sensor describes them.
    pub health: Vec<String>,
}

/// A client, a scheduler or a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Display name.
    pub name: String,
    pub domain: DomainId,
    pub part: Part,
    /// Its current state.
    pub state: HostState,
    pub report: Option<Report>,
    /// Changes of its state according to logs, the oldest first.
    pub changes: Vec<(Time, HostState)>,
}

impl Place {
    /// Its state at a time: after the last change until then; without any change in a log, its current state.
    #[must_use]
    pub fn state_at(&self, time: Time) -> HostState {
        let until = self.changes.partition_point(|&(at, _)| at <= time);
        match until.checked_sub(1) {
            Some(last) => self.changes[last].1,
            None if self.changes.is_empty() => self.state,
            None => HostState::Unknown,
        }
    }
}

/// A domain; its places are contiguous in [`super::Grid::places`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Display name.
    pub name: String,
    /// Its range of places.
    pub places: std::ops::Range<u32>,
    /// Number of clients.
    pub clients: u32,
    /// Number of schedulers.
    pub schedulers: u32,
    /// Number of servers.
    pub servers: u32,
}

impl Domain {
    /// Numbers of its places.
    pub fn ids(&self) -> impl Iterator<Item = PlaceId> + use<> {
        self.places.clone().map(PlaceId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_holds_until_the_next_change() {
        let at = Time::from_micros;
        let mut place = Place {
            name: "wn01".into(),
            domain: DomainId(0),
            part: Part::Server,
            state: HostState::Live,
            report: None,
            changes: Vec::new(),
        };
        assert_eq!(place.state_at(at(5)), HostState::Live, "nothing is known of the past");
        place.changes = vec![(at(10), HostState::Down), (at(20), HostState::Live)];
        let states = [5, 10, 19, 20, 99].map(|micros| place.state_at(at(micros)));
        use HostState::{Down, Live, Unknown};
        assert_eq!(states, [Unknown, Down, Down, Live, Live]);
    }
}
