//! The job whose page is open, and when it is requested again.
//!
//! Pure. Rule: a job that waits or runs is requested every five seconds, one that ended until its last points have
//! arrived.

use crate::jobs::JobKey;
use crate::jobs::page::{JobPage, PagePart};
use wire::time::Time;

/// Interval of requests, in seconds.
const INTERVAL_SECS: f64 = 5.0;
/// Its last points and findings have arrived this long after its end, in seconds.
const SETTLED_SECS: f64 = 20.0;
/// Pause after an error, and timeout of an answer, in seconds.
const RETRY_SECS: f64 = 10.0;
const ANSWER_MAX_SECS: f64 = 330.0;

/// A page and its requests.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) page: JobPage,
    requested_at: Option<Time>,
    is_waiting: bool,
}

impl Opened {
    pub(super) fn new(key: JobKey) -> Opened {
        Opened { page: JobPage::new(key), requested_at: None, is_waiting: false }
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        let Some(requested_at) = self.requested_at else { return true };
        let since = now.since(requested_at).as_secs_f64();
        if self.is_waiting {
            return since > ANSWER_MAX_SECS;
        }
        if self.page.error.is_some() {
            return since > RETRY_SECS;
        }
        let ended = self.page.record.as_ref().and_then(|record| record.job.ended);
        let is_settled = ended.is_some_and(|ended| requested_at.since(ended.0).as_secs_f64() > SETTLED_SECS);
        !is_settled && since > INTERVAL_SECS
    }

    /// Whether an answer is missing.
    pub(super) fn is_awaited(&self) -> bool {
        self.is_waiting || self.requested_at.is_none()
    }

    pub(super) fn requested(&mut self, now: Time) {
        (self.requested_at, self.is_waiting) = (Some(now), true);
    }

    /// Take a part of the answer, if it is of this job.
    pub(super) fn take(&mut self, key: &JobKey, part: PagePart) {
        if self.page.key == *key {
            self.is_waiting &= part != PagePart::End;
            self.page.take(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wire::api::UnixTime;
    use wire::api::jobs::{Job, JobRecord};

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    /// Seconds at which it is requested, if every request is answered at once with this.
    fn requested(answer: &PagePart) -> Vec<i64> {
        let key = JobKey::new("Alpha", "slurm:17");
        let mut opened = Opened::new(key.clone());
        let is_sent = |secs: &i64| {
            let is_due = opened.is_due(at(*secs));
            if is_due {
                opened.requested(at(*secs));
                opened.take(&key, answer.clone());
                opened.take(&key, PagePart::End);
            }
            is_due
        };
        (100..130).filter(is_sent).collect()
    }

    #[test]
    fn a_job_is_requested_until_its_last_points_have_arrived() {
        let record = |ended: Option<i64>| {
            let job = Job { ended: ended.map(|secs| UnixTime(at(secs))), ..Job::default() };
            PagePart::Record(Ok(Arc::new(JobRecord { job, ..JobRecord::default() })))
        };
        assert_eq!(requested(&record(None)), [100, 106, 112, 118, 124]);
        assert_eq!(requested(&record(Some(90))), [100, 106, 112]);
        assert_eq!(requested(&record(Some(10))), [100]);
        assert_eq!(requested(&PagePart::Record(Err("away".to_owned()))), [100, 111, 122]);
        assert_eq!(requested(&PagePart::Lines(Ok(Vec::new()))), [100, 106, 112, 118, 124]);
    }

    #[test]
    fn parts_of_another_job_are_dropped() {
        let mut opened = Opened::new(JobKey::new("Alpha", "slurm:17"));
        opened.requested(at(0));
        opened.take(&JobKey::new("Alpha", "slurm:18"), PagePart::Record(Err("away".to_owned())));
        assert!(opened.page.error.is_none() && !opened.is_due(at(100)));
    }
}
