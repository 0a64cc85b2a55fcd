//! Usage of jobs, as sensors measured it: part of the answers about jobs.
//!
//! Pure. Rule: sums over hosts are of the last run; efficiencies are stated only if every host of the job was measured.
//! Not here: the methods ([`super::jobs`]).

use super::UnixTime;
use crate::call::Call;
use crate::call::failed_process;
use crate::call::job::Fact;
use crate::call::usage::{Figure, Usage};
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Less allocated memory is none: of hosts whose memory it does not manage, Slurm prints 1 MiB.
pub const ALLOCATED_MIN_BYTES: u64 = 16 << 20;

/// Tolerance for the clocks of two daemons, in microseconds.
const CLOCKS_DIFFER_MICROS: i64 = 2_000_000;

/// Usage of a job on a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostUsage {
    /// Host.
    pub host: String,
    /// Start of the first process.
    pub started: UnixTime,
    /// End of the last process, or the latest measurement.
    pub until: UnixTime,
    /// Whether no process is left.
    pub is_over: bool,
    /// CPU time, in seconds.
    pub cpu_secs: f64,
    /// Part of it in the kernel, in seconds.
    pub system_secs: f64,
    /// Most memory at a moment, in bytes.
    pub peak_memory_bytes: u64,
    /// Mean memory over the time of measurement, in bytes. Absent if it was measured for less than two sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_memory_bytes: Option<u64>,
    /// Processes that served the job.
    pub processes: u64,
    /// Most threads at a moment.
    pub peak_threads: u64,
    /// Page faults without a read from a device.
    pub minor_faults: u64,
    /// Page faults with a read from a device.
    pub major_faults: u64,
    /// Bytes read from storage. Absent if the sensor may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage. Absent if the sensor may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Processes that the kernel killed because the memory of the control group was used up. Absent without a control
    /// group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_kills: Option<u64>,
    /// Time in which the CPU limit of the control group held the job up, in seconds. Absent without a control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_secs: Option<f64>,
    /// Ended processes whose usage is unknown, and missing here. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_processes: Option<u64>,
    /// Processes that ended with an error or were killed by a signal. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_processes: Option<u64>,
    /// The last of those, the last first; eight at most, and of alike ones of one parent the last alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedProcess>,
    /// What assigns the processes to the job: `cgroup` if the middleware did, else `environment`.
    pub evidence: String,
    /// Where CPU time and memory are from: `control_group`, or `processes`, where memory that they share counts for each.
    pub measured_by: String,
    /// Id of the event whose line states it.
    pub event: String,
}

/// Process that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "JobFailedProcess")]
pub struct FailedProcess {
    /// Name in the kernel.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// Process id of its parent.
    pub parent: u32,
    /// Exit status. Absent if a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<u8>,
    /// The signal that ended it. Absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// When it ended.
    pub ended: UnixTime,
}

/// Usage of the last run of a job on all its hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobUsage {
    /// Hosts on which it was measured.
    pub hosts: u64,
    /// Time of the latest measurement.
    pub until: UnixTime,
    /// Whether the measurement on each of these hosts is over: some seconds after the end of the job.
    pub is_over: bool,
    /// CPU time, in seconds.
    pub cpu_secs: f64,
    /// CPU time as a share of that of the allocated CPUs. Absent if these are unknown, or a host was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_efficiency: Option<f64>,
    /// CPU time of the allocated CPUs that the job did not use, in seconds. Absent as `cpu_efficiency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasted_cpu_secs: Option<f64>,
    /// Sum of the most memory on each host, in bytes.
    pub peak_memory_bytes: u64,
    /// That as a share of the allocated memory. Absent if this is unknown, or a host was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_efficiency: Option<f64>,
    /// Bytes read from storage. Absent if no sensor of its hosts may read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes written to storage. Absent if no sensor of its hosts may read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

