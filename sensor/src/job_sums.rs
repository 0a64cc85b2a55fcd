//! Sums of jobs that have ended: how many failed and why, what they were given, used and wasted.
//!
//! Pure. Rules: each job counts by its last run. Efficiency is that of jobs which were measured on all their hosts. Keys are
//! chosen by users, so the number of groups is bounded; the total has all jobs.
//! Not here: which jobs (`query::job_report`), findings (`findings`).

use jiff::Timestamp;
use std::collections::BTreeMap;
use wire::api::UnixTime;
use wire::api::job_report::{FindingCount, JobGroup, JobGroupBy};
use wire::api::jobs::Job;
use wire::event::Outcome;

/// Most groups in memory.
const GROUPS_MAX: usize = 100_000;

/// Sums of jobs.
#[derive(Default)]
pub struct JobSums {
    by: JobGroupBy,
    groups: BTreeMap<String, Group>,
    total: Group,
    oldest: Option<UnixTime>,
}

#[derive(Default)]
struct Group {
    sum: JobGroup,
    findings: BTreeMap<String, u64>,
}

impl JobSums {
    /// Creates sums of no job.
    #[must_use]
    pub fn new(by: JobGroupBy) -> JobSums {
        JobSums { by, ..JobSums::default() }
    }

    /// Adds a job.
    pub fn add(&mut self, job: &Job) {
        self.total.add(job);
        if let Some(ended) = job.ended {
            self.oldest = Some(self.oldest.map_or(ended, |oldest| oldest.min(ended)));
        }
        let key = key(job, self.by);
        if self.groups.len() < GROUPS_MAX || self.groups.contains_key(&key) {
            self.groups.entry(key).or_default().add(job);
        }
    }

    /// End of the oldest job.
    #[must_use]
    pub fn oldest(&self) -> Option<UnixTime> {
        self.oldest
    }

    /// Returns the groups with most allocated CPU time, how many there are besides, and the sum of all.
    #[must_use]
    pub fn shown(self, limit: usize) -> (Vec<JobGroup>, u64, JobGroup) {
        let mut groups: Vec<JobGroup> =
            self.groups.into_iter().map(|(key, group)| JobGroup { key, ..group.shown() }).collect();
        groups.sort_by(|one, other| {
            let by_time = other.allocated_cpu_secs.total_cmp(&one.allocated_cpu_secs);
            by_time.then(other.jobs.cmp(&one.jobs)).then_with(|| one.key.cmp(&other.key))
        });
        if self.by == JobGroupBy::Month {
            groups.sort_by(|one, other| other.key.cmp(&one.key));
        }
        let left_out = groups.len().saturating_sub(limit) as u64;
        groups.truncate(limit);
        (groups, left_out, self.total.shown())
    }
}

impl Group {
    fn add(&mut self, job: &Job) {
        let sum = &mut self.sum;
        sum.jobs += 1;
        let outcome = job.outcome.unwrap_or(Outcome::Finished);
        let is_lost = matches!(outcome, Outcome::Failed | Outcome::Timeout | Outcome::NodeFail);
        *match outcome {
            Outcome::Ok => &mut sum.ok,
            Outcome::Failed => &mut sum.failed,
            Outcome::Timeout => &mut sum.timeout,
            Outcome::NodeFail => &mut sum.node_fail,
            Outcome::Cancelled => &mut sum.cancelled,
            Outcome::Finished => &mut sum.finished,
        } += 1;
        if let Some(secs) = allocated_secs(job) {
            sum.allocated_cpu_secs += secs;
            sum.failed_cpu_secs += if is_lost { secs } else { 0.0 };
        }
        if let Some((usage, wasted)) = job.usage.and_then(|usage| Some((usage, usage.wasted_cpu_secs?))) {
            sum.measured += 1;
            sum.used_cpu_secs += usage.cpu_secs;
            sum.wasted_cpu_secs += wasted;
        }
        for finding in &job.findings {
            match self.findings.get_mut(&finding.kind) {
                Some(jobs) => *jobs += 1,
                None => {
                    self.findings.insert(finding.kind.clone(), 1);
                }
            }
        }
    }

    fn shown(self) -> JobGroup {
        let counts = self.findings.into_iter().map(|(kind, jobs)| FindingCount { kind, jobs });
        let mut findings: Vec<FindingCount> = counts.collect();
        findings.sort_by(|one, other| other.jobs.cmp(&one.jobs).then_with(|| one.kind.cmp(&other.kind)));
        JobGroup { findings, ..self.sum }
    }
}

