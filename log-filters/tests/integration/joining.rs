//! Joining does not depend on which log is read first, as far as the logs define an order, and duplicates
//! change nothing.
//!
//! Calls of unique names are compared in every field except those listed at [`same`]. Not here: whether the
//! calls are right (the tests of accounts).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::{Read, registry};
use log_filters::found::Found;
use log_filters::join::Joiner;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use wire::call::{Authority, Call, Keys, Naming};
use wire::event::{Content, Id, Kind, Outcome, Value};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// The logs of each cluster with unique call names.
fn clusters() -> &'static [Vec<Read>] {
    static CLUSTERS: LazyLock<Vec<Vec<Read>>> = LazyLock::new(|| {
        let folders =
            ["slurm/22.05.8-alpha", "slurm/15.08.7-linux", "torque/2.4.16-delta", "gridengine/8.1.9-alpha"];
        folders.iter().map(|folder| logs(&collection::folder().join(folder))).collect()
    });
    &CLUSTERS
}

fn logs(folder: &Path) -> Vec<Read> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let logs: Vec<Read> = files.iter().filter_map(|path| collection::read(registry(), path)).collect();
    let unique = |found: &&Found| found.keys.as_ref().is_some_and(|keys| keys.naming != Naming::Shared);
    assert!(logs.iter().flat_map(|log| &log.found).filter(unique).count() > 100, "{}", folder.display());
    logs
}

fn id(file: usize, found: &Found) -> Id {
    let generation = Generation(u32::try_from(file + 1).unwrap());
    Id { sensor: SensorKey(1), generation, offset: found.offset, number: found.number }
}

/// Join the events of several files, each in its own order; `choose` selects the next file.
fn join(logs: &[Read], mut choose: impl FnMut(usize) -> usize, times: usize) -> Vec<Call> {
    let mut joiner = Joiner::new(1_000_000);
    let mut next = vec![0; logs.len()];
    loop {
        let open: Vec<usize> = (0..logs.len()).filter(|&log| next[log] < logs[log].found.len()).collect();
        if open.is_empty() {
            return joiner.calls().collect();
        }
        let file = open[choose(open.len())];
        let found = &logs[file].found[next[file]];
        next[file] += 1;
        for _ in 0..times {
            joiner.join(found, id(file, found));
        }
    }
}

/// Fields that must be equal for any interleaving of the files. Not compared, because they depend on which
/// log comes first where two logs of one authority differ, or on how the call was put together: the number in
/// the `id`, the order of `hosts` and `offers`, and fractions of a second (accounting prints none; of several
/// poorer reports of that second the first one's is used).
fn same(call: &Call) -> Call {
    let mut call = call.clone();
    call.id = call.id.split('#').next().unwrap_or_default().into();
    call.hosts.sort();
    call.offers.sort();
    let second = |time: Option<Time>| {
        time.map(|time| Time::from_micros(time.micros().div_euclid(1_000_000) * 1_000_000))
    };
    (call.submitted, call.started, call.ended) =
        (second(call.submitted), second(call.started), second(call.ended));
    call
}

fn by_job(calls: &[Call]) -> BTreeMap<String, Vec<Call>> {
    let mut all: BTreeMap<String, Vec<Call>> = BTreeMap::new();
    for call in calls {
        all.entry(call.job.to_string()).or_default().push(same(call));
    }
    all.values_mut().for_each(|calls| calls.sort_by_key(|call| (call.submitted, call.ended)));
    all
}

fn check(expected: &[Call], found: &[Call]) {
    let (expected, found) = (by_job(expected), by_job(found));
    for (job, calls) in &expected {
        assert_eq!(found.get(job), Some(calls), "job {job}");
    }
    assert_eq!(expected.len(), found.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 600, ..Default::default() })]

    #[test]
    fn files_may_be_read_in_any_interleaving(cluster in 0usize..4, choices in prop::collection::vec(any::<u32>(), 64), run in 1usize..200) {
        let logs = &clusters()[cluster];
        let expected = join(logs, |_| 0, 1);
        let mut step = 0;
        // Runs of one file, as a sensor reads, with the chosen length.
        let found = join(logs, |open| { step += 1; choices[(step / run) % choices.len()] as usize % open }, 1);
        check(&expected, &found);
    }
}

#[test]
fn an_event_reported_twice_changes_only_the_count_of_events() {
    for logs in clusters() {
        let once = join(logs, |_| 0, 1);
        let mut twice = join(logs, |_| 0, 2);
        for call in &mut twice {
            assert_eq!(call.events % 2, 0);
            call.events /= 2;
        }
        assert_eq!(once, twice);
    }
}

