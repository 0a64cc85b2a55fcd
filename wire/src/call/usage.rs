//! Usage of a job on one host, as the host's sensor measured it.
//!
//! ```text
//! 2026-11-30T10:00:07.000000Z over jobs=slurm:94_1,slurm:95 host=wn01 uid=1000 user=ann evidence=cgroup
//!     by=control_group started=2026-11-30T09:58:02.120000Z figures=cpu_time=84120331,… failed=…   (one line)
//! ```
//! Pure. A sensor writes such lines into a log of its own and follows it, so a usage is an event with an id, a line
//! and a place in the journal like any other. Counters are those of the whole measurement: a later line of the same
//! measurement replaces an earlier one.
//! Not here: measuring (`sensor::usage`), which call a usage is of (`log_filters`).

use super::failed_process::{self, FailedProcess};
use super::job::Line;
use crate::event::{Content, Fields, Id, Kind, Value, words};
use crate::time::Time;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};

/// Attribute with the names of the job; only events of usage have it.
pub const JOBS_ATTRIBUTE: &str = "usage_of";

/// The start of a process is a time since boot, which the calendar may give a little later or earlier.
const SAME_START_MICROS: u64 = 1_000_000;

/// Most names of a job in a line.
pub const NAMES_MAX: usize = 8;

words!(
    /// Measured amount. Figures are added at the end of their list alone: their numbers are stored.
    Figure {
        /// CPU time, in microseconds.
        CpuTime = "cpu_time",
        /// Part of it in the kernel, in microseconds.
        SystemTime = "system_time",
        /// Most memory at a moment, in bytes.
        PeakMemory = "peak_memory",
        /// Mean memory over the time of measurement, in bytes.
        MeanMemory = "mean_memory",
        /// Processes that served the job.
        Processes = "processes",
        /// Most threads at a moment.
        PeakThreads = "peak_threads",
        /// Page faults without a read from a device.
        MinorFaults = "minor_faults",
        /// Page faults with a read from a device.
        MajorFaults = "major_faults",
        /// Bytes read from storage.
        ReadBytes = "read_bytes",
        /// Bytes written to storage.
        WrittenBytes = "written_bytes",
        /// Processes that the kernel killed because the memory of the control group was used up.
        MemoryKills = "memory_kills",
        /// Time in which the CPU limit of the control group held the job up, in microseconds.
        ThrottledTime = "throttled_time",
        /// Ended processes whose usage is unknown, and missing here.
        Missed = "missed",
        /// Processes that ended with an error or were killed by a signal.
        Failed = "failed",
    }
);

words!(
    /// Where the CPU time and the memory of a usage were read.
    MeasuredBy {
        /// Sum over the processes; shared memory counts for each of them.
        Processes = "processes",
        /// Control group of the job.
        ControlGroup = "control_group",
    }
);

/// Usage of a job on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Host.
    pub host: CompactString,
    /// User of the processes: the name if the host knows it, else the number.
    pub user: CompactString,
    /// Number of that user.
    pub uid: u32,
    /// Whether the middleware assigned the processes, by a control group; else their user may have claimed it.
    pub is_proved: bool,
    /// Where it was read.
    pub by: MeasuredBy,
    /// Start of the first process.
    pub started: Time,
    /// End of the last process, or the latest measurement.
    pub until: Time,
    /// Whether no process is left.
    pub is_over: bool,
    /// Amounts, each once; one that is absent is unknown.
    pub figures: Vec<(Figure, u64)>,
    /// Processes that failed, the last first; few.
    pub failed: Vec<FailedProcess>,
    /// Line that states it.
    pub line: Line,
}

impl Usage {
    /// Returns an amount; `None` if it is unknown.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<u64> {
        self.figures.iter().find(|(known, _)| *known == figure).map(|(_, amount)| *amount)
    }

    /// Whether an event is of a usage.
    #[must_use]
    pub fn is_event(content: &Content) -> bool {
        content.kind == Kind::Workload && content.attribute(JOBS_ATTRIBUTE).is_some()
    }

    /// Reads a usage from its event, with the names of the job as `PRODUCT:JOB`, the best first; `None` if the event is
    /// of another kind or lacks something.
    #[must_use]
    pub fn of_event(content: &Content, event: Id) -> Option<(Vec<CompactString>, Usage)> {
        if !Usage::is_event(content) {
            return None;
        }
        let text = |name: &str| content.attribute(name).and_then(Value::as_text);
        let names: Vec<CompactString> =
            text(JOBS_ATTRIBUTE)?.split(',').take(NAMES_MAX).map(CompactString::from).collect();
        let usage = Usage {
            host: content.to.clone(),
            user: content.user.clone(),
            uid: uid_of(content)?,
            is_proved: text("evidence")? == "cgroup",
            by: MeasuredBy::from_word(text("measured_by")?)?,
            started: content.started?,
            until: content.time,
            is_over: text("state")? == "over",
            figures: figures(text("figures")?),
            failed: text("failed").map(failed_process::read).unwrap_or_default(),
            line: Line { event, time: content.time },
        };
        names.iter().all(|name| name.contains(':')).then_some((names, usage))
    }

    /// Whether it continues or repeats `other`: the same measurement, or another one of the same first process.
    #[must_use]
    pub fn is_same(&self, other: &Usage) -> bool {
        let apart = self.started.micros().abs_diff(other.started.micros());
        apart <= SAME_START_MICROS && (self.uid, &self.host) == (other.uid, &other.host)
    }

    /// Whether it is newer than `other`, of the same measurement.
    #[must_use]
    pub fn is_newer(&self, other: &Usage) -> bool {
        (self.is_over, self.until, self.line.event) > (other.is_over, other.until, other.line.event)
    }
}

