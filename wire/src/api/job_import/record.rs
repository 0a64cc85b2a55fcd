//! A job to be stored as a call, and the reverse.
//!
//! Pure. Rule: what it states has the authority of an accounting record and no line of a log. Longer texts and lists than
//! logs may have are cut.
//! Not here: what of it is known already (`call_store`).

use super::ImportedJob;
use crate::api::UnixTime;
use crate::api::jobs::{Job, JobRun};
use crate::call::job::{Fact, JobDetails, NO_LINE, Run, Statement};
use crate::call::{Authority, Call, State, StoredCall, without_life};
use crate::event::Outcome;
use crate::time::Time;
use compact_str::{CompactString, ToCompactString};
use std::time::Duration;

/// Longest id, in bytes.
const ID_LEN_MAX_BYTES: usize = 200;
/// Longest name or reason, in bytes.
const TEXT_LEN_MAX_BYTES: usize = 1_000;
/// Longest other text, in bytes.
const WORD_LEN_MAX_BYTES: usize = 200;
/// Most hosts of a job, other ids, and earlier runs.
const HOSTS_MAX: usize = 4_096;
const ALIASES_MAX: usize = 64;
const RUNS_MAX: usize = 32;

/// How far in the future a job may have ended, as clocks differ.
const AHEAD_MAX: Duration = Duration::from_secs(600);

impl ImportedJob {
    /// The job of a call that has ended; `None` if the call is no job, or has not ended.
    #[must_use]
    pub fn of(stored: &StoredCall) -> Option<ImportedJob> {
        let call = &stored.call;
        let has_ended = call.ended.is_some() && call.outcome.is_some();
        let details = call.details.as_deref().filter(|_| call.is_job() && has_ended)?;
        Some(ImportedJob {
            // What it has of measurements is not imported.
            job: Job { usage: None, ..Job::from(call) },
            aliases: stored.aliases.iter().map(ToString::to_string).collect(),
            runs: details.runs.iter().map(JobRun::from).collect(),
        })
    }

    /// The call of the job. Its id is that of its number: the mark of a later life is left out.
    ///
    /// # Errors
    /// What was expected and found.
    pub fn to_call(&self, source: &str, now: Time) -> Result<StoredCall, String> {
        let job = &self.job;
        let (id, number) = id_and_number(&job.id)?;
        if job.state == State::Running {
            return Err("state: expected a job that has ended, found running".to_owned());
        }
        let outcome = job.outcome.ok_or("outcome: expected how the job ended, found none")?;
        let ended = self.ended(now)?;
        let call = Call {
            job: match job.job.as_str() {
                "" => number.into(),
                job => cut(job, ID_LEN_MAX_BYTES),
            },
            name: cut(&job.name, TEXT_LEN_MAX_BYTES),
            user: cut(&job.user, WORD_LEN_MAX_BYTES),
            from: cut(&job.from, WORD_LEN_MAX_BYTES),
            state: State::Ended,
            submitted: job.submitted.map(|time| time.0),
            offered: None,
            selected: None,
            started: job.started.map(|time| time.0),
            ended: Some(ended),
            offers: Vec::new(),
            hosts: hosts(&job.hosts),
            outcome: Some(outcome),
            code: cut(&job.code, WORD_LEN_MAX_BYTES),
            signal: cut(&job.signal, WORD_LEN_MAX_BYTES),
            reason: cut(&job.reason, TEXT_LEN_MAX_BYTES),
            tries: job.tries.max(u32::from(job.started.is_some())),
            events: 0,
            details: Some(Box::new(JobDetails {
                facts: facts(job, source, outcome),
                runs: self.runs.iter().take(RUNS_MAX).map(Run::from).collect(),
                ..JobDetails::default()
            })),
            id,
        };
        let first = call.earliest().unwrap_or(ended);
        Ok(StoredCall { first, aliases: self.ids(&call.id), call })
    }

    fn ended(&self, now: Time) -> Result<Time, String> {
        let UnixTime(ended) = self.job.ended.ok_or("ended: expected the time of its end, found none")?;
        if !(Time::default()..=now.plus(AHEAD_MAX)).contains(&ended) {
            return Err("ended: expected a time after 1970 that is not in the future".to_owned());
        }
        for (name, time) in [("submitted", self.job.submitted), ("started", self.job.started)] {
            if time.is_some_and(|UnixTime(time)| !(Time::default()..=ended).contains(&time)) {
                return Err(format!("{name}: expected a time after 1970 that is not later than its end"));
            }
        }
        Ok(ended)
    }

