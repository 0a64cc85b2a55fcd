//! Streams over real sockets: one subscription for many clients, slow clients, clients that read nothing,
//! revoked permissions.
//!
//! The clients speak HTTP/1.0, so that the events arrive unchanged, except one that reads chunks.

#![allow(clippy::unwrap_used)] // a failure here is a failed test

use crate::served::Served;
use rpc::codec::value::Value;
use rpc::dispatch::method::{Declaration, Registry};
use rpc::dispatch::params::{Parameter, Type};
use rpc::dispatch::permissions::{CallTarget, Permissions, Permit, Scope};
use rpc::fault::Fault;
use rpc::http::authorizer::{Admitted, Authorizer, Credentials, Decision};
use rpc::http::server::ListenerOptions;
use rpc::limits::Limits;
use rpc::stream_limits::{ENCRYPTED_BYTES, SOCKET_BYTES_LARGE, StreamLimits};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wire::fault;

/// State of the methods of these tests.
#[derive(Default)]
struct Inside {
    asked: AtomicU64,
    is_away: AtomicBool,
    is_refusing: AtomicBool,
}

/// A server with one method, which answers how often it was called, with this many extra bytes.
fn start(bytes: usize, options: ListenerOptions, limits: Limits) -> (Served, Arc<Inside>) {
    let inside = Arc::new(Inside::default());
    let own = Arc::clone(&inside);
    let mut registry = Registry::new();
    let tick = Declaration::new("test.tick", "How often it was asked")
        .reading()
        .parameter(Parameter::new("wait", Type::Number, "seconds to wait"))
        .parameter(Parameter::new("since", Type::Time, "a time"))
        .parameter(Parameter::new("limit", Type::Whole { min: 1, max: 9 }, "a number"));
    let tick = tick.handler_now(move |params| match own.is_away.load(Ordering::Relaxed) {
        _ if own.is_refusing.load(Ordering::Relaxed) => Err(Fault::invalid_params("limit: expected another")),
        true => Err(Fault::unavailable("it is away")),
        false => {
            let asked = own.asked.fetch_add(1, Ordering::Relaxed) + 1;
            let since = params.number("since")?.unwrap_or_default();
            let beside = Value::from("x".repeat(bytes));
            Ok(Value::object([("asked", asked.into()), ("since", Value::from(since)), ("beside", beside)]))
        }
    });
    registry.add(tick).unwrap();
    let keeps = Declaration::new("test.keeps", "Keeps something").handler_now(|_| Ok(Value::Nil));
    registry.add(keeps).unwrap();
    (Served::start_of(registry, options, limits), inside)
}

/// One received event.
#[derive(Debug)]
struct Event {
    kind: Option<String>,
    number: u64,
    data: Json,
    len_bytes: usize,
}

impl Event {
    fn skipped(&self) -> u64 {
        self.data["skipped"].as_u64().unwrap()
    }

    fn asked(&self) -> u64 {
        self.data["answer"]["asked"].as_u64().unwrap_or_else(|| panic!("{self:?}"))
    }
}

struct Follower(BufReader<TcpStream>);

impl Follower {
    fn begin(served: &Served, query: &str) -> Follower {
        Follower::over(served.connect(), query)
    }

    fn over(mut stream: TcpStream, query: &str) -> Follower {
        write!(stream, "GET /api/v1/test.tick?{query} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut follower = Follower(BufReader::with_capacity(1024, stream));
        let head = follower.lines();
        assert!(
            head[0].starts_with("HTTP/1.0 200")
                && head.iter().any(|line| line == "content-type: text/event-stream"),
            "{head:?}"
        );
        let retry = follower.lines();
        assert!(retry[0].starts_with("retry: "), "{retry:?}");
        follower
    }

    /// Lines up to an empty line; empty at the end.
    fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let count = self.0.read_line(&mut line).unwrap();
            let line = line.trim_end().to_owned();
            if count == 0 || line.is_empty() {
                return lines;
            }
            lines.push(line);
        }
    }

    /// `None` at the end.
    fn next(&mut self) -> Option<Event> {
        loop {
            let lines = self.lines();
            if lines.is_empty() {
                return None;
            }
            let field =
                |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            if let Some(data) = field("data") {
                assert_eq!(lines.iter().filter(|line| line.starts_with("data")).count(), 1, "{lines:?}");
                return Some(Event {
                    kind: field("event").map(str::to_owned),
                    number: field("id").unwrap().parse().unwrap(),
                    data: serde_json::from_str(data).unwrap(),
                    len_bytes: lines.iter().map(|line| line.len() + 1).sum::<usize>() + 1,
                });
            }
            assert_eq!(lines, [":"], "a comment");
        }
    }
}

