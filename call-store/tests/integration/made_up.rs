//! Calls for the tests, and a store for them.
//!
//! Pure but for the folder.

use call_store::store::{CallLimit, CallStore};
use compact_str::{CompactString, format_compact};
use fastrand::Rng;
use log_filters::join::changes::{CallChanges, FormerId};
use std::future::Future;
use std::time::Duration;
use tempfile::TempDir;
use wire::call::job::{Fact, JobDetails, Line, Run, Statement};
use wire::call::usage::{Figure, MeasuredBy, Usage};
use wire::call::{Authority, Call, State, StoredCall};
use wire::event::{Id, Outcome};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// Start of the time in which the calls run.
pub(crate) const START_SECS: i64 = 1_795_737_600;

pub(crate) fn time(secs: i64) -> Time {
    Time::from_micros((START_SECS + secs) * 1_000_000)
}

/// Runs the future to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Room for all calls, for ever.
pub(crate) const ROOM: CallLimit = CallLimit { bytes: 1 << 30, age: Duration::MAX };

/// Time at which changes are stored: later than all of them.
pub(crate) fn now() -> Time {
    time(100 * 365 * 86_400)
}

/// A store with room for all.
pub(crate) fn store() -> (TempDir, CallStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = CallStore::new(&folder.path().join("calls.db"), ROOM);
    (folder, store)
}

/// A call that ended after 10 s.
pub(crate) fn left(number: u32, ended_secs: i64) -> StoredCall {
    let job = format_compact!("{number}");
    let call = Call {
        id: format_compact!("slurm:{number}"),
        job,
        name: "relax".into(),
        user: "ada".into(),
        from: CompactString::default(),
        state: State::Ended,
        submitted: Some(time(ended_secs - 12)),
        offered: None,
        selected: None,
        started: Some(time(ended_secs - 10)),
        ended: Some(time(ended_secs)),
        offers: Vec::new(),
        hosts: vec!["wn1.site.org".into()],
        outcome: Some(Outcome::Ok),
        code: "0".into(),
        signal: CompactString::default(),
        reason: CompactString::default(),
        tries: 1,
        events: 3,
        details: None,
    };
    StoredCall { first: time(ended_secs - 12), aliases: Vec::new(), call }
}

/// Calls of few users, names and hosts, some of them parts, some without times.
pub(crate) fn random_calls(rng: &mut Rng, count: u32) -> Vec<StoredCall> {
    let random = |number: u32| {
        let mut left = left(number, rng.i64(0..5_000));
        let call = &mut left.call;
        let product = ["slurm", "slurm/alpha", "condor"][rng.usize(0..3)];
        if rng.u8(0..4) == 0 {
            call.job = format_compact!("{}_{}", number / 10, number % 10);
            left.aliases = vec![format_compact!("{product}:{number}")];
        }
        call.id = format_compact!("{product}:{}", call.job);
        call.name = ["relax", "relax-a", "rel?x", "", "train[1]"][rng.usize(0..5)].into();
        call.user = ["ada", "bob", ""][rng.usize(0..3)].into();
        call.outcome = Some(*rng.choice(Outcome::ALL).unwrap());
        call.hosts = (0..rng.usize(0..3))
            .map(|_| ["wn1.site.org", "wn2", "wn1.far.org"][rng.usize(0..3)].into())
            .collect();
        call.details = random_details(rng).map(Box::new);
        if rng.u8(0..50) == 0 {
            (call.submitted, call.started, call.ended) = (None, None, None);
        }
        left
    };
    (0..count).map(random).collect()
}

/// Details of a job, of an array, or none.
fn random_details(rng: &mut Rng) -> Option<JobDetails> {
    let event = Id { sensor: SensorKey(rng.u64(..)), generation: Generation(3), offset: 70, number: 0 };
    let mut facts = Vec::new();
    for (fact, values) in [
        (Fact::Account, &["physics", "bio", ""]),
        (Fact::Queue, &["long", "short", ""]),
        (Fact::Cpus, &["1", "64", ""]),
    ] {
        let value = values[rng.usize(0..3)];
        if !value.is_empty() {
            facts.push(Statement { fact, value: value.into(), by: Authority::Accounting, line: 0 });
        }
    }
    let lines = vec![Line { event, time: time(5) }];
    let runs = vec![Run { hosts: vec!["wn9".into()], ..Run::default() }; rng.usize(0..2)];
    (rng.u8(0..4) > 0).then(|| JobDetails {
        facts,
        lines,
        runs,
        parts: u32::from(rng.u8(0..9) == 0),
        usage: [usage("wn1", 7), usage("wn9", 9)][..rng.usize(0..3)].to_vec(),
    })
}

/// Usage of a job on a host until this second.
pub(crate) fn usage(host: &str, until_secs: i64) -> Usage {
    let event =
        Id { sensor: SensorKey(1), generation: Generation(3), offset: until_secs.unsigned_abs(), number: 0 };
    Usage {
        host: host.into(),
        user: "ada".into(),
        uid: 1000,
        is_proved: false,
        by: MeasuredBy::Processes,
        started: time(1),
        until: time(until_secs),
        is_over: false,
        figures: vec![(Figure::CpuTime, until_secs.unsigned_abs())],
        failed: Vec::new(),
        line: Line { event, time: time(until_secs) },
    }
}

/// Changes that store these calls.
pub(crate) fn storing(left: Vec<StoredCall>) -> CallChanges {
    CallChanges { left, ..CallChanges::default() }
}

/// Changes that forget this id of a call.
pub(crate) fn forgetting(left: &StoredCall) -> CallChanges {
    let former = FormerId { id: left.call.id.clone(), first: left.first };
    CallChanges { former: vec![former], ..CallChanges::default() }
}
