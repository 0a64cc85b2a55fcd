//! Misbehaving members: their own connection is closed, and no other member is affected.

use crate::report::rig::{Rig, host, myself, now_at};
use crate::simulated::Random;
use sensor::report::sender::{JournalRange, Sender};
use sensor::representative::domain::{Config, Link};
use wire::credential::Serial;
use wire::event::{Content, Kind, Source};
use wire::id::{Generation, PeerKey, SensorKey};
use wire::report::marks::MarkList;
use wire::report::{
    Events, FromMember, Hello, HostState, Metrics, Packed, Record, Run, Shape, Sweep, VERSION, encode,
};
use wire::sample::{Metric, Semantics};
use wire::time::{Moment, Time};

pub(super) fn hello(own: &str, sensor: u64) -> Hello {
    Hello {
        version: VERSION,
        program: "hostile".into(),
        sensor: SensorKey(sensor),
        host: host(own),
        hosts: Vec::new(),
        boot: "".into(),
        started: Time::default(),
        clock: Time::default(),
        oldest: 0,
        next: 1000,
        acknowledged: None,
        marks: Vec::new(),
        stores: wire::at_end::AtEnd(Some(wire::report::Stores {
            minutes: true,
            samples: wire::at_end::AtEnd(Some(true)),
            archive: wire::at_end::AtEnd(Some(true)),
        })),
    }
}

pub(super) fn send(rig: &mut Rig, link: Link, frame: &FromMember) {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes).unwrap();
    let now = rig.now;
    rig.domain.handle_bytes(link, &bytes, now);
}

fn greet(rig: &mut Rig, peer: u8, hello: Hello) -> Link {
    greet_by(rig, (peer, Serial(0)), hello)
}

/// Connects with a certificate of this serial number, and sends the hello.
fn greet_by(rig: &mut Rig, (peer, serial): (u8, Serial), hello: Hello) -> Link {
    let link = rig.domain.connect((PeerKey([peer; 32]), serial), hello.host.clone(), rig.now.moment).unwrap();
    send(rig, link, &FromMember::Hello(Box::new(hello)));
    rig.deliver();
    link
}

fn events(first: u64, lost: u64, host: &str, count: u64) -> Events {
    let record = |nth| Record {
        offset: first.wrapping_add(nth).wrapping_mul(10),
        number: 0,
        call: "".into(),
        content: Content::new(Kind::Message, Time::default()),
        keys: None,
    };
    let source = Source { host: host.into(), file: "/f".into(), filter: "x".into() };
    let run = Run {
        generation: Generation(1),
        source,
        seen: Time::default(),
        records: (0..count).map(record).collect(),
    };
    Events { first, lost, runs: vec![run] }
}

/// Creates a rig with an honest member that continues to report.
fn rig() -> Rig {
    let mut rig = Rig::new(1, Config::default());
    rig.members[0].read(100);
    rig.settle();
    rig
}

fn check_honest(rig: &mut Rig) {
    rig.members[0].read(10);
    rig.settle();
    assert_eq!(rig.faults(), (0, 0));
    assert!(rig.members[0].link.is_some());
}

#[test]
fn another_s_host_and_sensor_are_refused_until_it_is_silent_for_long() {
    let mut rig = rig();
    greet(&mut rig, 99, hello("h0", 5));
    assert!(rig.closed[0].contains("host h0 is that of daemon"), "{:?}", rig.closed);
    greet(&mut rig, 99, hello("evil", 1000));
    assert!(rig.closed[1].contains("is that of daemon"), "{:?}", rig.closed);
    check_honest(&mut rig);
    let (domain, now) = (&mut rig.domain, now_at(1000 + 601));
    rig.members[0].disconnect(domain);
    rig.now = now;
    greet(&mut rig, 99, hello("h0", 5));
    assert_eq!(rig.closed.len(), 2, "the host is free by now: {:?}", rig.closed);
}

