//! Tests of the findings about one job.

use super::*;
use crate::findings::candidates::Candidates;
use crate::findings::config::RawConfig;
use compact_str::CompactString;
use wire::api::findings::FindingKind;
use wire::call::failed_process::FailedProcess;
use wire::call::job::{JobDetails, Line, Run, Statement};
use wire::call::usage::{Figure, MeasuredBy};
use wire::call::{Authority, State};
use wire::event::{Id, Outcome};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

fn at(secs: i64) -> Time {
    Time::from_micros(secs * 1_000_000)
}

fn line(offset: u64) -> Line {
    let event = Id { sensor: SensorKey(1), generation: Generation(1), offset, number: 0 };
    Line { event, time: at(0) }
}

/// A job of 8 CPUs and 8 GiB that ran from second 1000 to second 2000 and used `cpu_secs` on each host.
struct Made {
    call: Call,
}

impl Made {
    fn new(outcome: Outcome) -> Made {
        let text = r#"{"id":"slurm:7","job":"7","name":"relax","user":"ann","from":"","state":"ended","submitted":900000000,
            "offered":null,"selected":null,"started":1000000000,"ended":2000000000,"offers":[],"hosts":["wn01"],
            "outcome":null,"code":"","signal":"","reason":"","tries":1,"events":2}"#;
        let mut call: Call = serde_json::from_str(text).expect("a call");
        call.outcome = Some(outcome);
        let made = Made { call: Call { details: Some(Box::default()), ..call } };
        made.fact(Fact::Cpus, "8").fact(Fact::Memory, "8589934592").fact(Fact::TimeLimit, "3600")
    }

    fn details(&mut self) -> &mut JobDetails {
        self.call.details.as_mut().expect("a job")
    }

    fn fact(mut self, fact: Fact, value: &str) -> Made {
        let details = self.details();
        details.facts.retain(|known| known.fact != fact);
        let line_at = u8::try_from(details.lines.len()).expect("few");
        details.lines.push(line(100 + u64::from(line_at)));
        let by = Authority::Accounting;
        details.facts.push(Statement { fact, value: value.into(), by, line: line_at });
        self
    }

    fn ended(mut self, code: &str, reason: &str) -> Made {
        (self.call.code, self.call.reason) = (code.into(), reason.into());
        self
    }

    /// Usage on a host of these hundreds of seconds of CPU time and MiB.
    fn used(mut self, host: &str, cpu_secs: u64, mib: u64) -> Made {
        let offset = 10 + self.details().usage.len() as u64;
        let usage = Usage {
            host: host.into(),
            user: "ann".into(),
            uid: 1000,
            is_proved: true,
            by: MeasuredBy::ControlGroup,
            started: at(1000),
            until: at(2000),
            is_over: true,
            figures: vec![
                (Figure::CpuTime, cpu_secs * 1_000_000),
                (Figure::SystemTime, cpu_secs * 10_000),
                (Figure::PeakMemory, mib << 20),
                (Figure::Processes, 9),
            ],
            failed: Vec::new(),
            line: line(offset),
        };
        self.details().usage.push(usage);
        if !self.call.hosts.iter().any(|known| known == host) {
            self.call.hosts.push(CompactString::from(host));
        }
        self
    }

    fn figure(mut self, figure: Figure, amount: u64) -> Made {
        let last = self.details().usage.last_mut().expect("a usage");
        last.figures.retain(|(known, _)| *known != figure);
        last.figures.push((figure, amount));
        self
    }

    /// A process that failed, of another parent than all others; the last is given last.
    fn failed(self, name: &str, code: u32, secs: i64) -> Made {
        self.child(name, (42, 7), code, secs)
    }

    /// A process with its number and that of its parent.
    fn child(mut self, name: &str, (pid, parent): (u32, u32), code: u32, secs: i64) -> Made {
        let process = FailedProcess { name: name.into(), pid, parent, code, ended: at(secs) };
        self.details().usage.last_mut().expect("a usage").failed.insert(0, process);
        self
    }

    fn findings(&self) -> Vec<Finding> {
        let thresholds = Thresholds::new(&RawConfig::default()).expect("the defaults are valid");
        let job = Job::from(&self.call);
        let findings = of(&self.call, &job, &thresholds);
        for finding in &findings {
            let kind = FindingKind::from_word(&finding.kind).expect("a kind");
            let Some(candidates) = Candidates::of(kind, &thresholds) else { continue };
            assert!(
                candidates.outcome.is_none_or(|outcome| self.call.outcome == Some(outcome)),
                "{finding:?}"
            );
            let unmet = candidates.conditions.iter().find(|condition| !condition.fits(&job, at(0)));
            assert_eq!(unmet, None, "{finding:?}");
        }
        findings
    }

    fn kinds(&self) -> Vec<FindingKind> {
        self.findings().iter().filter_map(|finding| FindingKind::from_word(&finding.kind)).collect()
    }
}

