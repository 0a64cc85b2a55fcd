//! Poll schedule, with daemons that answer well, late, or not at all.

use super::*;
use crate::feed::Figures;
use crate::flock::sweep::HostName;
use crate::graphs::metric::Metric;
use crate::grid::place::{HostState, Report};
use crate::live::calls::{Told, Wanted};
use crate::synthetic;

const SEC: Duration = Duration::from_secs(1);

fn known(domains: &[&str]) -> Known {
    Known::new(&domains.iter().map(|&domain| domain.to_owned()).collect::<Vec<_>>(), false)
}

fn host(name: &str) -> Host {
    let report = Report { age_secs: Some(0.5), ..Report::default() };
    Host { name: name.into(), state: HostState::Live, is_reported: true, report }
}

/// The domains that are asked now, until nothing is due.
fn asked(known: &mut Known, now: Duration) -> Vec<(Option<String>, Due, Wanted)> {
    let ask = |question| match question {
        Question::Domain { asked, due, calls } => (asked, due, calls),
        Question::Domains | Question::Figures { .. } | Question::Sensor(_) | Question::Term(_) => {
            panic!("no domain is asked: {question:?}")
        }
    };
    std::iter::from_fn(|| known.question(now, synthetic::latest())).map(ask).collect()
}

/// Have a domain answer successfully.
fn answer(known: &mut Known, domain: &str, now: Duration) {
    let calls = vec![synthetic::call(&format!("{domain}:1"), "ada", &["wn01"])];
    let looked = Looked {
        hosts: Some((domain.to_owned(), vec![host("wn01"), host("wn02")], 0)),
        calls: Some(Told { wanted: Wanted::All, calls, total: 1 }),
        error: None,
    };
    take(known, domain, looked, now);
}

fn fail(known: &mut Known, domain: &str, error: Error, now: Duration) {
    take(known, domain, Looked { error: Some(error), ..Looked::default() }, now);
}

fn take(known: &mut Known, domain: &str, looked: Looked, now: Duration) {
    let asked = Some(domain.to_owned()).filter(|domain| !domain.is_empty());
    known.take(Answer::Domain { asked, due: Due::All, looked }, now, synthetic::latest(), Duration::ZERO);
}

fn address() -> String {
    "127.0.0.1:7317".to_owned()
}

fn silent() -> Error {
    Error::Late { address: address(), after: Duration::from_secs(10) }
}

fn names(known: &mut Known, now: Duration) -> Vec<String> {
    asked(known, now).into_iter().filter_map(|(asked, ..)| asked).collect()
}

#[test]
fn hosts_and_calls_of_several_domains_become_one_grid() {
    let mut known = known(&["demo", "other", "demo"]);
    assert_eq!(names(&mut known, Duration::ZERO).len(), 2);
    answer(&mut known, "demo", Duration::ZERO);
    let grid = known.grid(Duration::ZERO, synthetic::latest());
    let domains: Vec<&str> = grid.domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!((grid.hosts(), grid.calls.len(), domains), (2, 1, vec!["demo", "other"]));
    known.drop_domain("demo");
    assert_eq!(known.grid(Duration::ZERO, synthetic::latest()).domains.len(), 1);
}

#[test]
fn a_domain_that_answers_late_keeps_no_other_waiting_and_its_hosts_grow_old() {
    let mut known = known(&["late", "well"]);
    names(&mut known, Duration::ZERO);
    for secs in 0..10 {
        answer(&mut known, "well", secs * SEC);
        if secs == 0 {
            answer(&mut known, "late", Duration::ZERO);
            assert_eq!(names(&mut known, SEC).len(), 2);
        } else {
            assert_eq!(names(&mut known, (secs + 1) * SEC), ["well"], "the other's answer is waited for");
        }
    }
    let grid = known.grid(10 * SEC, synthetic::latest());
    let ages: Vec<_> = grid.places.iter().filter_map(|place| place.report.as_ref()?.age_secs).collect();
    assert_eq!(ages, [10.5, 10.5, 1.5, 1.5]);
}

#[test]
fn domains_in_trouble_are_asked_a_few_at_a_time_and_later_each_time() {
    let silent_ones = ["a", "b", "c", "d", "e"];
    let mut known = known(&[&silent_ones[..], &["well"]].concat());
    assert_eq!(names(&mut known, Duration::ZERO).len(), 6);
    answer(&mut known, "well", Duration::ZERO);
    silent_ones.iter().for_each(|domain| fail(&mut known, domain, silent(), Duration::ZERO));
    assert!(!known.is_lost());
    let Status::Connected { troubles, .. } =
        known.status(&Where::Here(std::net::SocketAddr::from(([127, 0, 0, 1], 7317))))
    else {
        panic!("it is connected")
    };
    assert!(
        troubles.len() == 5 && troubles[0].contains("a: ") && troubles[0].contains("10 s"),
        "{troubles:?}"
    );
    assert_eq!(names(&mut known, SEC), ["well"]);
    answer(&mut known, "well", SEC);
    let mut asked = names(&mut known, 2 * SEC);
    asked.sort();
    assert_eq!(asked.len(), 4, "three of those in trouble, and the one that is not: {asked:?}");
    assert!(known.next_due().is_none(), "what is left waits for an answer");
    fail(&mut known, &asked[0], silent(), 3 * SEC);
    assert_eq!(names(&mut known, 3 * SEC).len(), 1);
}