#[test]
fn events_of_hosts_that_have_a_sensor_are_set_aside_and_the_rest_is_stored() {
    let mut rig = rig();
    let named = Hello { hosts: vec![host("h0"), host("printer")], ..hello("evil", 5) };
    let link = greet(&mut rig, 99, named);
    for (first, of) in [(0, "evil"), (10, "h0"), (20, "printer"), (30, "elsewhere"), (40, "evil")] {
        send(&mut rig, link, &FromMember::Events(events(first, 0, of, 10)));
    }
    rig.settle();
    let counts = rig.domain.counts();
    assert_eq!(counts.refused_total, 20);
    let stored = rig.stored();
    let hostile: Vec<u64> =
        stored.keys().filter(|id| id.sensor == SensorKey(5)).map(|id| id.offset / 10).collect();
    assert_eq!(hostile, (0..10).chain(20..30).chain(40..50).collect::<Vec<u64>>());
    let rows = rig.domain.hosts(rig.now.moment);
    assert_eq!((rows[0].host.as_str(), rows[0].events_refused), ("evil", 20));
    assert_eq!(rows[0].events_next, 50, "they are not asked for again");
    check_honest(&mut rig);
}

#[test]
fn an_open_stream_of_a_previous_holder_renews_nothing_of_the_new_one() {
    let mut rig = rig();
    let previous = greet(&mut rig, 98, hello("a1", 5));
    rig.now = now_at(1000 + 601);
    greet(&mut rig, 99, hello("A1", 6));
    assert!(rig.closed.len() == 1 && rig.closed[0].contains("another daemon"), "{:?}", rig.closed);
    rig.now = now_at(1000 + 1100);
    send(&mut rig, previous, &FromMember::Events(events(0, 0, "a1", 10)));
    rig.settle();
    assert_eq!(
        rig.stored().keys().filter(|id| id.sensor == SensorKey(5)).count(),
        0,
        "nothing of it is stored"
    );
    rig.now = now_at(1000 + 601 + 601);
    greet(&mut rig, 97, hello("a1", 7));
    assert_eq!(rig.closed.len(), 2, "the new holder was silent for long: {:?}", rig.closed);
    assert!(rig.closed[1].contains("another daemon"), "{:?}", rig.closed);
}

/// A host that lost its key and joined again: with its state, and without.
#[test]
fn a_later_certificate_takes_the_host_over_at_once() {
    for sensor in [5, 6] {
        let mut rig = rig();
        let lost = greet_by(&mut rig, (98, Serial(3)), hello("a1", 5));
        rig.domain.disconnect(lost);
        greet_by(&mut rig, (99, Serial(2)), hello("a1", sensor));
        assert!(rig.closed.len() == 1 && rig.closed[0].contains("host a1 is that of"), "{:?}", rig.closed);
        let link = greet_by(&mut rig, (99, Serial(4)), hello("a1", sensor));
        send(&mut rig, link, &FromMember::Events(events(0, 0, "a1", 10)));
        rig.settle();
        assert_eq!(rig.closed.len(), 1, "{:?}", rig.closed);
        assert_eq!(rig.stored().keys().filter(|id| id.sensor == SensorKey(sensor)).count(), 10);
        greet_by(&mut rig, (98, Serial(3)), hello("a1", 5));
        assert!(rig.closed.len() == 2 && rig.closed[1].contains("host a1 is that of"), "{:?}", rig.closed);
    }
}

#[test]
fn a_host_whose_sensor_is_silent_for_long_may_be_spoken_for() {
    let mut rig = rig();
    let gone = greet(&mut rig, 98, hello("gone", 8));
    rig.domain.disconnect(gone);
    let named = || Hello { hosts: vec![host("gone")], ..hello("evil", 5) };
    let link = greet(&mut rig, 99, named());
    send(&mut rig, link, &FromMember::Events(events(0, 0, "gone", 10)));
    assert_eq!(rig.domain.counts().refused_total, 10, "it may come back");
    rig.now = now_at(1000 + 601);
    let link = greet(&mut rig, 99, Hello { next: 2000, ..named() });
    send(&mut rig, link, &FromMember::Events(events(10, 0, "gone", 10)));
    assert_eq!(rig.domain.counts().refused_total, 10);
}

#[test]
fn who_spoke_for_a_host_stops_when_that_gets_a_sensor() {
    let mut rig = rig();
    let link = greet(&mut rig, 99, Hello { hosts: vec![host("late")], ..hello("evil", 5) });
    send(&mut rig, link, &FromMember::Events(events(0, 0, "late", 10)));
    assert_eq!(rig.domain.counts().refused_total, 0);
    greet(&mut rig, 98, hello("Late.", 8));
    send(&mut rig, link, &FromMember::Events(events(10, 0, "late", 10)));
    assert_eq!((rig.domain.counts().refused_total, rig.closed.len()), (10, 0));
}

