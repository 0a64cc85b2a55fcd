//! Channels: requests of subscribers for data of a sensor, and the resulting stream. They are evaluated at
//! the source.
//!
//! Pure. Rule: every list and text is bounded, because a stranger may send it.
//! Filters and conditions are in [`filter`], their text syntax in [`expression`], the resulting entries in
//! [`stream`].
//! Not here: the fields, and the evaluation (`sensor::channel`).

pub mod expression;
pub mod filter;
pub mod stream;

use self::filter::{Condition, Filter};
use crate::event;
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lowest rate, in samples per second.
pub const RATE_MIN_HZ: f64 = 0.1;
/// Highest rate, in samples per second: that of the fastest sweeps.
pub const RATE_MAX_HZ: f64 = 1000.0;
/// Longest text of a filter or condition, and of a pattern, in bytes: some lines.
pub const TEXT_LEN_MAX_BYTES: usize = 1024;
/// Longest script, in bytes: a page or two.
pub const SCRIPT_LEN_MAX_BYTES: usize = 16 << 10;
/// Largest CPU budget of a subscription, in milliseconds per second: half of a core.
pub const CPU_MAX_MS: u32 = 500;
/// Largest byte budget of a subscription, per second.
pub const BYTES_MAX: u32 = 64 << 20;
/// Longest queue of a subscription, in bytes.
pub const QUEUE_MAX_BYTES: u32 = 8 << 20;
/// Shortest queue, in bytes: an entry or two.
pub const QUEUE_MIN_BYTES: u32 = 4 << 10;

/// Kind of data of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Processes of a host.
    #[default]
    Process,
    /// Metrics of a host.
    Host,
    /// Events, as they are found in logs.
    Event,
    /// Calls (jobs, transfers and requests), whenever their state changes.
    Call,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Process, Kind::Host, Kind::Event, Kind::Call];

    /// The kind as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Process => "process",
            Kind::Host => "host",
            Kind::Event => "event",
            Kind::Call => "call",
        }
    }

    /// Parse the text of a kind.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether each item is sent once, when it happens; otherwise the present state is sent repeatedly.
    #[must_use]
    pub const fn happens(self) -> bool {
        match self {
            Kind::Event | Kind::Call => true,
            Kind::Process | Kind::Host => false,
        }
    }

    /// The fields of [`Selection`] that apply to this kind.
    #[must_use]
    pub const fn selectors(self) -> &'static [&'static str] {
        match self {
            Kind::Process => &["name", "user", "command", "pid", "under", "job", "call"],
            Kind::Host => &["metric"],
            Kind::Event => &["name", "user", "job", "call", "kind", "outcome"],
            Kind::Call => &["name", "user", "job", "call", "outcome"],
        }
    }
}

/// Invalid request for a channel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The rate is out of range.
    #[error("expected {RATE_MIN_HZ} to {RATE_MAX_HZ} samples a second, found {0}")]
    Rate(f64),
    /// A text is too long.
    #[error("{what}: expected at most {max} bytes, found {found}; shorten it")]
    Text {
        /// Which text it is.
        what: &'static str,
        /// Its longest allowed length, in bytes.
        max: usize,
        /// Its length, in bytes.
        found: usize,
    },
    /// A part of the budget is out of range.
    #[error("budget: expected {what} from {min} to {max}, found {found}")]
    Budget {
        /// Which part it is.
        what: &'static str,
        /// Smallest allowed value.
        min: u32,
        /// Largest allowed value.
        max: u32,
        /// The value in the request.
        found: u32,
    },
}

/// Sampling rate in Hz, between [`RATE_MIN_HZ`] and [`RATE_MAX_HZ`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(f64);

impl Rate {
    /// The rate in samples per second.
    #[must_use]
    pub fn hz(self) -> f64 {
        self.0
    }
}

impl Default for Rate {
    fn default() -> Rate {
        Rate(1.0)
    }
}

impl TryFrom<f64> for Rate {
    type Error = Error;

