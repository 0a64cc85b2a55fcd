//! Streams of a method with a cursor, over real sockets: each client gets each entry once, whenever it starts
//! and however slowly it reads.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use crate::served::Served;
use rpc::codec::value::Value;
use rpc::dispatch::method::{Declaration, Registry};
use rpc::dispatch::params::{Parameter, Type};
use rpc::fault::Fault;
use rpc::http::server::ListenerOptions;
use rpc::limits::Limits;
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Entries per answer.
const PAGE: u64 = 3;

/// A list of the numbers from 0 that grows while it is read.
#[derive(Default)]
struct List {
    len: AtomicU64,
    is_away: AtomicBool,
}

impl List {
    /// The numbers from `cursor` on, each with `beside` extra bytes.
    fn page(&self, cursor: &str, is_last: bool, beside: usize) -> Result<Value, Fault> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Fault::unavailable("it is away"));
        }
        let len = self.len.load(Ordering::Relaxed);
        let from = match cursor {
            "" if is_last => len.saturating_sub(1),
            "" => 0,
            "end" => len,
            text => text.parse().map_err(|_| Fault::invalid_params("cursor: expected a number"))?,
        };
        let to = len.min(from + PAGE);
        let entries = Value::array((from..to).map(Value::from));
        let beside = Value::from("x".repeat(beside));
        Ok(Value::object([("entries", entries), ("cursor", Value::from(to.to_string())), ("beside", beside)]))
    }
}

fn start(beside: usize) -> (Served, Arc<List>) {
    let list = Arc::new(List::default());
    let own = Arc::clone(&list);
    let mut registry = Registry::new();
    let declared = Declaration::new("test.list", "The entries from a cursor on")
        .reading()
        .parameter(Parameter::new("cursor", Type::Text, "where to continue"))
        .parameter(Parameter::new("last", Type::Flag, "the newest alone").default(false));
    let method = declared.handler_now(move |params| {
        own.page(params.text("cursor")?.unwrap_or_default(), params.flag("last")? == Some(true), beside)
    });
    registry.add(method).unwrap();
    (Served::start_of(registry, ListenerOptions::default(), Limits::default()), list)
}

struct Follower(BufReader<TcpStream>);

impl Follower {
    fn begin(served: &Served, query: &str) -> Follower {
        let mut stream = served.connect();
        write!(stream, "GET /api/v1/test.list?{query} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        Follower(BufReader::with_capacity(1024, stream))
    }

    /// The data of the next event.
    fn next(&mut self) -> Json {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The next `count` entries, skipping faults.
    fn entries(&mut self, count: usize) -> Vec<u64> {
        let mut found = Vec::new();
        while found.len() < count {
            let data = self.next();
            let entries = data["answer"]["entries"].as_array().into_iter().flatten();
            found.extend(entries.map(|entry| entry.as_u64().unwrap()));
        }
        found
    }
}

fn up_to(end: u64) -> Vec<u64> {
    (0..end).collect()
}

#[test]
fn each_entry_is_streamed_once_from_the_cursor_on() {
    let (served, list) = start(0);
    list.len.store(7, Ordering::Relaxed);
    let mut all = Follower::begin(&served, "follow=0.1");
    let mut new = Follower::begin(&served, "follow=0.1&cursor=end");
    let mut last = Follower::begin(&served, "follow=0.1&last=true");
    assert_eq!(new.next()["answer"]["entries"], Json::Array(Vec::new()), "nothing is new yet");
    assert_eq!(last.entries(1), [6]);
    assert_eq!(all.entries(7), up_to(7));
    list.len.store(9, Ordering::Relaxed);
    for follower in [&mut all, &mut new, &mut last] {
        assert_eq!(follower.entries(2), [7, 8]);
    }
    // Starts late, and gets all entries.
    assert_eq!(Follower::begin(&served, "follow=0.1").entries(9), up_to(9));
    // A fault does not move the cursor.
    list.is_away.store(true, Ordering::Relaxed);
    while all.next().get("error").is_none() {}
    list.len.store(12, Ordering::Relaxed);
    list.is_away.store(false, Ordering::Relaxed);
    assert_eq!(all.entries(3), [9, 10, 11]);
}

#[test]
fn a_slow_follower_misses_no_entry() {
    const ENTRIES: u64 = 90;
    let (served, list) = start(256 << 10);
    list.len.store(ENTRIES, Ordering::Relaxed);
    let mut slow = Follower::begin(&served, "follow=0.1");
    let mut found = slow.entries(3);
    // No more calls are made meanwhile than the socket's buffers hold.
    std::thread::sleep(Duration::from_secs(2));
    while found.len() < ENTRIES as usize {
        let data = slow.next();
        assert_eq!(data["skipped"], 0, "{}", data["skipped"]);
        let entries = data["answer"]["entries"].as_array().unwrap();
        found.extend(entries.iter().map(|entry| entry.as_u64().unwrap()));
    }
    assert_eq!(found, up_to(ENTRIES));
}
