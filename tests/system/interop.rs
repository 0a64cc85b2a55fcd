//! Interoperability: real clients in several languages query a running sensor, and all must get the same
//! answers.
//!
//! Each client reads events (with names outside ASCII), continues from a cursor, reads integers beyond 2^53,
//! handles faults, calls several methods at once and lists the methods. The Rust client is part of this
//! program; those of other languages are behind the feature `clients`, as they must be installed. No counter
//! of a new sensor is large, so the large numbers are served by a small server of this test, built on the
//! same `rpc`. Not here: hostile requests (the tests of `rpc`).

#[cfg(feature = "clients")]
mod curl;
#[cfg(feature = "clients")]
mod follow;
#[cfg(feature = "clients")]
mod scripts;
#[cfg(feature = "clients")]
mod xmlrpc_c;

mod rust;

use rpc::codec::value::Value;
use rpc::dispatch::method::{Declaration, Registry};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::query;
use system_tests::wait::{self, Seen};
use tokio_util::sync::CancellationToken;

/// Users that submit jobs: names in several scripts, and one that XML must escape.
const USERS: [&str; 4] = ["jürgen", "用户", "o'brien<&>", "ana"];
/// Timeout for the sensor to read a log of a few lines.
const READ: Duration = Duration::from_secs(30);

const FILTER: &str = r#"
[filter]
name = "trial-jobs"
product = "Trial"

[files]
names = ["jobs.log"]

[time]
prefix = ["%Y-%m-%dT%H:%M:%S%.f%z "]

[calls]
names = ["${.job}"]

[[rule]]
match = '^job (?P<job>\d+) submitted by (?P<user>\S+)$'
event = "job_submit"
job = "${job}"
user = "${user}"
"#;

/// A sensor that has read the log, and the server of large numbers.
struct Sides {
    _folder: tempfile::TempDir,
    _daemon: Daemon,
    sensor: SocketAddr,
    numbers: Numbers,
}

impl Sides {
    fn start() -> Sides {
        let folder = tempfile::tempdir().unwrap();
        let filters = folder.path().join("filters");
        std::fs::create_dir(&filters).unwrap();
        std::fs::write(filters.join("trial-jobs.toml"), FILTER).unwrap();
        let log = folder.path().join("jobs.log");
        std::fs::write(&log, lines()).unwrap();
        let config = folder.path().join("visperf.toml");
        let text = format!(
            "[sensor]\ndomain = \"trial\"\nfilters = [{:?}]\n\n[[sensor.tail]]\npath = {:?}\nstart = \"beginning\"\n",
            filters.display().to_string(),
            log.display().to_string()
        );
        std::fs::write(&config, text).unwrap();
        let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
        let (daemon, sensor) = Daemon::start(&folder.path().join("state"), &arguments).unwrap();
        wait::until(READ, "the events of a small log", || {
            let answer = query::result(sensor, "sensor.events", &json!({}))?;
            let count = answer["events"].as_array().map_or(0, Vec::len);
            Ok(if count >= USERS.len() { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
        })
        .unwrap();
        Sides { _folder: folder, _daemon: daemon, sensor, numbers: Numbers::start() }
    }

    /// URLs of both servers, as clients use them.
    #[cfg(feature = "clients")]
    fn addresses(&self) -> [String; 2] {
        [self.sensor, self.numbers.address].map(|address| format!("http://{address}"))
    }
}

fn lines() -> String {
    let line = |(at, user): (usize, &&str)| {
        format!("2026-11-20T12:00:0{at}.{:06}Z job {} submitted by {user}\n", 125_001 * (at + 1), at + 7)
    };
    USERS.iter().enumerate().map(line).collect()
}

/// The answers that every client must get.
fn expected() -> serde_json::Value {
    // 2026-11-20T12:00:00Z
    let noon = 1_795_176_000;
    let event = |(at, user): (usize, &&str)| {
        json!(["job_submit", user, (at + 7).to_string(), format!("{}.{:06}", noon + at, 125_001 * (at + 1))])
    };
    json!({
        "events": USERS.iter().enumerate().map(event).collect::<Vec<_>>(),
        "missed": 0,
        "after": 0,
        "numbers": {
            "small": "17",
            "beyond_53_bits": "9007199254740993",
            "most": "9223372036854775807",
            "least": "-9223372036854775808",
            "unsigned": "18446744073709551615",
        },
        "unknown": -32601,
        "bad": -32602,
        "multicall": ["visperf", -32601],
        "listed": true,
        "help": true,
        "signature": "struct",
    })
}

/// Server of large numbers: one method, on a thread that ends when this is dropped.
struct Numbers {
    address: SocketAddr,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Numbers {
    fn start() -> Numbers {
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let (sender, receiver) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = rpc::http::server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                let (limits, counts) = (rpc::limits::Limits::default(), Arc::default());
                rpc::http::server::serve(listener, registry(), limits, counts, stop).await.unwrap();
            });
        });
        Numbers { address: receiver.recv().unwrap(), shutdown, thread: Some(thread) }
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn registry() -> Registry {
    let answer = || {
        Value::object([
            ("small", Value::from(17)),
            ("beyond_53_bits", Value::from((1_i64 << 53) + 1)),
            ("most", Value::from(i64::MAX)),
            ("least", Value::from(i64::MIN)),
            ("unsigned", Value::from(u64::MAX)),
        ])
    };
    let method = Declaration::new("trial.numbers", "large whole numbers").reading();
    let mut registry = Registry::new();
    registry.add(method.handler_now(move |_| Ok(answer()))).unwrap();
    registry
}

#[track_caller]
fn check(client: &str, seen: &serde_json::Value) {
    let expected = expected();
    for (part, expected) in expected.as_object().unwrap() {
        assert_eq!(&seen[part], expected, "{client}: {part}");
    }
}
