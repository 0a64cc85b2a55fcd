//! A running server with a few methods, and a client that sends any bytes, for the tests of this folder.
#![allow(unreachable_pub)]
#![allow(clippy::unwrap_used)] // a failure here is a failed test

use rpc::codec::value::Value;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::method::{Declaration, Registry};
use rpc::dispatch::params::{Parameter, Type};
use rpc::dispatch::statistics::{Snapshot, Statistics};
use rpc::fault::Fault;
use rpc::http::authorizer::Authorizer;
use rpc::http::config::Listen;
use rpc::http::server;
use rpc::limits::Limits;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::query::Account;

/// Timeout of a client; nothing in these tests needs as long.
const CLIENT_TIME: Duration = Duration::from_secs(30);

pub struct Served {
    pub address: SocketAddr,
    pub statistics: Arc<Statistics>,
    pub shutdown: CancellationToken,
    pub task: Option<JoinHandle<Result<(), server::Error>>>,
    pub runtime: Runtime,
}

/// A parsed HTTP answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

pub fn registry() -> Registry {
    let mut registry = Registry::new();
    let echo = Declaration::new("test.echo", "Gives back what it got")
        .reading()
        .parameter(Parameter::new("value", Type::Any, "what to give back"))
        .parameter(Parameter::new("limit", Type::Whole { min: 1, max: 10_000 }, "a number").default(100))
        .handler_now(|params| {
            Ok(Value::object([
                ("value", params.value("value").cloned().unwrap_or_default()),
                ("limit", Value::from(params.need_whole("limit")?)),
            ]))
        });
    let counters = Declaration::new("test.counters", "Numbers at the edges").reading().handler_now(|_| {
        Ok(Value::object([
            ("small", Value::from(2_147_483_647_i64)),
            ("beyond_i4", Value::from(2_147_483_648_i64)),
            ("beyond_double", Value::from(9_007_199_254_740_993_i64)),
            ("top", Value::from(i64::MAX)),
            ("unsigned", Value::from(u64::MAX)),
            ("user", Value::from("J\u{fc}rgen \u{1f600}")),
            ("bytes", Value::Bytes(vec![0, 1, 255])),
            ("control", Value::from("a\u{1}b")),
            ("time", Value::from(1_700_000_000.123_456)),
        ]))
    });
    let fails = Declaration::new("test.fail", "Always fails")
        .handler_now(|_| Err(Fault::unavailable("the other host is away, J\u{fc}rgen <&>")));
    let never = Declaration::new("test.never", "Never answers").handler(|_| std::future::pending());
    let panics = Declaration::new("test.panic", "Panics").handler_now(|_| panic!("on purpose"));
    let here = Declaration::new("test.here", "Says for which domain").reading().of_domain();
    let here = here.handler_now(|params| {
        Ok(Value::object([("domain", params.value("domain").cloned().unwrap_or_default())]))
    });
    let whose = Declaration::new("test.whose", "Says for which account").reading();
    let whose = whose.handler_for(|caller, _| {
        let account = caller.account.map(|Account(bytes)| bytes[0]);
        std::future::ready(Ok(Value::object([(
            "account",
            account.map_or(Value::Nil, |it| Value::UInt(it.into())),
        )])))
    });
    for method in [echo, counters, fails, never, panics, here, whose] {
        registry.add(method).unwrap();
    }
    registry.add_path("/given/path", "test.echo").unwrap();
    registry
}

impl Served {
    pub fn start(limits: Limits) -> Served {
        Served::start_with(server::ListenerOptions::default(), registry(), limits)
    }

    /// A server of other methods, with `options`.
    pub fn start_of(registry: Registry, options: server::ListenerOptions, limits: Limits) -> Served {
        Served::start_with(options, registry, limits)
    }

    /// A server with `authorizer`.
    pub fn start_behind(authorizer: Arc<dyn Authorizer>, limits: Limits) -> Served {
        let options =
            server::ListenerOptions { authorizer: Some(authorizer), ..server::ListenerOptions::default() };
        Served::start_with(options, registry(), limits)
    }

    fn start_with(options: server::ListenerOptions, registry: Registry, limits: Limits) -> Served {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listen: Listen = "127.0.0.1:0".parse().unwrap();
        let listener = runtime.block_on(server::bind(listen)).unwrap();
        let address = listener.local_addr().unwrap();
        let (statistics, shutdown) = (Arc::new(Statistics::default()), CancellationToken::new());
        let dispatcher = Arc::new(Dispatcher::new(registry, limits, statistics.clone()));
        let serving = server::serve_with(options, listener, dispatcher, shutdown.clone());
        let task = Some(runtime.spawn(serving));
        Served { address, statistics, shutdown, task, runtime }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(CLIENT_TIME)).unwrap();
        stream.set_write_timeout(Some(CLIENT_TIME)).unwrap();
        stream
    }

    /// Send bytes, close the sending side, and read to the end.
    pub fn exchange(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        // A server that refuses early may close before all is sent.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    pub fn ask(&self, request: &[u8]) -> Answer {
        Answer::read(&self.exchange(request))
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        let mut request =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len())
                .into_bytes();
        request.extend_from_slice(body);
        self.ask(&request)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    }

    /// A valid call, which shows that the server still works.
    pub fn still_answers(&self) {
        let answer = self.post("/RPC2", call("test.echo", "").as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains("<name>limit</name><value><int>100</int>"), "{answer:?}");
    }

    pub fn counted(&self) -> Snapshot {
        self.statistics.snapshot()
    }

    /// Wait until the counters satisfy `wanted`.
    pub fn wait_until(&self, wanted: impl Fn(&Snapshot) -> bool) {
        let waited = self.runtime.block_on(async {
            let mut tick = tokio::time::interval(Duration::from_millis(1));
            let poll = async {
                while !wanted(&self.counted()) {
                    tick.tick().await;
                }
            };
            tokio::time::timeout(CLIENT_TIME, poll).await
        });
        assert!(waited.is_ok(), "the counters stayed at {:?}", self.counted());
    }

    /// Whether it ends within this time.
    pub fn stop_within(&mut self, time: Duration) -> bool {
        self.shutdown.cancel();
        let task = self.task.take().unwrap();
        self.runtime.block_on(async { tokio::time::timeout(time, task).await.is_ok() })
    }

    pub fn stop(&mut self) {
        self.shutdown.cancel();
        if let Some(task) = self.task.take() {
            self.runtime.block_on(task).unwrap().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Answer {
    pub fn read(bytes: &[u8]) -> Answer {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no HTTP answer: {text:?}"));
        let status =
            head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|code| code.parse().ok());
        Answer { status: status.unwrap(), head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// The code of the fault in XML-RPC or JSON; `None` if the call succeeded.
    pub fn fault_code(&self) -> Option<i32> {
        if let Ok(fault) = dxr::FaultResponse::from_xml(&self.body) {
            return Some(fault.fault.code());
        }
        let json: serde_json::Value = serde_json::from_str(&self.body).ok()?;
        json.get("error")?.get("code")?.as_i64().and_then(|code| i32::try_from(code).ok())
    }
}

/// The XML of a call with `params` inside `<params>`.
pub fn call(method: &str, params: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>"
    )
}

/// The XML of `test.echo` for one value.
pub fn echo(value: &str) -> String {
    call(
        "test.echo",
        &format!("<param><value><struct><member><name>value</name>{value}</member></struct></value></param>"),
    )
}
