//! Details of a selected call, and their links.

use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use std::sync::Arc;
use viewer::app::settings::Settings;
use viewer::app::{App, Selection, Source};
use viewer::feed::{Feed, Request, Update, WakeReason};
use viewer::grid::builder::Builder;
use viewer::grid::place::{HostState, Report};
use viewer::model::Change;
use viewer::served::Event;
use viewer::served::ServedBy;
use viewer::timeline::Mode;
use viewer::{feed, synthetic};
use wire::event::Kind;

const NOW_SECS: f64 = 90.0;

/// A window on a daemon that has sent nothing yet, and the feed of the daemon's data.
fn app() -> (App, Feed) {
    let now = synthetic::time_f(NOW_SECS);
    let source = Source::Daemon("127.0.0.1:7317".into());
    let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now);
    let (feed, inbox) = feed::feed();
    app.feed_flock(inbox);
    (app, feed)
}

fn grid() -> Update {
    let calls =
        [synthetic::call("slurm:1", "ada", &["wn02", "wn03"]), synthetic::call("slurm:2", "bob", &["wn01"])];
    let mut builder = Builder::new(synthetic::latest());
    let domain = builder.domain("Alpha").expect("there is room");
    // One host of the first call reports; that of the second is known only from its call.
    builder.host(domain, "wn02", HostState::Live, Report::default());
    calls.iter().for_each(|call| builder.call(domain, call));
    Update::grid(builder.build())
}

fn event(secs: f64, kind: Kind, outcome: &str) -> Event {
    let (from, to, source) = ("ada".to_owned(), "wn02".to_owned(), "head:/var/log/slurmctld.log".to_owned());
    let attributes = vec!["exit: 0".to_owned()];
    Event { time: synthetic::time_f(secs), kind, from, to, outcome: outcome.to_owned(), source, attributes }
}

#[test]
fn the_events_of_a_call_are_shown_and_its_hosts_graphs_span_its_life() {
    let (mut made, feed) = app();
    made.take(synthetic::time_f(NOW_SECS), grid());
    made.apply(Change::Select(Some(Selection::Call("slurm:1".into()))));
    let mut window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    let WakeReason::Requested(Request::Served(wanted)) = feed.rest(std::time::Duration::ZERO) else {
        panic!("it is asked about")
    };
    assert_eq!((wanted.call.as_str(), wanted.domain.as_str(), wanted.hosts.len()), ("slurm:1", "Alpha", 2));
    let events = vec![event(10.0, Kind::JobSubmit, ""), event(60.0, Kind::JobEnd, "ok")];
    let by = ServedBy { events: Some(events), ..ServedBy::default() };
    feed.send(Update::Served { call: "slurm:1".into(), by: Arc::new(by) });
    window.run_steps(3);
    for label in ["the last 2 of 3 events", "job submit", "job end ok"] {
        assert!(window.query_by_label(label).is_some(), "{label:?} is shown");
    }
    let before = window.state().model().graphs().choice().clone();
    window.get_all_by_label("Graphs").last().expect("a button").click();
    window.run_steps(3);
    let (from, to) =
        window.state().model().graphs().choice().span.range(window.state().model().timeline().time());
    assert_eq!((from, to), (synthetic::time_f(20.0), synthetic::time_f(60.0)), "from its begin to its end");
    assert_eq!(window.state().model().timeline().mode(), Mode::Paused, "and stand there");
    window.get_by_label("All chosen").click();
    window.run_steps(3);
    assert_eq!(*window.state().model().graphs().choice(), before);
    assert_eq!(window.state().model().timeline().mode(), Mode::Live);
    let shown = |window: &Harness<'_, App>| window.query_all_by_label("Graphs").count();
    let with_button = shown(&window);
    window.state_mut().apply(Change::Select(Some(Selection::Call("slurm:2".into()))));
    window.run_steps(3);
    assert_eq!(
        shown(&window),
        with_button - 1,
        "of its host there are no figures: the tab alone has this name"
    );
}

#[test]
fn what_is_named_at_the_start_is_chosen_when_it_is_there() {
    let (mut made, _feed) = app();
    assert!(made.select_named("slurm:2"), "nothing is known yet");
    made.take(synthetic::time_f(NOW_SECS), Update::grid(synthetic::one_domain(&[])));
    made.take(synthetic::time_f(NOW_SECS), grid());
    assert!(!made.select_named("slurm:3"), "now it is known that there is none");
    let window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    assert!(window.query_by_label("To its begin").is_some());
}

#[test]
fn a_call_that_is_chosen_elsewhere_is_brought_into_view_in_the_table_once() {
    let (mut made, _feed) = app();
    let calls: Vec<_> =
        (0..200).map(|n| synthetic::call(&format!("slurm:{n:03}"), "ada", &["wn01"])).collect();
    made.take(synthetic::time_f(NOW_SECS), Update::grid(synthetic::one_domain(&calls)));
    made.open_tab("calls");
    let mut window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    let is_seen = |window: &Harness<'_, App>, id: &str| {
        window.query_all_by_label(id).any(|node| node.rect().left() < 600.0 && node.rect().height() < 30.0)
    };
    let (newest, oldest) = ("slurm:199", "slurm:000");
    assert!(is_seen(&window, newest) && !is_seen(&window, oldest));
    window.state_mut().apply(Change::Select(Some(Selection::Call(oldest.into()))));
    window.run_steps(3);
    assert!(!is_seen(&window, newest) && is_seen(&window, oldest));
    // The list stays where the user scrolled to.
    window.hover_at(egui::pos2(500.0, 400.0));
    window.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: egui::vec2(0.0, 1e5),
        modifiers: egui::Modifiers::NONE,
        phase: egui::TouchPhase::Move,
    });
    window.run_steps(30);
    assert!(is_seen(&window, newest) && !is_seen(&window, oldest));
}