    /// Its other ids, of the same product and cluster.
    fn ids(&self, id: &str) -> Vec<CompactString> {
        let scope = id.split_once(':').map_or("", |(scope, _)| scope);
        let is_of_scope = |other: &&String| {
            let of = other.split_once(':').is_some_and(|(of, number)| of == scope && !number.is_empty());
            of && other.as_str() != id && other.len() <= ID_LEN_MAX_BYTES
        };
        let mut ids: Vec<CompactString> =
            self.aliases.iter().filter(is_of_scope).take(ALIASES_MAX).map(Into::into).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Checks an id, and returns it without the mark of a later life, and its number.
fn id_and_number(id: &str) -> Result<(CompactString, &str), String> {
    let wrong = || format!("id: expected the product and number of a job, such as slurm:17, found {id:?}");
    let (scope, number) = without_life(id).split_once(':').ok_or_else(wrong)?;
    let is_scope = scope.starts_with(|first: char| first.is_ascii_lowercase());
    let is_plain = !id.contains(|char: char| char.is_whitespace() || char.is_control());
    if !is_scope || !is_plain || number.is_empty() || id.len() > ID_LEN_MAX_BYTES {
        return Err(wrong());
    }
    Ok((id[..scope.len() + 1 + number.len()].into(), number))
}

/// What the job states besides its course, in the order of the facts.
fn facts(job: &Job, source: &str, outcome: Outcome) -> Vec<Statement> {
    let value = |fact: Fact| match fact {
        Fact::Account => text(&job.account),
        Fact::Project => text(&job.project),
        Fact::Queue => text(&job.queue),
        Fact::Qos => text(&job.qos),
        Fact::Uid => number(job.uid),
        Fact::Cpus => number(job.cpus),
        Fact::Nodes => number(job.nodes),
        Fact::Memory => number(job.memory_bytes),
        Fact::Gpus => number(job.gpus),
        Fact::TimeLimit => number(job.time_limit_secs),
        Fact::Eligible => {
            let secs = job.eligible.map(|UnixTime(time)| time.micros().div_euclid(1_000_000));
            number(secs.and_then(|secs| u64::try_from(secs).ok()))
        }
        Fact::ArrayJob => text(&job.array_job),
        Fact::ArrayTask => text(&job.array_task),
        Fact::HetJob => text(&job.het_job),
        Fact::HetOffset => text(&job.het_offset),
        Fact::State => text(&job.product_state),
        Fact::CpuTime => number(job.accounted_cpu_secs),
        Fact::PeakMemory => number(job.accounted_peak_memory_bytes),
        Fact::CancelledBy => text(&job.cancelled_by).filter(|_| outcome == Outcome::Cancelled),
        Fact::ImportedFrom => text(source).or_else(|| Some("import".into())),
    };
    let statement = |fact: &Fact| {
        let (value, by) = (value(*fact)?, Authority::Accounting);
        Some(Statement { fact: *fact, value, by, line: NO_LINE })
    };
    Fact::ALL.iter().filter_map(statement).collect()
}

fn text(text: &str) -> Option<CompactString> {
    (!text.is_empty()).then(|| cut(text, WORD_LEN_MAX_BYTES))
}

fn number(number: Option<u64>) -> Option<CompactString> {
    number.map(|number| number.to_compact_string())
}

fn hosts(hosts: &[String]) -> Vec<CompactString> {
    hosts.iter().take(HOSTS_MAX).map(|host| cut(host, WORD_LEN_MAX_BYTES)).collect()
}

fn cut(text: &str, len_max_bytes: usize) -> CompactString {
    text[..text.floor_char_boundary(len_max_bytes)].into()
}

impl From<&JobRun> for Run {
    fn from(run: &JobRun) -> Run {
        Run {
            started: run.started.map(|time| time.0),
            ended: run.ended.map(|time| time.0),
            outcome: run.outcome,
            hosts: hosts(&run.hosts),
            code: cut(&run.code, WORD_LEN_MAX_BYTES),
            signal: cut(&run.signal, WORD_LEN_MAX_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_800_000_000_000_000);

    fn at(secs: i64) -> Option<UnixTime> {
        Some(UnixTime(Time::from_micros(secs * 1_000_000)))
    }

    fn job(id: &str) -> ImportedJob {
        let job = Job {
            id: id.to_owned(),
            name: "fit".to_owned(),
            user: "aliu".to_owned(),
            account: "physics".to_owned(),
            submitted: at(1_700_000_000),
            eligible: at(1_700_000_001),
            started: at(1_700_000_010),
            ended: at(1_700_000_070),
            outcome: Some(Outcome::Failed),
            code: "3:0".to_owned(),
            hosts: vec!["wn01".to_owned()],
            tries: 1,
            cpus: Some(4),
            memory_bytes: Some(1 << 30),
            accounted_cpu_secs: Some(200),
            ..Job::default()
        };
        ImportedJob { job, ..ImportedJob::default() }
    }

    #[test]
    fn a_job_is_the_same_after_it_was_a_call() {
        let mut given = job("slurm:9_7");
        given.job.array_job = "9".to_owned();
        given.aliases = vec!["slurm:16".to_owned(), "slurm:9_7".to_owned(), "pbs:3".to_owned()];
        given.runs =
            vec![JobRun { started: at(1_699_999_000), hosts: vec!["wn02".into()], ..JobRun::default() }];
        let call = given.to_call("sacct.txt", NOW).unwrap();
        assert_eq!(call.call.fact(Fact::ImportedFrom), Some("sacct.txt"));
        assert_eq!((call.first, call.call.events), (Time::from_micros(1_700_000_000_000_000), 0));
        let again = ImportedJob::of(&call).unwrap();
        let (state, product) = (State::Ended, "slurm".to_owned());
        let expected = Job { state, product, job: "9_7".to_owned(), ..given.job };
        assert_eq!(again.job, expected);
        assert_eq!((again.aliases, again.runs), (vec!["slurm:16".to_owned()], given.runs));
        let facts = &call.call.details.as_ref().unwrap().facts;
        assert!(facts.is_sorted_by_key(|statement| statement.fact), "{facts:?}");
        let unfinished = StoredCall { call: Call { ended: None, ..call.call.clone() }, ..call };
        assert_eq!(ImportedJob::of(&unfinished), None);
    }

    #[test]
    fn the_mark_of_a_later_life_is_left_out() {
        for (id, expected) in [
            ("slurm:17#2", "slurm:17"),
            ("slurm/alpha:17", "slurm/alpha:17"),
            ("arc:https://a/1#x", "arc:https://a/1#x"),
        ] {
            assert_eq!(job(id).to_call("x", NOW).unwrap().call.id, expected);
        }
    }

    #[test]
    fn impossible_jobs_are_refused_with_what_was_expected() {
        let refused = |change: fn(&mut Job)| {
            let mut job = job("slurm:17");
            change(&mut job.job);
            job.to_call("x", NOW).unwrap_err()
        };
        for id in ["", "17", "slurm:", "slurm:#3", "Slurm:17", "slurm:1 7", "slurm:1\n", ":17"] {
            let text = job(id).to_call("x", NOW).unwrap_err();
            assert!(text.contains("such as slurm:17"), "{id}: {text}");
        }
        assert!(job(&format!("slurm:{}", "1".repeat(200))).to_call("x", NOW).is_err());
        assert!(refused(|job| job.outcome = None).contains("outcome"));
        assert!(refused(|job| job.state = State::Running).contains("state"));
        assert!(refused(|job| job.ended = None).contains("ended"));
        assert!(refused(|job| job.ended = at(1_800_000_700)).contains("not in the future"));
        assert!(refused(|job| job.ended = at(-5)).contains("1970"));
        assert!(refused(|job| job.started = at(1_700_000_071)).contains("started"));
        assert!(refused(|job| job.submitted = at(1_790_000_000)).contains("submitted"));
    }

    #[test]
    fn long_texts_and_lists_are_cut() {
        let mut given = job("slurm:17");
        given.job.name = "ä".repeat(2_000);
        given.job.hosts = vec!["h".repeat(300); 5_000];
        given.aliases = (0..100).map(|number| format!("slurm:{number}")).collect();
        given.runs = vec![JobRun::default(); 50];
        let StoredCall { call, aliases, .. } = given.to_call("x", NOW).unwrap();
        assert_eq!((call.name.len(), call.hosts.len(), call.hosts[0].len()), (1_000, 4_096, 200));
        assert_eq!((aliases.len(), call.details.unwrap().runs.len()), (64, 32));
    }
}
