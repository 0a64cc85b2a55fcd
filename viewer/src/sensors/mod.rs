//! Sensors: one row of health for each, and the commands to them.
//!
//! Pure. Rule: an unknown value is `None`, never zero; a sensor that has sent nothing for
//! [`SILENT_AFTER_SECS`] is silent, whatever was reported before. Not here: queries (`live::sensors`),
//! drawing (`app::sensors`).

pub mod health;

use crate::flock::sweep::HostName;
use crate::grid::place::{HostState, Report};
use health::Health;
use std::net::SocketAddr;

/// Seconds without data after which a sensor is silent; sensors report every second.
pub const SILENT_AFTER_SECS: f64 = 3.0;
/// Maximum number of sensors watched by address.
pub const ADDRESSES_MAX: usize = 16;
/// Maximum number of sensors queried for details beyond what their domain reports.
pub const HOSTS_MAX: usize = 64;

/// Target of queries to a sensor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// The sensor itself, at an address of this machine.
    Address(SocketAddr),
    /// A host by its names, through the queried daemon.
    Host(HostName),
}

/// A command from the user.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Change the rate and the filter of channels.
    Alter {
        /// The channels, each with its sensor.
        of: Vec<(At, String)>,
        /// Samples per second.
        rate_hz: f64,
        /// The filter; empty passes everything.
        filter: String,
    },
    End {
        at: At,
        subscription: String,
    },
    /// Start or stop an external collector or handler.
    Module {
        /// Its sensor: only on the same machine are such commands accepted.
        at: SocketAddr,
        name: String,
        /// Whether to start it; otherwise it is stopped.
        starts: bool,
    },
}

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its state, if anything was received.
    pub state: Option<HostState>,
    /// Representative, standby or member.
    pub role: String,
    /// Age of the last data, in seconds.
    pub heard_secs: Option<f64>,
    /// Bytes of logs that it has not read yet.
    pub lag_bytes: Option<u64>,
    /// Events that its representative has not received yet.
    pub behind: Option<u64>,
    /// Events that were lost or rejected.
    pub dropped: Option<u64>,
    /// Samples that were taken but not sent.
    pub thinned: Option<u64>,
    /// Sweeps that were due but not made.
    pub slipped: Option<u64>,
    /// Term of the representative of its domain.
    pub term: Option<u64>,
    /// Problems, as it describes them.
    pub troubles: Vec<String>,
}

impl Row {
    /// Row of a host: the report of its domain, and its own answer if it was queried.
    #[must_use]
    pub fn of_host(state: HostState, report: &Report, old_secs: f64, health: Option<&Health>) -> Row {
        Row {
            state: Some(state),
            role: report.role.clone(),
            heard_secs: report.age_secs.map(|age| age + old_secs),
            lag_bytes: report.lag_bytes,
            behind: report.events_behind,
            dropped: sum(report.events_lost, report.events_refused),
            thinned: report.samples_thinned,
            slipped: health.and_then(|health| health.slipped),
            term: None,
            troubles: report.health.clone(),
        }
    }

    /// Row of a sensor queried at its address, with the age of its answer in seconds, or the error.
    #[must_use]
    pub fn of_address(health: Option<(&Health, f64)>, trouble: Option<&str>) -> Row {
        let heard_secs = health.map(|(_, secs)| secs);
        let state = match (heard_secs, trouble) {
            (_, Some(_)) => Some(HostState::Down),
            (Some(secs), None) if secs > SILENT_AFTER_SECS => Some(HostState::Silent),
            (Some(_), None) => Some(HostState::Live),
            (None, None) => None,
        };
        let known = health.map(|(health, _)| health);
        let mut troubles: Vec<String> = trouble.map(str::to_owned).into_iter().collect();
        troubles.extend(known.into_iter().flat_map(|health| health.troubles.iter().cloned()));
        Row {
            state,
            role: known.map_or_else(String::new, |health| health.kind.clone()),
            heard_secs,
            lag_bytes: known.and_then(|health| health.lag_bytes),
            dropped: known.and_then(|health| health.events_lost),
            thinned: known.and_then(|health| health.thinned),
            slipped: known.and_then(|health| health.slipped),
            troubles,
            ..Row::default()
        }
    }

