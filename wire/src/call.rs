//! Call: the joined events of one job, transfer or request, and the names that join them.
//!
//! Pure. Not here: the joining (`log_filters::join`).

pub mod failed_process;
pub mod job;
pub mod usage;

use crate::event::Outcome;
use crate::time::Time;
use compact_str::CompactString;
use job::{Fact, JobDetails};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a call.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CallState")]
pub enum State {
    /// Known, not running yet.
    #[default]
    Waiting,
    /// Started, not ended.
    Running,
    /// Ended; see `outcome`.
    Ended,
}

impl State {
    /// All states, in the order in which a call has them.
    pub const ALL: [State; 3] = [State::Waiting, State::Running, State::Ended];

    /// The state as text.
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
    /// Identifier, unique within the sensor: `PRODUCT:JOB`, with `/CLUSTER` and `#LIFE` where needed.
    pub id: CompactString,
    /// Job identifier of the middleware.
    pub job: CompactString,
    /// Name that the user gave to the job.
    pub name: CompactString,
    /// User: the name if any log prints it, else the number.
    pub user: CompactString,
    /// Origin of the request: client or submit host.
    pub from: CompactString,
    /// Present state.
    pub state: State,
    /// Time of submission.
    pub submitted: Option<Time>,
    /// Time when servers were offered.
    pub offered: Option<Time>,
    /// Time when a server was chosen.
    pub selected: Option<Time>,
    /// Time when the work started (in the last try).
    pub started: Option<Time>,
    /// Time when it ended.
    pub ended: Option<Time>,
    /// Servers offered, best first.
    pub offers: Vec<CompactString>,
    /// Hosts on which it ran.
    pub hosts: Vec<CompactString>,
    /// How it ended; `None` unless it has ended.
    pub outcome: Option<Outcome>,
    /// Exit code as printed, empty if unknown.
    pub code: CompactString,
    /// Signal as printed, empty if unknown.
    pub signal: CompactString,
    /// Reason why it waits or ended, in the middleware's text; empty if unknown.
    pub reason: CompactString,
    /// Number of starts.
    pub tries: u32,
    /// Number of events.
    pub events: u32,
    /// What logs state of a job besides; `None` of a transfer, and where it is not known. Not part of the encoded call:
    /// older versions have calls without it, so it is written beside or after them.
    #[serde(skip)]
    pub details: Option<Box<JobDetails>>,
}

impl Call {
    /// Whether its middleware gave it this number, or gave it to the whole that it is a part of.
    #[must_use]
    pub fn has_number(&self, job: &str) -> bool {
        let rest = self.job.strip_prefix(job).filter(|_| !job.is_empty());
        self.job == job || rest.is_some_and(|rest| rest.starts_with(PART_MARKS))
    }

    /// Returns what logs state of a job.
    #[must_use]
    pub fn fact(&self, fact: Fact) -> Option<&str> {
        self.details.as_ref()?.text(fact)
    }

    /// Whether it is a job: not a transfer, nor a whole that consists of other jobs.
    #[must_use]
    pub fn is_job(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.parts == 0)
    }

    /// Returns the latest time of the call; `None` if it has none.
    #[must_use]
    pub fn latest(&self) -> Option<Time> {
        self.times().max()
    }

    /// Returns the earliest time of the call; `None` if it has none.
    #[must_use]
    pub fn earliest(&self) -> Option<Time> {
        self.times().min()
    }

    fn times(&self) -> impl Iterator<Item = Time> {
        [self.submitted, self.offered, self.selected, self.started, self.ended].into_iter().flatten()
    }
}

/// A call as it is stored once it has ended, or was dropped from memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCall {
    /// The call as it was last.
    pub call: Call,
    /// Time of its first event.
    pub first: Time,
    /// Its other names and ids, each with its product and cluster.
    pub aliases: Vec<CompactString>,
}

/// Separators between the number of an array or cluster of jobs and that of one of its jobs.
pub const PART_MARKS: [char; 3] = ['_', '.', '['];

/// Returns the names under which a host of a log is found: as printed, and without its domain.
#[must_use]
pub fn host_names(printed: &str) -> [&str; 2] {
    [printed, printed.split('.').next().unwrap_or_default()]
}

/// Returns an id without the mark of a later life.
#[must_use]
pub fn without_life(id: &str) -> &str {
    match id.rsplit_once('#') {
        Some((name, life)) if !life.is_empty() && life.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => id,
    }
}

/// Keys that join an event to its call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Product and cluster within which the names are unique, such as `slurm` or `slurm/alpha`.
    pub scope: CompactString,
    /// Names of the call, the best first; never empty.
    pub names: Vec<CompactString>,
    /// Parent of the call (for a task of an array), if any.
    pub parent: Option<CompactString>,
    /// Whether a name belongs to one call for ever, or to several that may be open at once.
    pub naming: Naming,
    /// Authority of the record if logs differ: accounting records have priority over messages.
    pub authority: Authority,
}

/// How a name identifies a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Naming {
    /// A job number, which belongs to one call.
    Unique,
    /// A problem's nickname, shared by several calls: an event belongs to the oldest open call without an
    /// event of this kind.
    Shared,
    /// A task of an array: belongs to one call, whose parent consists only of its parts.
    Part,
}

/// Authority of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Authority {
    /// A daemon's log on one host.
    Message,
    /// The scheduler's own log.
    Scheduler,
    /// The accounting, history or completion record.
    Accounting,
}
