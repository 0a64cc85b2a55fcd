//! Methods about jobs: `jobs.search`, `jobs.get`.
//!
//! Pure. Rule: of other users' jobs only what a queue shows to everyone is answered, unless the caller is root or an
//! operator. Not here: transfers and requests ([`super::calls`]).

use super::calls::{CallOrder, CallsParams};
use super::events::known_outcome;
use super::findings::{Finding, FindingKind};
use super::job_amount::{ByAmount, Condition, JobAmount};
use super::job_usage::{ALLOCATED_MIN_BYTES, HostUsage, JobUsage};
use super::{Effect, Request, Subject, UnixTime};
use crate::call::job::{Fact, JobDetails, Run};
use crate::call::{self, Authority, State};
use crate::event::Outcome;
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Jobs on a page by default.
const LIMIT_DEFAULT: u64 = 100;

/// Search the jobs of a domain: those that wait, run, or have ended.
///
/// Each part of an array or of a heterogeneous job is a job; the array itself is none. A search by what only a job's user may
/// see, such as its account, usage or findings, is one of the caller's own jobs, unless that is root or an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobsSearchParams {
    /// Only the job with this id; `*` and `…` match any characters.
    pub id: Option<String>,
    /// Only jobs with this number of the middleware, under any of their names, and their parts.
    pub job: Option<String>,
    /// Only jobs to which their user gave this name; `*` matches any characters.
    pub name: Option<String>,
    /// Only jobs of this user, as `user` of a job.
    pub user: Option<String>,
    /// Only jobs that are charged to this account.
    pub account: Option<String>,
    /// Only jobs of this queue or partition.
    pub queue: Option<String>,
    /// Only jobs that ran on this host, with or without its domain.
    pub on_host: Option<String>,
    /// Only jobs in this state.
    pub state: Option<State>,
    /// Only jobs with one of these outcomes.
    pub outcome: Vec<Outcome>,
    /// Only jobs that wait or run, or whose latest time is this time or later.
    pub since: Option<UnixTime>,
    /// Only jobs whose latest time is this time or earlier.
    pub until: Option<UnixTime>,
    /// Only jobs that meet these conditions on amounts: `cpu_efficiency < 20 %`, `ran >= 1h30m`, `peak_memory > 2 GiB`. An
    /// amount that is not known meets none. Without a unit a value is in that of the answer: seconds, bytes, a share of one.
    /// At most 32.
    #[serde(rename = "where")]
    pub conditions: Vec<Condition>,
    /// Only jobs with a finding of this kind; `long_wait` and `fails_again` cannot be searched by. The time of a search is
    /// limited: an answer may have fewer jobs than `limit`, or none, and a next page.
    pub finding: Option<FindingKind>,
    /// Maximum number of jobs on the page.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u64,
    /// Sort order, by the latest time of a job.
    pub order: CallOrder,
    /// Return the jobs with most of this instead, the most first: one page, without those for which it is not known.
    pub sort: Option<JobAmount>,
    /// Cursor of the page, from `next` of an earlier answer; the other parameters must be those of that call.
    /// Absent for the first page.
    pub cursor: Option<String>,
}

impl Default for JobsSearchParams {
    fn default() -> JobsSearchParams {
        JobsSearchParams {
            id: None,
            job: None,
            name: None,
            user: None,
            account: None,
            queue: None,
            on_host: None,
            state: None,
            outcome: Vec::new(),
            since: None,
            until: None,
            conditions: Vec::new(),
            finding: None,
            limit: LIMIT_DEFAULT,
            order: CallOrder::default(),
            sort: None,
            cursor: None,
        }
    }
}

impl JobsSearchParams {
    /// What it chooses and sorts by, besides what calls have in common.
    #[must_use]
    pub fn by_amount(&self) -> ByAmount {
        ByAmount { conditions: self.conditions.clone(), sort: self.sort }
    }
}

impl From<JobsSearchParams> for CallsParams {
    fn from(params: JobsSearchParams) -> CallsParams {
        CallsParams {
            call: params.id,
            name: params.name,
            job: params.job,
            user: params.user,
            account: params.account,
            queue: params.queue,
            jobs_only: true,
            on_host: params.on_host,
            state: params.state,
            outcome: params.outcome,
            since: params.since,
            until: params.until,
            limit: params.limit,
            order: params.order,
            cursor: params.cursor,
        }
    }
}

impl Request for JobsSearchParams {
    const METHOD: &'static str = "jobs.search";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = Jobs;
}

/// Page of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Jobs {
    /// Jobs of this page, in the requested order.
    pub jobs: Vec<Job>,
    /// Number of matching jobs on all pages. Of stored jobs at most 10,000 are counted, and of a search by findings those of
    /// this page.
    pub total: u64,
    /// Whether there may be more than `total`. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub total_is_more: bool,
    /// Latest time of the oldest stored call. Absent if none is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_since: Option<UnixTime>,
    /// Cursor of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether only the caller's own jobs were searched, because of what it was searched by. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_only: bool,
    /// Hosts of the domain that are `last_seen` and have not reported to this representative; their jobs may
    /// be missing. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
}

