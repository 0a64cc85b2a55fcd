//! A real sensor, queried and controlled as the window does it: results of commands are reported, and the
//! sensor confirms them; its process history.
//!
//! Needs the `visperf` program, which is built if it is missing.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::query;
use system_tests::wait::{self, Seen};
use viewer::feed::{self, Altered, Inbox, Past, Request, Sensors, Update, Watch};
use viewer::flock::past::MissingSpan;
use viewer::flock::sweep::HostName;
use viewer::live::{self, Plan};
use viewer::sensors::health::Health;
use viewer::sensors::{At, Order};

/// Longest wait for an answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector with one metric.
const COLLECTOR: &str = r#"#!/bin/sh
while read -r line; do
    case "$line" in
        *hello*) echo '{"protocol": 1, "name": "one", "kind": "collector", "rate": 1}' ;;
        *) echo '{"figures": [{"name": "one", "value": 1}]}' ;;
    esac
done
"#;

/// A sensor that runs the collector.
fn sensor(folder: &Path) -> (Daemon, SocketAddr) {
    let (program, modules) = (folder.join("collector"), folder.join("modules"));
    std::fs::write(&program, COLLECTOR).expect("the collector is written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it can be run");
    std::fs::create_dir(&modules).expect("there is room");
    std::fs::write(modules.join("one.toml"), format!("run = [{program:?}]\n")).expect("it is named");
    let config = folder.join("visperf.toml");
    std::fs::write(&config, format!("[sensor.modules]\nfolder = {modules:?}\n")).expect("it is configured");
    let arguments: [&OsStr; 3] = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    Daemon::start(&folder.join("state"), &arguments).expect("a sensor answers")
}

/// The first update for which `is_it` returns a value.
fn first_update<T>(inbox: &Inbox, what: &str, is_it: impl Fn(Update) -> Option<T>) -> T {
    wait::until(PATIENCE, what, || {
        let found = inbox.take().filter_map(|(_, update)| is_it(update)).next();
        Ok(found.map_or_else(|| Seen::NotYet("it has not come".to_owned()), Seen::Done))
    })
    .expect("it comes")
}

/// Send a command; returns the message about its result.
fn ordered(inbox: &Inbox, order: Order) -> String {
    assert!(inbox.request(Request::Order(order)));
    first_update(inbox, "what came of an order", |update| {
        let Update::Notice(words) = update else { return None };
        Some(words)
    })
}

fn health(update: Update) -> Option<Result<Health, String>> {
    let Update::Sensor { health, .. } = update else { return None };
    Some(health.map(|health| (*health).clone()))
}

fn asked(address: SocketAddr, method: &str) -> Value {
    query::result(address, method, &json!({})).expect("the sensor answers")
}

#[test]
fn channels_are_altered_and_collectors_stopped_at_a_real_sensor() {
    let folder = tempfile::tempdir().expect("there is room");
    let (daemon, address) = sensor(folder.path());
    let ((feed, inbox), (orders_feed, orders)) = (feed::feed(), feed::feed());
    let plan = Plan { address: address.into(), domains: Vec::new(), is_directory: false };
    live::follow(plan, feed).expect("a thread begins");
    live::flock::follow(address.into(), orders_feed).expect("a thread begins");
    let at = At::Address(address);
    assert!(inbox.request(Request::Sensors(Sensors { sensors: vec![at.clone()], domains: Vec::new() })));
    let known = first_update(&inbox, "a sensor whose collector runs", |update| {
        health(update)?.ok().filter(|health| health.modules.iter().any(|module| module.state == "running"))
    });
    assert_eq!((known.modules[0].name.as_str(), known.modules[0].rate_hz), ("one", Some(1.0)));
    assert!(known.slipped.is_some() && !known.source.is_empty() && known.lag_bytes == Some(0));

    let made = query::result(address, "sensor.subscribe", &json!({ "kind": "process" })).expect("it is made");
    let subscription = made["subscription"].as_str().expect("it has a number").to_owned();
    let alter = |filter: &str| {
        let of = vec![(at.clone(), subscription.clone())];
        Order::Alter { of, rate_hz: 2.5, filter: filter.to_owned() }
    };
    assert_eq!(ordered(&orders, alter("cpu > 0.5")), "1 channel altered");
    let channel = asked(address, "sensor.subscriptions")["subscriptions"][0].clone();
    assert_eq!((&channel["rate"], &channel["filter"]), (&json!(2.5), &json!("cpu > 0.5")));
    let refused = ordered(&orders, alter("cpu >"));
    assert!(refused.starts_with("0 channels altered, 1 not: "), "{refused}");
    let end = Order::End { at, subscription };
    assert_eq!(ordered(&orders, end), "The channel is ended");
    assert_eq!(asked(address, "sensor.subscriptions")["subscriptions"], json!([]));

    let module = |starts| Order::Module { at: address, name: "one".into(), starts };
    assert_eq!(ordered(&orders, module(false)), "one is stopped");
    assert_eq!(asked(address, "sensor.modules")["modules"][0]["state"], "stopped");
    assert_eq!(ordered(&orders, module(true)), "one is started");
    let none = Order::Module { at: address, name: "two".into(), starts: true };
    assert!(ordered(&orders, none).starts_with("two is not started: "));

    daemon.kill().expect("it ends");
    let trouble = first_update(&inbox, "a sensor that is gone", |update| health(update)?.err());
    assert!(trouble.contains("no daemon answers"), "{trouble}");
}