#[test]
fn no_call_goes_backwards() {
    let mut calls = 0;
    let folders = collection::clusters();
    assert!(folders.len() >= 9, "{folders:?}");
    for folder in folders {
        let logs: Vec<Read> =
            collection::files(&folder).iter().filter_map(|path| collection::read(registry(), path)).collect();
        for last in [true, false] {
            for call in join(&logs, |open| if last { open - 1 } else { 0 }, 1) {
                let times = [call.submitted, call.offered, call.selected, call.started, call.ended];
                let known: Vec<Time> = times.into_iter().flatten().collect();
                assert!(known.is_sorted(), "{}: {call:#?}", folder.display());
                calls += 1;
            }
        }
    }
    assert!(calls > 1_000, "{calls}");
}

fn event(scope: &str, name: &str, kind: Kind, micros: i64, naming: Naming) -> Found {
    let mut content = Content::new(kind, Time::from_micros(micros));
    content.job = name.into();
    content.attributes.push(("host".into(), Value::Text("wn01.example.org".into())));
    content.user = "aliu".into();
    content.outcome = (kind == Kind::JobEnd).then_some(Outcome::Ok);
    let keys = Keys {
        scope: scope.into(),
        names: vec![name.into()],
        parent: None,
        naming,
        authority: Authority::Scheduler,
    };
    Found { offset: micros.unsigned_abs(), number: 0, content, keys: Some(keys) }
}

/// CPU time of this thread: other programs do not count.
fn cpu_secs() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds to join `calls` calls of one name, submitted together and ended together.
fn shared_secs(calls: i64, is_ended: bool) -> f64 {
    let kinds: &[Kind] = if is_ended {
        &[Kind::JobSubmit, Kind::JobSelect, Kind::JobEnd]
    } else {
        &[Kind::JobSubmit, Kind::JobSelect]
    };
    let mut joiner = Joiner::new(1_000_000);
    let start = cpu_secs();
    for (turn, kind) in (0i64..).zip(kinds) {
        for number in 0..calls {
            let found =
                event("netsolve", "dgesv()", *kind, turn * 60_000_000 + number * 5_000, Naming::Shared);
            joiner.join(&found, id(0, &found));
        }
    }
    assert_eq!(joiner.len() as i64, calls);
    cpu_secs() - start
}

#[test]
fn calls_of_one_name_cost_no_more_the_more_there_are() {
    for is_ended in [true, false] {
        let (few, many) = (shared_secs(1_000, is_ended), shared_secs(16_000, is_ended));
        // Sixteen times the calls; checking each open one would cost 256 times.
        assert!(many < few.max(0.002) * 80.0, "{few} s for 1,000 calls, {many} s for 16,000");
    }
}

#[test]
fn a_number_used_again_and_again_costs_no_more() {
    let secs = |lives: i64| {
        let mut joiner = Joiner::new(1_000_000);
        let start = cpu_secs();
        for life in 0..lives {
            for (turn, kind) in (0i64..).zip([Kind::JobSubmit, Kind::JobStart, Kind::JobEnd]) {
                let found = event("slurm", "7", kind, (life * 4 + turn) * 100_000_000, Naming::Unique);
                joiner.join(&found, id(0, &found));
            }
        }
        assert_eq!(joiner.len() as i64, lives);
        cpu_secs() - start
    };
    let (few, many) = (secs(500), secs(8_000));
    assert!(many < few.max(0.002) * 80.0, "{few} s for 500 lives, {many} s for 8,000");
}

#[test]
fn old_calls_make_room_and_ids_are_not_given_twice() {
    let mut joiner = Joiner::new(100);
    let mut ids = std::collections::BTreeSet::new();
    for life in 0..1_000 {
        for (turn, kind) in (0i64..).zip([Kind::JobSubmit, Kind::JobStart, Kind::JobEnd]) {
            let found = event("slurm", "7", kind, (life * 4 + turn) * 100_000_000, Naming::Unique);
            ids.insert(joiner.join(&found, id(0, &found)));
        }
    }
    assert_eq!((joiner.len(), joiner.dropped(), ids.len()), (100, 900, 1_000));
}

/// Events of an array of three tasks: submitted at second 0, tasks start and end one after the other.
fn array() -> Vec<Found> {
    let of = |job: &str, parent: Option<&str>, kind: Kind, secs: i64| {
        let mut found = event("ge", job, kind, secs * 1_000_000, Naming::Part);
        found.keys.as_mut().unwrap().parent = parent.map(Into::into);
        found
    };
    let mut all = vec![of("6", None, Kind::JobSubmit, 0)];
    for (task, begin) in [("6.1", 10), ("6.2", 20), ("6.3", 25)] {
        all.push(of(task, Some("6"), Kind::JobStart, begin));
        all.push(of(task, Some("6"), Kind::JobEnd, begin + 10));
    }
    all.sort_by_key(|found| found.content.time);
    all[5].content.outcome = Some(Outcome::Failed);
    all
}

