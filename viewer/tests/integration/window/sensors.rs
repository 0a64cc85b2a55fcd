//! The sensors tab: silent sensors are visible, and nothing is stopped without confirmation.

use egui::Key;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use viewer::app::settings::Settings;
use viewer::app::{App, Source};
use viewer::feed::{self, Feed, Request, Update, WakeReason};
use viewer::flock::sweep::HostName;
use viewer::grid::builder::Builder;
use viewer::grid::place::{HostState, Report};
use viewer::model::SensorsChange;
use viewer::sensors::health::{Channel, Health, Module};
use viewer::sensors::{At, Order};
use viewer::synthetic;

const NOW_SECS: f64 = 100.0;

fn address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7317))
}

/// A grid of two hosts, the second with lost events, and the feeds that receive the window's requests.
fn app() -> (App, Feed, Feed) {
    let now = synthetic::time_f(NOW_SECS);
    let ((feed, inbox), (orders, flock)) = (feed::feed(), feed::feed());
    let source = Source::Daemon(address().to_string());
    let mut app = App::new(source, Some(inbox), Settings::default(), jiff::tz::TimeZone::UTC, now);
    app.feed_flock(flock);
    let mut builder = Builder::new(synthetic::latest());
    let domain = builder.domain("Alpha").expect("there is room");
    for (name, lost) in [("wn01", 0), ("wn02", 7)] {
        let report = Report { age_secs: Some(0.5), events_lost: Some(lost), ..Report::default() };
        builder.host(domain, name, HostState::Live, report);
    }
    app.take(now, Update::grid(builder.build()));
    app.open_tab("sensors");
    (app, feed, orders)
}

/// Requests of the window, other than those for the flock and the grid.
fn requests(feed: &Feed) -> Vec<Request> {
    let requested = std::iter::from_fn(|| match feed.rest(Duration::ZERO) {
        WakeReason::Requested(request) => Some(request),
        WakeReason::Timeout | WakeReason::Closed => None,
    });
    requested
        .filter(|request| matches!(request, Request::Sensors(_) | Request::Order(_) | Request::Drop(_)))
        .collect()
}

#[test]
fn a_sensor_that_says_nothing_for_three_seconds_is_seen_to_be_silent() {
    let (app, ..) = app();
    let window = crate::window::window(app, synthetic::time_f(NOW_SECS + 2.4));
    assert!(window.query_by_label("wn01 live").is_some());
    let window = crate::window::window(window.into_state(), synthetic::time_f(NOW_SECS + 2.6));
    assert!(window.query_by_label("wn01 silent").is_some());
    assert!(window.query_by_label_contains("2 silent or down").is_some());
}

#[test]
fn what_is_in_trouble_is_counted_and_can_be_seen_alone() {
    let (app, feed, _orders) = app();
    let mut window = crate::window::window(app, synthetic::time_f(NOW_SECS));
    assert!(window.query_by_label("1 to be looked at").is_some());
    let Some(Request::Sensors(wanted)) = requests(&feed).pop() else { panic!("sensors are asked") };
    let hosts = ["wn01", "wn02"].map(|name| At::Host(HostName::new("Alpha", name)));
    let all: Vec<At> = std::iter::once(At::Address(address())).chain(hosts).collect();
    assert_eq!((wanted.sensors, wanted.domains), (all, vec!["Alpha".to_owned()]));
    window.get_by_label("Only those in trouble").click();
    window.run_steps(3);
    assert!(window.query_by_label("wn01 live").is_none() && window.query_by_label("wn02 live").is_some());
}

#[test]
fn a_sensor_is_added_by_its_address_and_dropped_after_a_yes() {
    let (app, ..) = app();
    let mut window = crate::window::window(app, synthetic::time_f(NOW_SECS));
    let typed = |window: &mut Harness<'static, App>, text: &str| {
        {
            let mut fields = window.query_all_by_role(egui::accesskit::Role::TextInput);
            // The other fields are the search at the top, and the one below the hosts at the left.
            let field = fields.find(|field| field.rect().top() > 40.0 && field.rect().left() > 300.0);
            field.expect("there is a field in the tab").click();
        }
        window.run_steps(2);
        window.key_press_modifiers(egui::Modifiers::COMMAND, Key::A);
        window.event(egui::Event::Text(text.to_owned()));
        window.run_steps(2);
        window.key_press(Key::Enter);
        window.run_steps(3);
    };
    typed(&mut window, "10.0.0.1:7317");
    assert!(window.query_by_label_contains("loopback only").is_some());
    assert!(window.state().model().sensors().added().is_empty());
    let other = SocketAddr::from(([127, 0, 0, 1], 7327));
    typed(&mut window, "localhost:7327");
    assert_eq!(window.state().model().sensors().added(), [other]);
    assert!(window.query_by_label("127.0.0.1:7327 –").is_some());
    for (answer, left) in [("Leave it", 1), ("Drop it", 0)] {
        window.get_by_label("Drop this sensor").click();
        window.run_steps(3);
        assert_eq!(window.state().model().sensors().added().len(), 1, "it is asked first");
        window.get_by_label(answer).click();
        window.run_steps(3);
        assert_eq!(window.state().model().sensors().added().len(), left, "{answer}");
    }
}