impl From<&Usage> for HostUsage {
    fn from(usage: &Usage) -> HostUsage {
        let amount = |figure: Figure| usage.figure(figure);
        let counted = |figure: Figure| amount(figure).unwrap_or_default();
        HostUsage {
            host: usage.host.to_string(),
            started: UnixTime(usage.started),
            until: UnixTime(usage.until),
            is_over: usage.is_over,
            cpu_secs: secs(counted(Figure::CpuTime)),
            system_secs: secs(counted(Figure::SystemTime)),
            peak_memory_bytes: counted(Figure::PeakMemory),
            mean_memory_bytes: amount(Figure::MeanMemory),
            processes: counted(Figure::Processes),
            peak_threads: counted(Figure::PeakThreads),
            minor_faults: counted(Figure::MinorFaults),
            major_faults: counted(Figure::MajorFaults),
            read_bytes: amount(Figure::ReadBytes),
            written_bytes: amount(Figure::WrittenBytes),
            memory_kills: amount(Figure::MemoryKills),
            throttled_secs: amount(Figure::ThrottledTime).map(secs),
            missed_processes: amount(Figure::Missed),
            failed_processes: amount(Figure::Failed),
            failed: usage.failed.iter().map(FailedProcess::from).collect(),
            evidence: if usage.is_proved { "cgroup" } else { "environment" }.to_owned(),
            measured_by: usage.by.as_str().to_owned(),
            event: usage.line.event.to_string(),
        }
    }
}

impl From<&failed_process::FailedProcess> for FailedProcess {
    fn from(process: &failed_process::FailedProcess) -> FailedProcess {
        FailedProcess {
            name: process.name.to_string(),
            pid: process.pid,
            parent: process.parent,
            exit_status: process.exit_status(),
            signal: process.signal(),
            ended: UnixTime(process.ended),
        }
    }
}

/// Usages of the last run of a job.
#[must_use]
pub fn last_run(call: &Call) -> Vec<&Usage> {
    let Some(details) = &call.details else { return Vec::new() };
    let before = details.runs.last().and_then(|run| run.ended);
    let is_after = |usage: &Usage| {
        before.is_none_or(|before| usage.started.micros() >= before.micros() - CLOCKS_DIFFER_MICROS)
    };
    // Runs may be shorter than clocks differ: then it is of the run that started at about the same time.
    let is_nearest = |usage: &Usage| {
        let apart = |started: Time| started.micros().abs_diff(usage.started.micros());
        let starts = details.runs.iter().filter_map(|run| run.started).map(apart);
        call.started.is_none_or(|started| starts.min().is_none_or(|other| apart(started) <= other))
    };
    let is_last = |usage: &&Usage| is_after(usage) && is_nearest(usage);
    details.usage.iter().filter(is_last).collect()
}

