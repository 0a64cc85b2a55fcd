//! The history of a sensor: what was sampled is answered, also after a restart.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::fault::Fault;
use rpc::limits::Limits;
use sensor::config::{Config, RawConfig};
use sensor::history::exported::{Exported, ExportedDays, TakeMinute, WantedMinutes};
use sensor::history::sweeps;
use sensor::run::{Sensor, Status};
use sensor::sample::table::{Rows, metric};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::reader::Selection;
use store::tier_files::Limit;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::id::HostName;
use wire::sample::Semantics;
use wire::time::Time;

/// Timeout for what takes a second.
const PATIENCE: Duration = Duration::from_secs(60);

struct Running {
    dispatcher: Arc<Dispatcher>,
    status: Status,
    shutdown: CancellationToken,
    run: JoinHandle<Result<(), sensor::run::Error>>,
}

impl Running {
    fn start(state: &Path, is_on: bool) -> Running {
        let mut raw = RawConfig { sample_hz: Some(10.0), ..RawConfig::default() };
        raw.history.on = Some(is_on);
        let config = Config::new(raw, "wn01", jiff::tz::TimeZone::UTC).unwrap();
        let sensor = Sensor::open(config, state).unwrap();
        let methods = sensor.methods().unwrap();
        let dispatcher = Arc::new(Dispatcher::new(methods, Limits::default(), Arc::default()));
        let (status, shutdown) = (sensor.status(), CancellationToken::new());
        let run = tokio::spawn(sensor.run(shutdown.clone()));
        Running { dispatcher, status, shutdown, run }
    }

    async fn ask(&self, step: f64) -> Result<Value, Fault> {
        self.ask_with(&[("name", "node_load1".into()), ("step", Value::Double(step))]).await
    }