    fn try_from(hz: f64) -> Result<Rate, Error> {
        if (RATE_MIN_HZ..=RATE_MAX_HZ).contains(&hz) { Ok(Rate(hz)) } else { Err(Error::Rate(hz)) }
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> f64 {
        rate.0
    }
}

/// Selection of items: those that match all given fields. [`Kind::selectors`] lists the fields for each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Name of a process, or the user's name of a call; `*` matches any characters.
    pub name: Option<CompactString>,
    /// User id of a process.
    pub uid: Option<u32>,
    /// Arguments of a process, as far as the source has them; `*` matches any characters.
    pub command: Option<CompactString>,
    /// Process id.
    pub pid: Option<u32>,
    /// Process id of an ancestor: selects that process and all its descendants.
    pub under: Option<u32>,
    /// Number of a job, of any product, including its parts.
    pub job: Option<CompactString>,
    /// Id of a call; for events and calls `*` matches any characters.
    pub call: Option<CompactString>,
    /// User of a call, as the logs name it.
    pub user: Option<CompactString>,
    /// Kind of event.
    pub event: Option<event::Kind>,
    /// Outcomes; an empty list means any.
    pub outcomes: Vec<event::Outcome>,
    /// Name of a metric, or a glob.
    pub metric: Option<CompactString>,
}

/// Resource limits of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// CPU time of its evaluation, in milliseconds per second; beyond it the subscription is stopped.
    pub cpu_ms: u32,
    /// Bytes per second; entries beyond it are dropped.
    pub bytes: u32,
    /// Length of its queue in bytes; beyond it the oldest entries are dropped.
    pub queue_bytes: u32,
}

impl Default for Budget {
    /// Two hundredths of a core; some thousand records per sample at 64 Hz; a queue such that those of 256
    /// subscriptions fill about their common limit.
    fn default() -> Budget {
        Budget { cpu_ms: 20, bytes: 8 << 20, queue_bytes: 256 << 10 }
    }
}

impl Budget {
    /// Check the budget, and return it.
    ///
    /// # Errors
    /// If one of its parts is out of range.
    pub fn checked(self) -> Result<Budget, Error> {
        let bounds = [
            ("cpu_ms", self.cpu_ms, 1, CPU_MAX_MS),
            ("bytes", self.bytes, 1024, BYTES_MAX),
            ("queue_bytes", self.queue_bytes, QUEUE_MIN_BYTES, QUEUE_MAX_BYTES),
        ];
        let beyond = bounds.into_iter().find(|(_, found, min, max)| !(min..=max).contains(&found));
        beyond.map_or(Ok(self), |(what, found, min, max)| Err(Error::Budget { what, min, max, found }))
    }
}

/// Complete request of a subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelRequest {
    /// Kind of data.
    pub kind: Kind,
    /// Selected items.
    pub selection: Selection,
    /// Sampling rate.
    pub rate: Rate,
    /// Which of the selected items are sent.
    pub filter: Filter,
    /// Condition whose changes are signalled.
    pub condition: Option<Condition>,
    /// Script, for what the filter cannot express.
    pub script: Option<String>,
    /// Whether a sample contains only the changes since the previous one.
    pub changes: bool,
    /// Whether only the condition's signals are sent, and no samples.
    pub only_signals: bool,
    /// Resource limits.
    pub budget: Budget,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_budgets_are_within_their_bounds() {
        for hz in [0.1, 64.0, 1000.0] {
            assert_eq!(Rate::try_from(hz).map(Rate::hz), Ok(hz));
        }
        for hz in [0.0, 0.09, 1000.1, -1.0, f64::INFINITY] {
            assert_eq!(Rate::try_from(hz), Err(Error::Rate(hz)));
        }
        assert!(Rate::try_from(f64::NAN).is_err());
        assert!(Budget::default().checked().is_ok());
        let error = Budget { cpu_ms: 501, ..Budget::default() }.checked().expect_err("too much");
        assert_eq!(error.to_string(), "budget: expected cpu_ms from 1 to 500, found 501");
    }

    #[test]
    fn every_kind_has_a_word_and_selectors_of_its_own() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_word(kind.as_str()), Some(kind));
            assert!(!kind.selectors().is_empty());
        }
        assert_eq!(Kind::from_word("processes"), None);
    }

    #[test]
    fn a_rate_beyond_the_bounds_is_refused_when_it_is_read() {
        let bytes = postcard::to_stdvec(&2000.0_f64).expect("it fits");
        assert!(postcard::from_bytes::<Rate>(&bytes).is_err());
        let bytes = postcard::to_stdvec(&64.0_f64).expect("it fits");
        assert_eq!(postcard::from_bytes::<Rate>(&bytes), Ok(Rate(64.0)));
    }
}
