//! The flock tab: which hosts are requested, what is listed, and that nothing is ended without confirmation.

use egui::Key;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use std::sync::Arc;
use std::time::Duration;
use viewer::app::settings::Settings;
use viewer::app::{App, Selection, Source};
use viewer::feed::{Altered, Feed, Kill, Past, Request, Update, WakeReason, feed};
use viewer::flock::measure::Usage;
use viewer::flock::past::StoredSweeps;
use viewer::flock::sweep::{HostName, Reported, Sweep};
use viewer::grid::Grid;
use viewer::grid::builder::Builder;
use viewer::grid::place::{HostState, Report};
use viewer::model::{Change, TimeChange};
use viewer::served::{Process, ServedBy};
use viewer::synthetic;
use viewer::timeline::Mode;
use wire::control::Signal;
use wire::time::Time;

fn now() -> Time {
    synthetic::time_f(100.0)
}

fn reported(pid: u32, name: &str, cpu_secs: f64) -> Reported {
    let usage = Usage { cpu_secs, rss_bytes: 1e9, ..Usage::default() };
    Reported { pid, start_ns: 9, name: name.to_owned(), threads: 3, usage, ..Reported::default() }
}

/// Two hosts, one of them live.
fn grid() -> Grid {
    let mut builder = Builder::new(synthetic::latest());
    let domain = builder.domain("demo").expect("there is room");
    let report =
        || Report { cpus: Some(4.0), memory_bytes: Some(4e9), age_secs: Some(0.1), ..Report::default() };
    builder.host(domain, "wn01", HostState::Live, report());
    builder.host(domain, "wn02", HostState::Down, report());
    builder.build()
}

/// A window on two hosts, one of them live, and the feed that receives its requests.
fn window() -> (Harness<'static, App>, Feed) {
    let source = Source::Daemon("127.0.0.1:7317".into());
    let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now());
    let (feed, inbox) = feed();
    app.feed_flock(inbox);
    app.take(now(), Update::grid(grid()));
    app.open_tab("flock");
    let mut harness = crate::window::window(app, now());
    for (ago_ms, used) in [(900, 1.0), (600, 1.6), (0, 2.2)] {
        let sweep = Sweep {
            host: HostName::new("demo", "wn01"),
            time: now().minus(Duration::from_millis(ago_ms)),
            is_whole: true,
            processes: vec![reported(7, "burn", used), reported(8, "rest", 0.0), reported(9, "aside", 0.0)],
            gone: Vec::new(),
            left_out: 0,
        };
        harness.state_mut().take(now(), Update::Sweeps(vec![sweep]));
    }
    harness.run_steps(3);
    (harness, feed)
}

fn requested(feed: &Feed) -> Option<Request> {
    match feed.rest(Duration::ZERO) {
        WakeReason::Requested(request) => Some(request),
        WakeReason::Timeout | WakeReason::Closed => None,
    }
}

#[test]
fn live_hosts_are_swept_as_soon_as_the_flock_is_seen_and_their_programs_listed() {
    let (mut window, feed) = window();
    let Some(Request::Flock(watch)) = requested(&feed) else { panic!("nothing is asked for") };
    assert_eq!((watch.hosts, watch.rate_hz), (vec![HostName::new("demo", "wn01")], 10.0));
    assert!(window.query_by_label("burn").is_some() && window.query_by_label("rest").is_some());
    assert!(window.query_by_label("process 7").is_none());
    window.get_by_label("burn").click();
    window.run_steps(3);
    assert!(window.query_by_label("process 7").is_some());
    window.state_mut().apply(Change::Search("program:rest".into()));
    window.run_steps(3);
    assert!(window.query_by_label("burn").is_none(), "what does not fit is not listed");
}

#[test]
fn programs_that_use_most_are_listed_first_and_by_name_at_a_click() {
    let (mut window, _feed) = window();
    let order = |window: &Harness<'_, App>| {
        let mut rows = ["aside", "burn", "rest"].map(|name| (window.get_by_label(name).rect().top(), name));
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
        rows.map(|(_, name)| name)
    };
    window.state_mut().apply(TimeChange::StopAt(now()));
    window.run_steps(2);
    assert_eq!(order(&window), ["burn", "aside", "rest"]);
    window.get_by_label("cores ⏷").click();
    window.run_steps(3);
    assert_eq!(order(&window), ["aside", "burn", "rest"]);
}