#[test]
fn a_collector_is_stopped_after_a_yes_and_started_at_once() {
    let (mut app, _feed, orders) = app();
    let module =
        |name: &str, state: &str| Module { name: name.into(), state: state.into(), ..Module::default() };
    let modules = vec![module("gpu", "running"), module("mail", "stopped")];
    let health = Arc::new(Health { modules, ..Health::default() });
    let at = At::Address(address());
    app.take(synthetic::time_f(NOW_SECS), Update::Sensor { at: at.clone(), health: Ok(health) });
    app.apply(SensorsChange::Select(Some(at)));
    let mut window = crate::window::window(app, synthetic::time_f(NOW_SECS));
    window.get_by_label("Start").click();
    window.run_steps(3);
    let order =
        |name: &str, starts| Request::Order(Order::Module { at: address(), name: name.into(), starts });
    assert_eq!(requests(&orders), [order("mail", true)]);
    window.get_by_label("Stop").click();
    window.run_steps(3);
    assert!(requests(&orders).is_empty() && window.query_by_label("Stop gpu?").is_some());
    window.key_press(Key::Escape);
    window.run_steps(3);
    assert!(window.query_by_label("Stop gpu?").is_none() && requests(&orders).is_empty());
    window.get_by_label("Stop").click();
    window.run_steps(3);
    window.get_by_label("Stop it").click();
    window.run_steps(3);
    assert_eq!(requests(&orders), [order("gpu", false)]);
}

#[test]
fn return_stops_nothing_that_was_not_asked_about_and_leaves_what_is_to_be_left() {
    let (mut app, _feed, orders) = app();
    let modules = vec![Module { name: "gpu".into(), state: "running".into(), ..Module::default() }];
    let at = At::Address(address());
    let health = Ok(Arc::new(Health { modules, ..Health::default() }));
    app.take(synthetic::time_f(NOW_SECS), Update::Sensor { at: at.clone(), health });
    app.apply(SensorsChange::Select(Some(at)));
    let mut window = crate::window::window(app, synthetic::time_f(NOW_SECS));
    for answer in ["Leave it", "Stop it"] {
        window.get_by_label("Stop").focus();
        window.run_steps(2);
        window.key_press(Key::Enter);
        window.run_steps(3);
        assert!(
            window.query_by_label("Stop gpu?").is_some() && requests(&orders).is_empty(),
            "it is asked first"
        );
        window.key_press(Key::Num1);
        window.run_steps(2);
        assert!(window.query_by_label("Stop gpu?").is_some(), "other keys do nothing");
        window.get_by_label(answer).focus();
        window.run_steps(2);
        window.key_press(Key::Enter);
        window.run_steps(3);
        assert!(window.query_by_label("Stop gpu?").is_none());
        assert_eq!(requests(&orders).len(), usize::from(answer == "Stop it"), "{answer}");
    }
}

#[test]
fn why_a_host_cannot_be_asked_is_shown() {
    let (mut app, ..) = app();
    let at = At::Host(HostName::new("Alpha", "wn01"));
    app.apply(SensorsChange::Select(Some(at.clone())));
    let mut window = crate::window::window(app, synthetic::time_f(NOW_SECS));
    assert!(window.query_by_label("Asking it …").is_some());
    let health = Err("wn01 did not answer".to_owned());
    window.state_mut().take(synthetic::time_f(NOW_SECS), Update::Sensor { at, health });
    window.run_steps(2);
    assert!(window.query_by_label("Asking it …").is_none());
    assert!(window.query_by_label_contains("cannot be asked: wn01 did not answer").is_some());
}

#[test]
fn the_filter_of_a_channel_is_changed_and_what_the_sensor_made_for_itself_is_not() {
    let (mut app, _feed, orders) = app();
    let at = At::Host(HostName::new("Alpha", "wn01"));
    let own = Channel {
        subscription: Some("s1".into()),
        kind: "process".into(),
        rate_hz: 10.0,
        filter: "cpu > 0.5".into(),
        ..Channel::default()
    };
    let of_recorder = Channel { owner: "recorder".into(), kind: "process".into(), ..Channel::default() };
    let health = Arc::new(Health { channels: vec![own, of_recorder], ..Health::default() });
    app.take(synthetic::time_f(NOW_SECS), Update::Sensor { at: at.clone(), health: Ok(health) });
    app.apply(SensorsChange::Select(Some(at.clone())));
    let mut window = crate::window::window(app, synthetic::time_f(NOW_SECS));
    assert_eq!(window.query_all_by_label("Apply").count(), 1);
    window.get_by_label("Apply").click();
    window.run_steps(2);
    assert!(requests(&orders).is_empty(), "nothing is other than it was");
    let has_filter =
        |field: &egui_kittest::Node<'_>| field.accesskit_node().value().as_deref() == Some("cpu > 0.5");
    let mut fields = window.query_all_by_role(egui::accesskit::Role::TextInput);
    fields.find(has_filter).expect("the filter can be typed").click();
    drop(fields);
    window.run_steps(2);
    window.key_press(Key::End);
    window.event(egui::Event::Text("1".to_owned()));
    window.run_steps(2);
    window.get_by_label("Apply").click();
    window.run_steps(2);
    let of = vec![(at.clone(), "s1".to_owned())];
    assert_eq!(
        requests(&orders),
        [Request::Order(Order::Alter { of, rate_hz: 10.0, filter: "cpu > 0.51".into() })]
    );
    window.get_by_label("End").click();
    window.run_steps(3);
    assert!(requests(&orders).is_empty());
    window.key_press(Key::Enter);
    window.run_steps(3);
    assert_eq!(requests(&orders), [Request::Order(Order::End { at, subscription: "s1".into() })]);
}
