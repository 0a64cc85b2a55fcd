//! The flock's tab, worked as a person works it: who is asked for, what is listed, and that nothing is ended without a yes.

use egui::Key;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use std::time::Duration;
use viewer::app::settings::Settings;
use viewer::app::{App, Source};
use viewer::feed::{Feed, Kill, Rested, Update, Wish, feed};
use viewer::flock::measure::Usage;
use viewer::flock::sweep::{HostName, Reported, Sweep};
use viewer::grid::builder::Builder;
use viewer::grid::place::{HostState, Report};
use viewer::invented;
use wire::control::Signal;
use wire::time::Time;

fn now() -> Time {
    invented::time_f(100.0)
}

fn reported(pid: u32, name: &str, cpu_secs: f64) -> Reported {
    let usage = Usage { cpu_secs, rss_bytes: 1e9, ..Usage::default() };
    Reported { pid, start_ns: 9, name: name.to_owned(), threads: 3, usage, ..Reported::default() }
}

/// A window on two hosts, of which one is live, and the end at which its wishes come out.
fn window() -> (Harness<'static, App>, Feed) {
    let source = Source::Daemon("127.0.0.1:7317".into());
    let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now());
    let (feed, inbox) = feed();
    app.feed_flock(inbox);
    let mut builder = Builder::new(invented::latest());
    let domain = builder.domain("demo").expect("there is room");
    let report =
        || Report { cpus: Some(4.0), memory_bytes: Some(4e9), age_secs: Some(0.1), ..Report::default() };
    builder.host(domain, "wn01", HostState::Live, report());
    builder.host(domain, "wn02", HostState::Down, report());
    app.take(now(), Update::grid(builder.build()));
    app.open_tab("flock");
    let mut harness = crate::window(app, now());
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

fn wished(feed: &Feed) -> Option<Wish> {
    match feed.rest(Duration::ZERO) {
        Rested::Wished(wish) => Some(wish),
        Rested::Whole | Rested::Alone => None,
    }
}

#[test]
fn live_hosts_are_swept_as_soon_as_the_flock_is_seen_and_their_programs_listed() {
    let (mut window, feed) = window();
    let Some(Wish::Flock(watch)) = wished(&feed) else { panic!("nothing is asked for") };
    assert_eq!((watch.hosts, watch.rate_hz), (vec![HostName::new("demo", "wn01")], 10.0));
    assert!(window.query_by_label("burn").is_some() && window.query_by_label("rest").is_some());
    assert!(window.query_by_label("process 7").is_none());
    window.get_by_label("burn").click();
    window.run_steps(3);
    assert!(window.query_by_label("process 7").is_some());
    window.state_mut().search("program:rest");
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
    window.state_mut().stop_at(now());
    window.run_steps(2);
    assert_eq!(order(&window), ["burn", "aside", "rest"]);
    window.get_by_label("cores ⏷").click();
    window.run_steps(3);
    assert_eq!(order(&window), ["aside", "burn", "rest"]);
}

#[test]
fn a_process_is_ended_only_after_a_yes_and_it_is_the_one_that_was_shown() {
    let (mut window, feed) = window();
    while wished(&feed).is_some() {}
    window.key_press(Key::K);
    window.run_steps(3);
    assert!(window.query_by_label("End this process?").is_none(), "it is not said which");
    window.state_mut().search("pid:7");
    window.run_steps(2);
    window.key_press(Key::K);
    window.run_steps(3);
    assert!(window.query_by_label_contains("burn (7)").is_some(), "it says which");
    window.get_by_label("Leave it").click();
    window.run_steps(3);
    assert_eq!(wished(&feed), None);
    window.key_press(Key::K);
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    let (host, name) = (HostName::new("demo", "wn01"), "burn".to_owned());
    let kill = Kill { host, pid: 7, start_ns: 9, name, signal: Signal::Term };
    assert_eq!(wished(&feed), Some(Wish::Kill(kill)));
    assert!(window.query_by_label("End this process?").is_none());
}