#[test]
fn a_process_is_ended_only_after_a_yes_and_it_is_the_one_that_was_shown() {
    let (mut window, feed) = window();
    while requested(&feed).is_some() {}
    window.key_press(Key::K);
    window.run_steps(3);
    assert!(window.query_by_label("End this process?").is_none(), "it is not said which");
    window.state_mut().apply(Change::Search("pid:7".into()));
    window.run_steps(2);
    window.key_press(Key::K);
    window.run_steps(3);
    assert!(window.query_by_label_contains("burn (7)").is_some(), "it says which");
    window.get_by_label("Leave it").click();
    window.run_steps(3);
    assert_eq!(requested(&feed), None);
    window.key_press(Key::K);
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    let (host, name) = (HostName::new("demo", "wn01"), "burn".to_owned());
    let kill = Kill { host, pid: 7, start_ns: 9, name, signal: Signal::Term };
    assert_eq!(requested(&feed), Some(Request::Kill(kill)));
    assert!(window.query_by_label("End this process?").is_none());
}

/// The history requested by the window, except requests for the available spans.
fn past_wished(feed: &Feed) -> Vec<Past> {
    let requested = std::iter::from_fn(|| requested(feed));
    let past =
        requested.filter_map(|request| if let Request::Past(past) = request { Some(past) } else { None });
    past.filter(|past| past.missing.from < past.missing.to).collect()
}

#[test]
fn who_goes_back_farther_than_was_seen_is_shown_what_the_sensor_kept() {
    let (mut window, feed) = window();
    let ago = |secs: u64| now().minus(Duration::from_secs(secs));
    let host = HostName::new("demo", "wn01");
    let spans = || vec![(ago(80), ago(40))];
    let answered = |stored: StoredSweeps| Update::StoredSweeps {
        host: host.clone(),
        stored: Ok((Arc::new(stored), spans())),
    };
    assert_eq!(past_wished(&feed), [], "live, nothing is missing");
    window.state_mut().take(ago(1), answered(StoredSweeps::new(now(), now(), Vec::new())));
    window.run_steps(1);
    assert_eq!(window.state().model().timeline().span().0, ago(80), "the timeline reaches to what is kept");
    window.state_mut().apply(TimeChange::StopAt(ago(60)));
    window.run_steps(2);
    let [past] = &past_wished(&feed)[..] else { panic!("it is asked for once") };
    assert_eq!((&past.missing.host, past.every), (&host, Duration::from_millis(100)));
    assert!(past.missing.from < ago(60) && past.missing.to > ago(60) && past.missing.to < now());
    assert!(window.query_by_label("burn").is_none() && window.query_by_label("older").is_none());
    let sweep = |secs: u64, used: f64| Sweep {
        host: host.clone(),
        time: ago(secs),
        is_whole: true,
        processes: vec![reported(3, "older", used)],
        gone: Vec::new(),
        left_out: 0,
    };
    let stored = StoredSweeps {
        from: past.missing.from,
        to: past.missing.to,
        sweeps: vec![sweep(63, 1.0), sweep(59, 2.0)],
        is_by_minute: false,
    };
    window.state_mut().take(ago(1), answered(stored));
    window.run_steps(3);
    assert!(window.query_by_label("older").is_some(), "that is what ran then");
    // The available spans are requested repeatedly; what is shown stays, even while another tab is in front.
    window.state_mut().take(ago(1), answered(StoredSweeps::new(now(), now(), Vec::new())));
    window.run_steps(2);
    assert!(window.query_by_label("older").is_some(), "and it is what is seen still");
    let less = StoredSweeps::new(now(), now(), Vec::new());
    let moved_on = Ok((Arc::new(less), vec![(ago(50), ago(30))]));
    window.state_mut().take(ago(1), Update::StoredSweeps { host: host.clone(), stored: moved_on });
    window.run_steps(1);
    assert_eq!(
        window.state().model().timeline().time(),
        ago(60),
        "who went back stays, though memory moves on"
    );
    window.state_mut().open_tab("map");
    let later = now().plus(Duration::from_secs(20));
    window.state_mut().update(later, 0.0);
    window.state_mut().take(later, Update::grid(grid()));
    assert_eq!(window.state().model().timeline().time(), ago(60), "the timeline does not move");
    window.state_mut().open_tab("flock");
    window.run_steps(2);
    let _ = past_wished(&feed);
    window.state_mut().apply(TimeChange::StopAt(ago(20)));
    window.run_steps(2);
    let [past] = &past_wished(&feed)[..] else { panic!("another stretch") };
    let gap = Sweep { processes: Vec::new(), ..sweep(24, 0.0) };
    let stored = StoredSweeps::new(past.missing.from, past.missing.to, vec![gap]);
    window.state_mut().take(ago(1), answered(stored));
    window.run_steps(3);
    assert!(window.query_by_label("older").is_none());
    window.get_by_label_contains("Go to").click();
    window.run_steps(3);
    assert_eq!(window.state().model().timeline().time(), ago(41), "the last second of what is kept");
}