impl JobUsage {
    /// Sums the usage of the last run of a job; `None` if it was not measured.
    #[must_use]
    pub fn of(call: &Call) -> Option<JobUsage> {
        let details = call.details.as_deref()?;
        let usages = last_run(call);
        let latest = usages.iter().map(|usage| usage.until).max()?;
        let sum = |figure: Figure| usages.iter().filter_map(|usage| usage.figure(figure)).sum::<u64>();
        let known_sum = |figure: Figure| {
            usages.iter().filter_map(|usage| usage.figure(figure)).reduce(|sum, one| sum + one)
        };
        let mut hosts: Vec<&str> = usages.iter().map(|usage| usage.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let hosts = hosts.len() as u64;
        let of_all = hosts >= details.number(Fact::Nodes).unwrap_or(1).max(call.hosts.len() as u64);
        let (cpu_secs, peak_memory_bytes) = (secs(sum(Figure::CpuTime)), sum(Figure::PeakMemory));
        let known = |allocated: Option<f64>| allocated.filter(|allocated| of_all && *allocated >= 1.0);
        let is_over = usages.iter().all(|usage| usage.is_over);
        let cpus = details.number(Fact::Cpus).zip(ran_secs(call, latest, is_over));
        let allocated_secs = known(cpus.map(|(cpus, secs)| float(cpus) * secs));
        let allocated_bytes = details.number(Fact::Memory).filter(|bytes| *bytes >= ALLOCATED_MIN_BYTES);
        let allocated_bytes = known(allocated_bytes.map(float));
        Some(JobUsage {
            hosts,
            until: UnixTime(latest),
            is_over,
            cpu_secs,
            cpu_efficiency: allocated_secs.map(|allocated| cpu_secs / allocated),
            wasted_cpu_secs: allocated_secs.map(|allocated| (allocated - cpu_secs).max(0.0)),
            peak_memory_bytes,
            memory_efficiency: allocated_bytes.map(|allocated| float(peak_memory_bytes) / allocated),
            read_bytes: known_sum(Figure::ReadBytes),
            written_bytes: known_sum(Figure::WrittenBytes),
        })
    }
}

/// How long the last run of a job has gone on, as far as it was measured.
fn ran_secs(call: &Call, latest: Time, is_over: bool) -> Option<f64> {
    let measured = call.ended.map_or(latest, |ended| if is_over { ended } else { ended.min(latest) });
    Some(measured.secs_f64() - call.started?.secs_f64())
}

fn secs(micros: u64) -> f64 {
    float(micros) / 1e6
}

#[allow(clippy::cast_precision_loss)] // amounts are below 2^53
fn float(amount: u64) -> f64 {
    amount as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::State;
    use crate::call::job::{JobDetails, Line, Run, Statement};
    use crate::call::usage::MeasuredBy;
    use crate::call::{Authority, StoredCall};
    use crate::event::Id;
    use crate::id::{Generation, SensorKey};

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn line() -> Line {
        let event = Id { sensor: SensorKey(1), generation: Generation(1), offset: 0, number: 0 };
        Line { event, time: at(0) }
    }

    fn usage(host: &str, times: (i64, i64), cpu_secs: u64) -> Usage {
        Usage {
            host: host.into(),
            user: "ann".into(),
            uid: 1000,
            is_proved: false,
            by: MeasuredBy::Processes,
            started: at(times.0),
            until: at(times.1),
            is_over: true,
            figures: vec![(Figure::CpuTime, cpu_secs * 1_000_000), (Figure::PeakMemory, 100 << 20)],
            failed: Vec::new(),
            line: line(),
        }
    }

    /// A job of 4 CPUs and 400 MiB on two hosts, from second 100 to second 200.
    fn call(usage: Vec<Usage>, runs: Vec<Run>) -> Call {
        let fact = |fact: Fact, value: &str| Statement {
            fact,
            value: value.into(),
            by: Authority::Accounting,
            line: 0,
        };
        let facts = vec![fact(Fact::Cpus, "4"), fact(Fact::Nodes, "2"), fact(Fact::Memory, "419430400")];
        let details = JobDetails { facts, lines: vec![line()], runs, usage, ..JobDetails::default() };
        let text = r#"{"call":{"id":"slurm:1","job":"1","name":"","user":"ann","from":"","state":"ended","submitted":null,
            "offered":null,"selected":null,"started":100000000,"ended":200000000,"offers":[],"hosts":["wn01","wn02"],
            "outcome":"ok","code":"","signal":"","reason":"","tries":1,"events":2},"first":0,"aliases":[]}"#;
        let StoredCall { call, .. } = serde_json::from_str(text).expect("a call");
        assert_eq!(call.state, State::Ended);
        Call { details: Some(Box::new(details)), ..call }
    }

    #[test]
    fn usage_is_summed_over_the_hosts_of_the_last_run() {
        let both = vec![usage("wn01", (100, 200), 150), usage("wn02", (101, 199), 50)];
        let sum = JobUsage::of(&call(both.clone(), Vec::new())).expect("it was measured");
        assert_eq!((sum.hosts, sum.cpu_secs, sum.peak_memory_bytes), (2, 200.0, 200 << 20));
        assert_eq!((sum.cpu_efficiency, sum.memory_efficiency), (Some(0.5), Some(0.5)));
        assert_eq!(sum.wasted_cpu_secs, Some(200.0));
        let running: Vec<Usage> =
            both.iter().map(|usage| Usage { until: at(150), is_over: false, ..usage.clone() }).collect();
        let sum = JobUsage::of(&call(running, Vec::new())).expect("it was measured");
        assert_eq!((sum.cpu_efficiency, sum.is_over), (Some(1.0), false), "the last half is not known yet");
        let one = JobUsage::of(&call(both[..1].to_vec(), Vec::new())).expect("it was measured");
        assert_eq!(
            (one.hosts, one.cpu_efficiency, one.memory_efficiency),
            (1, None, None),
            "a host is missing"
        );
        let run = Run { started: Some(at(10)), ended: Some(at(60)), ..Run::default() };
        let earlier = [vec![usage("wn01", (10, 59), 40)], both].concat();
        let sum = JobUsage::of(&call(earlier, vec![run])).expect("it was measured");
        assert_eq!((sum.hosts, sum.cpu_secs), (2, 200.0));
        assert_eq!(JobUsage::of(&call(Vec::new(), Vec::new())), None);

        let run = Run { started: Some(at(98)), ended: Some(at(99)), ..Run::default() };
        let short = vec![usage("wn01", (98, 99), 7), usage("wn01", (100, 200), 150)];
        assert_eq!(JobUsage::of(&call(short, vec![run])).map(|sum| sum.cpu_secs), Some(150.0));
    }
}
