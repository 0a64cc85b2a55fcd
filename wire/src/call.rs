//! The call: the events of one job, transfer or request, joined.
//!
//! Pure. Not here: the joining itself (`log_filters::join`).

use crate::event::Outcome;
use crate::time::Time;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Known, not yet running.
    Waiting,
    /// At work.
    Running,
    /// Over; see [`Call::outcome`].
    Ended,
}

impl State {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Ended => "ended",
        }
    }
}

/// One job, transfer or request, as far as the logs tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its name, unique within the sensor: `PRODUCT:JOB`, with `/CLUSTER` and `#LIFE` where needed.
    pub id: CompactString,
    /// The middleware's name of the job.
    pub job: CompactString,
    /// The name its user gave it.
    pub name: CompactString,
    /// Whose it is: the name where any log prints it, else the number.
    pub user: CompactString,
    /// Who asked: client or submit host.
    pub from: CompactString,
    /// Where it stands.
    pub state: State,
    /// When it was handed in.
    pub submitted: Option<Time>,
    /// When servers were offered.
    pub offered: Option<Time>,
    /// When a server was chosen.
    pub selected: Option<Time>,
    /// When the work began (the last try's, if tried again).
    pub started: Option<Time>,
    /// When it was over.
    pub ended: Option<Time>,
    /// The servers offered, best first.
    pub offers: Vec<CompactString>,
    /// The hosts it ran on.
    pub hosts: Vec<CompactString>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Exit code as printed, empty if not told.
    pub code: CompactString,
    /// Signal as printed, empty if not told.
    pub signal: CompactString,
    /// How often it was started.
    pub tries: u32,
    /// How many events it has.
    pub events: u32,
}