    async fn ask_with(&self, params: &[(&'static str, Value)]) -> Result<Value, Fault> {
        let params: Vec<(Name, Value)> =
            params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
        let caller = Caller::client(PATIENCE);
        self.dispatcher.call_for(&caller, "sensor.history", params).await
    }

    /// Values of the load, once there are at least so many.
    async fn values(&self, step: f64, least: usize) -> Vec<Value> {
        let found = async {
            let mut look = tokio::time::interval(Duration::from_millis(50));
            loop {
                look.tick().await;
                let Ok(answer) = self.ask(step).await else { continue };
                let Some(Value::Array(series)) = answer.get("series") else { panic!("{answer:?}") };
                let samples = series.first().and_then(|series| series.get("samples"));
                match samples {
                    Some(Value::Array(samples)) if samples.len() >= least => return samples.clone(),
                    _ => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("so many values")
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.run.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_answered_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let running = Running::start(&state, true);
    let before = running.values(0.0, 20).await;
    running.end().await;
    let running = Running::start(&state, true);
    let after = running.values(0.0, before.len() + 1).await;
    assert_eq!(after[..before.len()], before, "what was answered is stored");
    assert!(!running.values(60.0, 1).await.is_empty());
    running.end().await;
}

/// A place with no day, or with all days.
struct Place(bool);

impl ExportedDays for Place {
    fn spans(&self) -> (Vec<(Time, Time)>, Option<String>) {
        (self.whole(None), None)
    }

    fn whole(&self, _: Option<&HostName>) -> Vec<(Time, Time)> {
        let all = (Time::from_micros(0), Time::from_micros(i64::MAX));
        self.0.then_some(all).into_iter().collect()
    }

    fn read(&self, _: &WantedMinutes, _: &mut TakeMinute<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Stores three days of sweeps, of whose minutes one day is retained; returns the age of the oldest minute then, in hours.
fn oldest_minute(place: Option<bool>) -> (u64, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let day = Duration::from_secs(86_400);
    let limits = [Limit { bytes: 64 << 20, age: day }; 3];
    let (host, exported) = (HostName::try_from("wn01").unwrap(), Exported::default());
    place.into_iter().for_each(|has_all| exported.set(Box::new(Place(has_all))));
    let (worker, sink, handle) = sweeps::set_up(Some(limits), folder.path(), (host, exported)).unwrap();
    let storing = std::thread::spawn(move || worker.run());
    handle.await_opening();
    let load = metric("node_load1", "", Semantics::Gauge, &[]);
    let (mut rows, mut time) = (Rows::default(), Time::from_micros(1_795_000_000_000_000));
    let (end, mut number) = (time.plus(day * 3), 0);
    while time < end {
        rows.push_whole(&load, 7);
        let table = Arc::new(rows.finish(time));
        sink.store(&table);
        // The queue has room for twice as many.
        number += 1;
        let selection = Selection { host: &|_| true, metric: &|_| true, since: time, until: end };
        let is_stored = || !handle.reader().unwrap().values(&selection, 9).unwrap().series.is_empty();
        while number % 1000 == 0 && !is_stored() {
            std::thread::sleep(Duration::from_millis(1));
        }
        time = time.plus(Duration::from_secs(60));
    }
    drop(sink);
    storing.join().unwrap();
    assert_eq!(handle.dropped_total(), 0);
    let oldest = handle.reader().unwrap().oldest(&|_| true)[1].unwrap();
    (end.since(oldest).as_secs() / 3600, handle.unexported())
}

#[test]
fn minutes_are_retained_beyond_their_age_until_they_are_exported() {
    let (age, said) = oldest_minute(Some(false));
    assert_eq!(age, 72);
    assert!(
        said.unwrap().contains("minutes of more than 1.0 days are retained, because they are not exported")
    );
    for place in [None, Some(true)] {
        let (age, said) = oldest_minute(place);
        assert!(age < 48, "{place:?}: {age} h");
        assert_eq!(said, None, "{place:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_is_off_or_cannot_be_opened_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&folder.path().join("off"), false);
    let fault = running.ask(60.0).await.expect_err("it is off");
    assert!(fault.message.contains("turned off"), "{}", fault.message);
    running.end().await;

    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("history"), "in its place").unwrap();
    let running = Running::start(&state, true);
    let said = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        while !running.status.health().iter().any(|health| health.contains("history: ")) {
            look.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, said).await.expect("the failure is in the health");
    let fault = running.ask(60.0).await.expect_err("it is not open");
    assert_eq!(fault.code, wire::fault::UNAVAILABLE, "{}", fault.message);
    assert!(fault.message.contains("not open"), "{}", fault.message);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_summaries_of_all_series_and_mistakes_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&folder.path().join("state"), true);
    running.values(60.0, 1).await;
    let step = ("step", Value::Double(60.0));
    let summary = ("aggregate", Value::from("summary"));
    let page = [("cursor", Value::from("")), step.clone(), summary.clone(), ("limit", Value::Int(1))];
    let page = running.ask_with(&page).await.unwrap();
    let whole = running.ask_with(&[step.clone(), summary, ("limit", Value::Int(10_000))]).await.unwrap();
    let series = |answer: &Value| match answer.get("series") {
        Some(Value::Array(series)) => series.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(page.get("next"), None, "all fit");
    let named = |all: Vec<Value>| all.iter().map(|one| one.get("name").cloned()).collect::<Vec<_>>();
    assert_eq!(named(series(&page)), named(series(&whole)), "whatever the limit");
    let load = series(&page).into_iter().find(|one| one.get("name") == Some(&"node_load1".into())).unwrap();
    let Some(Value::Array(summaries)) = load.get("summaries") else { panic!("{load:?}") };
    assert!(
        ["time", "count", "min", "max", "sum", "last"].iter().all(|name| summaries[0].get(name).is_some())
    );
    assert_eq!((summaries[0].get("increase"), load.get("samples")), (None, Some(&Value::Array(Vec::new()))));
    for (wrong, text) in [
        (vec![("cursor", Value::from("x")), step.clone()], "cursor: expected a cursor as an answer gave it"),
        (vec![("cursor", Value::from("")), step.clone(), ("top", Value::Int(3))], "no `top`"),
        (vec![("cursor", Value::from("")), step, ("aggregate", "p95".into())], "no percentile"),
        (vec![("cursor", Value::from("")), ("step", Value::Double(0.0))], "a step above 0"),
    ] {
        let fault = running.ask_with(&wrong).await.expect_err(text);
        assert!(fault.message.contains(text), "{}", fault.message);
    }
    running.end().await;
}
