//! Findings about a job: why it failed, and what of its allocation it did not use.
//!
//! Pure. Not here: the rules (`sensor::findings`).

use crate::event::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words!(
    /// What a finding says.
    FindingKind {
        /// The kernel or the middleware ended it because its memory was used up.
        OutOfMemory = "out_of_memory",
        /// It ran until its time limit.
        TimeLimit = "time_limit",
        /// A user or an operator cancelled it.
        Cancelled = "cancelled",
        /// A host failed.
        HostFailed = "host_failed",
        /// A process of it failed, and the job ended as that did.
        FailedProcess = "failed_process",
        /// It was killed by a signal.
        Signal = "signal",
        /// It ended with an error code; why is not known.
        ExitCode = "exit_code",
        /// The middleware states why.
        Stated = "stated",
        /// It used almost no CPU time.
        Idle = "idle",
        /// It used one of several CPUs.
        OneCpu = "one_cpu",
        /// It used a small part of its CPUs.
        LowCpu = "low_cpu",
        /// One of its hosts did much less than the others.
        Imbalance = "imbalance",
        /// It used almost all of its memory.
        MemoryNearLimit = "memory_near_limit",
        /// It used a small part of its memory.
        MemoryUnused = "memory_unused",
        /// A limit of CPU time held it up.
        Throttled = "throttled",
        /// Much of its CPU time was that of the kernel.
        SystemTime = "system_time",
        /// It waited much longer than others in its queue.
        LongWait = "long_wait",
        /// Jobs of this name and user before it failed too.
        FailsAgain = "fails_again",
        /// It was started more than once.
        Requeued = "requeued",
    }
);

words!(
    /// What a finding is for.
    FindingClass {
        /// Why the job failed.
        Cause = "cause",
        /// What it was given and did not use, or what held it up.
        Waste = "waste",
        /// What else is worth knowing.
        Note = "note",
    }
);

impl FindingKind {
    /// What a finding of this kind is for.
    #[must_use]
    pub const fn class(self) -> FindingClass {
        match self {
            FindingKind::OutOfMemory
            | FindingKind::TimeLimit
            | FindingKind::Cancelled
            | FindingKind::HostFailed
            | FindingKind::FailedProcess
            | FindingKind::Signal
            | FindingKind::ExitCode
            | FindingKind::Stated => FindingClass::Cause,
            FindingKind::Idle
            | FindingKind::OneCpu
            | FindingKind::LowCpu
            | FindingKind::Imbalance
            | FindingKind::MemoryUnused
            | FindingKind::Throttled
            | FindingKind::SystemTime => FindingClass::Waste,
            FindingKind::MemoryNearLimit
            | FindingKind::LongWait
            | FindingKind::FailsAgain
            | FindingKind::Requeued => FindingClass::Note,
        }
    }
}

/// Finding about a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Finding {
    /// What it says: `out_of_memory`, `time_limit`, `cancelled`, `host_failed`, `failed_process`, `signal`, `exit_code`,
    /// `stated`, `idle`, `one_cpu`, `low_cpu`, `imbalance`, `memory_near_limit`, `memory_unused`, `throttled`,
    /// `system_time`, `long_wait`, `fails_again` or `requeued`.
    pub kind: String,
    /// What it is for: `cause` (why the job failed), `waste` (what it was given and did not use, or what held it up) or
    /// `note`.
    pub class: String,
    /// The finding as a sentence, with its figures.
    pub text: String,
    /// What was found: a share of one, or seconds. Absent if it is no amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Limit that it is compared with, in the same unit. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Hosts that it is about. Absent if it is about the whole job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Ids of the events whose lines prove it. Absent if the times and states of the job do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Ids of other jobs that it is compared with. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<String>,
}

impl Finding {
    /// Creates a finding without evidence.
    #[must_use]
    pub fn new(kind: FindingKind, text: impl Into<String>) -> Finding {
        Finding {
            kind: kind.as_str().to_owned(),
            class: kind.class().as_str().to_owned(),
            text: text.into(),
            ..Finding::default()
        }
    }

    /// Whether it is for this.
    #[must_use]
    pub fn is_of(&self, class: FindingClass) -> bool {
        self.class == class.as_str()
    }
}