fn ok() -> Made {
    Made::new(Outcome::Ok)
}

fn failed() -> Made {
    Made::new(Outcome::Failed)
}

const ONE: u32 = 1 << 8;

#[test]
fn nothing_is_said_of_jobs_that_are_well_or_not_known_well() {
    let healthy = [
        ok(),
        ok().used("wn01", 7800, 4000),
        ok().used("wn01", 3000, 4000),
        // One of two hosts was not measured.
        ok().fact(Fact::Nodes, "2").used("wn01", 10, 10),
        // Two hardware threads of one core.
        ok().fact(Fact::Cpus, "2").used("wn01", 1000, 4000),
        // A process that is missing may have used the rest.
        ok().used("wn01", 1000, 4000).figure(Figure::Missed, 1),
        ok().used("wn01", 7800, 4000).failed("grep", ONE, 1500),
        ok().used("wn01", 4100, 3000).used("wn02", 3900, 3000),
        // Little memory of a small allocation.
        ok().fact(Fact::Memory, "1073741824").used("wn01", 7800, 20),
    ];
    for made in healthy {
        assert_eq!(made.findings(), [], "{:?}", made.call);
    }
    let mut short = ok().used("wn01", 0, 4000);
    short.call.ended = Some(at(1030));
    assert_eq!(short.findings(), [], "it ran for half a minute");
    let mut waiting = failed();
    (waiting.call.state, waiting.call.outcome, waiting.call.started) = (State::Waiting, None, None);
    assert_eq!(waiting.findings(), []);
}

#[test]
fn a_process_is_the_cause_only_if_the_job_ended_as_it_did() {
    let base = || failed().used("wn01", 7800, 4000).failed("grep", 2 << 8, 1500);
    let found = base().failed("python3", ONE, 1999).ended("1:0", "NonZeroExitCode").findings();
    assert_eq!(explanation(&found), "Its process python3 (42) on wn01 ended with exit status 1.");
    assert_eq!((found.len(), found[0].hosts[0].as_str(), found[0].events.len()), (1, "wn01", 1));
    let found = base().failed("solver", 11, 1999).ended("139", "").findings();
    assert!(
        explanation(&found).starts_with("Its process solver (42) on wn01 was killed by signal 11 (SIGSEGV).")
    );
    assert_eq!(base().ended("3:0", "").kinds(), [FindingKind::ExitCode], "no process ended so");
    assert_eq!(explanation(&base().ended("3:0", "").findings()), "It ended with exit status 3.");
    let unknown = base().failed("python3", ONE, 1998);
    assert!(explanation(&unknown.findings()).contains("python3"), "just before the end");
    assert_eq!(base().kinds(), [], "nothing failed just before the end");
    // On the host where it failed first.
    let two = base().failed("solver", ONE, 1990).used("wn02", 7800, 0).failed("solver", ONE, 1980);
    assert!(explanation(&two.ended("1:0", "").findings()).contains("on wn02"));
}

#[test]
fn what_is_not_certain_of_the_process_is_said() {
    let base = || failed().used("wn01", 7800, 4000);
    let why = |made: Made, code: &str| explanation(&made.ended(code, "").findings());
    let script = |made: Made, code: u32| made.child("slurm_script", (10, 1), code, 1999);
    let found = why(script(base().child("python3", (11, 10), ONE, 1999), ONE), "1:0");
    assert_eq!(found, "Its process python3 (11) on wn01 ended with exit status 1, and the job with it.");
    let found = why(script(base().child("grep", (11, 10), ONE, 1995), ONE), "1:0");
    assert!(
        found.ends_with("the batch script ended so 4.0s later: it may have chosen that itself."),
        "{found}"
    );
    let step = base().child("solver", (21, 20), ONE, 1995).child("srun", (11, 10), ONE, 1999);
    let found = why(script(step, ONE), "1:0");
    assert_eq!(found, "Its process solver (21) on wn01 ended with exit status 1, and the job with it.");
    let both = base().child("python3", (11, 10), ONE, 1998).child("grep", (12, 10), ONE, 1999);
    let found = why(script(both, ONE), "1:0");
    assert!(
        found.starts_with("Its processes python3 (11) and grep (12) on wn01 ended with exit status 1, "),
        "{found}"
    );
    let below = base().child("burn", (12, 11), 4 << 8, 1998).child("xargs", (11, 10), 123 << 8, 1999);
    let found = why(script(below, 123 << 8), "123:0");
    assert!(found.ends_with("and the job with it. Before, burn (12) ended with exit status 4."), "{found}");
    let found = why(script(base().child("slurm_script", (11, 10), 127 << 8, 1999), 127 << 8), "127:0");
    assert_eq!(found, "Its batch script on wn01 ended with exit status 127: a command was not found.");
}

