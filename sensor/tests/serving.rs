//! Which processes serve a call, on real process trees: exactly those, however they were begun.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use rpc::dispatch::Dispatcher;
use rpc::elsewhere::Caller;
use rpc::limits::Limits;
use rpc::value::{Name, Value};
use sensor::config::{Config, RawConfig};
use sensor::process::source::Kind;
use sensor::run::Sensor;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Workers of several kinds, which write down their numbers: a child, one without an environment, one that leaves its parent.
const TREE: &str = "echo $$ >> pids; sleep 600 & echo $! >> pids; env -i sleep 600 & echo $! >> pids; \
                    setsid sh -c 'echo $$ >> pids; exec sleep 600' & wait";

/// A tree of processes that ends when it is dropped.
struct Tree {
    root: Child,
    folder: tempfile::TempDir,
}

impl Tree {
    #[allow(clippy::disallowed_methods)]
    fn start(environment: &[(&str, String)]) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-c", TREE]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Tree { root: command.spawn().unwrap(), folder }
    }

    fn pids(&self) -> BTreeSet<u64> {
        let text = std::fs::read_to_string(self.folder.path().join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    #[allow(clippy::disallowed_methods)]
    fn kill(&mut self) {
        let pids = self.pids().into_iter().map(|pid| pid.to_string());
        // Those that have ended by now are what is wanted.
        let _ = Command::new("kill").arg("-KILL").args(pids).stderr(std::process::Stdio::null()).status();
        let _ = self.root.wait();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processes of a call, as the sensor tells them.
async fn told(dispatcher: &Dispatcher, call: &str) -> Vec<Value> {
    let params = vec![(Name::Borrowed("call"), Value::from(call))];
    let caller = Caller::client(PATIENCE);
    let answer = dispatcher.call_for(&caller, "sensor.call_processes", params).await.unwrap();
    answer.get("processes").and_then(Value::as_array).unwrap().to_vec()
}

/// How each is known, and whether it has ended, by their numbers.
async fn serving(dispatcher: &Dispatcher, call: &str) -> BTreeMap<u64, (String, bool)> {
    let one = |process: &Value| {
        let Some(Value::UInt(pid)) = process.get("pid") else { panic!("{process:?}") };
        let by = process.get("known_by").and_then(Value::as_text).unwrap();
        (*pid, (by.to_owned(), process.get("ended").is_some()))
    };
    told(dispatcher, call).await.iter().map(one).collect()
}

/// When each began, by the calendar and since boot.
async fn starts(dispatcher: &Dispatcher, call: &str) -> Vec<[Value; 2]> {
    let one = |process: &Value| ["start", "start_ns"].map(|name| process.get(name).unwrap().clone());
    told(dispatcher, call).await.iter().map(one).collect()
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while !is_so().await {
            look.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// Those that live now of those that are said to.
fn living(serving: &BTreeMap<u64, (String, bool)>) -> BTreeSet<u64> {
    serving.iter().filter(|(_, (_, has_ended))| !has_ended).map(|(pid, _)| *pid).collect()
}

/// Each has jobs of its own number: every sensor sees all processes of the machine.
async fn check(source: Option<Kind>, number: u32) {
    let folder = tempfile::tempdir().unwrap();
    let text = "process_hz = 20\n[recorder]\nhz = 20\n";
    let mut raw: RawConfig = daemon::config_file::load(Path::new("f"), text).unwrap();
    raw.process_source = source;
    let config = Config::new(raw, "wn01", jiff::tz::TimeZone::UTC).unwrap();
    let sensor = Sensor::open(config, &folder.path().join("state")).unwrap();
    let dispatcher = Dispatcher::new(sensor.methods().unwrap(), Limits::default(), std::sync::Arc::default());
    let shutdown = CancellationToken::new();
    let run = tokio::spawn(sensor.run(shutdown.clone()));

    let ad = folder.path().join(".job.ad");
    std::fs::write(&ad, format!("ClusterId = {number}\nProcId = 1\n")).unwrap();
    let text = |text: &str| text.to_owned();
    let job = format!("{number}17");
    let mut trees = [
        (format!("slurm:{job}"), Tree::start(&[("SLURM_JOB_ID", job.clone())])),
        (format!("torque:{job}.head"), Tree::start(&[("PBS_JOBID", format!("{job}.head"))])),
        (
            format!("gridengine:{job}"),
            Tree::start(&[("JOB_ID", job.clone()), ("SGE_TASK_ID", text("undefined"))]),
        ),
        (format!("htcondor:{number}.1"), Tree::start(&[("_CONDOR_JOB_AD", ad.display().to_string())])),
    ];
    let others = Tree::start(&[("JOB_ID", job)]);
    until("the others", async || others.pids().len() == 4).await;
    for (call, tree) in &trees {
        until(call, async || {
            let pids = tree.pids();
            pids.len() == 4 && living(&serving(&dispatcher, call).await) == pids
        })
        .await;
    }
    let (call, tree) = &mut trees[0];
    let pids = tree.pids();
    tree.kill();
    until("their ends", async || living(&serving(&dispatcher, call).await).is_empty()).await;
    let after = serving(&dispatcher, call).await;
    assert!(pids.iter().all(|pid| after.contains_key(pid)), "{pids:?} {after:?}");
    let told = starts(&dispatcher, call).await;
    assert!(told.len() >= 4);
    for _ in 0..20 {
        assert_eq!(starts(&dispatcher, call).await, told, "a process has one start in all answers");
    }
    shutdown.cancel();
    run.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_processes_of_a_job_are_named_and_no_others() {
    check(None, 9042).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_processes_of_a_job_are_named_where_only_proc_is_read() {
    check(Some(Kind::Procfs), 9043).await;
}
