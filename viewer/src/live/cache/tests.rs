//! Poll schedule, with daemons that answer well, late, or not at all.

use super::*;
use crate::feed::Figures;
use crate::flock::sweep::HostName;
use crate::graphs::metric::Metric;
use crate::grid::place::{HostState, Report};
use crate::live::calls::{CallsRequest, CallsResponse};
use crate::synthetic;

const SEC: Duration = Duration::from_secs(1);

fn cache(domains: &[&str]) -> Cache {
    Cache::new(&domains.iter().map(|&domain| domain.to_owned()).collect::<Vec<_>>(), false)
}

fn host(name: &str) -> Host {
    let report = Report { age_secs: Some(0.5), ..Report::default() };
    Host { name: name.into(), state: HostState::Live, is_reported: true, report }
}

/// The domains that are asked now, until nothing is due.
fn asked(cache: &mut Cache, now: Duration) -> Vec<(Option<String>, Due, CallsRequest)> {
    let ask = |question| match question {
        Question::Domain { asked, due, calls } => Some((asked, due, calls)),
        Question::Oldest(_) => None,
        Question::Domains
        | Question::Figures { .. }
        | Question::Tile(_)
        | Question::PastCalls { .. }
        | Question::Sensor(_)
        | Question::Term(_) => {
            panic!("no domain is asked: {question:?}")
        }
    };
    std::iter::from_fn(|| cache.question(now, synthetic::latest())).filter_map(ask).collect()
}

/// Have a domain answer successfully.
fn answer(cache: &mut Cache, domain: &str, now: Duration) {
    let calls = vec![synthetic::call(&format!("{domain}:1"), "ada", &["wn01"])];
    let polled = PollResult {
        hosts: Some((domain.to_owned(), vec![host("wn01"), host("wn02")], 0)),
        calls: Some(CallsResponse { request: CallsRequest::All, calls, total: 1 }),
        error: None,
    };
    take(cache, domain, polled, now);
}

fn fail(cache: &mut Cache, domain: &str, error: Error, now: Duration) {
    take(cache, domain, PollResult { error: Some(error), ..PollResult::default() }, now);
}

fn take(cache: &mut Cache, domain: &str, polled: PollResult, now: Duration) {
    let asked = Some(domain.to_owned()).filter(|domain| !domain.is_empty());
    cache.take(Answer::Domain { asked, due: Due::All, polled }, now, synthetic::latest(), Duration::ZERO);
}

fn address() -> String {
    "127.0.0.1:7317".to_owned()
}

fn silent() -> Error {
    Error::Late { address: address(), after: Duration::from_secs(10) }
}

fn names(cache: &mut Cache, now: Duration) -> Vec<String> {
    asked(cache, now).into_iter().filter_map(|(asked, ..)| asked).collect()
}

#[test]
fn hosts_and_calls_of_several_domains_become_one_grid() {
    let mut cache = cache(&["demo", "other", "demo"]);
    assert_eq!(names(&mut cache, Duration::ZERO).len(), 2);
    answer(&mut cache, "demo", Duration::ZERO);
    let grid = cache.grid(Duration::ZERO, synthetic::latest());
    let domains: Vec<&str> = grid.domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!((grid.hosts(), grid.calls.len(), domains), (2, 1, vec!["demo", "other"]));
    cache.drop_domain("demo");
    assert_eq!(cache.grid(Duration::ZERO, synthetic::latest()).domains.len(), 1);
}

#[test]
fn a_domain_that_answers_late_keeps_no_other_waiting_and_its_hosts_grow_old() {
    let mut cache = cache(&["late", "well"]);
    names(&mut cache, Duration::ZERO);
    for secs in 0..10 {
        answer(&mut cache, "well", secs * SEC);
        if secs == 0 {
            answer(&mut cache, "late", Duration::ZERO);
            assert_eq!(names(&mut cache, SEC).len(), 2);
        } else {
            assert_eq!(names(&mut cache, (secs + 1) * SEC), ["well"], "the other's answer is waited for");
        }
    }
    let grid = cache.grid(10 * SEC, synthetic::latest());
    let ages: Vec<_> = grid.places.iter().filter_map(|place| place.report.as_ref()?.age_secs).collect();
    assert_eq!(ages, [10.5, 10.5, 1.5, 1.5]);
}