#[test]
fn a_channel_that_another_client_altered_is_shown_at_its_rate() {
    let (mut window, _feed) = window();
    let host = HostName::new("demo", "wn01");
    let delay = window.state().model().flock().delay();
    let altered = Some(Altered { rate_hz: 2.0, filter: "cpu > 0.5".into() });
    let subscription = "sub".to_owned();
    let update = Update::Channel { host: host.clone(), subscription: subscription.clone(), altered };
    window.state_mut().take(now(), update);
    window.run_steps(2);
    assert!(window.query_by_label("10 Hz, altered").is_some());
    assert!(
        window.state().model().flock().delay() > delay + Duration::from_millis(300),
        "two sweeps a second"
    );
    let ended =
        |subscription: &str| Update::ChannelEnded { host: host.clone(), subscription: subscription.into() };
    window.state_mut().take(now(), ended("the one before"));
    window.run_steps(2);
    assert!(window.query_by_label("10 Hz, altered").is_some(), "that is another one");
    window.state_mut().take(now(), ended(&subscription));
    window.run_steps(2);
    assert!(window.query_by_label("10 Hz").is_some());
    assert_eq!(window.state().model().flock().delay(), delay);
}

#[test]
fn what_a_host_with_a_wrong_clock_keeps_stands_where_it_was() {
    let (mut window, feed) = window();
    let (ahead, host) = (Duration::from_secs(3_600), HostName::new("demo", "wn01"));
    let sweep = Sweep {
        host: host.clone(),
        time: now().plus(ahead),
        is_whole: true,
        processes: vec![reported(7, "burn", 3.0)],
        gone: Vec::new(),
        left_out: 0,
    };
    window.state_mut().take(now(), Update::Sweeps(vec![sweep]));
    window.run_steps(1);
    let _ = past_wished(&feed);
    let by_host = |secs: u64| now().plus(ahead).minus(Duration::from_secs(secs));
    let stored = StoredSweeps::new(by_host(0), by_host(0), Vec::new());
    let update =
        Update::StoredSweeps { host, stored: Ok((Arc::new(stored), vec![(by_host(80), by_host(40))])) };
    window.state_mut().take(now(), update);
    window.run_steps(1);
    assert_eq!(window.state().model().timeline().span().0, now().minus(Duration::from_secs(80)));
}

/// Time of a second grid.
fn later() -> Time {
    now().plus(Duration::from_millis(1))
}

/// A running call on one of two live hosts.
fn with_call() -> Grid {
    let mut builder = Builder::new(synthetic::latest());
    let domain = builder.domain("demo").expect("there is room");
    let report =
        || Report { cpus: Some(4.0), memory_bytes: Some(4e9), age_secs: Some(0.1), ..Report::default() };
    builder.host(domain, "wn01", HostState::Live, report());
    builder.host(domain, "wn02", HostState::Live, report());
    let mut call = synthetic::call("slurm:1", "ada", &["wn01"]);
    (call.ended, call.state, call.outcome) = (None, wire::call::State::Running, None);
    builder.call(domain, &call);
    builder.build()
}

/// Answer with the processes of these PIDs.
fn served(pids: &[u64]) -> Update {
    let process = |&pid: &u64| Process {
        host: "wn01".into(),
        pid,
        start_ns: Some(9),
        name: format!("rank{pid}"),
        ..Process::default()
    };
    let processes = pids.iter().map(process).collect();
    Update::Served {
        call: "slurm:1".into(),
        by: Arc::new(ServedBy { processes, events: Some(Vec::new()), ..ServedBy::default() }),
    }
}

