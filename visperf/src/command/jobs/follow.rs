//! `visperf jobs --follow`: prints each job when it is submitted, starts and ends, until Ctrl-C.
//!
//! Rules: a change is printed once, also if the daemon is lost meanwhile. The log of a host that was away is read late, so the jobs
//! of the last hour are requested again each minute, beside those of the last minute every two seconds.
//! Not here: the line of a job (`output::job_lines`).

use super::{Search, note_unknown, params};
use crate::client::{Client, PATIENCE};
use crate::command::interrupt::Interrupt;
use crate::command::pages::Pages;
use crate::command::query::note_missing;
use crate::exit::Failure;
use crate::output::job_lines::{JobLines, changed_at};
use crate::output::note;
use crate::output::times::now;
use ::client::recovery::{self, Recovery};
use jiff::tz::TimeZone;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::calls::CallOrder;
use wire::api::jobs::{Job, Jobs, JobsSearchParams};
use wire::api::{Request, UnixTime};
use wire::backoff::Backoff;
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// Time between two requests.
const EVERY: Duration = Duration::from_secs(2);
/// How far a request goes back beyond the previous one.
const OVERLAP: Duration = Duration::from_secs(60);
/// How far one goes back each minute.
const LATE: Duration = Duration::from_secs(3600);
const LATE_EVERY: Duration = Duration::from_secs(60);
/// Pauses between tries to reach a daemon again.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));

/// What is printed when it changes: a job that is requeued starts again.
type Stage = (State, Option<Outcome>, Option<UnixTime>);

/// A job, and its JSON in the daemon's answer.
type Answered = (Job, Value);

/// The jobs of the last hour, as they were last answered.
#[derive(Default)]
struct Known {
    stages: BTreeMap<String, (Stage, u64)>,
    /// Number of requests that went back an hour or more.
    round: u64,
}

impl Known {
    /// The jobs that changed; `is_whole` is whether the answer has all jobs of the last hour: others are forgotten.
    fn changed(&mut self, jobs: Vec<Answered>, is_whole: bool) -> Vec<Answered> {
        self.round += u64::from(is_whole);
        let round = self.round;
        let is_new = |(job, _): &Answered| {
            let started = job.started.filter(|_| job.state != State::Ended);
            let stage = (job.state, job.outcome, started);
            self.stages.insert(job.id.clone(), (stage, round)).is_none_or(|(before, _)| before != stage)
        };
        let changed = jobs.into_iter().filter(is_new).collect();
        if is_whole {
            self.stages.retain(|_, (_, seen)| *seen == round);
        }
        changed
    }
}

/// Spans of time that are requested.
#[derive(Default)]
struct Schedule {
    answered: Option<Time>,
    whole: Option<Time>,
}

impl Schedule {
    /// The start of the next request, and whether it goes back an hour or more.
    fn since(&self, first: Option<Time>, now: Time) -> (Time, bool) {
        let hour = now.minus(LATE);
        let Some(answered) = self.answered else { return (first.unwrap_or(hour).min(hour), true) };
        let recent = answered.minus(OVERLAP);
        let is_due = self.whole.is_none_or(|at| now.since(at) >= LATE_EVERY);
        if is_due { (recent.min(hour), true) } else { (recent, recent <= hour) }
    }

    fn answered(&mut self, at: Time, is_whole: bool) {
        self.answered = Some(at);
        self.whole = if is_whole { Some(at) } else { self.whole };
    }
}

/// Follow the jobs: those that change from now on, with `--since` those since then first.
///
/// # Errors
/// If no daemon is reached at first, or it answers with a fault that trying again does not help.
pub(super) fn run(args: &Search, client: &mut Client) -> Result<(), Failure> {
    let _interrupt = Interrupt::catch(|| ())?;
    let mut output = args.query.width.output();
    let mut lines = JobLines::new(TimeZone::system(), &output);
    let (mut known, mut schedule, mut away) = (Known::default(), Schedule::default(), Vec::new());
    loop {
        let at = now();
        let (since, is_whole) = schedule.since(args.between.since, at);
        let Pages { items, last, .. } = look(args, client, since, schedule.answered.is_some())?;
        let is_first = schedule.answered.is_none();
        schedule.answered(at, is_whole);
        for (job, raw) in known.changed(items, is_whole) {
            let is_wanted =
                !is_first || args.between.since.is_some_and(|since| changed_at(&job) >= Some(since));
            match args.query.json {
                _ if !is_wanted => {}
                true => output.json(&raw)?,
                false => output.line(&lines.line(&job, &output))?,
            }
        }
        output.flush()?;
        if is_first && last.own_only {
            note("only your own jobs are followed; root and operators follow all by these options");
        }
        if is_first {
            note_unknown(args, client);
        }
        if last.unheard != away {
            note_missing(&last.unheard);
            away = last.unheard;
        }
        std::thread::sleep(EVERY);
    }
}

