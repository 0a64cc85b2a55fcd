//! The sensor's methods as a client calls them, on a sensor that follows a recorded log.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use rpc::dispatch::Dispatcher;
use rpc::elsewhere::Caller;
use rpc::limits::Limits;
use rpc::value::{Name, Value};
use sensor::config::{Config, FirstStartWord, RawConfig, RawTail};
use sensor::run::Sensor;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const LOG: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../log-filters/logs/slurm/22.05.8-alpha/slurmctld.log");

struct Running {
    _directory: tempfile::TempDir,
    sensor: Sensor,
    dispatcher: Arc<Dispatcher>,
}

impl Running {
    /// A sensor that has read the log.
    async fn start() -> Running {
        let directory = tempfile::tempdir().unwrap();
        let tail = RawTail {
            path: LOG.into(),
            filter: Some("slurmctld".into()),
            cluster: String::new(),
            host: None,
            zone: None,
            start: None,
            roots: Vec::new(),
        };
        let first_start = Some(FirstStartWord::Beginning);
        let raw = RawConfig { first_start, tail: vec![tail], ..RawConfig::default() };
        let config = Config::new(raw, "head", jiff::tz::TimeZone::UTC).unwrap();
        let sensor = Sensor::open(config, &directory.path().join("state")).unwrap();
        let methods = sensor.methods().unwrap();
        let dispatcher = Arc::new(Dispatcher::new(methods, Limits::default(), Arc::default()));
        let running = Running { _directory: directory, sensor, dispatcher };
        let figures = || running.sensor.status().statistics();
        let is_read = || figures().contains(&("lag_bytes", 0)) && !figures().contains(&("lines_total", 0));
        let read = async {
            let mut look = tokio::time::interval(Duration::from_millis(20));
            while !is_read() {
                look.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("the log is not read");
        running
    }

    /// Ids of the calls that the method chooses.
    async fn calls(&self, name: &'static str, wanted: &str) -> Vec<String> {
        let answer = call(&self.dispatcher, "sensor.calls", &[(name, wanted.into())]).await;
        let Some(Value::Array(calls)) = answer.get("calls").cloned() else { panic!("{answer:?}") };
        calls.iter().map(|call| text(call, "id").to_owned()).collect()
    }

    async fn events(&self, params: &[(&'static str, Value)]) -> Vec<Value> {
        let answer = call(&self.dispatcher, "domain.events", params).await;
        assert_eq!(answer, call(&self.dispatcher, "sensor.events", params).await);
        let Some(Value::Array(events)) = answer.get("events").cloned() else { panic!("{answer:?}") };
        events
    }
}

async fn call(dispatcher: &Dispatcher, method: &str, params: &[(&'static str, Value)]) -> Value {
    let params = params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
    dispatcher.call_for(&Caller::client(Duration::from_secs(60)), method, params).await.unwrap()
}

fn text<'a>(event: &'a Value, name: &str) -> &'a str {
    match event.get(name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} is {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_found_by_job_user_and_host() {
    let running = Running::start().await;
    let limit = ("limit", Value::Int(10_000));
    let all = running.events(std::slice::from_ref(&limit)).await;
    let party = |event: &Value, host: &str| {
        [text(event, "from"), text(event, "to")].iter().any(|party| party.split(',').any(|name| name == host))
    };
    let job = all.iter().map(|event| text(event, "job")).find(|job| !job.is_empty()).unwrap().to_owned();
    let user = all.iter().map(|event| text(event, "user")).find(|user| !user.is_empty()).unwrap().to_owned();
    let to = |event: &&Value| !text(event, "to").is_empty();
    let host = text(all.iter().find(to).unwrap(), "to").split(',').next().unwrap().to_owned();
    for (name, wanted) in [("job", &job), ("user", &user), ("host", &host)] {
        let calls = if name == "host" { Vec::new() } else { running.calls(name, wanted).await };
        let fits = |event: &&Value| match name {
            "host" => party(event, wanted),
            _ => text(event, name) == wanted || calls.iter().any(|call| call == text(event, "call")),
        };
        let expected: Vec<_> = all.iter().filter(fits).cloned().collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{name} {wanted} tells nothing apart");
        assert_eq!(
            running.events(&[limit.clone(), (name, wanted.as_str().into())]).await,
            expected,
            "{name} {wanted}"
        );
        assert_eq!(running.events(&[limit.clone(), (name, "none such".into())]).await, [], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_events_that_fit_come_oldest_first_and_are_gone_on_from() {
    let running = Running::start().await;
    let all = running.events(&[("limit", Value::Int(10_000))]).await;
    let ends: Vec<_> = all.iter().filter(|event| text(event, "kind") == "job_end").cloned().collect();
    let last = |limit: i64| [("last", Value::Bool(true)), ("limit", Value::Int(limit))];
    assert!(all.len() > 100 && ends.len() > 5, "{} {}", all.len(), ends.len());
    assert_eq!(running.events(&last(3)).await, all[all.len() - 3..]);
    assert_eq!(running.events(&last(10_000)).await, all);
    let of_kind = [&last(2)[..], &[("kind", "job_end".into())]].concat();
    assert_eq!(running.events(&of_kind).await, ends[ends.len() - 2..]);
    let first = text(&all[0], "call").to_owned();
    let of_first: Vec<_> = all.iter().filter(|event| text(event, "call") == first).cloned().collect();
    let of_call = [&last(100)[..], &[("call", first.as_str().into())]].concat();
    assert_eq!(running.events(&of_call).await, of_first, "far back");
    let answer = call(&running.dispatcher, "sensor.events", &last(1)).await;
    assert_eq!(running.events(&[("cursor", text(&answer, "cursor").into())]).await, []);
    for (name, value) in [("cursor", Value::from("0")), ("wait", Value::Double(1.0))] {
        let params = last(1).into_iter().chain([(name, value)]);
        let params = params.map(|(name, value)| (Name::Borrowed(name), value)).collect();
        let caller = Caller::client(Duration::from_secs(60));
        let fault = running.dispatcher.call_for(&caller, "sensor.events", params).await.unwrap_err();
        assert!(fault.to_string().contains("last: "), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_summary_adds_amounts_and_no_moments() {
    let Running { dispatcher, sensor, _directory } = Running::start().await;
    let shutdown = CancellationToken::new();
    let run = tokio::spawn(sensor.run(shutdown.clone()));
    let summed = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let answer = call(&dispatcher, "domain.summary", &[]).await;
            match answer.get("metrics") {
                Some(Value::Array(metrics)) if metrics.len() > 10 => return metrics.clone(),
                _ => {}
            }
        }
    };
    let metrics = tokio::time::timeout(Duration::from_secs(60), summed).await.expect("no sweep");
    let metric = |name: &str| metrics.iter().find(|metric| text(metric, "name") == name).unwrap();
    for (name, additive) in [("node_boot_time_seconds", false), ("node_load1", true)] {
        assert_eq!(metric(name).get("additive"), Some(&Value::Bool(additive)), "{name}");
        assert_eq!(metric(name).get("sum").is_some(), additive, "{name}");
        assert!(["min", "mean", "max"].iter().all(|figure| metric(name).get(figure).is_some()), "{name}");
    }
    shutdown.cancel();
    run.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_events_is_answered_when_the_sensor_ends() {
    let Running { dispatcher, sensor, _directory } = Running::start().await;
    let shutdown = CancellationToken::new();
    let run = tokio::spawn(sensor.run(shutdown.clone()));
    let waiting = tokio::spawn(async move {
        call(&dispatcher, "sensor.events", &[("cursor", "end".into()), ("wait", Value::Double(25.0))]).await
    });
    shutdown.cancel();
    let answer = tokio::time::timeout(Duration::from_secs(15), waiting).await;
    let answer = answer.expect("it waited on").unwrap();
    assert_eq!(answer.get("events"), Some(&Value::Array(Vec::new())));
    run.await.unwrap().unwrap();
}
