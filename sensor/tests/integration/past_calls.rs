//! Calls beyond what memory holds: all are listed once, after a restart too, and a damaged database costs only those
//! that it alone had.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use rpc::codec::value::{Name, Value};
use rpc::dispatch::Dispatcher;
use rpc::dispatch::forward::Caller;
use rpc::limits::Limits;
use sensor::config::{Config, FirstStartWord, RawConfig, RawTail};
use sensor::run::{Sensor, Status};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::query::Viewer;

/// More than a sensor holds in memory.
const CALLS: u32 = 26_000;

struct Running {
    dispatcher: Dispatcher,
    status: Status,
    shutdown: CancellationToken,
    run: JoinHandle<Result<(), sensor::run::Error>>,
}

impl Running {
    /// Starts a sensor of this log, which has read it.
    async fn start(folder: &Path) -> Running {
        let tail = RawTail {
            path: folder.join("jobcomp.log").to_str().unwrap().to_owned(),
            filter: Some("slurm-jobcomp".into()),
            cluster: String::new(),
            host: None,
            zone: None,
            start: None,
            roots: Vec::new(),
        };
        let raw = RawConfig {
            first_start: Some(FirstStartWord::Beginning),
            history: sensor::config::history::RawConfig {
                call_budget_mib: Some(64),
                ..sensor::config::history::RawConfig::default()
            },
            tail: vec![tail],
            ..RawConfig::default()
        };
        let config = Config::new(raw, "head", jiff::tz::TimeZone::UTC).unwrap();
        let sensor = Sensor::open(config, &folder.join("state")).unwrap();
        let dispatcher = Dispatcher::new(sensor.methods().unwrap(), Limits::default(), Arc::default());
        let (status, shutdown) = (sensor.status(), CancellationToken::new());
        let run = tokio::spawn(sensor.run(shutdown.clone()));
        let running = Running { dispatcher, status, shutdown, run };
        let is_read = || running.status.lag_bytes() == 0 && running.status.events_next() >= u64::from(CALLS);
        let read = async {
            let mut look = tokio::time::interval(Duration::from_millis(20));
            while !is_read() {
                look.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), read).await.expect("the log is not read");
        running
    }

    async fn ask(&self, viewer: Viewer, params: &[(&'static str, Value)]) -> Value {
        let params = params.iter().map(|(name, value)| (Name::Borrowed(*name), value.clone())).collect();
        let caller = Caller { viewer, ..Caller::client(Duration::from_secs(60)) };
        self.dispatcher.call_for(&caller, "sensor.calls", params).await.unwrap()
    }

    /// Job numbers of all calls that this viewer sees, read page by page.
    async fn jobs(&self, viewer: Viewer) -> Vec<u32> {
        let (mut cursor, mut jobs) = (None::<Value>, Vec::new());
        loop {
            let mut params = vec![("limit", Value::Int(5_000)), ("order", "oldest".into())];
            params.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let page = self.ask(viewer, &params).await;
            let Some(Value::Array(calls)) = page.get("calls") else { panic!("{page:?}") };
            let job = |call: &Value| match call.get("job") {
                Some(Value::Text(job)) => job.parse::<u32>().unwrap(),
                other => panic!("{other:?}"),
            };
            jobs.extend(calls.iter().map(job));
            match page.get("next") {
                Some(next) => cursor = Some(next.clone()),
                None => return jobs,
            }
        }
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.run.await.unwrap().unwrap();
    }
}

/// Whether a job is one of root, the user that every host has; the others are those of a user that none has.
fn is_of_root(job: &u32) -> bool {
    job.is_multiple_of(4)
}

/// A log of ended jobs, a job each second.
fn write_log(folder: &Path) {
    let mut log = String::new();
    for job in 1..=CALLS {
        let (day, hour, minute, second) = (1 + job / 86_400, job / 3_600 % 24, job / 60 % 60, job % 60);
        let at = format!("2026-11-{day:02}T{hour:02}:{minute:02}:{second:02}");
        let user = if is_of_root(&job) { "root(0)" } else { "ada(1003)" };
        writeln!(
            log,
            "JobId={job} UserId={user} GroupId=ada(1003) Name=relax JobState=COMPLETED Partition=debug TimeLimit=30 \
             StartTime={at} EndTime={at} NodeList=node04 NodeCnt=1 ProcCnt=1 WorkDir=/home/ada "
        )
        .unwrap();
    }
    std::fs::write(folder.join("jobcomp.log"), log).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_calls_are_listed_once_and_a_damaged_database_costs_only_the_old_ones() {
    let folder = tempfile::tempdir().unwrap();
    write_log(folder.path());
    let expected: Vec<u32> = (1..=CALLS).collect();
    for start in ["the first start", "a restart"] {
        let running = Running::start(folder.path()).await;
        assert!(running.jobs(Viewer::Trusted).await == expected, "{start}");
        let first = running.ask(Viewer::Trusted, &[("limit", Value::Int(1))]).await;
        assert_eq!(first.get("total_is_more"), Some(&Value::Bool(true)), "{start}");
        assert!(first.get("stored_since").is_some(), "{start}");
        let old = running.ask(Viewer::Trusted, &[("job", "17".into())]).await;
        assert_eq!(old.get("total"), Some(&Value::UInt(1)), "{start}");
        assert_eq!(running.status.health(), [""; 0], "{start}");
        running.end().await;
    }

    let database = folder.path().join("state/call-history/calls.db");
    std::fs::write(&database, vec![7; 8192]).unwrap();
    let running = Running::start(folder.path()).await;
    let known = running.jobs(Viewer::Trusted).await;
    assert!(known.len() < expected.len() && expected.ends_with(&known), "{}", known.len());
    let health = running.status.health();
    assert!(
        health.iter().any(|line| line.contains("call history") && line.contains("calls.db")),
        "{health:?}"
    );
    // Once the file is moved away, what memory holds is stored.
    std::fs::remove_file(&database).unwrap();
    assert!(running.jobs(Viewer::Trusted).await == known);
    assert_eq!(running.status.health(), [""; 0]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_calls_of_another_user_are_absent_and_those_in_memory_are_not() {
    let folder = tempfile::tempdir().unwrap();
    write_log(folder.path());
    let running = Running::start(folder.path()).await;
    let in_memory = running.jobs(Viewer::Anonymous).await;
    assert!((1_000..CALLS).contains(&in_memory[0]), "{}", in_memory[0]);
    assert!(in_memory.iter().copied().eq(in_memory[0]..=CALLS));
    let of_root = running.jobs(Viewer::User(0)).await;
    let expected = (1..=CALLS).filter(|job| is_of_root(job) || *job >= in_memory[0]);
    assert!(of_root.iter().copied().eq(expected), "{}", of_root.len());
    let others = running.ask(Viewer::User(0), &[("user", "ada".into()), ("limit", Value::Int(1))]).await;
    let count = in_memory.iter().filter(|job| !is_of_root(job)).count();
    assert_eq!(others.get("total"), Some(&Value::UInt(count as u64)));
    assert_eq!(others.get("stored_own_only"), Some(&Value::Bool(true)));
    let all = running.ask(Viewer::Trusted, &[("limit", Value::Int(1))]).await;
    assert_eq!(all.get("stored_own_only"), None);
    running.end().await;
}
