//! Handlers: what they receive, and that a handler that failed receives it again.

use crate::modules::rig::{Rig, until};
use sensor::channel::hub::{self, Id};
use sensor::module::worker::ModuleStatus;
use sensor::process::source::View;
use sensor::process::table::Coverage;
use serde_json::Value;
use std::time::Duration;
use wire::api::modules::ModuleAct;
use wire::channel::ChannelRequest;
use wire::process::{Process, ProcessKey};

fn hello(wants: &str) -> String {
    format!(r#"{{"protocol":1,"name":"test","kind":"handler",{wants}}}"#)
}

/// Returns the entries of all recorded calls.
fn entries(rig: &Rig) -> Vec<Value> {
    let calls = rig.lines("calls");
    let entries = calls.iter().flat_map(|call| {
        let call: Value = serde_json::from_str(call).unwrap();
        call["handle"]["entries"].as_array().unwrap().clone()
    });
    entries.collect()
}

const NOTE: &str = "printf '%s\\n' \"$call\" >> $dir/calls; echo '{}'";

#[tokio::test(flavor = "multi_thread")]
async fn events_of_the_wanted_kinds_come_from_the_beginning_of_the_module_on() {
    let mut rig = Rig::start();
    rig.member.read(3);
    let all = rig.script("all.sh", &hello(r#""events":["job_submit"]"#), NOTE);
    rig.load("all", &all, "").await;
    rig.state("all", "running").await;
    rig.member.read(2);
    assert!(until(|| entries(&rig).len() >= 2).await, "{:?}", entries(&rig));
    let jobs: Vec<Value> = entries(&rig).iter().map(|entry| entry["event"]["job"].clone()).collect();
    assert_eq!(jobs, ["3", "4"], "earlier ones are not sent");
    assert_eq!(entries(&rig)[0]["event"]["kind"], "job_submit");
    let none = rig.script("none.sh", &hello(r#""events":["job_end"]"#), "echo called >> $dir/called");
    rig.load("none", &none, "").await;
    rig.state("none", "running").await;
    rig.member.read(5);
    assert!(until(|| entries(&rig).len() >= 7).await);
    assert!(rig.lines("called").is_empty(), "no event is of that kind");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_failed_over_is_sent_again() {
    let mut rig = Rig::start();
    let body = "printf '%s\\n' \"$call\" >> $dir/calls; test -e $dir/failed || { : > $dir/failed; exit 1; }; echo '{}'";
    let one = rig.script("one.sh", &hello(r#""events":[]"#), body);
    rig.load("one", &one, "").await;
    rig.state("one", "running").await;
    rig.member.read(4);
    assert!(
        until(|| rig.handle.statuses()[0].counts.calls_total >= 1 && rig.handle.statuses()[0].waiting == 0)
            .await
    );
    let jobs: Vec<String> =
        entries(&rig).iter().map(|entry| entry["event"]["job"].as_str().unwrap().to_owned()).collect();
    let all: Vec<String> = (0..4).map(|job| job.to_string()).collect();
    let answered: Vec<&String> = jobs.iter().skip(jobs.len() - 4).collect();
    assert!(jobs.len() > 4 && answered == all.iter().collect::<Vec<_>>(), "{jobs:?}");
    assert_eq!(rig.status_when("one", "counted", |_| true).await.counts.failures_total, 1);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_the_host_and_of_collectors_come_by_name() {
    let rig = Rig::start();
    let body = r#"printf '%s\n' "$call" >> $dir/calls; echo '{"figures":[{"name":"seen","value":7}]}'"#;
    let one = rig.script("one.sh", &hello(r#""metrics":["node_load*","module.gpu.heat"]"#), body);
    rig.load("one", &one, "").await;
    rig.state("one", "running").await;
    rig.sweep(&[("node_boot", 1)]);
    rig.sweep(&[("node_load1", 3), ("node_boot", 1), ("module.gpu.heat", 41)]);
    assert!(until(|| !entries(&rig).is_empty()).await);
    let entry = &entries(&rig)[0];
    assert_eq!((&entry["what"], &entry["time"]), (&Value::from("figures"), &Value::from(1.5)));
    let named = |number: usize| {
        (entry["figures"][number]["name"].as_str(), entry["figures"][number]["value"].as_u64())
    };
    assert_eq!((named(0), named(1)), ((Some("node_load1"), Some(3)), (Some("module.gpu.heat"), Some(41))));
    assert!(entry["figures"].get(2).is_none());
    rig.until_figure("module.one.seen", 7.0).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_come_as_to_any_subscriber() {
    let rig = Rig::start();
    let wants = r#""processes":{"rate":10,"filter":"name ~ \"^w\"","condition":"count > 1"}"#;
    let one = rig.script("one.sh", &hello(wants), NOTE);
    rig.load("one", &one, "").await;
    rig.state("one", "running").await;
    let statuses = rig.hub.statuses();
    assert_eq!(statuses.len(), 1, "it is a subscription like others, metered and listed");
    assert_eq!(statuses[0].1.wanted.filter.to_string(), "name ~ \"^w\"");
    let (mut tap, mut view) = (rig.hub.tap(), View::default());
    for sweep in 1..=3_u32 {
        let now = Duration::from_millis(1000) + Duration::from_millis(100) * sweep;
        view.table.begin(sweep.into(), u64::try_from(now.as_nanos()).unwrap(), Coverage::All);
        for (pid, name) in [(1, "init"), (2, "worker"), (3, "writer")] {
            let key = ProcessKey { pid, start_ns: 1 };
            view.table.set(Process { key, name: name.into(), ..Process::default() });
        }
        view.table.end(0);
        tap.swept(&view, now);
    }
    assert!(until(|| entries(&rig).len() >= 4).await, "{:?}", entries(&rig));
    let entries = entries(&rig);
    assert_eq!((&entries[0]["what"], &entries[0]["is_true"]), (&Value::from("signal"), &Value::from(true)));
    let names: Vec<_> =
        entries[1]["processes"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(
        (names, &entries[1]["what"]),
        (vec![Value::from("worker"), Value::from("writer")], &Value::from("sample"))
    );
    std::fs::remove_file(rig.path("modules/one.toml")).unwrap();
    rig.reload().await;
    assert!(until(|| rig.hub.is_empty()).await, "its subscription ends with it");
    rig.end().await;
}

/// Sweeps a host with one process.
fn sweep(rig: &Rig, view: &mut View, number: u32) {
    let now = Duration::from_millis(1000) + Duration::from_millis(100) * number;
    view.table.begin(number.into(), u64::try_from(now.as_nanos()).unwrap(), Coverage::All);
    let key = ProcessKey { pid: 7, start_ns: 1 };
    view.table.set(Process { key, name: "worker".into(), ..Process::default() });
    view.table.end(0);
    rig.hub.tap().swept(view, now);
}

fn subscription(rig: &Rig) -> Option<Id> {
    rig.hub.statuses().first().map(|(id, _)| *id)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_subscription_is_stopped_is_notified_and_subscribed_again() {
    let (rig, mut view) = (Rig::start(), View::default());
    let one = rig.script("one.sh", &hello(r#""processes":{"rate":10}"#), NOTE);
    rig.load("one", &one, "").await;
    rig.state("one", "running").await;
    let first = subscription(&rig).unwrap();
    let endless = |wanted: ChannelRequest| {
        Ok::<_, hub::Error>(ChannelRequest { script: Some("loop {}".to_owned()), ..wanted })
    };
    rig.hub.alter(first, endless).unwrap();
    sweep(&rig, &mut view, 1);
    let status = rig.status_when("one", "in trouble", |status| status.last_error.is_some()).await;
    let why = status.last_error.unwrap();
    assert!(why.starts_with("its subscription was stopped: ") && why.contains("end the loop"), "{why}");
    let again = |status: &ModuleStatus| status.counts.failures_total == 1 && status.counts.starts_total == 2;
    rig.status_when("one", "started again", again).await;
    assert!(until(|| subscription(&rig).is_some_and(|id| id != first)).await);
    sweep(&rig, &mut view, 2);
    assert!(
        until(|| entries(&rig).iter().any(|entry| entry["what"] == "sample")).await,
        "{:?}",
        entries(&rig)
    );
    let what: Vec<_> = entries(&rig).iter().map(|entry| entry["what"].clone()).collect();
    assert_eq!(what, ["quarantined", "missed", "sample"]);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_subscription_ended_is_notified_that_something_is_missed() {
    let (rig, mut view) = (Rig::start(), View::default());
    let one = rig.script("one.sh", &hello(r#""processes":{"rate":10}"#), NOTE);
    rig.load("one", &one, "").await;
    rig.state("one", "running").await;
    let first = subscription(&rig).unwrap();
    rig.hub.drop_idle(Duration::MAX);
    assert!(until(|| subscription(&rig).is_some_and(|id| id != first)).await);
    assert!(until(|| entries(&rig).len() == 1).await);
    assert_eq!(entries(&rig)[0]["what"], "missed");
    sweep(&rig, &mut view, 1);
    assert!(until(|| entries(&rig).len() == 2).await);
    // The subscription is removed while the module is stopped, and made again after its start.
    let second = subscription(&rig).unwrap();
    rig.order("one", ModuleAct::Stop).await;
    assert!(rig.hub.is_empty() && !rig.hub.has(second));
    rig.order("one", ModuleAct::Start).await;
    assert!(until(|| subscription(&rig).is_some()).await);
    assert_eq!(rig.status_when("one", "unharmed", |_| true).await.counts.failures_total, 0);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_wants_and_cannot_have_is_reported() {
    let rig = Rig::start();
    let one = rig.script("one.sh", &hello(r#""processes":{"filter":"warmth > 3"}"#), NOTE);
    rig.load("one", &one, "").await;
    let status = rig.state("one", "quarantined").await;
    assert!(status.starts_with("what it wants cannot be had: filter: "), "{status}");
    assert!(rig.hub.is_empty());
    rig.end().await;
}
