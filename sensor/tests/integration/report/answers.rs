//! Answers of the domain: calls joined over hosts, the table of hosts, the summary.

use crate::report::rig::{Rig, event, now_at};
use sensor::representative::domain::{Config, Now};
use sensor::representative::hosts::{ElectionEntry, Liveness, Role, Unreported};
use sensor::representative::store;
use sensor::sample::table::{Rows, metric};
use std::time::Duration;
use wire::call::{Authority, State};
use wire::event::{Kind, Outcome};
use wire::id::HostName;
use wire::report::HostState;
use wire::sample::Semantics;
use wire::time::Time;

/// Writes the scheduler's log of a job on one host, and the host's own log on another.
fn job(rig: &mut Rig) {
    let scheduler = [
        event(Kind::JobSubmit, 10, "42", "", Authority::Scheduler),
        event(Kind::JobStart, 20, "42", "h1", Authority::Scheduler),
    ];
    rig.members[0].append(scheduler.to_vec(), 100);
    let own = [event(Kind::JobEnd, 30, "42", "h1", Authority::Message)];
    rig.members[1].append(own.to_vec(), 100);
}

#[test]
fn events_of_one_job_on_two_hosts_are_one_call() {
    let mut rig = Rig::new(2, Config::default());
    job(&mut rig);
    rig.settle();
    let check = |rig: &Rig| {
        let calls: Vec<_> = rig.domain.calls().calls().collect();
        assert_eq!(calls.len(), 1, "{calls:?}");
        let call = &calls[0];
        assert_eq!((call.state, call.outcome, call.events), (State::Ended, Some(Outcome::Ok), 3));
        assert_eq!(
            (call.submitted, call.ended),
            (Some(Time::from_micros(10_000_000)), Some(Time::from_micros(30_000_000)))
        );
        let feed = rig.domain.feed();
        let page = feed.read(&feed.oldest(), 100, |stored| stored.event.call == call.id).unwrap();
        assert_eq!(page.events.len(), 3, "events carry the domain's name of the call");
        let hosts: Vec<&str> = page.events.iter().map(|stored| stored.event.source.host.as_str()).collect();
        assert!(hosts.contains(&"h0") && hosts.contains(&"h1"), "{hosts:?}");
    };
    check(&rig);
    rig.restart();
    check(&rig);
}

/// The calls in the head of a segment and the events after it restore the calls.
#[test]
fn calls_come_back_from_the_head_of_a_segment() {
    let store = store::Config { segment_len_bytes: 5_000, budget_bytes: 40_000 };
    let mut rig = Rig::new(2, Config { store, ..Config::default() });
    job(&mut rig);
    rig.settle();
    for _ in 0..60 {
        rig.members[0].read(20);
        rig.settle();
    }
    let before: Vec<_> = rig.domain.calls().calls().collect();
    assert!(before.len() > 500);
    rig.restart();
    let after: Vec<_> = rig.domain.calls().calls().collect();
    assert_eq!(after, before);
}