#[test]
fn a_daemon_that_is_gone_is_tried_by_one_question_later_each_time() {
    let mut known = known(&["a", "b"]);
    let refused = || Error::Unreachable(format!("no daemon answers at {}", address()));
    names(&mut known, Duration::ZERO);
    fail(&mut known, "a", refused(), Duration::ZERO);
    fail(&mut known, "b", refused(), Duration::ZERO);
    let mut dues = Vec::new();
    for _ in 0..5 {
        let due = known.next_due().unwrap();
        dues.push(due.as_millis());
        assert!(
            known.is_lost() && known.question(due - Duration::from_millis(1), synthetic::latest()).is_none()
        );
        let tried = names(&mut known, due);
        assert_eq!(tried.len(), 1);
        fail(&mut known, &tried[0], refused(), due);
    }
    assert_eq!(dues, [1_000, 3_000, 7_000, 15_000, 23_000], "eight seconds at most");
    let due = known.next_due().unwrap();
    let tried = names(&mut known, due).remove(0);
    answer(&mut known, &tried, due);
    assert!(!known.is_lost());
    let other = asked(&mut known, due);
    assert!(other.len() == 1 && other[0].2 == Wanted::All, "it may be another daemon: {other:?}");
}

#[test]
fn the_newest_calls_are_asked_for_anew_each_minute_and_once() {
    let mut known = known(&["demo"]);
    let mut wanted = Vec::new();
    for secs in 0..125 {
        let now = secs * SEC;
        let [(_, _, calls)] = &asked(&mut known, now)[..] else { panic!("it is asked once a second") };
        wanted.push(*calls);
        let told = Told { wanted: *calls, calls: vec![synthetic::call("x:1", "ada", &[])], total: 1 };
        take(&mut known, "demo", Looked { calls: Some(told), ..Looked::default() }, now);
    }
    let whole = |from: usize, to: usize| {
        wanted[from..to].iter().filter(|one| !matches!(one, Wanted::Since(_))).count()
    };
    assert_eq!((wanted[0], whole(1, 125)), (Wanted::All, 2), "{wanted:?}");
}

#[test]
fn a_directory_is_asked_each_minute_and_what_was_let_go_stays_away() {
    let mut known = Known::new(&[], true);
    let at = synthetic::latest();
    let take = |known: &mut Known, names: &[&str], now| {
        assert_eq!(known.question(now, at), Some(Question::Domains));
        let names = names.iter().map(|&name| name.to_owned()).collect();
        known.take(Answer::Domains(Ok(names)), now, at, Duration::ZERO);
    };
    take(&mut known, &["a", "b"], Duration::ZERO);
    assert_eq!(names(&mut known, Duration::ZERO).len(), 2);
    known.drop_domain("a");
    take(&mut known, &["a", "b", "c"], 60 * SEC);
    assert_eq!(names(&mut known, 60 * SEC), ["c"], "b's answer is waited for");
    known.add("a");
    assert_eq!(names(&mut known, 60 * SEC), ["a"]);
}

#[test]
fn a_sensor_at_its_address_is_asked_while_the_daemon_is_lost() {
    let mut known = known(&["a"]);
    let at = crate::sensors::At::Address(std::net::SocketAddr::from(([127, 0, 0, 1], 7327)));
    let wanted = crate::feed::Sensors { sensors: vec![at.clone()], domains: vec!["a".into()] };
    known.sensors.want(wanted);
    let asked = |known: &mut Known, now: Duration| {
        std::iter::from_fn(|| known.question(now, synthetic::latest())).collect::<Vec<_>>()
    };
    assert_eq!(asked(&mut known, SEC).len(), 3, "it, the domain and its term");
    known.sensors.answered(&at, true, SEC, Duration::ZERO);
    known.sensors.resolved("a", false, SEC, Duration::ZERO);
    fail(&mut known, "a", Error::Answer { address: address(), found: "a teapot".into() }, SEC);
    assert!(known.is_lost());
    assert_eq!(known.next_due(), Some(SEC + BACKOFF.pause(0)));
    known.sensors.answered(&at, true, SEC, Duration::ZERO);
    let again = asked(&mut known, 2 * SEC);
    assert!(again.contains(&Question::Sensor(at)), "{again:?}");
}

#[test]
fn hosts_that_hang_leave_room_for_domains() {
    let mut known = known(&["UT-ICL"]);
    assert_eq!(names(&mut known, SEC), ["UT-ICL"]);
    answer(&mut known, "UT-ICL", SEC);
    let hosts = (0..20).map(|number| HostName::new("UT-ICL", &format!("wn{number:02}"))).collect();
    known.figures.want(Figures { hosts, metrics: vec![Metric::Load], is_long: false, rests: false });
    let out = |known: &mut Known, now: Duration| -> Vec<Question> {
        std::iter::from_fn(|| known.question(now, synthetic::latest())).collect()
    };
    let mut asked = Vec::new();
    for round in 0..4 {
        let of_hosts = out(&mut known, SEC);
        assert_eq!(of_hosts.len(), ASIDE_AT_A_TIME, "round {round}");
        assert_eq!(known.next_due(), Some(2 * SEC), "nothing but the domain");
        asked.extend(of_hosts);
        for question in asked.drain(..) {
            let Question::Figures { host, metrics, .. } = question else { panic!("a domain: {question:?}") };
            let answer = Answer::Figures { host, metrics, counters: Err(silent()) };
            known.take(answer, SEC, synthetic::latest(), 10 * SEC);
        }
    }
    let later = out(&mut known, 60 * SEC);
    let domains = later.iter().filter(|question| matches!(question, Question::Domain { .. })).count();
    assert_eq!((domains, later.len()), (1, 1 + TROUBLED_AT_A_TIME), "{later:?}");
}