/// Whether an event says what processes of a user used: only that user, root and operators may see it.
#[must_use]
pub fn is_private(event: &dyn Fields) -> bool {
    event.kind() == Kind::Workload && !event.user().is_empty()
}

/// Number of the user whose usage an event says, if it is one.
#[must_use]
pub fn uid_of(content: &Content) -> Option<u32> {
    content.attribute("uid").and_then(Value::as_text)?.parse().ok()
}

/// Writes amounts as in a line: `cpu_time=84120331,peak_memory=4096`.
#[must_use]
pub fn figures_text(figures: &[(Figure, u64)]) -> String {
    let texts: Vec<String> = figures.iter().map(|(figure, amount)| format!("{figure}={amount}")).collect();
    texts.join(",")
}

/// Amounts of a line; one that only a later version knows is left out.
fn figures(text: &str) -> Vec<(Figure, u64)> {
    let figure = |pair: &str| {
        let (name, amount) = pair.split_once('=')?;
        Some((Figure::from_word(name)?, amount.parse().ok()?))
    };
    text.split(',').filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Generation, SensorKey};

    fn id(offset: u64) -> Id {
        Id { sensor: SensorKey(1), generation: Generation(1), offset, number: 0 }
    }

    fn event(attributes: &[(&str, &str)]) -> Content {
        let mut content = Content::new(Kind::Workload, Time::from_micros(9_000_000));
        (content.to, content.user) = ("wn01".into(), "ann".into());
        content.started = Some(Time::from_micros(2_000_000));
        content.attributes =
            attributes.iter().map(|(name, text)| ((*name).into(), Value::Text((*text).into()))).collect();
        content
    }

    const WHOLE: [(&str, &str); 6] = [
        (JOBS_ATTRIBUTE, "slurm:94_1,slurm:95"),
        ("uid", "1000"),
        ("evidence", "cgroup"),
        ("measured_by", "control_group"),
        ("state", "running"),
        ("figures", "cpu_time=84120331,warp=3,peak_memory=4096"),
    ];

    #[test]
    fn a_usage_is_read_from_its_event_and_nothing_else_is_one() {
        let (names, usage) = Usage::of_event(&event(&WHOLE), id(3)).expect("it is one");
        assert_eq!(names, ["slurm:94_1", "slurm:95"]);
        assert_eq!(usage.figures, [(Figure::CpuTime, 84_120_331), (Figure::PeakMemory, 4096)]);
        assert_eq!((usage.figure(Figure::CpuTime), usage.figure(Figure::Missed)), (Some(84_120_331), None));
        assert_eq!(figures_text(&usage.figures), "cpu_time=84120331,peak_memory=4096");
        assert!(usage.is_proved && !usage.is_over && usage.by == MeasuredBy::ControlGroup);
        for (left_out, _) in WHOLE {
            let some: Vec<_> = WHOLE.into_iter().filter(|(name, _)| *name != left_out).collect();
            assert_eq!(Usage::of_event(&event(&some), id(3)), None, "without {left_out}");
        }
        assert_eq!(usage.failed, []);
        let failed = [&WHOLE[..], &[("failed", "python3/17/16/256/8000000")]].concat();
        let (_, usage) = Usage::of_event(&event(&failed), id(3)).expect("it is one");
        assert_eq!((usage.failed[0].pid, usage.failed[0].exit_status()), (17, Some(1)));
        let mut message = event(&WHOLE);
        message.kind = Kind::Message;
        assert_eq!(Usage::of_event(&message, id(3)), None);
    }

    #[test]
    fn a_later_line_of_the_same_measurement_is_newer_and_the_end_is_the_newest() {
        let (_, first) = Usage::of_event(&event(&WHOLE), id(3)).expect("it is one");
        let later = Usage { until: Time::from_micros(10_000_000), ..first.clone() };
        let over = Usage { is_over: true, ..first.clone() };
        assert!(later.is_same(&first) && later.is_newer(&first) && !first.is_newer(&later));
        assert!(over.is_newer(&later) && !first.is_newer(&first));
        assert!(!Usage { uid: 7, ..first.clone() }.is_same(&first));
        let at = |micros: i64| Usage { started: Time::from_micros(micros), ..first.clone() };
        assert!(at(2_000_300).is_same(&first) && !at(5_000_000).is_same(&first));
    }

    #[test]
    fn figures_have_fixed_numbers_in_what_is_stored() {
        let numbers: Vec<u8> =
            Figure::ALL.iter().map(|figure| postcard::to_stdvec(figure).expect("short")[0]).collect();
        assert_eq!(numbers, (0..14).collect::<Vec<u8>>());
        assert_eq!((Figure::ALL[0], Figure::ALL[13]), (Figure::CpuTime, Figure::Failed));
    }
}
