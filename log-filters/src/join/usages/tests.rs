//! Tests of the usages of calls.

use super::super::*;
use super::*;
use wire::call::Authority;
use wire::event::{Content, Outcome, Value};
use wire::time::Time;

fn secs(secs: i64) -> Time {
    Time::from_micros(secs * 1_000_000)
}

fn id(sensor: u64, offset: u64) -> Id {
    Id { sensor: SensorKey(sensor), generation: Generation(1), offset, number: 0 }
}

/// An event of a job of user ann on wn01.
fn job(joiner: &mut Joiner, scope: &str, name: &str, kind: Kind, at: i64) {
    let keys = Keys {
        scope: scope.into(),
        names: vec![name.into()],
        parent: None,
        naming: Naming::Unique,
        authority: Authority::Scheduler,
    };
    let mut content = Content::new(kind, secs(at));
    (content.user, content.to) = ("ann".into(), "wn01.site".into());
    content.attributes.push(("host".into(), Value::Text("wn01.site".into())));
    content.outcome = (kind == Kind::JobEnd).then_some(Outcome::Ok);
    joiner.join(&Found { offset: 0, number: 0, content, keys: Some(keys) }, id(9, at.unsigned_abs()));
}

struct Claim {
    jobs: &'static str,
    user: (&'static str, u32),
    host: &'static str,
    evidence: &'static str,
    times: (i64, i64),
}

const OWN: Claim =
    Claim { jobs: "slurm:17", user: ("ann", 1000), host: "wn01", evidence: "environment", times: (10, 20) };

fn usage(joiner: &mut Joiner, claim: &Claim, cpu: u64) {
    let mut content = Content::new(Kind::Workload, secs(claim.times.1));
    (content.user, content.to) = (claim.user.0.into(), claim.host.into());
    content.started = Some(secs(claim.times.0));
    let (uid, figures) = (claim.user.1.to_string(), format!("cpu_time={cpu}"));
    let attributes = [
        ("usage_of", claim.jobs),
        ("uid", &uid),
        ("evidence", claim.evidence),
        ("measured_by", "processes"),
        ("state", "over"),
        ("figures", &figures),
    ];
    content.attributes =
        attributes.iter().map(|(name, text)| ((*name).into(), Value::Text((*text).into()))).collect();
    joiner.join(&Found { offset: 0, number: 0, content, keys: None }, id(1, cpu));
}

fn cpu_times(joiner: &Joiner, call: &str) -> Vec<u64> {
    let call = joiner.get(call).expect("it is known");
    let usage = call.details.map(|details| details.usage).unwrap_or_default();
    usage.iter().filter_map(|usage| usage.figure(wire::call::usage::Figure::CpuTime)).collect()
}

#[test]
fn a_usage_is_found_by_its_call_whichever_is_read_first() {
    for is_first in [true, false] {
        let mut joiner = Joiner::new(9);
        if is_first {
            usage(&mut joiner, &OWN, 5);
        }
        job(&mut joiner, "slurm/alpha", "17", Kind::JobStart, 10);
        job(&mut joiner, "slurm/alpha", "17", Kind::JobEnd, 20);
        if !is_first {
            usage(&mut joiner, &OWN, 5);
        }
        assert_eq!(cpu_times(&joiner, "slurm/alpha:17"), [5]);
        assert_eq!(joiner.len(), 1, "a usage opens no call");
        let bytes = postcard::to_stdvec(&joiner).expect("plain");
        let again: Joiner = postcard::from_bytes(&bytes).expect("as written");
        assert_eq!(cpu_times(&again, "slurm/alpha:17"), [5], "after a restart");
    }
}

#[test]
fn what_another_user_host_time_or_product_claims_is_not_the_jobs() {
    let claims = [
        Claim { user: ("eve", 1001), ..OWN },
        Claim { host: "wn02", ..OWN },
        Claim { times: (200, 300), ..OWN },
        Claim { jobs: "torque:17", ..OWN },
        Claim { jobs: "slurm:171", ..OWN },
    ];
    let mut joiner = Joiner::new(9);
    job(&mut joiner, "slurm", "17", Kind::JobStart, 10);
    job(&mut joiner, "slurm", "17", Kind::JobEnd, 20);
    for (number, claim) in (1..).zip(&claims) {
        usage(&mut joiner, claim, number);
        assert_eq!(cpu_times(&joiner, "slurm:17"), [0; 0], "claim {number}");
    }
    usage(&mut joiner, &Claim { user: ("root", 0), evidence: "cgroup", ..OWN }, 7);
    assert_eq!(cpu_times(&joiner, "slurm:17"), [7], "the middleware proves it");
}

#[test]
fn a_job_without_a_user_has_the_one_that_its_control_group_proves_and_not_one_that_claims_it() {
    let mut joiner = Joiner::new(9);
    let keys = Keys {
        scope: "slurm".into(),
        names: vec!["17".into()],
        parent: None,
        naming: Naming::Unique,
        authority: Authority::Scheduler,
    };
    let content = Content::new(Kind::JobStart, secs(10));
    joiner.join(&Found { offset: 0, number: 0, content, keys: Some(keys) }, id(9, 10));
    let user = |joiner: &Joiner| joiner.get("slurm:17").expect("it is known").user;
    usage(&mut joiner, &Claim { user: ("eve", 1001), ..OWN }, 1);
    assert_eq!((user(&joiner).as_str(), cpu_times(&joiner, "slurm:17")), ("", vec![1]));
    usage(&mut joiner, &Claim { user: ("bob", 1002), ..OWN }, 3);
    assert_eq!(cpu_times(&joiner, "slurm:17"), [0; 0], "two users claim it");
    usage(&mut joiner, &Claim { evidence: "cgroup", ..OWN }, 2);
    assert_eq!(user(&joiner), "ann");
    assert_eq!(cpu_times(&joiner, "slurm:17"), [2], "what another user claims is left out by then");
}

#[test]
fn a_usage_after_the_end_is_a_change_of_the_call_and_an_older_line_is_none() {
    let mut joiner = Joiner::new(9);
    joiner.collect_changes();
    job(&mut joiner, "slurm", "17", Kind::JobStart, 10);
    job(&mut joiner, "slurm", "17", Kind::JobEnd, 20);
    joiner.take_changes(9);
    usage(&mut joiner, &OWN, 5);
    let taken = joiner.take_changes(9).changes.left;
    let [stored] = taken.as_slice() else { panic!("one call has changed: {taken:?}") };
    assert_eq!(stored.call.details.as_ref().map(|details| details.usage.len()), Some(1));
    usage(&mut joiner, &Claim { times: (10, 15), ..OWN }, 3);
    assert_eq!(cpu_times(&joiner, "slurm:17"), [5]);
    assert!(joiner.take_changes(9).changes.is_empty(), "an older line of the same measurement");
}

#[test]
fn a_usage_without_a_call_in_memory_is_handed_over_for_the_stored_calls() {
    let mut joiner = Joiner::new(9);
    joiner.collect_changes();
    job(&mut joiner, "slurm", "17", Kind::JobStart, 10);
    usage(&mut joiner, &OWN, 5);
    assert_eq!(joiner.take_changes(9).changes.late, []);
    usage(&mut joiner, &Claim { jobs: "slurm:94_1,slurm:95", ..OWN }, 6);
    let late = joiner.take_changes(9).changes.late;
    assert_eq!(late.iter().map(|late| late.names.join(" ")).collect::<Vec<_>>(), ["slurm:94_1 slurm:95"]);
    assert!(joiner.take_changes(9).changes.is_empty());
}

#[test]
fn a_sensor_that_states_usages_without_end_loses_its_own() {
    let mut usages = Usages::default();
    let mut content = Content::new(Kind::Workload, secs(1));
    content.started = Some(secs(0));
    let attributes = [
        ("usage_of", "slurm:1"),
        ("uid", "1"),
        ("evidence", "cgroup"),
        ("measured_by", "processes"),
        ("state", "over"),
        ("figures", ""),
    ];
    content.attributes =
        attributes.iter().map(|(name, text)| ((*name).into(), Value::Text((*text).into()))).collect();
    let (_, usage) = Usage::of_event(&content, id(1, 0)).expect("it is one");
    for sensor in [1, 2] {
        usages.take((SensorKey(sensor), vec![format_compact!("slurm:{sensor}")], usage.clone()));
    }
    for number in 0..USAGES_MAX {
        usages.take((SensorKey(3), vec![format_compact!("slurm:x{number}")], usage.clone()));
    }
    assert_eq!((usages.all.len(), usages.by_name.len()), (USAGES_MAX, USAGES_MAX));
    assert!(["slurm:1", "slurm:2"].iter().all(|name| usages.by_name.contains_key(*name)));
    assert!(!usages.by_name.contains_key("slurm:x0"));
}