    /// Whether it needs attention.
    #[must_use]
    pub fn is_troubled(&self) -> bool {
        let is_well = match self.state {
            Some(HostState::Live | HostState::Left) | None => true,
            Some(HostState::Unknown | HostState::Silent | HostState::Draining | HostState::Down) => false,
        };
        !is_well || self.dropped.is_some_and(|dropped| dropped > 0) || !self.troubles.is_empty()
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
    }
}

/// Input of the user: what to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// A domain of the grid.
    Domain(String),
    /// A sensor of this machine.
    Sensor(SocketAddr),
}

impl Typed {
    /// Parse a domain's name, or an address.
    ///
    /// # Errors
    /// If it is neither; the text says what was expected.
    pub fn parse(text: &str) -> Result<Typed, String> {
        let text = text.trim();
        let expected = "expected a domain such as UT-ICL, or the address of a sensor on this machine such as 127.0.0.1:7327";
        if text.contains(':') {
            let address: SocketAddr = text
                .replace("localhost", "127.0.0.1")
                .parse()
                .map_err(|_| format!("{expected}; found {text:?}"))?;
            return match address.ip().is_loopback() {
                true => Ok(Typed::Sensor(address)),
                false => Err(format!("{expected}; found {text}: daemons answer queries on loopback only")),
            };
        }
        match wire::id::DomainName::try_from(text) {
            Ok(_) => Ok(Typed::Domain(text.to_owned())),
            Err(_) => Err(format!("{expected}; found {text:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_domain_or_a_sensor_of_this_machine() {
        assert_eq!(Typed::parse(" UT-ICL "), Ok(Typed::Domain("UT-ICL".into())));
        let address = SocketAddr::from(([127, 0, 0, 1], 7327));
        assert_eq!(Typed::parse("localhost:7327"), Ok(Typed::Sensor(address)));
        assert!(Typed::parse("[::1]:7327").is_ok());
        for wrong in ["", "a b", "10.0.0.1:7327", "wn01:7327", ":"] {
            assert!(Typed::parse(wrong).unwrap_err().contains("expected a domain"), "{wrong}");
        }
    }

    #[test]
    fn who_is_silent_lost_something_or_says_so_is_troubled() {
        let report = Report { age_secs: Some(0.5), events_lost: Some(0), ..Report::default() };
        let row = Row::of_host(HostState::Live, &report, 1.0, None);
        assert_eq!((row.heard_secs, row.dropped, row.lag_bytes), (Some(1.5), Some(0), None));
        assert!(!row.is_troubled());
        let lost = Report { events_refused: Some(2), ..report.clone() };
        assert_eq!(Row::of_host(HostState::Live, &lost, 0.0, None).dropped, Some(2));
        assert!(Row::of_host(HostState::Live, &lost, 0.0, None).is_troubled());
        assert!(Row::of_host(HostState::Silent, &report, 0.0, None).is_troubled());
        let unwell = Report { health: vec!["disk full".into()], ..report };
        assert!(Row::of_host(HostState::Live, &unwell, 0.0, None).is_troubled());
    }

    #[test]
    fn a_sensor_at_an_address_is_silent_after_three_seconds_and_down_when_it_cannot_be_asked() {
        let health = Health { slipped: Some(7), ..Health::default() };
        let state = |secs: f64| Row::of_address(Some((&health, secs)), None).state;
        assert_eq!((state(2.9), state(3.1)), (Some(HostState::Live), Some(HostState::Silent)));
        let row = Row::of_address(Some((&health, 1.0)), Some("no daemon answers"));
        assert_eq!((row.state, row.slipped), (Some(HostState::Down), Some(7)));
        assert!(row.is_troubled() && row.troubles[0].contains("no daemon"));
        let unheard = Row::of_address(None, None);
        assert!(unheard.state.is_none() && !unheard.is_troubled(), "nothing came yet");
    }
}