fn follow(bounds: StreamLimits) -> Limits {
    Limits { follow: bounds, ..Limits::default() }
}

#[test]
fn a_span_before_now_moves_with_each_question_and_is_shared() {
    let (served, inside) = start(9, ListenerOptions::default(), Limits::default());
    let mut all: Vec<Follower> = (0..4).map(|_| Follower::begin(&served, "since=1h&follow=0.1")).collect();
    for follower in &mut all {
        let since = [(); 3].map(|()| follower.next().unwrap().data["answer"]["since"].as_f64().unwrap());
        assert!(since[0] < since[1] && since[1] < since[2], "{since:?}");
    }
    let (last, asked) = (all[3].next().unwrap().number, inside.asked.load(Ordering::Relaxed));
    assert!(asked <= last + 2, "{asked} questions for {last} answers to 4 who follow");
}

#[test]
fn the_same_question_of_many_is_asked_once() {
    let (served, inside) = start(9, ListenerOptions::default(), Limits::default());
    let mut all: Vec<Follower> = (0..8).map(|_| Follower::begin(&served, "follow=0.1")).collect();
    let mut last = 0;
    for _ in 0..5 {
        for follower in &mut all {
            let event = follower.next().unwrap();
            assert_eq!((event.kind.as_deref(), event.skipped()), (None, 0), "{event:?}");
            assert_eq!(event.asked(), event.number, "each answer was requested once");
            last = event.number;
        }
    }
    let asked = inside.asked.load(Ordering::Relaxed);
    assert!(asked <= last + 2, "{asked} questions for {last} answers to 8 who follow");
    assert_eq!(served.counted().followers, 8);
    // Another subscription belongs to another client.
    let mut other = Follower::begin(&served, "limit=3&follow=0.1");
    assert_eq!(other.next().unwrap().number, 1);
    drop((all, other));
    served.wait_until(|counted| counted.followers == 0);
    let asked = inside.asked.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(300));
    assert!(inside.asked.load(Ordering::Relaxed) <= asked + 1, "no client follows, and it is asked");
}

#[test]
fn chunks_are_events_to_who_speaks_http_1_1() {
    let (served, _) = start(9, ListenerOptions::default(), Limits::default());
    let mut stream = served.connect();
    let head = "GET /api/v1/test.tick HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut received = String::new();
    while !received.contains("\"answer\"") {
        let mut some = [0; 512];
        let count = stream.read(&mut some).unwrap();
        received.push_str(std::str::from_utf8(&some[..count]).unwrap());
    }
    assert!(
        received.contains("transfer-encoding: chunked\r\n") && received.contains("\r\nid: 1\ndata: {"),
        "{received}"
    );
}

/// A connection with a small kernel receive buffer.
fn narrow(served: &Served) -> (TcpStream, usize) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(&served.address.into()).unwrap();
    let kept = socket.recv_buffer_size().unwrap();
    (socket.into(), kept)
}

