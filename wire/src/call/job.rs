//! Details of a job: what logs state of it besides the course of its call, and its earlier runs.
//!
//! Pure. Rules: a value is text or a whole number in the unit of its fact (bytes, seconds, pieces), whatever the
//! middleware prints. Each names the event that stated it, and so its line. This is a format on disk
//! ([`crate::version::CALL_HISTORY`]) and in messages: facts are added at the end of their list alone.
//! Not here: the course of the call ([`super`]), what a measurement of usage is ([`super::usage`]).

use super::Authority;
use super::usage::Usage;
use crate::event::{Id, Outcome, words};
use crate::time::Time;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

words!(
    /// Fact that a log states of a job: an attribute of the same name of an event.
    Fact {
        /// Account that is charged.
        Account = "account",
        /// Project, where the middleware has projects besides accounts.
        Project = "project",
        /// Queue or partition.
        Queue = "queue",
        /// Quality of service.
        Qos = "qos",
        /// Number of the user.
        Uid = "uid",
        /// Allocated CPUs, or requested ones while it waits.
        Cpus = "cpus",
        /// Allocated hosts, or requested ones while it waits.
        Nodes = "nodes",
        /// Allocated memory of all hosts, in bytes.
        Memory = "memory",
        /// Allocated GPUs.
        Gpus = "gpus",
        /// Longest time that it may run, in seconds.
        TimeLimit = "time_limit",
        /// Time from which it could have started, in seconds since 1970.
        Eligible = "eligible",
        /// Number of the array that it is a task of.
        ArrayJob = "array_job",
        /// Its number within the array.
        ArrayTask = "array_task",
        /// Number of the heterogeneous job that it is a component of.
        HetJob = "het_job",
        /// Its number within the heterogeneous job.
        HetOffset = "het_offset",
        /// State in the middleware's own word.
        State = "state",
        /// CPU time that it used according to the middleware, in seconds.
        CpuTime = "cpu_time",
        /// Most memory that it used according to the middleware, in bytes.
        PeakMemory = "peak_memory",
        /// User who last asked to cancel it: a name or a number. Events of cancelling have it as their user.
        CancelledBy = "cancelled_by",
        /// File or program from which the job was imported, or what logs did not state of it. No log states this.
        ImportedFrom = "imported_from",
    }
);

/// Type and unit of a fact's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Text.
    Text,
    /// Whole number.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

impl Fact {
    /// Whether a part of a whole has the fact from the whole, unless a log states it of the part.
    #[must_use]
    pub const fn is_inherited(self) -> bool {
        !matches!(
            self,
            Fact::ArrayTask
                | Fact::HetOffset
                | Fact::Eligible
                | Fact::State
                | Fact::CpuTime
                | Fact::PeakMemory
                | Fact::ImportedFrom
        )
    }

    /// Type and unit of its value.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Fact::Account
            | Fact::Project
            | Fact::Queue
            | Fact::Qos
            | Fact::ArrayJob
            | Fact::ArrayTask
            | Fact::HetJob
            | Fact::HetOffset
            | Fact::State
            | Fact::CancelledBy
            | Fact::ImportedFrom => Unit::Text,
            Fact::Uid | Fact::Cpus | Fact::Nodes | Fact::Gpus => Unit::Count,
            Fact::Memory | Fact::PeakMemory => Unit::Bytes,
            Fact::TimeLimit | Fact::Eligible | Fact::CpuTime => Unit::Seconds,
        }
    }
}

/// Line of a log, by the event that was made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Event.
    pub event: Id,
    /// Its time.
    pub time: Time,
}

/// Place of the line of a fact that no log states.
pub const NO_LINE: u8 = u8::MAX;

/// Value of a fact, with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// Fact.
    pub fact: Fact,
    /// Value in the unit of the fact; never empty.
    pub value: CompactString,
    /// Authority of the log.
    pub by: Authority,
    /// Place of its line in [`JobDetails::lines`]; [`NO_LINE`] if it was imported.
    pub line: u8,
}

/// Run of a job that was requeued afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// When it started.
    pub started: Option<Time>,
    /// When it ended: the time of the requeue, if no log states another.
    pub ended: Option<Time>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Hosts on which it ran.
    pub hosts: Vec<CompactString>,
    /// Exit code as printed, empty if unknown.
    pub code: CompactString,
    /// Signal as printed, empty if unknown.
    pub signal: CompactString,
}