#[test]
fn hosts_are_alive_then_silent_then_left() {
    let mut rig = Rig::new(3, Config::default());
    rig.settle();
    let first = ElectionEntry { role: Role::Representative, gone: None };
    let before = HostName::try_from("before").unwrap();
    let gone = ElectionEntry { role: Role::Member, gone: Some((Liveness::Silent, Time::from_micros(7))) };
    let known = [(rig.members[0].host.clone(), first), (before.clone(), gone)];
    rig.domain.apply_election(&known.into(), rig.now);
    let departed = Unreported {
        host: before.clone(),
        role: Role::Member,
        liveness: Liveness::Silent,
        heard: Time::from_micros(7),
    };
    assert_eq!(rig.domain.unreported(), [departed], "it went before this representative came");
    assert_eq!(rig.domain.summary(rig.now.moment).hosts, [3, 1, 0]);
    let back = [(rig.members[0].host.clone(), first), (before.clone(), ElectionEntry::default())].into();
    for (secs, liveness) in [(0, Liveness::Alive), (14, Liveness::Alive), (15, Liveness::Silent)] {
        let now = Now { moment: rig.now.moment.plus(Duration::from_secs(secs)), ..rig.now };
        rig.domain.apply_election(&back, now);
        let expected = Unreported { host: before.clone(), role: Role::Member, liveness, heard: rig.now.wall };
        assert_eq!(rig.domain.unreported(), [expected], "it is back, and about to report");
    }
    rig.domain.apply_election(&[(rig.members[0].host.clone(), first)].into(), rig.now);
    assert!(rig.domain.unreported().is_empty(), "it is not of the domain any more");
    let liveness = |rig: &Rig| -> Vec<Liveness> {
        rig.domain.hosts(rig.now.moment).iter().map(|row| row.liveness).collect()
    };
    assert_eq!(liveness(&rig), [Liveness::Alive; 3]);
    rig.members[2].sender.leave();
    rig.settle();
    rig.now = now_at(1020);
    rig.members[0].sender.handle_state(HostState { cpus: 8, events_next: 5, ..HostState::default() });
    let (domain, now) = (&mut rig.domain, rig.now);
    rig.members[0].move_bytes(domain, usize::MAX, now);
    assert_eq!(liveness(&rig), [Liveness::Alive, Liveness::Silent, Liveness::Left]);
    let rows = rig.domain.hosts(rig.now.moment);
    assert_eq!((rows[0].role, rows[0].state.cpus, rows[0].events_behind), (Role::Representative, 8, 5));
    assert_eq!(rows[1].age.as_secs(), 20);
    assert_eq!(rig.domain.summary(rig.now.moment).hosts, [1, 1, 1]);
    // It left the election, and its stream has not ended yet.
    let left = ElectionEntry { role: Role::Member, gone: Some((Liveness::Left, Time::from_micros(7))) };
    let known = [(rig.members[1].host.clone(), left)];
    rig.domain.apply_election(&known.clone().into(), rig.now);
    assert_eq!(liveness(&rig)[1], Liveness::Silent, "its stream stands: it is there");
    rig.members[1].disconnect(&mut rig.domain);
    rig.domain.apply_election(&known.into(), rig.now);
    assert_eq!(liveness(&rig)[1], Liveness::Left);
    rig.now = now_at(1020 + 8 * 24 * 3600);
    rig.domain.tidy(rig.now.moment);
    assert_eq!(rig.domain.hosts_len(), 0);
}

#[test]
fn the_summary_is_over_hosts_that_are_alive() {
    let mut rig = Rig::new(3, Config::default());
    rig.settle();
    for (nth, member) in (1u64..).zip(&mut rig.members) {
        let mut rows = Rows::default();
        rows.push_whole(&metric("bytes", "bytes", Semantics::Gauge, &[]), nth * 100);
        rows.push_whole(&metric("of_cpu", "", Semantics::Gauge, &[("cpu", "0")]), 7);
        rows.push_real(&metric("broken", "", Semantics::Gauge, &[]), if nth == 2 { f64::NAN } else { 1.0 });
        member.sender.handle_sweep(&rows.finish(Time::from_micros(5)));
    }
    rig.settle();
    let summary = rig.domain.summary(rig.now.moment);
    let bytes = summary.metrics.iter().find(|metric| metric.name == "bytes").unwrap();
    assert_eq!(
        (bytes.sum, bytes.mean, bytes.min, bytes.max, bytes.count),
        (Some(600.0), 200.0, 100.0, 300.0, 3)
    );
    assert_eq!(bytes.top[0].0.as_str(), "h2");
    assert!(
        !summary.metrics.iter().any(|metric| metric.name == "of_cpu"),
        "labelled ones are not of the host"
    );
    assert_eq!(summary.absurd, 1);
    let domain = &mut rig.domain;
    rig.members[2].disconnect(domain);
    let summary = rig.domain.summary(rig.now.moment);
    assert_eq!(summary.metrics.iter().find(|metric| metric.name == "bytes").unwrap().sum, Some(300.0));
}