/// Get all that is known of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobParams {
    /// Id of the job, or its number if only one job has it.
    pub job: String,
}

impl Request for JobParams {
    const METHOD: &'static str = "jobs.get";
    const EFFECT: Effect = Effect::Reads;
    const SUBJECT: Subject = Subject::Domain;
    type Answer = JobRecord;
}

/// Record of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobRecord {
    /// The job as in a search; its findings also compare it with others.
    pub job: Job,
    /// Why it failed, in a sentence. Absent if it did not, if that is not known, and of another user's job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// Its runs, the oldest first: more than one if it was requeued. Empty of another user's job.
    #[serde(default)]
    pub runs: Vec<JobRun>,
    /// What it used on each host, by measurement, of all runs. Empty of another user's job.
    #[serde(default)]
    pub usage: Vec<HostUsage>,
    /// File or program from which the job was imported, or what logs did not state of it. Absent if it was not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub imported_from: String,
    /// Sources of the values that logs state besides the course of the job. Empty of another user's job.
    #[serde(default)]
    pub sources: Vec<FactSource>,
}

/// Job, as recorded in the logs and measured on its hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Job {
    /// Domain of the job.
    pub domain: String,
    /// Id of the job, unique within the domain: `PRODUCT:JOB`, with `/CLUSTER` and `#LIFE` where needed.
    pub id: String,
    /// Number of the job, as the middleware has it.
    pub job: String,
    /// Middleware: `slurm`, `gridengine`, …
    pub product: String,
    /// Name given by the user; empty if unknown.
    pub name: String,
    /// User: the name if any log prints it, else the number; empty if unknown.
    pub user: String,
    /// Number of the user. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u64>,
    /// Account that is charged. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// Project. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Queue or partition. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub queue: String,
    /// Quality of service. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub qos: String,
    /// Number of the array that it is a task of. Absent if it is of none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub array_job: String,
    /// Its number within the array.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub array_task: String,
    /// Number of the heterogeneous job that it is a component of. Absent if it is of none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub het_job: String,
    /// Its number within the heterogeneous job.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub het_offset: String,
    /// Client or host that submitted it; empty if unknown.
    pub from: String,
    /// State.
    pub state: State,
    /// State in the middleware's own word, as in its accounting record. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub product_state: String,
    /// Time of submission. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<UnixTime>,
    /// Time from which it could have started. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eligible: Option<UnixTime>,
    /// Time of the last start. Absent if it has not started, or if the time is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixTime>,
    /// Time of the end. Absent if it has not ended, or if the time is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixTime>,
    /// Outcome. Absent if it has not ended. An outcome that only a later version knows is read as `finished`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "known_outcome")]
    pub outcome: Option<Outcome>,
    /// Exit code as printed in the log. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// Signal that ended it, as printed in the log. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub signal: String,
    /// Reason why it waits or ended, in the text of the middleware. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// User who asked to cancel it: a name or a number. Absent if it was not cancelled, or if no log states who did.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cancelled_by: String,
    /// Hosts of the last run.
    pub hosts: Vec<String>,
    /// Number of starts.
    pub tries: u32,
    /// Allocated CPUs, or requested ones while it waits. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u64>,
    /// Allocated hosts, or requested ones while it waits. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    /// Allocated memory of all hosts, in bytes. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Allocated GPUs. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// Longest time that it may run, in seconds. Absent if unknown or unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_secs: Option<u64>,
    /// CPU time that it used according to the middleware, in seconds. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounted_cpu_secs: Option<u64>,
    /// Most memory that it used according to the middleware, in bytes. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounted_peak_memory_bytes: Option<u64>,
    /// What its last run used, by measurement. Absent if it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<JobUsage>,
    /// Why it failed, and what of its allocation it did not use: the causes first. Absent if there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Whether it belongs to another user, and what only that user may see is left out. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_reduced: bool,
}

/// Run of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobRun {
    /// When it started. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<UnixTime>,
    /// When it ended. Absent while it runs, or if the time is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<UnixTime>,
    /// How it ended. Absent while it runs, and where the log states only that the job was requeued.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "known_outcome")]
    pub outcome: Option<Outcome>,
    /// Exit code as printed in the log. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// Signal that ended it, as printed in the log. Absent if unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub signal: String,
    /// Hosts on which it ran.
    pub hosts: Vec<String>,
}

/// Source of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FactSource {
    /// What is stated: `account`, `cpus`, `memory`, …
    pub fact: String,
    /// Value, in bytes or seconds where it is an amount.
    pub value: String,
    /// Id of the event whose line states it.
    pub event: String,
    /// Time of that event.
    pub time: UnixTime,
    /// Kind of the log: `accounting`, `scheduler` or `message`.
    pub log: String,
}