#[test]
fn the_end_that_the_middleware_states_is_the_cause() {
    let timeout = Made::new(Outcome::Timeout).used("wn01", 7800, 4000).failed("solver", 15, 2000);
    assert_eq!(explanation(&timeout.findings()), "It ran for 16m, and its time limit was 60m.");
    let mut cancelled = Made::new(Outcome::Cancelled).fact(Fact::State, "CANCELLED by 1001");
    let found = cancelled.findings();
    assert_eq!(explanation(&found), "It was cancelled after 16m.");
    for (by, expected) in [
        ("0", "It was cancelled by root after 16m."),
        ("1003", "It was cancelled by the user with number 1003 after 16m."),
        ("eve", "It was cancelled by eve after 16m."),
        ("ann", "It was cancelled by its user after 16m."),
        ("1000", "It was cancelled by its user after 16m."),
    ] {
        let made = Made::new(Outcome::Cancelled).fact(Fact::Uid, "1000").fact(Fact::CancelledBy, by);
        assert_eq!(explanation(&made.findings()), expected);
        assert_eq!(made.findings()[0].events.len(), 1);
        let other = Call { outcome: Some(Outcome::Timeout), ..made.call };
        assert_eq!(Job::from(&other).cancelled_by, "", "that was too late");
    }
    assert_eq!(found[0].events.len(), 1, "the line of its state");
    (cancelled.call.started, cancelled.call.reason) = (None, "by uid 1001".into());
    assert_eq!(
        explanation(&cancelled.findings()),
        "It was cancelled before it started; its last reason: by uid 1001."
    );
    let host = Made::new(Outcome::NodeFail).ended("", "NodeDown");
    assert_eq!(explanation(&host.findings()), "Its host wn01 failed: NodeDown.");
    let launch = failed().ended("0:0", "JobLaunchFailure");
    assert_eq!(explanation(&launch.findings()), "The middleware states: JobLaunchFailure.");
    assert_eq!(failed().ended("0:53", "").kinds(), [FindingKind::Signal]);
}

#[test]
fn memory_that_is_used_up_is_the_cause_before_the_process_that_was_killed() {
    let killed = failed().used("wn01", 7800, 8190).figure(Figure::MemoryKills, 1);
    let killed = killed.failed("python3", 9, 1999).ended("137", "");
    let found = killed.findings();
    assert_eq!(
        explanation(&found),
        "The kernel killed a process of it on wn01, as its memory was used up: at most 8.0 GiB of 8.0 GiB."
    );
    assert_eq!(
        killed.kinds(),
        [FindingKind::OutOfMemory, FindingKind::FailedProcess, FindingKind::MemoryNearLimit]
    );
    // The count of the kernel is gone, and the middleware says nothing of it.
    let gone = failed().used("wn01", 7800, 8190).failed("grep", ONE, 1996).failed("python3", 9, 1998);
    let gone = gone.child("srun", (43, 8), ONE, 1999).ended("1:0", "");
    assert_eq!(
        explanation(&gone.findings()),
        "A process of it on wn01 was killed while its memory was used up: at most 8.0 GiB of 8.0 GiB."
    );
    assert_eq!(
        gone.findings()[1].text,
        "Its process python3 (42) on wn01 was killed by signal 9 (SIGKILL), and the job with it."
    );
    let other = failed().used("wn01", 7800, 8000).failed("python3", 9, 1999).ended("137", "");
    assert_eq!(
        other.kinds(),
        [FindingKind::FailedProcess, FindingKind::MemoryNearLimit],
        "there was memory left"
    );
    let stated = failed().fact(Fact::State, "OUT_OF_MEMORY").ended("0:125", "");
    assert_eq!(stated.kinds(), [FindingKind::OutOfMemory]);
    assert_eq!(failed().ended("", "TERM_MEMLIMIT: job killed").kinds(), [FindingKind::OutOfMemory]);
    assert_eq!(failed().ended("", "no room in the bloom filter").kinds(), [FindingKind::Stated]);
}

