//! Channel methods as called by a client of the local socket: JSON over HTTP.

#![allow(clippy::unwrap_used)]

use rpc::dispatch::Dispatcher;
use rpc::dispatch::method::Registry;
use rpc::http::listener::LocalListener;
use rpc::limits::Limits;
use sensor::channel::fields::Subject;
use sensor::channel::fields::call::Calls;
use sensor::channel::fields::event::Events;
use sensor::channel::fields::metric::Metrics;
use sensor::channel::fields::process::Processes;
use sensor::channel::hub::{Hub, Part};
use sensor::process::source::View;
use sensor::process::table::Coverage;
use sensor::process::tap::Tap;
use sensor::query::channels::Channels;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use wire::channel::stream::Body;
use wire::channel::{ChannelRequest, Kind};
use wire::process::{Process, ProcessKey};

/// A simulated host of ten processes, where number N uses a tenth of N cores, and the methods of its sensor.
struct Host {
    hub: Hub,
    folder: tempfile::TempDir,
    tap: Box<dyn Tap>,
    view: View,
    swept: u32,
}

impl Host {
    fn start() -> Host {
        let hub = Hub::default();
        let mut registry = Registry::new();
        for method in (Channels { hub: hub.clone(), ending: CancellationToken::new() }).methods() {
            registry.add(method).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let listener = LocalListener::bind(&folder.path().join("s.sock")).unwrap();
        let dispatcher = Arc::new(Dispatcher::new(registry, Limits::default(), Arc::default()));
        let serving = rpc::http::server::serve_local(listener, dispatcher, CancellationToken::new());
        tokio::spawn(serving);
        Host { tap: hub.tap(), hub, folder, view: View::default(), swept: 0 }
    }

    /// Runs ten sweeps, a tenth of a second apart.
    fn sweep(&mut self) {
        for _ in 0..10 {
            self.swept += 1;
            let now = Duration::from_millis(1000) + Duration::from_millis(100) * self.swept;
            let now_ns = u64::try_from(now.as_nanos()).unwrap();
            self.view.table.begin(self.swept.into(), now_ns, Coverage::All);
            for pid in 1..=10 {
                let key = ProcessKey { pid, start_ns: 1 };
                let mut process = Process { key, name: format!("worker{pid}").into(), ..Process::default() };
                process.usage.cpu_ns = now_ns / 10 * u64::from(pid);
                self.view.table.set(process);
            }
            self.view.table.end(0);
            self.tap.swept(&self.view, now);
        }
    }

    async fn http(&self, request: &str) -> (u16, Value) {
        let mut stream = UnixStream::connect(self.folder.path().join("s.sock")).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    async fn get(&self, method: &str) -> (u16, Value) {
        self.http(&format!(
            "GET /api/v1/{method} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            "localhost"
        ))
        .await
    }

    async fn ask(&self, method: &str, params: Value) -> (u16, Value) {
        let (address, body) = ("localhost", params.to_string());
        let len = body.len();
        self.http(&format!(
            "POST /api/v1/{method} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"
        ))
        .await
    }

    async fn done(&self, method: &str, params: Value) -> Value {
        let (status, answer) = self.ask(method, params).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    async fn refused(&self, method: &str, params: Value, expected: &str) {
        let (status, answer) = self.ask(method, params.clone()).await;
        let text = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(status != 200 && text.contains(expected), "{params}: {status} {answer}");
    }
}

fn names(processes: &Value) -> Vec<&str> {
    processes.as_array().unwrap().iter().map(|process| process["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_subscribed_to_is_taken_altered_and_ended() {
    let mut host = Host::start();
    let wanted =
        json!({"rate_hz": 10, "filter": "cpu > 0.75 and name ~ \"^worker\"", "condition": "count > 2"});
    let made = host.done("sensor.subscribe", wanted).await;
    let id = made["subscription"].clone();
    assert_eq!(made["filter"], json!("cpu > 0.75 and name ~ \"^worker\""));
    let empty = host.done("sensor.take", json!({"subscription": id})).await;
    assert_eq!((&empty["entries"], &empty["next"]), (&json!([]), &json!(0)));
    host.sweep();
    let taken = host.done("sensor.take", json!({"subscription": id, "limit": 5, "wait": 1})).await;
    let entries = taken["entries"].as_array().unwrap();
    assert_eq!(
        (entries.len(), &taken["next"], &taken["missed"], &taken["waiting"]),
        (5, &json!(5), &json!(0), &json!(5))
    );
    assert_eq!(
        (&entries[0]["what"], &entries[0]["is_true"], &taken["condition"]),
        (&json!("signal"), &json!(true), &json!(true))
    );
    assert_eq!(
        (&entries[1]["what"], &entries[1]["number"], &entries[1]["sweep"]),
        (&json!("sample"), &json!(1), &json!(2))
    );
    assert_eq!(names(&entries[1]["processes"]), ["worker8", "worker9", "worker10"]);
    let cpu = entries[1]["processes"][0]["cpu"].as_f64().unwrap();
    assert!((cpu - 0.8).abs() < 1e-6, "{cpu}");
    let altered = host
        .done("sensor.alter", json!({"subscription": id, "filter": "top 1 by cpu", "condition": ""}))
        .await;
    assert_eq!(
        (&altered["revision"], &altered["rate_hz"], &altered["rate"], altered.get("condition")),
        (&json!(1), &json!(10.0), &json!(10.0), None)
    );
    host.sweep();
    let taken = host.done("sensor.take", json!({"subscription": id})).await;
    let entries = taken["entries"].as_array().unwrap();
    let numbers: Vec<u64> = entries.iter().map(|entry| entry["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (5..20).collect::<Vec<_>>(), "none is lost");
    assert_eq!(names(&entries[14]["processes"]), ["worker10"]);
    let all = host.get("sensor.subscriptions").await.1;
    assert_eq!(all["subscriptions"][0]["subscription"], id);
    assert_eq!((&all["subscriptions"][0]["due"], &all["rate"]), (&json!(20), &json!(10.0)));
    host.done("sensor.unsubscribe", json!({"subscription": id})).await;
    host.refused("sensor.take", json!({"subscription": id}), "no subscription").await;
    assert_eq!(host.get("sensor.subscriptions").await.1["subscriptions"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_sensor_subscribed_to_for_itself_is_left_alone() {
    let mut host = Host::start();
    let condition = wire::channel::expression::condition("count > 2").unwrap();
    let wanted =
        ChannelRequest { condition: Some(condition), only_signals: true, ..ChannelRequest::default() };
    for part in [Part::Recorder, Part::Module] {
        let own = host.hub.subscribe_own(part, wanted.clone()).unwrap();
        let all = host.get("sensor.subscriptions").await.1;
        let entry = &all["subscriptions"][0];
        assert_eq!((&entry["owner"], &entry["subscription"]), (&json!(part.as_str()), &Value::Null));
        assert_eq!(entry["condition"], "count > 2 until 2 for 0 s", "it shows its condition");
        // A client that learns the number of the subscription is rejected too.
        let named = json!({"subscription": own.to_string()});
        for method in ["sensor.alter", "sensor.take", "sensor.unsubscribe"] {
            host.refused(method, named.clone(), &format!("the {}'s own; change", part.as_str())).await;
        }
        host.sweep();
        let taken = host.hub.take(own, 9, Duration::ZERO).await.unwrap();
        assert!(matches!(taken.entries[0].body, Body::Signal { is_true: true, .. }), "{taken:?}");
        host.hub.unsubscribe(own).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_gives_figures_and_one_without_end_is_stopped() {
    let mut host = Host::start();
    let script = "#{ busy: records.sum(\"cpu\"), processes: records.len() }";
    let made = host.done("sensor.subscribe", json!({"rate": 10, "script": script})).await;
    let endless = host.done("sensor.subscribe", json!({"rate": 10, "script": "loop {}"})).await;
    host.sweep();
    let taken = host.done("sensor.take", json!({"subscription": made["subscription"]})).await;
    let figures = &taken["entries"][9]["figures"];
    assert!((figures["busy"].as_f64().unwrap() - 5.5).abs() < 1e-6, "{figures}");
    assert_eq!(figures["processes"], json!(10.0));
    let taken = host.done("sensor.take", json!({"subscription": endless["subscription"], "wait": 20})).await;
    assert_eq!(taken["entries"][0]["what"], json!("quarantined"));
    assert!(taken["quarantined"].as_str().unwrap().contains("end the loop"), "{taken}");
    let mended = json!({"subscription": endless["subscription"], "script": "records.len() > 0"});
    assert_eq!(host.done("sensor.alter", mended).await.get("quarantined"), None);
    host.sweep();
    let taken = host.done("sensor.take", json!({"subscription": endless["subscription"]})).await;
    assert_eq!(taken["entries"].as_array().unwrap().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selection_says_whose() {
    let mut host = Host::start();
    let selection = json!({"name": "worker1*", "user": 0});
    let outcomes = json!({"outcome": ["timeout", "failed", "failed"]});
    let made = host.done("sensor.subscribe", json!({"kind": "call", "selection": outcomes})).await;
    assert_eq!(made["selection"], json!({"outcome": ["failed", "timeout"]}));
    let made = host.done("sensor.subscribe", json!({"kind": "call", "selection": {"outcome": ["ok"]}})).await;
    assert_eq!(made["selection"], json!({"outcome": "ok"}), "as every version takes it");
    let made = host.done("sensor.subscribe", json!({"selection": selection, "rate": "10"})).await;
    assert_eq!(made["selection"], json!({"name": "worker1*", "user": "0"}));
    host.sweep();
    let taken = host.done("sensor.take", json!({"subscription": made["subscription"]})).await;
    assert_eq!(names(&taken["entries"][0]["processes"]), ["worker1", "worker10"]);
    // Processes are selected by a name too; an alteration must be valid for the kind of the subscription.
    let id = &made["subscription"];
    let of_no_user = json!({"subscription": id, "selection": {"user": "nobody-of-this-name"}});
    host.refused("sensor.alter", of_no_user, "this host has no user").await;
    let narrowed = json!({"subscription": id, "selection": {"name": "worker10", "user": "root"}});
    let altered = host.done("sensor.alter", narrowed).await;
    assert_eq!(altered["selection"], json!({"name": "worker10", "user": "0"}));
    host.sweep();
    let taken = host.done("sensor.take", json!({"subscription": id})).await;
    assert_eq!(names(&taken["entries"][0]["processes"]), ["worker10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_reported_and_change_nothing() {
    let host = Host::start();
    for (params, expected) in [
        (json!({"filter": "cpu >"}), "filter: expected a number, found the end at character 6"),
        (
            json!({"filter": "rss > 1"}),
            "filter: expected a number of a process, found \"rss\"; did you mean rss_bytes?; known are cpu",
        ),
        (json!({"filter": "name ~ \"(\""}), "filter: expected a regular expression"),
        (json!({"condition": "sum rss > 1"}), "condition: expected a number of a process"),
        (json!({"condition": "most"}), "condition: expected count, or sum"),
        (json!({"rate_hz": 1001}), "rate_hz: expected 0.1 to 1000 samples a second, found 1001"),
        (json!({"rate_hz": 1, "rate": 2}), "rate: given more than once"),
        (json!({"script": "let ="}), "script: "),
        (
            json!({"budget": {"cpu": 1}}),
            "budget: expected cpu_ms, bytes, queue_bytes, found \"cpu\"; did you mean cpu_ms?",
        ),
        (json!({"budget": {"cpu_ms": 0}}), "budget.cpu_ms: expected a whole number from 1 to 500, found 0"),
        (json!({"selection": {"pid": -1}}), "selection.pid: expected a whole number"),
        (json!({"selection": {"user": "nobody-of-this-name"}}), "this host has no user"),
        (json!({"kind": "weather"}), "kind: expected one of process"),
        (json!({"kind": "proces"}), "found \"proces\"; did you mean process?"),
        (
            json!({"kind": "host", "selection": {"pid": 1}}),
            "selection: expected metric for kind host, found \"pid\"",
        ),
        (json!({"selection": {"nam": "w"}}), "selection: expected name, user, "),
        (json!({"selection": 7}), "selection: expected a structure of name, user, "),
        (
            json!({"kind": "call", "selection": {"outcome": ["ok", "faild"]}}),
            "found \"faild\"; did you mean failed?",
        ),
        (
            json!({"kind": "event", "selection": {"kind": "job_ended"}}),
            "found \"job_ended\"; did you mean job_end",
        ),
    ] {
        host.refused("sensor.subscribe", params, expected).await;
    }
    assert_eq!(host.get("sensor.subscriptions").await.1["subscriptions"], json!([]));
    let made = host.done("sensor.subscribe", json!({"filter": "cpu > 1"})).await;
    let id = &made["subscription"];
    host.refused("sensor.alter", json!({"subscription": id, "filter": "cpu <"}), "filter: expected a number")
        .await;
    host.refused("sensor.alter", json!({"subscription": "unknown"}), "subscribe again").await;
    let stands = host.get("sensor.subscriptions").await.1;
    assert_eq!(
        (&stands["subscriptions"][0]["filter"], &stands["subscriptions"][0]["revision"]),
        (&json!("cpu > 1"), &json!(0))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_something_is_not_reached_by_a_link() {
    let host = Host::start();
    for method in ["sensor.subscribe", "sensor.alter", "sensor.take", "sensor.unsubscribe"] {
        let (status, answer) = host.get(&format!("{method}?subscription=0000000000000000")).await;
        assert_eq!(status, 405, "{answer}");
    }
    let (status, channels) = host.get("sensor.channels").await;
    assert_eq!(status, 200);
    let fields = channels["kinds"][0]["fields"].as_array().unwrap();
    assert!(
        fields.iter().any(|field| field["name"] == "rss_bytes" && field["unit"] == "bytes"),
        "{channels}"
    );
}

#[test]
fn every_field_and_method_is_documented() {
    let page = include_str!("../../../docs/channels.md");
    let methods = include_str!("../../../docs/methods.md");
    fn names<S: Subject>() -> Vec<&'static str> {
        let numbers = S::numbers().iter().map(|number| number.name);
        numbers.chain(S::texts().iter().map(|text| text.name)).collect()
    }
    let kinds = [names::<Processes>(), names::<Metrics>(), names::<Events>(), names::<Calls>()];
    for (kind, names) in Kind::ALL.into_iter().zip(kinds) {
        let mut rows = page.lines().filter(|line| line.starts_with(&format!("| `{}` |", kind.as_str())));
        let row = rows.find(|line| line.contains(&format!("`{}`", names[0]))).unwrap();
        names.iter().for_each(|name| assert!(row.contains(&format!("`{name}`")), "{name} of {row}"));
        let mut rows = page.lines().filter(|line| line.starts_with(&format!("| `{}` |", kind.as_str())));
        let selection = format!("`{{{}}}`", kind.selectors().join(", "));
        assert!(rows.any(|line| line.contains(&selection)), "{selection}");
        assert!(methods.contains(&selection), "{selection}");
    }
    for method in ["channels", "subscribe", "take", "alter", "unsubscribe", "subscriptions"] {
        assert!(methods.contains(&format!("### `sensor.{method}")), "{method}");
    }
}