#[test]
fn domains_in_trouble_are_asked_a_few_at_a_time_and_later_each_time() {
    let silent_ones = ["a", "b", "c", "d", "e"];
    let mut cache = cache(&[&silent_ones[..], &["well"]].concat());
    assert_eq!(names(&mut cache, Duration::ZERO).len(), 6);
    answer(&mut cache, "well", Duration::ZERO);
    silent_ones.iter().for_each(|domain| fail(&mut cache, domain, silent(), Duration::ZERO));
    assert!(!cache.is_lost());
    let Status::Connected { troubles, .. } =
        cache.status(&Where::Here(std::net::SocketAddr::from(([127, 0, 0, 1], 7317))))
    else {
        panic!("it is connected")
    };
    assert!(
        troubles.len() == 5 && troubles[0].contains("a: ") && troubles[0].contains("10 s"),
        "{troubles:?}"
    );
    assert_eq!(names(&mut cache, SEC), ["well"]);
    answer(&mut cache, "well", SEC);
    let mut asked = names(&mut cache, 2 * SEC);
    asked.sort();
    assert_eq!(asked.len(), 4, "three of those in trouble, and the one that is not: {asked:?}");
    assert!(cache.next_due().is_none(), "what is left waits for an answer");
    fail(&mut cache, &asked[0], silent(), 3 * SEC);
    assert_eq!(names(&mut cache, 3 * SEC).len(), 1);
}

#[test]
fn a_daemon_that_is_gone_is_tried_by_one_question_later_each_time() {
    let mut cache = cache(&["a", "b"]);
    let refused = || Error::Unreachable(format!("no daemon answers at {}", address()));
    names(&mut cache, Duration::ZERO);
    fail(&mut cache, "a", refused(), Duration::ZERO);
    fail(&mut cache, "b", refused(), Duration::ZERO);
    let mut dues = Vec::new();
    for _ in 0..5 {
        let due = cache.next_due().unwrap();
        dues.push(due.as_millis());
        assert!(
            cache.is_lost() && cache.question(due - Duration::from_millis(1), synthetic::latest()).is_none()
        );
        let tried = names(&mut cache, due);
        assert_eq!(tried.len(), 1);
        fail(&mut cache, &tried[0], refused(), due);
    }
    assert_eq!(dues, [1_000, 3_000, 7_000, 15_000, 23_000], "eight seconds at most");
    let due = cache.next_due().unwrap();
    let tried = names(&mut cache, due).remove(0);
    answer(&mut cache, &tried, due);
    assert!(!cache.is_lost());
    let other = asked(&mut cache, due);
    assert!(other.len() == 1 && other[0].2 == CallsRequest::All, "it may be another daemon: {other:?}");
}

#[test]
fn the_newest_calls_are_requested_again_each_minute_and_once() {
    let mut cache = cache(&["demo"]);
    let mut wanted = Vec::new();
    for secs in 0..125 {
        let now = secs * SEC;
        let [(_, _, calls)] = &asked(&mut cache, now)[..] else { panic!("it is asked once a second") };
        wanted.push(*calls);
        let answer =
            CallsResponse { request: *calls, calls: vec![synthetic::call("x:1", "ada", &[])], total: 1 };
        take(&mut cache, "demo", PollResult { calls: Some(answer), ..PollResult::default() }, now);
    }
    let whole = |from: usize, to: usize| {
        wanted[from..to].iter().filter(|one| !matches!(one, CallsRequest::Since(_))).count()
    };
    assert_eq!((wanted[0], whole(1, 125)), (CallsRequest::All, 2), "{wanted:?}");
}