#[test]
fn who_is_slow_gets_the_latest_and_never_more_than_the_bound_waits() {
    const EACH: usize = 8 << 10;
    let (served, inside) = start(EACH, ListenerOptions::default(), Limits::default());
    let (stream, kept) = narrow(&served);
    let mut slow = Follower::over(stream, "follow=0.1");
    let mut quick = Follower::begin(&served, "follow=0.1");
    assert_eq!(slow.next().unwrap().skipped(), 0);
    // The slow client reads nothing while 40 answers are sent, 320 KiB.
    let before = inside.asked.load(Ordering::Relaxed);
    let mut at_pause = 0;
    while at_pause < before + 40 {
        at_pause = quick.next().unwrap().number;
    }
    let (mut waited, mut skipped, mut last) = (0, 0, 1);
    while last < at_pause {
        let event = slow.next().unwrap();
        assert_eq!(event.number, last + event.skipped() + 1, "each is sent or counted as missed");
        (last, skipped) = (event.number, skipped + event.skipped());
        waited += if event.number <= at_pause { event.len_bytes } else { 0 };
    }
    let most = SOCKET_BYTES_LARGE * 2 + ENCRYPTED_BYTES + EACH + kept;
    assert!(waited <= most, "{waited} bytes waited for who is slow, expected at most {most}");
    assert!(skipped >= 20, "{skipped} missed");
    served.wait_until(|counted| counted.updates_skipped_total >= skipped);
    let mut received = slow.next().unwrap();
    for _ in 0..3 {
        received = slow.next().unwrap();
    }
    assert_eq!(received.skipped(), 0, "it keeps up again");
}

#[test]
fn who_takes_nothing_is_cut_off_and_others_are_not() {
    let limits = Limits { write_time: Duration::from_millis(700), ..Limits::default() };
    let (served, _) = start(16 << 10, ListenerOptions::default(), limits);
    let (stream, _) = narrow(&served);
    let _stalled = Follower::over(stream, "follow=0.1");
    let mut quick = Follower::begin(&served, "follow=0.1");
    served.wait_until(|counted| counted.followers_cut_total == 1);
    served.wait_until(|counted| counted.followers == 1 && counted.connections_open == 1);
    assert!(quick.next().is_some() && quick.next().unwrap().skipped() == 0);
}

#[test]
fn a_fault_is_an_event_and_the_answers_go_on() {
    let (served, inside) = start(9, ListenerOptions::default(), Limits::default());
    let mut follower = Follower::begin(&served, "follow=0.1");
    assert!(follower.next().unwrap().kind.is_none());
    inside.is_away.store(true, Ordering::Relaxed);
    let fault = std::iter::from_fn(|| follower.next()).find(|event| event.kind.is_some()).unwrap();
    assert_eq!((fault.kind.as_deref(), fault.skipped()), (Some("fault"), 0));
    assert_eq!(fault.data["error"]["code"], fault::UNAVAILABLE);
    inside.is_away.store(false, Ordering::Relaxed);
    let again = std::iter::from_fn(|| follower.next()).find(|event| event.kind.is_none()).unwrap();
    assert!(again.asked() > 1 && again.number > fault.number);
}

#[test]
fn a_fault_that_does_not_pass_is_the_last_that_comes() {
    let (served, inside) = start(9, ListenerOptions::default(), Limits::default());
    let mut followers = [(); 2].map(|()| Follower::begin(&served, "follow=0.1"));
    assert!(followers.iter_mut().all(|follower| follower.next().unwrap().kind.is_none()));
    inside.is_refusing.store(true, Ordering::Relaxed);
    for follower in &mut followers {
        let fault = std::iter::from_fn(|| follower.next()).find(|event| event.kind.is_some()).unwrap();
        assert_eq!(fault.data["error"]["code"], fault::INVALID_PARAMS);
        assert!(follower.next().is_none(), "it ended");
    }
    // A new stream after that gets answers.
    inside.is_refusing.store(false, Ordering::Relaxed);
    let mut again = Follower::begin(&served, "follow=0.1");
    assert!(std::iter::from_fn(|| again.next()).any(|event| event.kind.is_none()));
}

/// Admits every client as `ana`, until its permission is revoked.
struct Gate(Arc<AtomicBool>);

impl Permissions for Gate {
    fn may(&self, _: CallTarget<'_>) -> Result<Permit, Fault> {
        self.may_still(CallTarget { method: "", is_reading: true, domain: None, host: None, kind: None })
            .map(|()| Box::new(()) as Permit)
    }

    fn may_still(&self, _: CallTarget<'_>) -> Result<(), Fault> {
        match self.0.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(Fault::new(fault::FORBIDDEN, "no longer")),
        }
    }

    fn who(&self) -> &str {
        "ana"
    }
}

