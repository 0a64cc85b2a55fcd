//! The call: the events of one job, transfer or request, joined, and the names by which they are known to be of it.
//!
//! Pure. Not here: the joining itself (`log_filters::join`).

use crate::event::Outcome;
use crate::time::Time;
use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CallState")]
pub enum State {
    /// Known, not yet running.
    Waiting,
    /// At work.
    Running,
    /// Over; how is in `outcome`.
    Ended,
}

impl State {
    /// Every value, in the order in which a call has them.
    pub const ALL: [State; 3] = [State::Waiting, State::Running, State::Ended];

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

/// One job, transfer or request, as far as the logs show it.
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
    /// Exit code as printed, empty if unknown.
    pub code: CompactString,
    /// Signal as printed, empty if unknown.
    pub signal: CompactString,
    /// Why it waits or ended as it did, in the middleware's words; empty if unknown.
    pub reason: CompactString,
    /// How often it was started.
    pub tries: u32,
    /// How many events it has.
    pub events: u32,
}

/// The names by which an event's call is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The product and cluster within which the names hold, such as `slurm` or `slurm/alpha`.
    pub scope: CompactString,
    /// Names of this call, the best first; never empty.
    pub names: Vec<CompactString>,
    /// The call this one is a part of (an array's task), if any.
    pub parent: Option<CompactString>,
    /// Whether a name means one call for ever, or any of several that may be open at once.
    pub naming: Naming,
    /// How much the record is to be believed where logs differ: accounting records outrank messages.
    pub authority: Authority,
}

/// What a call's name is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Naming {
    /// A job number: one call.
    Unique,
    /// A problem's nickname: the oldest open call that has not had an event of this kind.
    Shared,
    /// An array's task: one call, and the call that is its parent is no more than its parts.
    Part,
}

/// How much a record is to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Authority {
    /// A daemon's log on one host.
    Message,
    /// The scheduler's own log.
    Scheduler,
    /// The accounting, history or completion record.
    Accounting,
}