/// Details of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDetails {
    /// Facts, each once.
    pub facts: Vec<Statement>,
    /// Lines that stated them.
    pub lines: Vec<Line>,
    /// Runs before the last one, the oldest first.
    pub runs: Vec<Run>,
    /// Number of known parts of a whole that consists only of them, such as an array; 0 of a job that runs itself.
    pub parts: u32,
    /// Usage on each host as its sensor measured it. Not part of the encoded details: older versions have details
    /// without it, so it is written after them.
    #[serde(skip)]
    pub usage: Vec<Usage>,
}

impl JobDetails {
    /// Returns the statement of a fact.
    #[must_use]
    pub fn statement(&self, fact: Fact) -> Option<&Statement> {
        self.facts.iter().find(|known| known.fact == fact)
    }

    /// Returns a fact's value as text.
    #[must_use]
    pub fn text(&self, fact: Fact) -> Option<&str> {
        self.statement(fact).map(|known| known.value.as_str())
    }

    /// Returns a fact's value as a number; `None` if it is none.
    #[must_use]
    pub fn number(&self, fact: Fact) -> Option<u64> {
        self.text(fact)?.parse().ok()
    }

    /// Adds the facts of the whole that it is a part of, as far as they are not known of the part.
    pub fn inherit(&mut self, whole: &JobDetails) {
        for statement in whole.facts.iter().filter(|statement| statement.fact.is_inherited()) {
            let Some(line) = whole.line(statement.fact).filter(|_| self.statement(statement.fact).is_none())
            else {
                continue;
            };
            let known = self.lines.iter().position(|known| known.event == line.event);
            let Ok(place) = u8::try_from(known.unwrap_or(self.lines.len())) else { return };
            if known.is_none() {
                self.lines.push(*line);
            }
            self.facts.push(Statement { line: place, ..statement.clone() });
        }
    }

    /// Returns the line that stated a fact.
    #[must_use]
    pub fn line(&self, fact: Fact) -> Option<&Line> {
        self.lines.get(usize::from(self.statement(fact)?.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Generation, SensorKey};

    #[test]
    fn a_fact_is_found_with_its_line_and_an_unusable_one_is_not() {
        let line = |offset: u64| Line {
            event: Id { sensor: SensorKey(1), generation: Generation(2), offset, number: 0 },
            time: Time::from_micros(7),
        };
        let statement = |fact: Fact, value: &str, line: u8| Statement {
            fact,
            value: value.into(),
            by: Authority::Accounting,
            line,
        };
        let facts = vec![
            statement(Fact::Cpus, "4", 1),
            statement(Fact::Queue, "short", 0),
            statement(Fact::Gpus, "two", 9),
        ];
        let details = JobDetails { facts, lines: vec![line(10), line(20)], ..JobDetails::default() };
        assert_eq!((details.number(Fact::Cpus), details.text(Fact::Queue)), (Some(4), Some("short")));
        assert_eq!(details.line(Fact::Cpus), Some(&line(20)));
        assert_eq!((details.number(Fact::Gpus), details.line(Fact::Gpus)), (None, None));
        assert_eq!(details.statement(Fact::Account), None);

        let facts = vec![statement(Fact::Cpus, "1", 0), statement(Fact::ArrayTask, "7", 0)];
        let mut part = JobDetails { facts, lines: vec![line(30)], ..JobDetails::default() };
        part.inherit(&details);
        assert_eq!((part.number(Fact::Cpus), part.line(Fact::Cpus)), (Some(1), Some(&line(30))));
        assert_eq!((part.text(Fact::Queue), part.line(Fact::Queue)), (Some("short"), Some(&line(10))));
        let mut other = JobDetails::default();
        other.inherit(&part);
        assert_eq!(other.text(Fact::ArrayTask), None, "it is the part's own");
    }

    #[test]
    fn facts_have_fixed_numbers_in_what_is_stored() {
        let numbers: Vec<u8> =
            Fact::ALL.iter().map(|fact| postcard::to_stdvec(fact).expect("short")[0]).collect();
        assert_eq!(numbers, (0..20).collect::<Vec<u8>>());
        assert_eq!((Fact::ALL[0], Fact::ALL[19]), (Fact::Account, Fact::ImportedFrom));
    }
}
