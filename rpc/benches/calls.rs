//! How many calls a second one server answers, and how long the slowest take: one kept-alive connection,
//! then a thousand.
//!
//! `cargo bench -p rpc --bench calls -- [SECONDS]` (2 unless given). Client and server share this process
//! and this machine, so the figures are what both together do. The client writes and reads raw bytes.

use rpc::codec::value::Value;
use rpc::dispatch::method::{Declaration, Registry};
use rpc::http::config::Listen;
use rpc::http::server;
use rpc::limits::Limits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const CONNECTIONS: [usize; 3] = [1, 100, 1_000];

/// One kind of request, and how its path and body look.
struct CallTarget {
    name: &'static str,
    request: Vec<u8>,
}

#[allow(clippy::disallowed_methods)] // a benchmark measures time
fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::print_stdout)] // a benchmark prints its figures
#[tokio::main]
async fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(2.0);
    let listen: Listen = "127.0.0.1:0".parse().expect("a literal address");
    let listener = server::bind(listen).await.expect("loopback has free ports");
    let address = listener.local_addr().expect("a bound listener has an address");
    let shutdown = CancellationToken::new();
    let serving = server::serve(listener, registry(), Limits::default(), Arc::default(), shutdown.clone());
    let server = tokio::spawn(serving);
    println!(
        "{:<24} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "request", "connections", "calls/s", "p50 us", "p99 us", "max us"
    );
    for asked in requests() {
        for connections in CONNECTIONS {
            let mut times =
                measure(address, &asked.request, connections, Duration::from_secs_f64(seconds)).await;
            times.sort_unstable();
            let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
            let rate = times.len() as f64 / seconds;
            let (middle, high, most) = (at(0.5), at(0.99), at(1.0));
            println!(
                "{:<24} {connections:>12} {rate:>12.0} {middle:>10.0} {high:>10.0} {most:>10.0}",
                asked.name
            );
        }
    }
    shutdown.cancel();
    server.await.expect("the server does not panic").expect("the server runs");
}

fn registry() -> Registry {
    let small = Declaration::new("bench.small", "A few counters").reading().handler_now(|_| {
        Ok(Value::object([("uptime", Value::from(12.5)), ("events_total", Value::from(1_u64 << 40))]))
    });
    let events = Declaration::new("bench.events", "A hundred events").reading().handler_now(|_| {
        let event = |number: i64| {
            Value::object([
                ("id", Value::from("7f3a:1:0000012345")),
                ("kind", Value::from("job_start")),
                ("time", Value::from(1_700_000_000.123_456)),
                ("job", Value::Int(number)),
                ("user", Value::from("J\u{fc}rgen")),
                ("to", Value::from("node-117.cluster.example")),
                ("outcome", Value::Nil),
                (
                    "source",
                    Value::object([
                        ("file", Value::from("/var/log/slurm/slurmctld.log")),
                        ("offset", Value::from(1_u64 << 33)),
                    ]),
                ),
            ])
        };
        Ok(Value::object([("events", Value::array((0..100).map(event)))]))
    });
    let mut registry = Registry::new();
    for method in [small, events] {
        registry.add(method).expect("the names differ");
    }
    registry
}

fn requests() -> Vec<CallTarget> {
    let post = |path: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let xml = |method: &str| {
        let body = format!(
            "<?xml version='1.0'?><methodCall><methodName>{method}</methodName><params><param><value><struct><member><name>big_integers</name><value><string>number</string></value></member></struct></value></param></params></methodCall>"
        );
        post("/RPC2", &body)
    };
    vec![
        CallTarget { name: "XML-RPC, 2 values", request: xml("bench.small") },
        CallTarget {
            name: "JSON, 2 values",
            request: post("/api/v1/bench.small", "{\"big_integers\":\"number\"}"),
        },
        CallTarget { name: "XML-RPC, 100 events", request: xml("bench.events") },
        CallTarget { name: "JSON, 100 events", request: post("/api/v1/bench.events", "{}") },
    ]
}

/// The time of every call made within `span` on so many connections.
async fn measure(address: SocketAddr, request: &[u8], connections: usize, span: Duration) -> Vec<Duration> {
    let mut clients = JoinSet::new();
    let mut streams = Vec::with_capacity(connections);
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        stream.set_nodelay(true).expect("a socket option");
        streams.push(stream);
    }
    let end = now() + span;
    for stream in streams {
        clients.spawn(ask_until(stream, request.to_vec(), end));
    }
    let mut times = Vec::new();
    while let Some(client) = clients.join_next().await {
        times.extend(client.expect("a client does not panic"));
    }
    times
}

async fn ask_until(mut stream: TcpStream, request: Vec<u8>, end: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut answer = vec![0; 256 << 10];
    loop {
        let start = now();
        if start >= end {
            return times;
        }
        stream.write_all(&request).await.expect("the server reads");
        let (mut filled, mut whole) = (0, usize::MAX);
        while filled < whole {
            let count = stream.read(&mut answer[filled..]).await.expect("the server answers");
            assert!(count > 0, "the server closed a kept-alive connection");
            filled += count;
            if whole == usize::MAX {
                whole = answer_length(&answer[..filled]).unwrap_or(usize::MAX);
            }
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "the server answers with success");
        times.push(start.elapsed());
    }
}

/// The length of an answer, head and body, once its head is there.
fn answer_length(answer: &[u8]) -> Option<usize> {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&answer[..head]).ok()?;
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    Some(head + length.parse::<usize>().ok()?)
}