#[test]
fn an_array_stands_as_its_tasks_do() {
    use wire::call::State::{Ended, Running, Waiting};
    let mut joiner = Joiner::new(100);
    // 6.1 ends when 6.2 starts; 6.3 starts before 6.2 ends.
    let states = [Waiting, Running, Ended, Running, Running, Running, Ended];
    for (found, state) in array().iter().zip(states) {
        joiner.join(found, id(0, found));
        let whole = joiner.get("ge:6").unwrap();
        assert_eq!(whole.state, state, "{found:?}: {whole:?}");
        assert_eq!(whole.outcome.is_some(), state == Ended);
    }
    let whole = joiner.get("ge:6").unwrap();
    let secs = |time: Option<Time>| time.map(|time| time.micros() / 1_000_000);
    assert_eq!(
        (secs(whole.started), secs(whole.ended), whole.outcome),
        (Some(10), Some(35), Some(Outcome::Failed))
    );
    // Also after a restart, and when there is no more room for its tasks.
    let mut again: Joiner = postcard::from_bytes(&postcard::to_stdvec(&joiner).unwrap()).unwrap();
    assert_eq!(again.get("ge:6"), Some(whole.clone()));
    let mut small = Joiner::new(3);
    for found in &array() {
        small.join(found, id(0, found));
    }
    assert_eq!((small.len(), small.dropped(), small.get("ge:6").unwrap().state), (3, 1, Ended));
    // The same number is submitted again.
    let mut next = array().remove(0);
    next.content.time = Time::from_micros(40_000_000);
    for joiner in [&mut joiner, &mut again] {
        joiner.join(&next, id(0, &next));
        assert_eq!(
            (joiner.get("ge:6").unwrap().state, joiner.get("ge:6#2").unwrap().state),
            (Ended, Waiting)
        );
    }
}

/// Events of a job that was requeued twice: by an operator, and because its host was lost.
fn requeued() -> Vec<Found> {
    let of = |kind: Kind, secs: i64, host: &str, attributes: &[(&str, &str)]| {
        let mut found = event("slurm", "7", kind, secs * 1_000_000, Naming::Unique);
        let text = |text: &str| wire::event::Value::Text(text.into());
        let own = attributes.iter().map(|(name, value)| ((*name).into(), text(value)));
        found.content.attributes = own.collect();
        if !host.is_empty() {
            found.content.attributes.push(("host".into(), text(host)));
        }
        found
    };
    let mut lost = of(Kind::JobEnd, 50, "wn2", &[]);
    lost.content.outcome = Some(Outcome::NodeFail);
    let mut end = of(Kind::JobEnd, 80, "wn3", &[("cpus", "4")]);
    end.content.outcome = Some(Outcome::Ok);
    vec![
        of(Kind::JobSubmit, 0, "", &[("queue", "long"), ("account", "physics")]),
        of(Kind::JobStart, 10, "wn1", &[("cpus", "2")]),
        of(Kind::JobRequeue, 20, "", &[]),
        of(Kind::JobStart, 30, "wn2", &[("cpus", "4")]),
        lost,
        of(Kind::JobRequeue, 51, "", &[]),
        of(Kind::JobStart, 60, "wn3", &[]),
        end,
    ]
}

#[test]
fn a_requeued_job_has_its_runs_and_facts_also_after_a_restart() {
    use wire::call::job::Fact;
    let mut joiner = Joiner::new(9);
    for found in &requeued() {
        joiner.join(found, id(0, found));
    }
    let call = joiner.get("slurm:7").unwrap();
    let again: Joiner = postcard::from_bytes(&postcard::to_stdvec(&joiner).unwrap()).unwrap();
    assert_eq!(again.get("slurm:7"), Some(call.clone()));
    let secs = |time: Option<Time>| time.map(|time| time.micros() / 1_000_000);
    assert_eq!((secs(call.started), call.tries, call.outcome), (Some(60), 3, Some(Outcome::Ok)));
    let details = call.details.as_deref().unwrap();
    let runs: Vec<_> = details
        .runs
        .iter()
        .map(|run| (secs(run.started), secs(run.ended), run.outcome, run.hosts[0].as_str()))
        .collect();
    assert_eq!(
        runs,
        [(Some(10), Some(20), None, "wn1"), (Some(30), Some(50), Some(Outcome::NodeFail), "wn2")]
    );
    let facts = [Fact::Queue, Fact::Account, Fact::Cpus, Fact::Memory].map(|fact| details.text(fact));
    assert_eq!(facts, [Some("long"), Some("physics"), Some("4"), None]);
    assert_eq!(details.line(Fact::Cpus).map(|line| line.time.micros() / 1_000_000), Some(80));
}

#[test]
fn a_transfer_is_no_job_and_an_array_is_its_tasks() {
    let mut joiner = Joiner::new(9);
    let transfer = event("gridftp", "1", Kind::TransferStart, 1, Naming::Unique);
    joiner.join(&transfer, id(0, &transfer));
    assert!(!joiner.get("gridftp:1").unwrap().is_job());
    for found in &array() {
        joiner.join(found, id(0, found));
    }
    let is_job = |id: &str| joiner.get(id).unwrap().is_job();
    assert!(is_job("ge:6.1") && is_job("ge:6.3") && !is_job("ge:6"));
}
