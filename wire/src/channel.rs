//! Channels: what a consumer wants of what flows at a sensor, and what comes back. It is evaluated at the source.
//!
//! Pure. Rule: every list and text has a bound, since a stranger may send it.
//! What passes and what is signalled is in [`filter`], as people write it in [`expression`], and what comes back in [`stream`].
//! Not here: which fields there are, and the evaluation (`sensor::channel`).

pub mod expression;
pub mod filter;
pub mod stream;

use self::filter::{Condition, Filter};
use crate::event;
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slowest rate, in samples a second.
pub const RATE_MIN_HZ: f64 = 0.1;
/// Fastest rate, in samples a second: that of the fastest sweeps.
pub const RATE_MAX_HZ: f64 = 1000.0;
/// Longest text of a filter or condition, and of a pattern, in bytes: some lines.
pub const TEXT_LEN_MAX_BYTES: usize = 1024;
/// Longest script, in bytes: a page or two.
pub const SCRIPT_LEN_MAX_BYTES: usize = 16 << 10;
/// Most CPU that a subscription may be given, in milliseconds a second: half of a core.
pub const CPU_MAX_MS: u32 = 500;
/// Most bytes a second that a subscription may be given.
pub const BYTES_MAX: u32 = 64 << 20;
/// Longest queue of a subscription, in bytes.
pub const QUEUE_MAX_BYTES: u32 = 8 << 20;
/// Shortest queue, in bytes: an entry or two.
pub const QUEUE_MIN_BYTES: u32 = 4 << 10;

/// What flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The processes of a host.
    #[default]
    Process,
    /// The metrics of a host.
    Host,
    /// Events, as they are found in its logs.
    Event,
    /// Its jobs, transfers and requests, as they change state.
    Call,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Process, Kind::Host, Kind::Event, Kind::Call];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Process => "process",
            Kind::Host => "host",
            Kind::Event => "event",
            Kind::Call => "call",
        }
    }

    /// The kind of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether each of them is sent once, when it happens; otherwise the current state is sent repeatedly.
    #[must_use]
    pub const fn happens(self) -> bool {
        match self {
            Kind::Event | Kind::Call => true,
            Kind::Process | Kind::Host => false,
        }
    }

    /// What of a selection chooses among them.
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

/// What is wrong with a wanted channel.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rate beyond the bounds.
    #[error("expected {RATE_MIN_HZ} to {RATE_MAX_HZ} samples a second, found {0}")]
    Rate(f64),
    /// A text that is too long.
    #[error("{what}: expected at most {max} bytes, found {found}; shorten it")]
    Text {
        /// Which.
        what: &'static str,
        /// The bound.
        max: usize,
        /// Its length.
        found: usize,
    },
    /// A part of the budget beyond its bounds.
    #[error("budget: expected {what} from {min} to {max}, found {found}")]
    Budget {
        /// Which.
        what: &'static str,
        /// The least.
        min: u32,
        /// The most.
        max: u32,
        /// As given.
        found: u32,
    },
}

/// Samples a second; within [`RATE_MIN_HZ`] and [`RATE_MAX_HZ`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(f64);

impl Rate {
    /// So many a second.
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

/// Selection: those that match everything that is given. [`Kind::selectors`] lists what is for which kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// The name of a process, or what the user named a call; `*` matches any characters.
    pub name: Option<CompactString>,
    /// The number of a process's user.
    pub uid: Option<u32>,
    /// Their arguments, as far as the source has them; `*` matches any characters.
    pub command: Option<CompactString>,
    /// Their number.
    pub pid: Option<u32>,
    /// The number of a process; it and all that descend from it.
    pub under: Option<u32>,
    /// The number of a job, of any product; its parts too.
    pub job: Option<CompactString>,
    /// The id of a call; for events and calls `*` matches any characters.
    pub call: Option<CompactString>,
    /// The user of a call, as the logs name it.
    pub user: Option<CompactString>,
    /// What happened.
    pub event: Option<event::Kind>,
    /// How it ended: one of these; any if there is none.
    pub outcomes: Vec<event::Outcome>,
    /// The name of a metric, or a glob.
    pub metric: Option<CompactString>,
}

/// What a subscription may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// CPU time of its evaluation, in milliseconds a second; beyond it the subscription is stopped.
    pub cpu_ms: u32,
    /// Bytes a second; what would be beyond it is missed.
    pub bytes: u32,
    /// Bytes that may wait to be taken; beyond it the oldest are missed.
    pub queue_bytes: u32,
}

impl Default for Budget {
    /// Two hundredths of a core; some thousand records a sample at 64 Hz; about as many bytes waiting as 256 subscriptions
    /// may have.
    fn default() -> Budget {
        Budget { cpu_ms: 20, bytes: 8 << 20, queue_bytes: 256 << 10 }
    }
}

impl Budget {
    /// This budget.
    ///
    /// # Errors
    /// If one of its parts is beyond its bounds.
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

/// All that a subscription asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// What flows.
    pub kind: Kind,
    /// Of which host.
    pub selection: Selection,
    /// How often.
    pub rate: Rate,
    /// What passes.
    pub filter: Filter,
    /// What is signalled.
    pub condition: Option<Condition>,
    /// What the filter cannot say.
    pub script: Option<String>,
    /// Whether a sample has only what differs from the one before.
    pub changes: bool,
    /// Whether only the condition's signals are sent, and no samples.
    pub only_signals: bool,
    /// What it may cost.
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