/// The hosts whose sweeps are requested, if there is a new request.
fn watched(feed: &Feed) -> Option<Vec<String>> {
    let requests = std::iter::from_fn(|| requested(feed));
    let flock = |request| {
        let Request::Flock(watch) = request else { return None };
        Some(watch.hosts.iter().map(|host| host.host.to_string()).collect())
    };
    requests.filter_map(flock).last()
}

#[test]
fn the_processes_of_a_call_are_chosen_in_the_flock_and_what_was_before_is_a_key_away() {
    let (mut window, feed) = window();
    window.state_mut().take(later(), Update::grid(with_call()));
    window.run_steps(3);
    assert_eq!(watched(&feed), Some(vec!["wn01".to_owned(), "wn02".to_owned()]));
    window.state_mut().open_tab("map");
    window.state_mut().apply(Change::Select(Some(Selection::Call("slurm:1".into()))));
    window.run_steps(3);
    window.state_mut().take(now(), served(&[7]));
    window.run_steps(3);
    window.get_by_label("In the flock").click();
    window.run_steps(3);
    assert_eq!(watched(&feed), Some(vec!["wn01".to_owned()]), "its hosts alone");
    assert!(window.query_by_label("1 process of slurm:1").is_some());
    assert!(window.query_by_label("burn").is_some() && window.query_by_label("rest").is_none());
    // The next answer has one process more.
    window.state_mut().take(now(), served(&[7, 8]));
    window.run_steps(3);
    assert!(window.query_by_label("2 processes of slurm:1").is_some());
    assert!(window.query_by_label("rest").is_some() && window.query_by_label("aside").is_none());
    // A single process, selected by its name in the details.
    window.get_by_label_contains("rank8 (8)").click();
    window.run_steps(3);
    assert!(window.query_by_label("1 process of slurm:1").is_some());
    assert!(window.query_by_label("burn").is_none() && window.query_by_label("rest").is_some());
    window.key_press(Key::Escape);
    window.run_steps(3);
    assert_eq!(watched(&feed), Some(vec!["wn01".to_owned(), "wn02".to_owned()]), "as before");
    assert!(window.query_by_label_contains("of slurm:1").is_none());
}

#[test]
fn a_choice_by_hand_stays_whatever_is_reported_of_a_call_that_was_followed() {
    let (mut window, _feed) = window();
    window.state_mut().take(later(), Update::grid(with_call()));
    window.state_mut().apply(Change::Select(Some(Selection::Call("slurm:1".into()))));
    window.run_steps(3);
    window.state_mut().take(now(), served(&[7, 8]));
    window.run_steps(3);
    window.get_by_label("In the flock").click();
    window.run_steps(3);
    window.get_by_label("process 8").click();
    window.run_steps(3);
    assert!(window.query_by_label("1 process chosen").is_some());
    window.state_mut().take(now(), served(&[7, 8, 9]));
    window.run_steps(3);
    assert!(window.query_by_label("1 process chosen").is_some());
}

#[test]
fn a_call_that_is_over_is_followed_at_a_time_when_it_was_at_work() {
    let (mut window, _feed) = window();
    window
        .state_mut()
        .take(now(), Update::grid(synthetic::one_domain(&[synthetic::call("slurm:2", "ada", &["wn01"])])));
    assert!(window.state_mut().select_named("slurm:2"), "the flock is in front: it shows the call");
    window.run_steps(3);
    let timeline = window.state().model().timeline();
    assert_eq!((timeline.time(), timeline.mode()), (synthetic::time_f(59.0), Mode::Paused));
    assert!(window.query_by_label("no process of slurm:2 yet").is_some());
    window.key_press(Key::Escape);
    window.run_steps(3);
    assert_eq!(window.state().model().timeline().mode(), Mode::Live, "as before");
}

#[test]
fn of_the_past_it_is_said_that_a_process_may_have_ended_and_not_how_old_the_newest_sweep_is() {
    let (mut window, _feed) = window();
    assert!(window.query_by_label_contains(" old").is_some());
    window.state_mut().apply(TimeChange::StopAt(now().minus(Duration::from_millis(300))));
    window.state_mut().apply(Change::Search("pid:7".into()));
    window.run_steps(2);
    window.key_press(Key::K);
    window.run_steps(3);
    assert!(window.query_by_label_contains("may have ended since").is_some());
    assert!(window.query_by_label_contains(" old").is_none());
}
