//! Meter: which processes serve which job at each sweep, and what each job used.
//!
//! Pure: takes sweeps, ended processes and the jobs that processes serve. Rules: a job is measured as one of its user, or
//! as one of a control group, so a process that only claims a job is never added to the processes that the middleware
//! assigned. A measurement is over when no process has been left for some seconds. What a user can open is bounded.
//! Not here: reading control groups, writing reports (`worker`).

use super::measurement::{Counters, Extent, GroupReading, Measurement, Reading};
use crate::job_series::piece::{Point, Whose};
use crate::process::source::View;
use crate::serving::job_names;
use crate::serving::job_table::ServedJob;
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use wire::call::failed_process::FailedProcess;
use wire::process::delta::PROCESSES_MAX;
use wire::process::{Life, ProcessKey};
use wire::time::Time;

mod members;
#[cfg(test)]
mod tests;

/// How long a job has no process before its measurement is over: a script may start its steps one after the other.
const GRACE_NS: u64 = 3_000_000_000;

/// When a running job is reported: first after ten seconds, then whenever it has been measured for twice as long, and
/// at least every ten minutes.
const FIRST_REPORT_NS: u64 = 10_000_000_000;
const REPORT_EVERY_NS: u64 = 600_000_000_000;

/// Most jobs that are only claimed and measured at a time, and most of one user: so it takes many users to keep out
/// others. Jobs that a control group proves are as many as there are processes.
const CLAIMED_MAX: usize = 16_384;
const CLAIMED_OF_USER_MAX: usize = 1_024;

/// Most measurements of jobs that are only claimed, which a user may open in a minute: ten jobs a second.
const CLAIMS_PER_MINUTE_MAX: u32 = 600;

/// How long an ended process is known: its job may become known, and then what it used at the very end.
const ENDED_KNOWN_NS: u64 = 10_000_000_000;

/// Most of those.
const ENDED_MAX: usize = 16_384;

/// What a measurement is of: the common name of the job, and the user that claims it, unless a control group proves it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    pub job: CompactString,
    pub claimed_by: Option<u32>,
}

/// The time of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Nanoseconds since boot.
    pub boot_ns: u64,
    /// By the calendar.
    pub time: Time,
}

impl Now {
    /// The time of the calendar at this moment, in nanoseconds since boot.
    fn time_of(self, boot_ns: u64) -> Time {
        let ago = Duration::from_nanos(self.boot_ns.saturating_sub(boot_ns));
        self.time.minus(ago)
    }
}

/// Report of a measurement, as it is at that moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub measured: Measurement,
    pub is_over: bool,
    /// What its points belong to.
    pub whose: Arc<Whose>,
}

impl Report {
    /// The last point of a measurement that is over.
    #[must_use]
    pub fn last_point(&self) -> Option<(Arc<Whose>, Point)> {
        let point = || Point { memory_bytes: 0, ..self.measured.point(self.measured.until) };
        self.is_over.then(|| (Arc::clone(&self.whose), point()))
    }
}

/// A job under measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    key: JobKey,
    measured: Measurement,
    /// When its last process ended, in nanoseconds since boot; `None` while one lives.
    idle_since_ns: Option<u64>,
    /// When it is reported next, in nanoseconds since boot.
    report_at_ns: u64,
    /// How long after that the report after it is.
    report_after_ns: u64,
    /// Files of its control groups.
    #[serde(skip)]
    groups: Arc<job_names::ControlGroups>,
    /// What its points belong to.
    #[serde(skip)]
    whose: Option<Arc<Whose>>,
}

impl Job {
    /// What its points belong to: always with the same start, as curves differ by it, also if an earlier process becomes
    /// known.
    fn whose(&mut self) -> Arc<Whose> {
        let Measurement { jobs, uid, is_proved, started, .. } = &self.measured;
        let is_current = |whose: &&Arc<Whose>| whose.jobs == *jobs && whose.uid == *uid;
        if let Some(current) = self.whose.as_ref().filter(is_current) {
            return Arc::clone(current);
        }
        let started = self.whose.as_ref().map_or(*started, |former| former.started);
        let whose = Whose { jobs: jobs.clone(), uid: *uid, is_proved: *is_proved, started };
        Arc::clone(self.whose.insert(Arc::new(whose)))
    }

    fn report(&mut self, is_over: bool) -> Report {
        Report { measured: self.measured.clone(), is_over, whose: self.whose() }
    }
}

/// A living process of a job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Member {
    job: u64,
    /// Counters when it began to serve the job.
    base: Counters,
    last: Reading,
}

/// A process that ended some seconds ago at most.
#[derive(Clone, Debug)]
struct Ended {
    /// When, in nanoseconds since boot.
    end_ns: u64,
    /// What was read of it last; `None` if nothing was.
    reading: Option<Reading>,
    /// Job that it was counted for, once it was.
    job: Option<u64>,
    /// Whether its input and output count as those of its parent.
    has_parent: bool,
    /// How it failed, if that is known.
    failure: Option<FailedProcess>,
}