#[test]
fn one_frame_with_hosts_in_turn_keeps_the_numbers_right() {
    let mut rig = rig();
    let link = greet(&mut rig, 99, hello("evil", 5));
    let runs = ["evil", "h0", "evil", "h0", "h0", "evil", "h0"];
    let mut all = events(7, 7, "evil", 0);
    all.runs.clear();
    for (nth, of) in (0..).zip(runs) {
        all.runs.extend(events(7 + nth * 3, 0, of, 3).runs);
    }
    send(&mut rig, link, &FromMember::Events(all));
    rig.settle();
    let feed = rig.domain.feed();
    let page = feed.read(&feed.oldest(), 10_000, |stored| stored.event.id.sensor == SensorKey(5)).unwrap();
    let numbers: Vec<u64> = page.events.iter().map(|stored| stored.number).collect();
    assert_eq!(numbers, [7, 8, 9, 13, 14, 15, 22, 23, 24]);
    assert!(page.events.iter().all(|stored| stored.event.id.offset == stored.number * 10));
    assert_eq!((rig.domain.counts().lost_total, rig.domain.counts().refused_total), (7, 12));
    assert_eq!(rig.domain.hosts(rig.now.moment)[0].events_next, 28);
}

#[test]
fn what_is_out_of_order_or_range_closes_the_connection() {
    let metric = |name: String| Metric {
        name: name.into(),
        labels: Vec::new(),
        unit: "".into(),
        semantics: Semantics::Gauge,
    };
    let metrics = |first, count: u32| {
        FromMember::Metrics(Metrics { first, metrics: (0..count).map(|n| metric(format!("m{n}"))).collect() })
    };
    let sweep = |packed: Vec<u8>| FromMember::Sweep(Sweep { thinned: 0, packed: Packed(packed) });
    let cases: Vec<(&str, Vec<FromMember>)> = vec![
        ("came where", vec![FromMember::Events(events(10, 0, "evil", 1))]),
        ("came where", vec![FromMember::Events(events(10, 9, "evil", 1))]),
        ("out of range", vec![FromMember::Events(events(1, 2, "evil", 1))]),
        ("out of range", vec![FromMember::Events(events(u64::MAX, u64::MAX, "evil", 2))]),
        ("events of a frame", vec![FromMember::Events(events(0, 0, "evil", 20_000))]),
        ("second hello", vec![FromMember::Hello(Box::new(hello("evil", 5)))]),
        ("number of a metric", vec![metrics(5, 1)]),
        ("number of a metric", vec![metrics(0, 5), FromMember::Shape(Shape { runs: vec![(3, 3)] })]),
        ("number of a metric", vec![FromMember::Shape(Shape { runs: vec![(u32::MAX, 2)] })]),
        ("columns", vec![metrics(0, 5000), FromMember::Shape(Shape { runs: vec![(0, 5000); 5] })]),
        ("its shape", vec![sweep(vec![1])]),
        (
            "whole sweep",
            vec![metrics(0, 1), FromMember::Shape(Shape { runs: vec![(0, 1)] }), sweep(vec![2, 0, 0])],
        ),
        (
            "cut short",
            vec![metrics(0, 1), FromMember::Shape(Shape { runs: vec![(0, 1)] }), sweep(vec![1, 1])],
        ),
    ];
    for (expected, frames) in cases {
        let mut rig = rig();
        let link = greet(&mut rig, 99, hello("evil", 5));
        for frame in &frames {
            send(&mut rig, link, frame);
        }
        rig.deliver();
        assert!(rig.closed.iter().any(|why| why.contains(expected)), "{expected}: {:?}", rig.closed);
        check_honest(&mut rig);
    }
}

#[test]
fn a_report_without_a_hello_and_another_version_are_refused() {
    let mut rig = rig();
    let link = rig.domain.connect((PeerKey([9; 32]), Serial(0)), host("evil"), rig.now.moment).unwrap();
    send(&mut rig, link, &FromMember::Leave);
    greet(&mut rig, 98, Hello { version: 9, ..hello("evil", 5) });
    rig.deliver();
    assert!(rig.closed[0].contains("hello") && rig.closed[1].contains("version 9"), "{:?}", rig.closed);
    check_honest(&mut rig);
}