/// The jobs since a time, oldest first. A daemon that answered before is waited for.
fn look(args: &Search, client: &mut Client, since: Time, was_reached: bool) -> Result<Pages<Jobs>, Failure> {
    let about = args.whose.about();
    let mut failures = 0_u32;
    loop {
        let page = Pages::read(None, u64::MAX, |cursor, limit| {
            let params = params(args, cursor, limit);
            let since = Some(UnixTime(since));
            let request = JobsSearchParams { since, order: CallOrder::Oldest, ..params };
            client.request(&request, &about, PATIENCE)
        });
        let error = match page {
            Ok(pages) => {
                if failures > 0 {
                    note(&format!("reached {} again, going on", client.address()));
                }
                return Ok(pages);
            }
            Err(error) => error,
        };
        if recovery::of(&error, was_reached) == Recovery::End {
            return Err(client.explain(JobsSearchParams::METHOD, error));
        }
        if failures == 0 {
            note(&format!("{}; trying again until it answers (Ctrl-C ends)", error.first_line()));
        }
        std::thread::sleep(BACKOFF.pause(failures));
        failures = failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    fn job(id: &str, state: State, started: Option<i64>) -> Answered {
        let started = started.map(|secs| UnixTime(at(secs)));
        let outcome = (state == State::Ended).then_some(Outcome::Ok);
        (Job { id: id.to_owned(), state, started, outcome, ..Job::default() }, Value::Null)
    }

    fn ids(jobs: &[Answered]) -> Vec<(&str, State)> {
        jobs.iter().map(|(job, _)| (job.id.as_str(), job.state)).collect()
    }

    #[test]
    fn a_change_is_printed_once_and_jobs_of_more_than_an_hour_ago_are_forgotten() {
        let mut known = Known::default();
        let first =
            known.changed(vec![job("a", State::Waiting, None), job("b", State::Running, Some(5))], true);
        assert_eq!(ids(&first), [("a", State::Waiting), ("b", State::Running)]);
        let again =
            known.changed(vec![job("a", State::Running, Some(9)), job("b", State::Running, Some(5))], false);
        assert_eq!(ids(&again), [("a", State::Running)]);
        let requeued = known.changed(vec![job("a", State::Running, Some(20))], false);
        assert_eq!(ids(&requeued), [("a", State::Running)], "it started again");
        assert!(known.changed(vec![job("a", State::Running, Some(20))], true).is_empty());
        let ended =
            known.changed(vec![job("b", State::Ended, Some(5)), job("a", State::Running, Some(20))], false);
        assert_eq!(ids(&ended), [("b", State::Ended)]);
        let later = known.changed(vec![job("b", State::Ended, Some(6))], true);
        assert!(later.is_empty(), "a later record corrected when it started");
        assert_eq!(known.stages.len(), 1, "the other one is not among those of the last hour");
    }

    #[test]
    fn requests_overlap_and_go_back_an_hour_each_minute_and_after_a_long_absence() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.since(None, at(10_000)), (at(6_400), true));
        assert_eq!(schedule.since(Some(at(100)), at(10_000)), (at(100), true));
        assert_eq!(
            schedule.since(Some(at(9_990)), at(10_000)),
            (at(6_400), true),
            "what is known is not printed again"
        );
        schedule.answered(at(10_000), true);
        assert_eq!(schedule.since(None, at(10_002)), (at(9_940), false));
        schedule.answered(at(10_058), false);
        assert_eq!(schedule.since(None, at(10_060)), (at(6_460), true));
        schedule.answered(at(10_060), true);
        assert_eq!(schedule.since(None, at(20_000)), (at(10_000), true), "the daemon was away for hours");
    }
}