#[test]
fn what_was_not_used_is_found_with_its_threshold() {
    let check = |made: Made, kinds: &[FindingKind]| assert_eq!(made.kinds(), kinds, "{:?}", made.findings());
    check(ok().used("wn01", 10, 4000), &[FindingKind::Idle]);
    check(ok().used("wn01", 990, 4000), &[FindingKind::OneCpu]);
    check(ok().used("wn01", 2000, 4000), &[FindingKind::LowCpu]);
    check(ok().used("wn01", 7800, 8000), &[FindingKind::MemoryNearLimit]);
    check(ok().used("wn01", 7800, 100), &[FindingKind::MemoryUnused]);
    check(ok().used("wn01", 5000, 2000).used("wn02", 500, 2000), &[FindingKind::Imbalance]);
    check(
        ok().used("wn01", 4000, 4000).figure(Figure::ThrottledTime, 200_000_000),
        &[FindingKind::Throttled],
    );
    check(
        ok().used("wn01", 7000, 4000).figure(Figure::SystemTime, 4_000_000_000),
        &[FindingKind::SystemTime],
    );
    let found = ok().used("wn01", 990, 4000).findings();
    assert_eq!(found[0].text, "It used one of its 8 CPUs: 16m of CPU time (12 %).");
    assert_eq!((found[0].value.is_some(), found[0].threshold, found[0].events.len()), (true, Some(0.3), 1));
    let by_sum = |processes: u64| {
        let mut made = ok().used("wn01", 7800, 8000).figure(Figure::Processes, processes);
        made.details().usage[0].by = MeasuredBy::Processes;
        made.kinds()
    };
    assert_eq!(
        (by_sum(9), by_sum(2)),
        (vec![], vec![FindingKind::MemoryNearLimit]),
        "shared memory counts twice"
    );
    let run = Run {
        started: Some(at(10)),
        ended: Some(at(60)),
        outcome: Some(Outcome::NodeFail),
        ..Run::default()
    };
    let mut again = ok();
    again.details().runs.push(run);
    assert_eq!(again.kinds(), [FindingKind::Requeued]);
    assert_eq!(
        again.findings()[0].text,
        "It was started 2 times; the run before the last ended as node_fail."
    );
}

#[test]
fn a_job_is_compared_with_others_of_its_queue_and_name() {
    let thresholds = Thresholds::new(&RawConfig::default()).expect("the defaults are valid");
    let other = |number: i64, waited: i64, outcome: Outcome| {
        let mut call = Made::new(outcome).call;
        (call.id, call.submitted) = (format!("slurm:{number}").into(), Some(at(1000 - waited)));
        (call.ended, call.started) = (Some(at(1900 - number)), Some(at(1000)));
        call
    };
    let mut waited = failed().call;
    waited.submitted = Some(at(1000 - 7200));
    let others: Vec<Call> = (10..20).map(|number| other(number, 600, Outcome::Ok)).collect();
    let found = beside::long_wait(&waited, "long", &others, &thresholds).expect("it waited for long");
    assert_eq!(found.text, "It waited for 2h; the median of the last 10 jobs of queue long is 10m.");
    assert_eq!(beside::long_wait(&waited, "long", &others[..7], &thresholds), None, "too few");
    assert_eq!(beside::long_wait(&failed().call, "long", &others, &thresholds), None);

    let before = [
        other(8, 0, Outcome::Failed),
        other(9, 0, Outcome::Timeout),
        other(10, 0, Outcome::Ok),
        other(11, 0, Outcome::Failed),
    ];
    let found = beside::fails_again(&failed().call, &before).expect("they failed");
    assert_eq!(found.text, "The 2 jobs of this name before it failed too: slurm:8, slurm:9.");
    assert_eq!(beside::fails_again(&failed().call, &before[2..]), None, "the one before did not");
    assert_eq!(beside::fails_again(&ok().call, &before), None);
    let mut later = before[0].clone();
    later.ended = Some(at(5000));
    assert_eq!(beside::fails_again(&failed().call, &[later]), None, "it ended later");
}
