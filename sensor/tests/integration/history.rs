//! The history of a sensor: what was sampled is answered, also after a restart.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::fault::Fault;
use rpc::limits::Limits;
use sensor::config::{Config, RawConfig};
use sensor::run::{Sensor, Status};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

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