impl From<&call::Call> for Job {
    fn from(call: &call::Call) -> Job {
        let text = |fact: Fact| call.fact(fact).unwrap_or_default().to_owned();
        let number = |fact: Fact| call.details.as_ref()?.number(fact);
        let eligible =
            number(Fact::Eligible).and_then(|secs| i64::try_from(secs).ok()?.checked_mul(1_000_000));
        Job {
            domain: String::new(),
            id: call.id.to_string(),
            job: call.job.to_string(),
            product: call.id.split([':', '/']).next().unwrap_or_default().to_owned(),
            name: call.name.to_string(),
            user: call.user.to_string(),
            uid: number(Fact::Uid),
            account: text(Fact::Account),
            project: text(Fact::Project),
            queue: text(Fact::Queue),
            qos: text(Fact::Qos),
            array_job: text(Fact::ArrayJob),
            array_task: text(Fact::ArrayTask),
            het_job: text(Fact::HetJob),
            het_offset: text(Fact::HetOffset),
            from: call.from.to_string(),
            state: call.state,
            product_state: text(Fact::State),
            submitted: call.submitted.map(UnixTime),
            eligible: eligible.map(Time::from_micros).map(UnixTime),
            started: call.started.map(UnixTime),
            ended: call.ended.map(UnixTime),
            outcome: call.outcome,
            code: call.code.to_string(),
            signal: call.signal.to_string(),
            reason: call.reason.to_string(),
            cancelled_by: match call.outcome {
                Some(Outcome::Cancelled) => text(Fact::CancelledBy),
                Some(_) | None => String::new(),
            },
            hosts: call.hosts.iter().map(ToString::to_string).collect(),
            tries: call.tries,
            cpus: number(Fact::Cpus),
            nodes: number(Fact::Nodes),
            memory_bytes: number(Fact::Memory),
            gpus: number(Fact::Gpus),
            time_limit_secs: number(Fact::TimeLimit),
            accounted_cpu_secs: number(Fact::CpuTime),
            accounted_peak_memory_bytes: number(Fact::PeakMemory),
            usage: JobUsage::of(call),
            findings: Vec::new(),
            is_reduced: false,
        }
    }
}

impl Job {
    /// Allocated memory of all hosts, in bytes; `None` also if the middleware does not manage the memory of its hosts.
    #[must_use]
    pub fn managed_memory_bytes(&self) -> Option<u64> {
        self.memory_bytes.filter(|bytes| *bytes >= ALLOCATED_MIN_BYTES)
    }

    /// Whether it has a finding of this kind.
    #[must_use]
    pub fn has_finding(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind.as_str())
    }

    /// What another user may see of it: what `squeue` prints by default, and how it ended.
    #[must_use]
    pub fn reduced(self) -> Job {
        let Job { domain, id, job, product, name, user, queue, .. } = self;
        let Job { array_job, array_task, het_job, het_offset, state, .. } = self;
        let Job { submitted, started, ended, outcome, reason, hosts, nodes, tries, .. } = self;
        let numbers = Job { array_job, array_task, het_job, het_offset, ..Job::default() };
        let times = Job { submitted, started, ended, ..numbers };
        let course = Job { state, outcome, reason, hosts, nodes, tries, ..times };
        Job { domain, id, job, product, name, user, queue, is_reduced: true, ..course }
    }
}

impl From<&call::Call> for JobRecord {
    fn from(call: &call::Call) -> JobRecord {
        let details = call.details.as_deref();
        let mut runs: Vec<JobRun> =
            details.into_iter().flat_map(|details| &details.runs).map(JobRun::from).collect();
        if call.started.is_some() || call.outcome.is_some() {
            runs.push(JobRun {
                started: call.started.map(UnixTime),
                ended: call.ended.map(UnixTime),
                outcome: call.outcome,
                code: call.code.to_string(),
                signal: call.signal.to_string(),
                hosts: call.hosts.iter().map(ToString::to_string).collect(),
            });
        }
        let usage = details.into_iter().flat_map(|details| &details.usage).map(HostUsage::from).collect();
        JobRecord {
            job: Job::from(call),
            explanation: String::new(),
            runs,
            usage,
            imported_from: call.fact(Fact::ImportedFrom).unwrap_or_default().to_owned(),
            sources: details.map(sources).unwrap_or_default(),
        }
    }
}

impl From<&Run> for JobRun {
    fn from(run: &Run) -> JobRun {
        JobRun {
            started: run.started.map(UnixTime),
            ended: run.ended.map(UnixTime),
            outcome: run.outcome,
            code: run.code.to_string(),
            signal: run.signal.to_string(),
            hosts: run.hosts.iter().map(ToString::to_string).collect(),
        }
    }
}

fn sources(details: &JobDetails) -> Vec<FactSource> {
    let source = |statement: &crate::call::job::Statement| {
        let line = details.lines.get(usize::from(statement.line))?;
        Some(FactSource {
            fact: statement.fact.as_str().to_owned(),
            value: statement.value.to_string(),
            event: line.event.to_string(),
            time: UnixTime(line.time),
            log: log(statement.by).to_owned(),
        })
    };
    details.facts.iter().filter_map(source).collect()
}

const fn log(by: Authority) -> &'static str {
    match by {
        Authority::Accounting => "accounting",
        Authority::Scheduler => "scheduler",
        Authority::Message => "message",
    }
}