impl Authorizer for Gate {
    fn authorize(&self, authorize: &Credentials<'_>) -> Decision {
        let access: Arc<dyn Permissions> = Arc::new(Gate(Arc::clone(&self.0)));
        let scope = Scope { access: Some(access), ..Scope::default() };
        let fields = vec![("authentication-info", "welcome".to_owned())];
        Decision::Admitted(Admitted { path: authorize.path.to_owned(), scope, fields, permit: Box::new(()) })
    }
}

#[test]
fn a_client_whose_permission_ended_gets_the_reason_and_is_cut_off() {
    let may = Arc::new(AtomicBool::new(true));
    let options =
        ListenerOptions { authorizer: Some(Arc::new(Gate(Arc::clone(&may)))), ..ListenerOptions::default() };
    let bounds = StreamLimits {
        look_interval: Duration::from_millis(50),
        followers_of_account: 2,
        ..StreamLimits::default()
    };
    let (served, _) = start(9, options, follow(bounds));
    let mut often = Follower::begin(&served, "follow=0.1");
    // This stream would be sent nothing for a minute.
    let mut seldom = Follower::begin(&served, "follow=60");
    assert!(often.next().is_some() && seldom.next().is_some());
    let third = served.get("/api/v1/test.tick?follow=1");
    assert_eq!((third.status, third.fault_code()), (503, Some(fault::BUSY)), "{third:?}");
    may.store(false, Ordering::Relaxed);
    for follower in [&mut often, &mut seldom] {
        // Enough events to see that a stream continues.
        let last = std::iter::from_fn(|| follower.next()).take(100).last().unwrap();
        assert_eq!(last.data["error"]["code"], fault::FORBIDDEN, "{last:?}");
    }
    let again = served.get("/api/v1/test.tick?follow=1");
    assert_eq!((again.status, again.fault_code()), (403, Some(fault::FORBIDDEN)));
    served.wait_until(|counted| counted.followers == 0 && counted.followers_cut_total == 2);
}

#[test]
fn what_waits_or_changes_something_is_not_followed() {
    let (served, _) = start(
        9,
        ListenerOptions::default(),
        follow(StreamLimits { followers: 1, ..StreamLimits::default() }),
    );
    let check = |path: &str, status: u16, code: i32, words: &str| {
        let answer = served.get(path);
        assert_eq!((answer.status, answer.fault_code()), (status, Some(code)), "{path}: {answer:?}");
        assert!(answer.body.contains(words), "{path}: {answer:?}");
    };
    check("/api/v1/test.keeps?follow=1", 405, fault::TRANSPORT, "POST");
    check("/api/v1/system.listMethods?follow=1", 400, fault::INVALID_REQUEST, "cannot be followed");
    check("/api/v1/test.tick?follow=1&wait=5", 400, fault::INVALID_PARAMS, "wait: expected none");
    check("/api/v1/test.tick?follow=0", 400, fault::INVALID_PARAMS, "from 0.1 to 60");
    check("/api/v1/test.tick?follow=1&limit=99", 400, fault::INVALID_PARAMS, "limit");
    let _one = Follower::begin(&served, "follow=1");
    check("/api/v1/test.tick?follow=1", 503, fault::BUSY, "at most 1 followers");
    assert_eq!(served.get("/api/v1/test.tick").status, 200, "a question is no follower");
    assert_eq!(served.counted().follows_refused_total, 1);
}

#[test]
fn silence_is_filled_and_the_end_comes_at_once() {
    let bounds = StreamLimits {
        keep_alive: Duration::from_millis(200),
        look_interval: Duration::from_millis(50),
        ..StreamLimits::default()
    };
    let (mut served, _) = start(9, ListenerOptions::default(), follow(bounds));
    let mut follower = Follower::begin(&served, "follow=60");
    assert_eq!(follower.next().unwrap().number, 1);
    assert_eq!(follower.lines(), [":"]);
    assert_eq!(follower.lines(), [":"]);
    assert!(served.stop_within(Duration::from_secs(2)), "it waits for who follows");
    assert!(follower.next().is_none());
}