#[test]
fn a_directory_is_asked_each_minute_and_what_was_let_go_stays_away() {
    let mut cache = Cache::new(&[], true);
    let at = synthetic::latest();
    let take = |cache: &mut Cache, names: &[&str], now| {
        assert_eq!(cache.question(now, at), Some(Question::Domains));
        let names = names.iter().map(|&name| name.to_owned()).collect();
        cache.take(Answer::Domains(Ok(names)), now, at, Duration::ZERO);
    };
    take(&mut cache, &["a", "b"], Duration::ZERO);
    assert_eq!(names(&mut cache, Duration::ZERO).len(), 2);
    cache.drop_domain("a");
    take(&mut cache, &["a", "b", "c"], 60 * SEC);
    assert_eq!(names(&mut cache, 60 * SEC), ["c"], "b's answer is waited for");
    cache.add("a");
    assert_eq!(names(&mut cache, 60 * SEC), ["a"]);
}

#[test]
fn a_sensor_at_its_address_is_asked_while_the_daemon_is_lost() {
    let mut cache = cache(&["a"]);
    let at = crate::sensors::At::Address(std::net::SocketAddr::from(([127, 0, 0, 1], 7327)));
    let wanted = crate::feed::Sensors { sensors: vec![at.clone()], domains: vec!["a".into()] };
    cache.sensors.set_request(wanted);
    let asked = |cache: &mut Cache, now: Duration| {
        std::iter::from_fn(|| cache.question(now, synthetic::latest())).collect::<Vec<_>>()
    };
    assert_eq!(asked(&mut cache, SEC).len(), 3, "it, the domain and its term");
    cache.sensors.answered(&at, true, SEC, Duration::ZERO);
    cache.sensors.resolved("a", false, SEC, Duration::ZERO);
    fail(&mut cache, "a", Error::Answer { address: address(), found: "a teapot".into() }, SEC);
    assert!(cache.is_lost());
    assert_eq!(cache.next_due(), Some(SEC + BACKOFF.pause(0)));
    cache.sensors.answered(&at, true, SEC, Duration::ZERO);
    let again = asked(&mut cache, 2 * SEC);
    assert!(again.contains(&Question::Sensor(at)), "{again:?}");
}

#[test]
fn hosts_that_hang_leave_room_for_domains() {
    let mut cache = cache(&["UT-ICL"]);
    assert_eq!(names(&mut cache, SEC), ["UT-ICL"]);
    answer(&mut cache, "UT-ICL", SEC);
    let hosts = (0..20).map(|number| HostName::new("UT-ICL", &format!("wn{number:02}"))).collect();
    cache.figures.set_request(Figures { hosts, metrics: vec![Metric::Load], is_long: false, rests: false });
    let out = |cache: &mut Cache, now: Duration| -> Vec<Question> {
        std::iter::from_fn(|| cache.question(now, synthetic::latest())).collect()
    };
    let mut asked = Vec::new();
    for round in 0..4 {
        let of_hosts = out(&mut cache, SEC);
        assert_eq!(of_hosts.len(), ASIDE_AT_A_TIME, "round {round}");
        assert_eq!(cache.next_due(), Some(2 * SEC), "nothing but the domain");
        asked.extend(of_hosts);
        for question in asked.drain(..) {
            let Question::Figures { host, metrics, .. } = question else { panic!("a domain: {question:?}") };
            let answer = Answer::Figures { host, metrics, counters: Err(silent()) };
            cache.take(answer, SEC, synthetic::latest(), 10 * SEC);
        }
    }
    let mut later = out(&mut cache, 60 * SEC);
    later.retain(|question| !matches!(question, Question::Oldest(_)));
    let domains = later.iter().filter(|question| matches!(question, Question::Domain { .. })).count();
    assert_eq!((domains, later.len()), (1, 1 + TROUBLED_AT_A_TIME), "{later:?}");
}

