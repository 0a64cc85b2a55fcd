//! Order of facts, limits, and data of hostile daemons.

use super::*;
use crate::synthetic;
use wire::call::State;
use wire::event::Outcome;

const NOW: Time = Time::from_micros(1_700_000_000_000_000);

fn secs(secs: i64) -> Time {
    Time::from_micros(NOW.micros() - 3_600_000_000 + secs * 1_000_000)
}

fn reported(id: &str, user: &str, hosts: &[&str]) -> wire::call::Call {
    wire::call::Call {
        id: id.into(),
        job: "1".into(),
        name: "".into(),
        user: user.into(),
        from: "".into(),
        state: State::Ended,
        submitted: Some(secs(1)),
        offered: None,
        selected: None,
        started: Some(secs(2)),
        ended: Some(secs(3)),
        offers: Vec::new(),
        hosts: hosts.iter().map(|&host| host.into()).collect(),
        outcome: Some(Outcome::Failed),
        code: "".into(),
        signal: "".into(),
        reason: "".into(),
        tries: 1,
        events: 3,
        details: None,
    }
}

#[test]
fn the_order_of_facts_does_not_matter() {
    let facts: [fn(&mut Builder); 4] = [
        |grid| {
            let domain = grid.domain("UT-ICL").unwrap();
            grid.call(domain, &reported("slurm:1", "ada", &["wn10", "wn9.example"]));
        },
        |grid| {
            let domain = grid.domain("UT-ICL").unwrap();
            grid.host(domain, "wn9.cluster.example", HostState::Live, Report::default());
        },
        |grid| {
            let domain = grid.domain("Alpha").unwrap();
            grid.call(domain, &reported("pbs:7", "bob", &["n1"]));
        },
        |grid| {
            let domain = grid.domain("UT-ICL").unwrap();
            grid.host_change(domain, "wn10", secs(2), HostState::Down);
        },
    ];
    let build = |order: [usize; 4]| {
        let mut grid = Builder::new(NOW);
        order.iter().for_each(|&at| facts[at](&mut grid));
        grid.build()
    };
    let grid = build([0, 1, 2, 3]);
    for order in [[3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        assert_eq!(build(order), grid, "{order:?}");
    }
    let names: Vec<&str> = grid.places.iter().map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["bob", "pbs", "n1", "ada", "slurm", "wn9.cluster.example", "wn10"]);
    assert_eq!((grid.domains[1].places.clone(), grid.domains[1].servers), (3..7, 2));
    assert_eq!(grid.failures.len(), 3, "two calls and a host");
    assert_eq!(grid.span(), Some((secs(1), secs(3))));
}

#[test]
fn a_hostile_daemon_is_bounded_and_reported() {
    let mut grid = Builder::new(NOW);
    let domain = grid.domain("evil\u{202e}\n").unwrap();
    let report = Report { cpu_used: Some(f64::NAN), load1: Some(-1.0), ..Report::default() };
    for number in 0..HOSTS_MAX + 1_000 {
        grid.host(domain, &format!("h{number}"), HostState::Live, report.clone());
    }
    let mut call = reported("x:1", &"u".repeat(10_000), &[]);
    call.hosts = (0..1_000).map(|number| format!("h{number}").into()).collect();
    call.ended = Some(Time::from_micros(253_402_300_799_000_000));
    call.submitted = Some(Time::from_micros(i64::MIN));
    grid.call(domain, &call);
    for number in 0..CLIENTS_MAX + 10 {
        grid.call(domain, &reported(&format!("y:{number}"), &format!("user{number}"), &[]));
    }
    let grid = grid.build();
    assert_eq!(grid.hosts() as usize, HOSTS_MAX);
    assert_eq!(grid.domains[0].name, "evil\u{fffd}\u{fffd}");
    let reasons = [Reason::Hosts, Reason::HostsOfCall, Reason::Times];
    assert_eq!(reasons.map(|reason| grid.refused.count(reason)), [1_000, 744, 2]);
    assert!(grid.refused.count(Reason::Figures) >= 2 * HOSTS_MAX as u64);
    assert!(grid.refused.count(Reason::Clients) > 0 && grid.refused.count(Reason::Names) > 0);
    assert!(grid.places.iter().all(|place| place.report.iter().all(|report| report.cpu_used.is_none())));
    let call = &grid.calls[grid.call_named("x:1").unwrap() as usize];
    assert_eq!((call.submitted, call.ended), (None, None));
    assert!(grid.places.iter().any(|place| place.name == OTHER_CLIENTS));
}

#[test]
fn the_oldest_calls_go() {
    let mut grid = Builder::new(NOW);
    let domain = grid.domain("d").unwrap();
    for number in 0..CALLS_MAX as i64 + 5 {
        let mut call = reported(&format!("s:{number}"), "u", &[]);
        call.ended = Some(Time::from_micros(secs(10).micros() + number));
        grid.call(domain, &call);
    }
    let grid = grid.build();
    assert_eq!((grid.calls.len(), grid.refused.count(Reason::Calls)), (CALLS_MAX, 5));
    assert_eq!((grid.call_named("s:4"), grid.call_named("s:5").is_some()), (None, true));
}

#[test]
fn a_client_is_named_as_well_as_is_known() {
    let mut grid = Builder::new(NOW);
    let domain = grid.domain("d").unwrap();
    let parties =
        [("ada", ""), ("1001", ""), ("", "sub01"), ("bob", "sub01"), ("lee", "lee@anaka"), ("", "")];
    for (number, (user, from)) in parties.into_iter().enumerate() {
        let mut call = reported(&format!("s:{number}"), user, &[]);
        call.from = from.into();
        grid.call(domain, &call);
    }
    let grid = grid.build();
    let clients = grid.places.iter().filter(|place| place.part == Part::Client);
    let names: Vec<&str> = clients.map(|place| place.name.as_str()).collect();
    assert_eq!(names, ["ada", "bob@sub01", "lee@anaka", "sub01", "uid 1001", "unknown"]);
}

#[test]
fn times_are_made_to_ascend() {
    let mut grid = Builder::new(NOW);
    let domain = grid.domain("d").unwrap();
    let mut call = reported("s:1", "u", &["h"]);
    (call.submitted, call.started, call.ended) = (Some(secs(9)), Some(secs(5)), Some(secs(7)));
    grid.call(domain, &call);
    let grid = grid.build();
    let call = &grid.calls[0];
    assert_eq!((call.submitted, call.started, call.ended), (Some(secs(5)), Some(secs(5)), Some(secs(7))));
    assert_eq!(call.state_at(secs(6)), Some(State::Running));
    assert_eq!((call.state_at(secs(4)), call.state_at(secs(7))), (None, Some(State::Ended)));
}

#[test]
fn a_host_that_is_named_twice_is_one_host_of_the_call() {
    let grid = synthetic::one_domain(&[synthetic::call(
        "pbs:1",
        "ada",
        &["wn02", "wn01", "wn02", "wn01.site.example"],
    )]);
    let names: Vec<&str> = grid.calls[0].hosts.iter().map(|&host| grid.place(host).name.as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].starts_with("wn02") && names[1].starts_with("wn01"),
        "in the order of the log: {names:?}"
    );
}
