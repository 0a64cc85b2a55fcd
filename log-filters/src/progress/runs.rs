//! Runs of a requeued call: to which run a start, an end or a requeue belongs.
//!
//! Pure. Rule: events before the last requeue belong to an earlier run; so does an end soon after it while
//! the call waits, because the host needs time to end a requeued run. Not here: other events (`super`).

use super::Progress;
use crate::beginning::Beginning;
use crate::earlier_runs::{EarlierRun, SAME_REQUEUE_MICROS};
use crate::ending::Ending;
use crate::reported_value::ReportedValue;
use wire::call::Authority;
use wire::event::{Content, Outcome};
use wire::time::Time;

/// How long after a requeue a host may report the end of that run: Slurm kills after 30 s and stops waiting
/// after 60 s.
const LATE_END_OF_RUN_MICROS: i64 = 120_000_000;

impl Progress {
    /// Whether the known end belongs to the run that the last requeue ended. A waiting job may be cancelled,
    /// but it cannot fail.
    pub(super) fn is_end_of_earlier_run(&self) -> bool {
        let Some(requeue) = self.last_requeue.filter(|_| !self.requeue_undone) else { return false };
        let Some(ended) = self.ending.at() else { return false };
        let ran = self.requeues > 0 || self.is_selected();
        let waits = self.started().is_none() && self.selected().is_none();
        let is_cancelled =
            self.ending.is_cancelled() || self.cancel_asked.is_some_and(|asked| asked >= requeue);
        ran && waits && !is_cancelled && ended.micros() <= requeue.micros() + LATE_END_OF_RUN_MICROS
    }

    /// Whether this time is before the last requeue; a log that is read later may print it.
    pub(super) fn is_earlier_try(&self, at: Time) -> bool {
        self.last_requeue.is_some_and(|requeue| at < requeue)
    }

    pub(super) fn end(&mut self, content: &Content, by: Authority) {
        let at = content.ended.unwrap_or(content.time);
        if self.is_earlier_try(at) {
            self.earlier_run_at(at, |run| run.end(content, by));
            return;
        }
        if let Some(started) = content.started {
            self.started_by_end(started, by);
        }
        if self.is_end_of_earlier_run() {
            // The later end may belong to a run whose start is not read yet.
            if self.ending.at() > Some(at) {
                return;
            }
            self.ending = Ending::default();
        }
        self.ending.report(content, by);
        if self.is_end_of_earlier_run()
            && let Some(run) = self.details.as_mut().and_then(|details| details.earlier.last())
        {
            run.end(content, by);
        }
    }

    /// Process the start in an end record. It voids a requeue in between: a running job that is removed is
    /// evicted first, and was not started again.
    fn started_by_end(&mut self, at: Time, by: Authority) {
        if self.is_earlier_try(at) {
            if self.started().is_some() {
                return;
            }
            self.requeues = self.requeues.saturating_sub(1);
            self.requeue_undone = true;
            if let (Some(details), Some(requeue)) = (&mut self.details, self.last_requeue) {
                details.earlier.remove(requeue);
            }
        }
        self.beginning.report_by_end(at, by);
    }

    pub(super) fn cancel(&mut self, at: Time) {
        self.cancel_asked = self.cancel_asked.filter(|&asked| !self.is_earlier_try(asked)).or(Some(at));
        let waits = self.started().is_none() && self.selected().is_none() && self.ended().is_none();
        if waits {
            self.ending = Ending::default();
            // No log may print anything else about it; a later start or end corrects this.
            self.ending.suppose(at, Outcome::Cancelled);
        }
    }

    /// Process a requeue; `started` is the start of the run that it ended, if the same record contains it.
    pub(super) fn requeue(&mut self, at: Time, started: Option<Time>) {
        let is_same = |known: Time| {
            let is_of_later_run = at > known && started.is_some_and(|started| started >= known);
            (known.micros() - at.micros()).abs() <= SAME_REQUEUE_MICROS && !is_of_later_run
        };
        if self.last_requeue.is_some_and(is_same) {
            return;
        }
        if self.started().is_some_and(|started| started > at) {
            self.requeues += 1;
            self.add_earlier_run(EarlierRun { requeued: at, ..EarlierRun::default() });
            return;
        }
        if self.started().is_some() || self.selected().is_some() {
            self.requeues += 1;
            self.add_earlier_run(self.run_until(at));
        }
        self.last_requeue = self.last_requeue.max(Some(at));
        self.requeue_undone = false;
        if self.ending.at().is_some_and(|ended| ended.micros() > at.micros() + 1_000_000) {
            // A poorer report of the end was read already; a known start belongs to the earlier run.
            if self.started().is_some_and(|started| started < at) {
                self.beginning = Beginning::default();
                self.hosts = ReportedValue::default();
            }
            return;
        }
        self.beginning = Beginning::default();
        self.ending = Ending::default();
        self.hosts = ReportedValue::default();
    }