#[test]
fn the_past_of_a_real_sensor_is_shown_and_a_channel_goes_on_as_it_was_altered() {
    let folder = tempfile::tempdir().expect("there is room");
    let (daemon, address) = sensor(folder.path());
    let (feed, inbox) = feed::feed();
    live::flock::follow(address.into(), feed).expect("a thread begins");
    let name = asked(address, "daemon.info")["host"].as_str().expect("it has a name").to_owned();
    let host = HostName::new("", &name);
    assert!(inbox.request(Request::Flock(Watch { hosts: vec![host.clone()], rate_hz: 10.0 })));
    let channel = |wanted: fn(&Option<Altered>) -> bool, other: String| {
        first_update(&inbox, "a channel", move |update| {
            let Update::Channel { subscription: id, altered, .. } = update else { return None };
            (wanted(&altered) && id != other).then_some(id)
        })
    };
    let id = channel(Option::is_none, String::new());

    // Some seconds before a sweep that was received live, and not the first one: then several are in the past.
    let last = |update| {
        let Update::Sweeps(sweeps) = update else { return None };
        Some(sweeps.last()?.time)
    };
    let first = first_update(&inbox, "a sweep", last);
    let swept = first_update(&inbox, "a sweep a second later", |update| {
        last(update).filter(|time| *time > first.plus(Duration::from_secs(1)))
    });
    let missing = MissingSpan { host, from: swept.minus(Duration::from_secs(20)), to: swept };
    let past = Past { missing: missing.clone(), every: Duration::ZERO };
    let (stored, spans) = wait::until(PATIENCE, "the past", || {
        assert!(inbox.request(Request::Past(past.clone())));
        let stored = first_update(&inbox, "an answer", |update| {
            let Update::StoredSweeps { stored, .. } = update else { return None };
            Some(stored.expect("the sensor keeps something"))
        });
        // A single sweep has no span yet.
        let is_there = stored.0.sweeps.len() > 1 && !stored.1.is_empty();
        Ok(if is_there { Seen::Done(stored) } else { Seen::NotYet("no sweeps".to_owned()) })
    })
    .expect("it comes");
    assert_eq!((stored.from, stored.to), (missing.from, missing.to));
    let first = stored.sweeps.iter().find(|sweep| !sweep.processes.is_empty()).expect("a process runs");
    assert!(first.is_whole && first.processes.iter().any(|process| process.pid == std::process::id()));
    assert!(spans.iter().any(|(from, to)| *from < missing.to && *to > missing.from), "{spans:?}");
    for (params, text) in [
        (json!({ "from": 5, "to": 1 }), "to: expected a time not before from, 5, found 1"),
        (
            json!({ "from": 1, "to": 5, "every": -1 }),
            "every: expected a span: seconds, or a number with its unit",
        ),
        (json!({ "from": 1, "to": 5, "every": "2h" }), "every: expected 0 to 3600 seconds, found 7200"),
    ] {
        let refused = query::result(address, "sensor.past_processes", &params).expect_err("it is refused");
        assert!(refused.to_string().contains(text), "{refused}");
    }

    let alter = json!({ "subscription": id, "rate": 2.5, "filter": "cpu > 0.25" });
    query::result(address, "sensor.alter", &alter).expect("it is altered");
    let is_altered: fn(&Option<Altered>) -> bool =
        |altered| *altered == Some(Altered { rate_hz: 2.5, filter: "cpu > 0.25".into() });
    channel(is_altered, String::new());
    query::result(address, "sensor.unsubscribe", &json!({ "subscription": id })).expect("it ends");
    let again = channel(is_altered, id);
    let known = asked(address, "sensor.subscriptions")["subscriptions"].clone();
    // Clients on TCP are not shown the ids of subscriptions.
    let is_it = |one: &&Value| one["rate"] == json!(2.5) && one["filter"] == json!("cpu > 0.25");
    assert!(
        known.as_array().is_some_and(|all| all.iter().any(|one| is_it(&one))),
        "{again} is there: {known}"
    );
    daemon.kill().expect("it ends");
}
