//! A daemon inside, a proxy with its listener, and the network between them: which transport they use, and
//! what happens to a connection when its path is cut. Real sockets on loopback.

mod ends;

use ends::{End, Gate, Wall, until};
use overlay::net::event_loop::Event;
use overlay::net::handle::Answer;
use overlay::net::https_stream::tunnels::Tunnels;
use overlay::net::protocol::Protocol;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tunnel::carrier::frame::{Opened, Opening, Refused};
use tunnel::ladder::TransportKind;
use tunnel::sessions::SESSIONS_OF_SOURCE_MAX;

const DEADLINE: Duration = Duration::from_secs(60);

/// A daemon inside that knows only the listener's address reaches the proxy by `transport`, is
/// registered there, and both query each other.
async fn check(wall: Wall, transport: TransportKind) {
    let mut gate = Gate::open(1, wall).await;
    gate.end.answer_queries();
    let mut inside = End::inside(2, gate.key(), gate.door);
    inside.ready(gate.key()).await;
    let by = |name: &str| inside.figure(name);
    let gauges = ["by_direct", "by_websocket", "by_polling"].map(by);
    let expected = [TransportKind::Direct, TransportKind::WebSocket, TransportKind::Polling]
        .map(|known| u64::from(known == transport));
    assert_eq!(gauges, expected, "{transport:?}");
    let indirect = inside.handle.indirect(8);
    assert_eq!(
        indirect,
        [(gate.key(), transport)]
            .into_iter()
            .filter(|_| transport != TransportKind::Direct)
            .collect::<Vec<_>>()
    );
    until("a registration", || inside.figure("registrations") == 1).await;

    let page = vec![7; 900_000];
    let answer = inside.handle.ask(gate.key(), Protocol::Query, &page, DEADLINE).await.expect("answered");
    assert_eq!(answer, page, "what was asked came back whole");
    inside.answer_queries();
    let answer = gate.end.handle.ask(inside.key(), Protocol::Query, b"and back", DEADLINE).await;
    assert_eq!(answer.as_deref(), Ok(&b"and back"[..]));
}

#[tokio::test]
async fn a_door_that_lets_everything_in_is_reached_directly() {
    check(Wall::default(), TransportKind::Direct).await;
}

#[tokio::test]
async fn a_wall_that_passes_https_alone_is_passed_by_a_web_socket() {
    check(Wall { stops_plain: true, ..Wall::default() }, TransportKind::WebSocket).await;
}

#[tokio::test]
async fn a_wall_that_passes_no_upgrade_is_passed_by_polling() {
    check(Wall { stops_plain: true, stops_upgrade: true }, TransportKind::Polling).await;
}

/// Cut every connection during queries: the connection above them never ends.
async fn check_cut(wall: Wall, transport: TransportKind) {
    let mut gate = Gate::open(3, wall).await;
    gate.end.answer_queries();
    let between = ends::Between::open(gate.door).await;
    let mut inside = End::inside(4, gate.key(), between.address);
    inside.ready(gate.key()).await;
    assert_eq!(inside.handle.indirect(8), [(gate.key(), transport)]);
    for number in 0..3_u8 {
        let page = vec![number; 300_000];
        let asking = inside.handle.ask(gate.key(), Protocol::Query, &page, DEADLINE);
        let cutting = async {
            // A part of the query has passed.
            let from = between.passed.load(Ordering::Relaxed);
            until("a part of it", || between.passed.load(Ordering::Relaxed) >= from + 50_000).await;
            between.cut().await;
        };
        let (answer, ()) = tokio::join!(asking, cutting);
        assert_eq!(answer, Ok(page), "question {number}");
    }
    assert_eq!(inside.figure("disconnected_total"), 0, "the connection is still the first");
}

#[tokio::test]
async fn a_web_socket_that_is_cut_is_carried_on_by_another() {
    check_cut(Wall { stops_plain: true, ..Wall::default() }, TransportKind::WebSocket).await;
}

#[tokio::test]
async fn polling_that_is_cut_is_carried_on() {
    check_cut(Wall { stops_plain: true, stops_upgrade: true }, TransportKind::Polling).await;
}

#[tokio::test]
async fn the_proxy_reports_the_transport_of_each_peer() {
    let mut gate = Gate::open(5, Wall { stops_plain: true, ..Wall::default() }).await;
    let inside = End::inside(6, gate.key(), gate.door);
    gate.end.ready(inside.key()).await;
    assert_eq!(gate.end.handle.indirect(8), [(inside.key(), TransportKind::WebSocket)]);
    assert_eq!(gate.figure("tunnels"), 1);
    inside.stop().await;
    until("an empty table", || gate.figure("tunnels") == 0).await;
}

#[tokio::test]
async fn a_silent_tunnel_is_forgotten_and_no_client_takes_all_places() {
    let gate = Gate::open(7, Wall { stops_plain: true, ..Wall::default() }).await;
    let source = "10.0.0.1:1".parse().expect("an address");
    let opening = Opening { token: None, received: 0 }.bytes();
    let open = async |tunnels: &std::sync::Arc<Tunnels>, from| {
        let answer = tunnels.ask((true, "/tunnel", ""), &opening, from).await;
        (answer.status, Opened::read(&answer.body))
    };
    for _ in 0..SESSIONS_OF_SOURCE_MAX + 50 {
        match open(&gate.tunnels, source).await {
            (200, Ok(Opened::Here { .. } | Opened::Refused(Refused::Full))) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(gate.figure("tunnels") > 0, "they may still say who they are");
    let mut inside = End::inside(9, gate.key(), gate.door);
    inside.ready(gate.key()).await;
    ends::until_within(DEADLINE, "the silent ones gone", || gate.figure("tunnels") == 1).await;
}

#[tokio::test]
async fn what_is_no_tunnel_gets_the_reason() {
    let gate = Gate::open(8, Wall::default()).await;
    let source = "10.0.0.1:1".parse().expect("an address");
    let ask = async |is_post, path: &str, query: &str, body: &[u8]| {
        gate.tunnels.ask((is_post, path, query), body, source).await
    };
    let unknown = format!("/tunnel/{}", "ab".repeat(16));
    assert_eq!(ask(false, &unknown, "at=0", b"").await.status, 404);
    assert_eq!(ask(true, &unknown, "", b"").await.status, 404);
    assert_eq!(ask(false, "/tunnel", "", b"").await.status, 404);
    let answer = ask(true, "/tunnel", "", b"hello").await;
    assert_eq!(Opened::read(&answer.body), Ok(Opened::Refused(Refused::Form)));
    let opened = ask(true, "/tunnel", "", &Opening { token: None, received: 0 }.bytes()).await;
    let Ok(Opened::Here { token, .. }) = Opened::read(&opened.body) else { panic!("not opened") };
    let known = format!("/tunnel/{}", token.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    assert_eq!(ask(false, &known, "at=999", b"").await.status, 400, "that was never said");
    assert_eq!(ask(true, &known, "", b"no frame").await.status, 400);
}

/// Answer a query by sending it back, as the proxies of these tests do.
fn answer(event: Event) {
    if let Event::Question(question) = event {
        let _ = question.reply.send(Answer::Done(question.body));
    }
}