/// A certificate is for one host: a hello for another host is refused before it is used.
#[test]
fn a_hello_of_another_host_than_the_certificates_is_refused() {
    let mut rig = rig();
    let connect = |rig: &mut Rig, certified: &str| {
        let link =
            rig.domain.connect((PeerKey([9; 32]), Serial(0)), host(certified), rig.now.moment).unwrap();
        send(rig, link, &FromMember::Hello(Box::new(hello("free", 5))));
        rig.deliver();
    };
    connect(&mut rig, "other");
    assert!(rig.closed[0].contains("its certificate of other"), "{:?}", rig.closed);
    assert!(
        rig.domain.hosts(rig.now.moment).iter().all(|row| row.host.as_str() != "free"),
        "nothing is learned"
    );
    check_honest(&mut rig);
    connect(&mut rig, "free");
    assert_eq!(rig.closed.len(), 1, "with the right one it is taken");
}

#[test]
fn connections_on_which_nothing_is_said_are_closed() {
    let mut rig = rig();
    rig.domain.connect((PeerKey([9; 32]), Serial(0)), host("evil"), rig.now.moment).unwrap();
    let after = |rig: &mut Rig, secs: u64| {
        rig.domain.close_silent(Moment(rig.now.moment.0 + std::time::Duration::from_secs(secs)));
        rig.deliver();
        rig.closed.len()
    };
    assert_eq!([after(&mut rig, 14), after(&mut rig, 15), after(&mut rig, 59)], [0, 1, 1], "no hello");
    let members = rig.domain.links_len();
    assert_eq!(after(&mut rig, 61), 1 + members, "members that say nothing");
}

#[test]
fn figures_that_are_none_are_left_out() {
    let mut rig = rig();
    let link = greet(&mut rig, 99, hello("evil", 5));
    let state = HostState {
        load: Some([f64::NAN, 1.0, 1.0]),
        cpu_used: Some(7.0),
        uptime: Some(1e300),
        memory_used: Some(u64::MAX),
        health: vec!["x".repeat(5000).as_str().into(); 40],
        ..HostState::default()
    };
    send(&mut rig, link, &FromMember::State(Box::new(state)));
    let row = &rig.domain.hosts(rig.now.moment)[0];
    assert_eq!((row.state.load, row.state.cpu_used, row.state.uptime), (None, None, None));
    assert!(row.state.health.len() <= 16 && row.state.health[0].len() <= 512);
    let summary = rig.domain.summary(rig.now.moment);
    assert_eq!(summary.absurd, 1);
    assert!(summary.metrics.iter().all(|metric| metric.sum.unwrap_or(0.0).abs() < 1e18));
}

/// Arbitrary bytes after a hello, cut anywhere: no panic, and all events of the honest member arrive.
#[test]
fn noise_does_no_harm() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let mut rig = rig();
        let link = greet(&mut rig, 99, hello("evil", 5));
        let mut bytes = Vec::new();
        for nth in 0..random.below(20) {
            encode(&FromMember::Events(events(nth * 3, 0, "evil", 3)), &mut bytes).unwrap();
        }
        for _ in 0..random.below(30) {
            let at = random.below(bytes.len() as u64 + 1) as usize;
            let byte = random.below(256) as u8;
            match random.below(3) {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ => bytes.truncate(at),
            }
        }
        let now = rig.now;
        rig.domain.handle_bytes(link, &bytes, now);
        rig.deliver();
        check_honest(&mut rig);
    }
}

/// A daemon with ever new sensor keys displaces only its own old ones.
#[test]
fn many_sensors_of_one_daemon_cost_only_its_own() {
    let mut rig = rig();
    for sensor in 0..100 {
        greet(&mut rig, 99, hello("evil", 5000 + sensor));
    }
    check_honest(&mut rig);
    rig.restart();
    rig.settle();
    assert_eq!(rig.members[0].sender.counts().resent_total, 0, "it is still known");
}

#[test]
fn a_new_session_of_a_daemon_ends_its_old_one() {
    let mut rig = rig();
    let old = rig.members[0].link;
    let mut sender = Sender::new(myself(rig.members[0].key, &host("h0")), MarkList::default());
    sender.connect(JournalRange { oldest: 0, next: 100, acknowledged: None }, Time::default());
    let link = rig.domain.connect((rig.members[0].peer, Serial(0)), host("h0"), rig.now.moment).unwrap();
    let now = rig.now;
    rig.domain.handle_bytes(link, sender.output(), now);
    rig.deliver();
    assert!(rig.closed[0].contains("new session") && rig.members[0].link.is_none() && old.is_some());
}