#[test]
fn the_oldest_values_are_asked_seldom_and_sooner_after_a_failure() {
    let mut cache = cache(&["demo"]);
    answer(&mut cache, "demo", SEC);
    let is_asked = |cache: &mut Cache, now: Duration| {
        let questions = std::iter::from_fn(|| cache.question(now, synthetic::latest()));
        questions.filter(|question| matches!(question, Question::Oldest(_))).count()
    };
    let take = |cache: &mut Cache, oldest, now| {
        let asked = Some("demo".to_owned());
        cache.take(Answer::Oldest { asked, oldest }, now, synthetic::latest(), SEC);
    };
    assert_eq!((is_asked(&mut cache, SEC), is_asked(&mut cache, SEC)), (1, 0));
    take(&mut cache, Err(silent()), SEC);
    assert_eq!((is_asked(&mut cache, 30 * SEC), is_asked(&mut cache, 32 * SEC)), (0, 1));
    take(&mut cache, Ok(None), 32 * SEC);
    assert_eq!((is_asked(&mut cache, 500 * SEC), is_asked(&mut cache, 640 * SEC)), (0, 1));
    take(&mut cache, Ok(None), 640 * SEC);
    // Its hosts are gone: it is not asked, and nothing wakes for it.
    let none = PollResult { hosts: Some(("demo".to_owned(), Vec::new(), 0)), ..PollResult::default() };
    self::take(&mut cache, "demo", none, 2_000 * SEC);
    assert_eq!(is_asked(&mut cache, 2_000 * SEC), 0);
    assert!(cache.next_due().is_none_or(|due| due >= 2_000 * SEC), "{:?}", cache.next_due());
}

#[test]
fn calls_of_many_domains_take_the_room_of_the_newest_alone() {
    let names: Vec<String> = (0..6).map(|number| format!("d{number}")).collect();
    let mut cache = cache(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names {
        answer(&mut cache, name, SEC);
    }
    let at = synthetic::time_f(-86_400.0 * 300.0);
    cache.look_at(Some(at));
    let questions = std::iter::from_fn(|| cache.question(SEC, synthetic::latest()));
    let sides = questions.filter_map(|question| {
        if let Question::PastCalls { side_max, .. } = question { Some(side_max) } else { None }
    });
    assert_eq!(sides.collect::<Vec<_>>(), [CALLS_MAX / 24; 5], "as many as have askers");
}

#[test]
fn calls_around_a_time_of_the_past_are_in_the_grid_while_it_is_looked_at() {
    let mut cache = cache(&["demo"]);
    names(&mut cache, SEC);
    answer(&mut cache, "demo", SEC);
    let past_calls = |cache: &mut Cache, now: Duration| {
        let mut questions = std::iter::from_fn(|| cache.question(now, synthetic::latest()));
        questions.find(|question| matches!(question, Question::PastCalls { .. }))
    };
    assert_eq!(past_calls(&mut cache, SEC), None, "the present is looked at");
    let at = synthetic::time_f(-86_400.0 * 300.0);
    assert!(!cache.look_at(Some(at)));
    let asked = Some("demo".to_owned());
    assert_eq!(
        past_calls(&mut cache, SEC),
        Some(Question::PastCalls { asked: asked.clone(), at, side_max: 5_000 })
    );
    assert_eq!(past_calls(&mut cache, SEC), None, "one at a time");
    let mut old = synthetic::call("demo:old", "ada", &["wn01"]);
    (old.submitted, old.started, old.ended) = (Some(at), Some(at), Some(at.plus(SEC)));
    let calls = vec![old, synthetic::call("demo:1", "ada", &["wn01"])];
    let around = |calls: Vec<Call>| crate::live::past_calls::around(at, 5_000, calls, Vec::new());
    let take = |cache: &mut Cache, answer| {
        cache.take(Answer::PastCalls { asked: asked.clone(), answer }, SEC, synthetic::latest(), SEC)
    };
    let changes = take(&mut cache, Ok(around(calls.clone())));
    assert!(changes.grid);
    let ids = |cache: &Cache| {
        let grid = cache.grid(SEC, synthetic::latest());
        grid.calls.iter().map(|call| call.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&cache), ["demo:old", "demo:1"], "none twice");
    assert!(cache.look_at(None) && ids(&cache) == ["demo:1"]);
    let changes = take(&mut cache, Ok(around(calls)));
    assert!(!changes.grid && ids(&cache) == ["demo:1"], "an answer that comes too late");
}