/// Meter of all jobs of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Meter {
    /// By their numbers, which their processes have.
    jobs: BTreeMap<u64, Job>,
    numbers: BTreeMap<JobKey, u64>,
    members: BTreeMap<ProcessKey, Member>,
    next: u64,
    /// Jobs that were not measured because their user claims too many.
    refused: u64,
    #[serde(skip)]
    running: Running,
}

/// What is not stored: it follows from the sweeps.
#[derive(Clone, Debug, Default)]
struct Running {
    /// Members by their position in the table of processes.
    places: Vec<Option<ProcessKey>>,
    /// Number of the next ended process.
    lives_next: Option<u64>,
    /// Number of the next ended process that was not seen between two sweeps.
    ended_next: Option<u64>,
    /// Number of the next freed process.
    freed_next: Option<u64>,
    /// Processes that ended.
    ended: BTreeMap<ProcessKey, Ended>,
    /// Those that had no end yet and were in no sweep, as their job became known.
    early: BTreeSet<ProcessKey>,
    /// Their order, with the time in nanoseconds since boot.
    ended_order: VecDeque<(u64, ProcessKey)>,
    /// When the last sweep was, in nanoseconds since boot.
    last_ns: Option<u64>,
    /// Jobs whose control groups are to be read at once: they may be gone soon.
    urgent: BTreeMap<u64, Extent>,
    /// Claims of each user in the minute.
    claims: BTreeMap<u32, u32>,
    minute: u64,
}

impl Meter {
    /// Takes in a sweep, and the processes whose jobs became known; returns the reports that are due.
    pub fn sweep(&mut self, view: &View, news: Vec<(ProcessKey, ServedJob)>, now: Now) -> Vec<Report> {
        let is_first = self.running.last_ns.is_none();
        self.take_ended(view, now);
        self.take_changed(view, now);
        self.take_freed(view);
        for (key, served) in news {
            self.take_served(view, key, &served, now);
        }
        if is_first {
            self.end_missing(now);
        }
        self.moment(now);
        self.due(now)
    }

    /// Adds what was read of the control group of a job.
    pub fn read_group(&mut self, key: &JobKey, reading: GroupReading) {
        if let Some(job) = self.numbers.get(key).and_then(|number| self.jobs.get_mut(number)) {
            job.measured.read_group(reading);
        }
    }

    /// The jobs with control groups, and the paths of these.
    pub fn with_groups(&self) -> impl Iterator<Item = (&JobKey, &Arc<job_names::ControlGroups>)> {
        let with = self.jobs.values().filter(|job| !job.groups.paths.is_empty());
        with.map(|job| (&job.key, &job.groups))
    }

    /// Takes in the ends of processes between two sweeps: the next one counts them, but control groups may be gone then.
    pub fn ended_between(&mut self, view: &View) {
        let next = view.lives.next();
        let from = self.running.ended_next.replace(next).unwrap_or(next);
        let (lives, _) = view.lives.since(from);
        for life in lives {
            if let Some(member) = self.members.get(&life.key) {
                self.running.urge(member.job, extent_of(life));
            }
        }
    }

    /// Takes the jobs whose control groups are to be read at once, and the paths of these: they have become known, or a
    /// process of the job has ended, perhaps the last one, and the middleware removes them then.
    pub fn take_urgent(&mut self) -> Vec<(JobKey, Arc<job_names::ControlGroups>, Extent)> {
        let urgent = std::mem::take(&mut self.running.urgent);
        let jobs = urgent.iter().filter_map(|(number, extent)| Some((self.jobs.get(number)?, *extent)));
        let with = jobs.filter(|(job, _)| !job.groups.paths.is_empty());
        with.map(|(job, extent)| (job.key.clone(), Arc::clone(&job.groups), extent)).collect()
    }

    /// The points of all jobs that run, at the moment of the last sweep.
    pub fn points(&mut self, now: Now) -> Vec<(Arc<Whose>, Point)> {
        self.add_up();
        let running = self.jobs.values_mut().filter(|job| job.idle_since_ns.is_none());
        running.map(|job| (job.whose(), job.measured.point(now.time))).collect()
    }

    /// Ends all measurements, as at a boot: no process is left.
    pub fn end_all(&mut self) -> Vec<Report> {
        self.add_up();
        let reports = self.jobs.values_mut().map(|job| job.report(true)).collect();
        *self = Meter { next: self.next, ..Meter::default() };
        reports
    }

    /// Whether nothing is measured.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Jobs that are measured now.
    #[must_use]
    pub fn count(&self) -> usize {
        self.jobs.len()
    }