/// CPU time of the allocated CPUs, in seconds; `None` if these or its times are not known.
fn allocated_secs(job: &Job) -> Option<f64> {
    let ran = job.ended?.0.secs_f64() - job.started?.0.secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let cpus = job.cpus? as f64;
    Some(cpus * ran.max(0.0))
}

fn key(job: &Job, by: JobGroupBy) -> String {
    match by {
        JobGroupBy::User => job.user.clone(),
        JobGroupBy::Account => job.account.clone(),
        JobGroupBy::Queue => job.queue.clone(),
        JobGroupBy::Name => job.name.clone(),
        JobGroupBy::Product => job.product.clone(),
        JobGroupBy::Outcome => job.outcome.unwrap_or(Outcome::Finished).as_str().to_owned(),
        JobGroupBy::Month => {
            let ended = job.ended.and_then(|ended| Timestamp::from_microsecond(ended.0.micros()).ok());
            ended.map(|ended| ended.strftime("%Y-%m").to_string()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::api::findings::{Finding, FindingKind};
    use wire::api::job_usage::JobUsage;
    use wire::time::Time;

    fn job(user: &str, cpus: u64, outcome: Outcome, ended: i64) -> Job {
        let at = |secs: i64| Some(UnixTime(Time::from_micros(secs * 1_000_000)));
        let (user, outcome) = (user.to_owned(), Some(outcome));
        Job { user, outcome, cpus: Some(cpus), started: at(ended - 100), ended: at(ended), ..Job::default() }
    }

    #[test]
    fn groups_have_what_their_jobs_were_given_used_and_lost() {
        let usage = JobUsage { cpu_secs: 150.0, wasted_cpu_secs: Some(50.0), ..JobUsage::default() };
        let failed = job("ann", 4, Outcome::Failed, 1_000_000);
        let findings = [FindingKind::FailedProcess, FindingKind::LowCpu].map(|kind| Finding::new(kind, ""));
        let mut sums = JobSums::new(JobGroupBy::User);
        sums.add(&Job { usage: Some(usage), ..job("ann", 2, Outcome::Ok, 2_000_000) });
        sums.add(&Job { findings: findings.to_vec(), ..failed.clone() });
        sums.add(&Job { findings: findings[..1].to_vec(), ..failed });
        sums.add(&job("ben", 100, Outcome::Cancelled, 9_000_000));
        sums.add(&Job { cpus: None, ..job("", 0, Outcome::Ok, 9_000_000) });
        assert_eq!(sums.oldest().map(|oldest| oldest.0.micros()), Some(1_000_000_000_000));
        let (groups, left_out, total) = sums.shown(2);
        let keys: Vec<&str> = groups.iter().map(|group| group.key.as_str()).collect();
        assert_eq!((keys, left_out), (vec!["ben", "ann"], 1));
        let ann = &groups[1];
        assert_eq!((ann.jobs, ann.ok, ann.failed, ann.measured), (3, 1, 2, 1));
        assert_eq!((ann.allocated_cpu_secs, ann.failed_cpu_secs), (1000.0, 800.0));
        assert_eq!((ann.used_cpu_secs, ann.wasted_cpu_secs), (150.0, 50.0));
        let count = |kind: &str, jobs: u64| FindingCount { kind: kind.to_owned(), jobs };
        assert_eq!(ann.findings, [count("failed_process", 2), count("low_cpu", 1)]);
        assert_eq!((total.jobs, total.cancelled, total.allocated_cpu_secs), (5, 1, 11_000.0));
    }

    #[test]
    fn months_are_in_the_order_of_time_and_other_keys_are_those_of_the_job() {
        let mut sums = JobSums::new(JobGroupBy::Month);
        for (cpus, ended) in [(1, 1_795_737_600), (9, 1_793_059_200), (1, 1_796_044_800)] {
            sums.add(&job("ann", cpus, Outcome::Ok, ended));
        }
        let months: Vec<(String, u64)> =
            sums.shown(9).0.into_iter().map(|group| (group.key, group.jobs)).collect();
        assert_eq!(months, [("2026-11".to_owned(), 2), ("2026-10".to_owned(), 1)]);
        let one = Job { queue: "long".to_owned(), ..job("ann", 1, Outcome::Timeout, 9) };
        let of = |by: JobGroupBy| key(&one, by);
        assert_eq!((of(JobGroupBy::Queue), of(JobGroupBy::Outcome)), ("long".into(), "timeout".into()));
        assert_eq!(of(JobGroupBy::Account), "");
    }
}