    /// The present run, which a requeue ended.
    fn run_until(&self, requeued: Time) -> EarlierRun {
        let is_of_run = |ended: Time| ended.micros() <= requeued.micros() + SAME_REQUEUE_MICROS;
        EarlierRun {
            requeued,
            beginning: self.beginning.clone(),
            ending: self.ending.clone().only_if(is_of_run),
            hosts: self.hosts.value.clone(),
        }
    }

    fn add_earlier_run(&mut self, run: EarlierRun) {
        if self.is_job {
            self.details.get_or_insert_default().earlier.add(run);
        }
    }

    /// Changes the earlier run that went on at this time, if it is known.
    pub(super) fn earlier_run_at(&mut self, at: Time, change: impl FnOnce(&mut EarlierRun)) {
        if let Some(run) = self.details.as_mut().and_then(|details| details.earlier.at(at)) {
            change(run);
        }
    }

    /// Process a selection or a start: a job with a cancellation request continues after all, and an end
    /// before this belongs to an earlier run.
    pub(super) fn reopen(&mut self, at: Time) {
        if self.is_end_of_earlier_run() && self.ending.at() < Some(at) && !self.is_earlier_try(at) {
            self.ending = Ending::default();
        }
        if self.ended().is_some_and(|ended| ended < at) {
            self.ending.forget_supposed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::Kind;

    fn event(kind: Kind, secs: i64, outcome: Option<Outcome>) -> Content {
        let mut content = Content::new(kind, Time::from_micros(secs * 1_000_000));
        content.outcome = outcome;
        content
    }

    /// Start, requeue and last end, as read in this order.
    fn check(events: &[(Kind, i64, Option<Outcome>)], started: Option<i64>, ended: Option<i64>) {
        let mut progress = Progress::new("x:1".into(), Time::from_micros(0));
        for &(kind, secs, outcome) in events {
            progress.apply(&event(kind, secs, outcome), Authority::Scheduler);
        }
        let call = progress.call();
        let secs = |time: Option<Time>| time.map(|time| time.micros() / 1_000_000);
        assert_eq!((secs(call.started), secs(call.ended)), (started, ended), "{events:?}");
        assert_eq!(call.outcome.is_some(), ended.is_some(), "{events:?}");
    }

    #[test]
    fn an_end_soon_after_a_requeue_is_that_of_the_run_before() {
        use Kind::{JobCancel, JobEnd, JobRequeue, JobStart};
        use Outcome::{Cancelled, Failed, Ok};
        let [start, requeue, late] =
            [(JobStart, 10, None), (JobRequeue, 20, None), (JobEnd, 22, Some(Failed))];
        let [again, end] = [(JobStart, 30, None), (JobEnd, 40, Some(Ok))];
        check(&[start, requeue, late], None, None);
        check(&[start, late, requeue], None, None);
        check(&[start, requeue, late, again], Some(30), None);
        check(&[start, requeue, late, again, end], Some(30), Some(40));
        check(&[start, requeue, late, end, again], Some(30), Some(40));
        check(&[start, requeue, end, late, again], Some(30), Some(40));
        // It never ran, was cancelled while it waited, or the end is too late to come from the host.
        check(&[requeue, late], None, Some(22));
        check(&[start, requeue, (JobEnd, 22, Some(Cancelled))], None, Some(22));
        check(&[start, requeue, (JobCancel, 21, None), late], None, Some(22));
        check(&[start, requeue, (JobEnd, 141, Some(Failed))], None, Some(141));
    }

    #[test]
    fn a_record_of_a_run_that_began_after_the_last_requeue_is_another_requeue() {
        let record = |started: i64| {
            let mut content = event(Kind::JobRequeue, started + 1, None);
            content.started = Some(Time::from_micros(started * 1_000_000));
            content
        };
        for (second, tries) in [(10, 1), (11, 2), (12, 2), (40, 2)] {
            let mut progress = Progress::new("x:1".into(), Time::from_micros(0));
            for content in [record(10), record(second), record(second)] {
                progress.apply(&content, Authority::Accounting);
            }
            let call = progress.call();
            assert_eq!((call.started, call.tries), (None, tries), "{second}");
        }
    }
}