    /// Jobs that were not measured because their user claimed too many, since the start.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused
    }

    /// Adds the memory of the moment to all jobs.
    fn moment(&mut self, now: Now) {
        let last_ns = self.running.last_ns.replace(now.boot_ns).unwrap_or(now.boot_ns);
        let secs = Duration::from_nanos(now.boot_ns.saturating_sub(last_ns)).as_secs_f64();
        for job in self.jobs.values_mut().filter(|job| job.idle_since_ns.is_none()) {
            job.measured.moment(now.time, secs);
        }
    }

    /// Reports of the jobs that are over, and of those that run for a while.
    fn due(&mut self, now: Now) -> Vec<Report> {
        let is_over = |job: &Job| job.idle_since_ns.is_some_and(|since| since + GRACE_NS <= now.boot_ns);
        let is_due = |job: &Job| is_over(job) || job.report_at_ns <= now.boot_ns;
        if !self.jobs.values().any(is_due) {
            return Vec::new();
        }
        self.add_up();
        let mut reports = Vec::new();
        for job in self.jobs.values_mut().filter(|job| is_due(job)) {
            reports.push(job.report(is_over(job)));
            job.report_at_ns = now.boot_ns + job.report_after_ns;
            job.report_after_ns = (job.report_after_ns * 2).min(REPORT_EVERY_NS);
        }
        self.jobs.retain(|_, job| !is_over(job) || self.numbers.remove(&job.key).is_none());
        reports
    }

    /// Sets the counters of all jobs: those of ended processes, and of the living ones.
    fn add_up(&mut self) {
        let mut totals: BTreeMap<u64, Counters> = BTreeMap::new();
        for member in self.members.values() {
            let total = totals.entry(member.job).or_default();
            *total = total.plus(member.last.counters.since(member.base));
        }
        for (number, job) in &mut self.jobs {
            let living = totals.get(number).copied().unwrap_or_default();
            job.measured.total = job.measured.ended.plus(living);
        }
    }

    /// The job of this key, which is opened if it is new; `None` if it is not measured.
    fn open(&mut self, key: JobKey, served: &ServedJob, process: ProcessKey, now: Now) -> Option<u64> {
        if let Some(number) = self.numbers.get(&key).copied() {
            let job = self.jobs.get_mut(&number)?;
            let names = names_of(served);
            if names.len() > job.measured.jobs.len() {
                job.measured.jobs = names;
            }
            // The middleware may start a process of its own first; reports of one measurement are of one user.
            let is_reported = job.report_after_ns > FIRST_REPORT_NS;
            if job.measured.uid == 0 && !is_reported {
                job.measured.uid = served.user.unwrap_or_default();
            }
            return Some(number);
        }
        if !self.may_claim(key.claimed_by, now) {
            self.refused += 1;
            return None;
        }
        let number = self.next;
        self.next += 1;
        let measured = Measurement {
            jobs: names_of(served),
            is_proved: key.claimed_by.is_none(),
            uid: served.user.unwrap_or_default(),
            started: now.time_of(process.start_ns),
            until: now.time,
            ..Measurement::default()
        };
        self.numbers.insert(key.clone(), number);
        let job = Job {
            key,
            measured,
            idle_since_ns: Some(now.boot_ns),
            report_at_ns: now.boot_ns + FIRST_REPORT_NS,
            report_after_ns: FIRST_REPORT_NS,
            groups: Arc::clone(&served.groups),
            whose: None,
        };
        self.jobs.insert(number, job);
        Some(number)
    }

    /// Whether a user may open another measurement of a job that it only claims.
    fn may_claim(&mut self, user: Option<u32>, now: Now) -> bool {
        let Some(user) = user else { return true };
        let claimed = self.numbers.keys().filter_map(|key| key.claimed_by);
        let (all, own) = claimed.fold((0, 0), |(all, own), by| (all + 1, own + usize::from(by == user)));
        if all >= CLAIMED_MAX || own >= CLAIMED_OF_USER_MAX {
            return false;
        }
        let minute = now.boot_ns / 60_000_000_000;
        if self.running.minute != minute {
            self.running.claims.clear();
            self.running.minute = minute;
        }
        if self.running.claims.len() >= PROCESSES_MAX {
            return false;
        }
        let claims = self.running.claims.entry(user).or_default();
        *claims += 1;
        *claims <= CLAIMS_PER_MINUTE_MAX
    }

    fn job_of(&mut self, number: u64) -> Option<&mut Job> {
        self.jobs.get_mut(&number)
    }
}

/// What is to be read of the groups of a job after the end of this process: the kernel counts its kills below them.
fn extent_of(life: &Life) -> Extent {
    const SIGKILL: u8 = 9;
    if life.signal() == Some(SIGKILL) { Extent::Whole } else { Extent::Job }
}

/// The key of what a process serves; `None` if nothing proves it and its user is not known.
fn key_of(served: &ServedJob) -> Option<JobKey> {
    if let Some(job) = job_names::common(&served.groups.jobs) {
        return Some(JobKey { job: job.clone(), claimed_by: None });
    }
    Some(JobKey { job: job_names::common(&served.jobs)?.clone(), claimed_by: Some(served.user?) })
}

/// The names under which the job is reported: of a control group only those that it proves.
fn names_of(served: &ServedJob) -> Vec<CompactString> {
    if served.groups.jobs.is_empty() { served.jobs.clone() } else { served.groups.jobs.clone() }
}
