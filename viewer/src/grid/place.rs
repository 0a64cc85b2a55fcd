//! What has a place on the map: domains, and in them clients, schedulers and servers.
//!
//! Pure. Not here: where it is (`layout`).

use wire::time::Time;

/// Which domain, by its number in [`super::Grid::domains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u32);

/// Which place, by its number in [`super::Grid::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

impl DomainId {
    /// As an index.
    #[must_use]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

impl PlaceId {
    /// As an index.
    #[must_use]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// What part a place has in calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Who asks: a user, or the host he asks from.
    Client,
    /// Who chooses.
    Scheduler,
    /// Where the work is done.
    Server,
}

impl Part {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Part::Client => "client",
            Part::Scheduler => "scheduler",
            Part::Server => "host",
        }
    }
}

/// How a host is, as far as anybody tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostState {
    /// Only calls name it.
    #[default]
    Unknown,
    /// It reports, or takes work.
    Live,
    /// It reported, and nothing came of it for a while.
    Silent,
    /// It takes no new work.
    Draining,
    /// It left, and said so.
    Left,
    /// It should report and does not, or is lost.
    Down,
}

impl HostState {
    /// The word for it.
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

/// What a host's sensor tells of it; figures that are no numbers are not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Representative, standby or member, in the daemon's word.
    pub role: String,
    /// The share of its CPUs that is used, 0 to 1.
    pub cpu_used: Option<f64>,
    /// The share of its memory that is used, 0 to 1.
    pub memory_used: Option<f64>,
    /// Load average of the last minute.
    pub load1: Option<f64>,
    /// CPUs.
    pub cpus: Option<f64>,
    /// Its memory, in bytes.
    pub memory_bytes: Option<f64>,
    /// Seconds between its last word and the answer that brought this.
    pub age_secs: Option<f64>,
    /// Bytes of logs that its sensor has not read yet.
    pub lag_bytes: Option<u64>,
    /// Events that it has, and its representative has not.
    pub events_behind: Option<u64>,
    /// Events that were deleted before they could be sent.
    pub events_lost: Option<u64>,
    /// Events that its representative set aside.
    pub events_refused: Option<u64>,
    /// Samples that it took and did not send.
    pub samples_thinned: Option<u64>,
    /// What is wrong with it, in its sensor's words.
    pub health: Vec<String>,
}

/// A client, a scheduler or a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its name as it is shown.
    pub name: String,
    /// In which domain.
    pub domain: DomainId,
    /// What part it has.
    pub part: Part,
    /// How it is now.
    pub state: HostState,
    /// What its sensor tells.
    pub report: Option<Report>,
    /// How its state changed, by a log's account, the oldest first.
    pub changes: Vec<(Time, HostState)>,
}

impl Place {
    /// How it was at a time: by the last change until then, else as it is now where no log tells of changes.
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

/// A domain with its places, which stand together in [`super::Grid::places`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its name as it is shown.
    pub name: String,
    /// Its places.
    pub places: std::ops::Range<u32>,
    /// Of them clients.
    pub clients: u32,
    /// Of them schedulers.
    pub schedulers: u32,
    /// Of them servers.
    pub servers: u32,
}

impl Domain {
    /// Its places.
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
        assert_eq!(place.state_at(at(5)), HostState::Live, "nothing tells of the past");
        place.changes = vec![(at(10), HostState::Down), (at(20), HostState::Live)];
        let states = [5, 10, 19, 20, 99].map(|micros| place.state_at(at(micros)));
        use HostState::{Down, Live, Unknown};
        assert_eq!(states, [Unknown, Down, Down, Live, Live]);
    }
}
