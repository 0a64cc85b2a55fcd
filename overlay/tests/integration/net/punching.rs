//! Hole punching: two daemons that are connected through a proxy alone dial each other directly.
//!
//! Rule: real sockets on loopback, without translators. Not here: translators and firewalls
//! (`tests/system/lab_punch`), the messages and permissions (`overlay::net::punch`).

use crate::net::DEADLINE;
use crate::net::daemons::{Daemon, Rules, key};
use overlay::net::event_loop::Config;
use overlay::net::frames::{self, Reader};
use overlay::net::handle::{Answer, AskError, Handle};
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tunnel::ladder::TransportKind;
use wire::address::Address;
use wire::join::Directory;

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn proxy(number: u8, connected_peers: &[u8]) -> Daemon {
    let config = Config { is_proxy: true, ..Config::new(vec![loopback()]) };
    Daemon::start_with(number, config, Rules::welcoming(connected_peers)).await
}

/// A daemon that registers with the proxy at address `at`.
async fn registered(number: u8, proxy: &Daemon, at: SocketAddr, connected_peers: &[u8]) -> Daemon {
    let via = vec![Directory { key: proxy.key(), addresses: vec![at.into()] }];
    let config = Config { via, ..Config::new(vec![loopback()]) };
    let daemon = Daemon::start_with(number, config, Rules::welcoming(connected_peers)).await;
    until("it is registered", || daemon.handle.figures().registrations.get() == 1).await;
    daemon
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap_or_else(|_| panic!("in time: {what}"));
}

/// Makes `from` dial `to` through the proxy at `at` alone.
async fn dial_through(from: &Daemon, to: &Daemon, proxy: &Daemon, at: SocketAddr) {
    let through = Address::from(at).through(proxy.key()).expect("not through another");
    from.handle.keep(Target::Peer(to.key()), vec![through]).await;
}

async fn is_answered(from: &Daemon, to: &Daemon) {
    let answer = from.handle.ask(to.key(), Protocol::Query, b"are you there?", DEADLINE).await;
    assert_eq!(answer, Ok(b"yes".to_vec()));
}

/// Number of connections that are direct, punched, and through a proxy.
fn figures(of: &Handle) -> [u64; 3] {
    let figures = of.figures();
    [figures.by_direct.get(), figures.by_punched.get(), figures.by_circuit.get()]
}

#[tokio::test]
async fn two_that_met_through_a_proxy_go_on_without_it_and_open_streams_end_where_they_started() {
    let proxy = proxy(70, &[71, 72]).await;
    let mut inside = registered(71, &proxy, proxy.address(), &[70, 72]).await;
    let mut outside = Daemon::start(72, Rules::welcoming(&[70, 71])).await;
    dial_through(&outside, &inside, &proxy, proxy.address()).await;
    outside.ready(&inside).await;
    inside.ready(&outside).await;
    let mut near = outside.handle.open(inside.key(), Protocol::Report, DEADLINE).await.expect("welcome");
    let far = inside.stream(Protocol::Report).await;
    let mut far = Reader::new(far, 100);
    inside.answer_queries(|_| Answer::Done(b"yes".to_vec()));
    is_answered(&outside, &inside).await;

    for (one, other) in [(&inside, &outside), (&outside, &inside)] {
        until("both dial", || figures(&one.handle)[1] == 1).await;
        assert_eq!(one.handle.figures().punched_total.get(), 1);
        assert!(
            one.handle.indirect(8).contains(&(other.key(), TransportKind::Punched)),
            "{:?}",
            one.handle.indirect(8)
        );
    }
    is_answered(&outside, &inside).await;
    // Longer than an unused circuit is left open.
    for number in 0..70_u32 {
        frames::write(&mut near, &number, 100).await.expect("written");
        assert_eq!(far.next::<u32>().await.expect("whole"), Some(number), "a started answer goes on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(figures(&outside.handle), [1, 1, 1], "a stream holds the circuit");
    drop(near);
    drop(far);
    until("the circuit is closed", || figures(&outside.handle)[2] == 0).await;
    until("at the proxy too", || proxy.handle.figures().circuits.get() == 0).await;
    is_answered(&outside, &inside).await;
    assert_eq!(figures(&outside.handle), [1, 1, 0], "the proxy's own is left");
    assert!(outside.handle.is_ready(inside.key()) && inside.handle.is_ready(outside.key()));
}

/// An address translator that gives connections ports of its own, in front of the proxy.
struct Translator {
    at: SocketAddr,
    _passing: JoinSet<()>,
}

impl Translator {
    async fn before(proxy: SocketAddr) -> Translator {
        let listener = TcpListener::bind(loopback()).await.expect("bound");
        let at = listener.local_addr().expect("an address");
        let mut passing = JoinSet::new();
        passing.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                lines.spawn(async move {
                    let mut far = TcpStream::connect(proxy).await.expect("the proxy is there");
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Translator { at, _passing: passing }
    }
}

#[tokio::test]
async fn where_the_port_that_is_seen_leads_nowhere_the_own_one_does() {
    let proxy = proxy(73, &[74, 75]).await;
    let (one, other) = (Translator::before(proxy.address()).await, Translator::before(proxy.address()).await);
    let mut inside = registered(74, &proxy, one.at, &[73, 75]).await;
    let mut outside = Daemon::start(75, Rules::welcoming(&[73, 74])).await;
    dial_through(&outside, &inside, &proxy, other.at).await;
    outside.ready(&inside).await;
    inside.ready(&outside).await;
    inside.answer_queries(|_| Answer::Done(b"yes".to_vec()));
    is_answered(&outside, &inside).await;
    for daemon in [&inside, &outside] {
        until("both dial", || figures(&daemon.handle)[1] == 1).await;
        assert_eq!(daemon.handle.figures().punches_failed_total.get(), 0);
    }
    is_answered(&outside, &inside).await;
}

/// These two numbers, the initiator first.
fn in_order(one: u8, other: u8) -> (u8, u8) {
    if key(one) < key(other) { (one, other) } else { (other, one) }
}

#[tokio::test]
async fn who_listens_nowhere_takes_no_part_and_is_answered_by_the_circuit() {
    let proxy = proxy(76, &[77, 78]).await;
    let (begins, deaf) = in_order(77, 78);
    let mut inside = registered(begins, &proxy, proxy.address(), &[76, deaf]).await;
    let mut outside = Daemon::start_deaf(deaf, Rules::welcoming(&[76, begins]));
    dial_through(&outside, &inside, &proxy, proxy.address()).await;
    outside.ready(&inside).await;
    inside.ready(&outside).await;
    inside.answer_queries(|_| Answer::Done(b"yes".to_vec()));
    is_answered(&outside, &inside).await;
    until("its request fails", || inside.handle.figures().punches_failed_total.get() == 1).await;
    is_answered(&outside, &inside).await;
    assert_eq!(figures(&outside.handle), [1, 0, 1]);
    assert_eq!(outside.handle.figures().punches_failed_total.get(), 0);
}

#[tokio::test]
async fn a_peer_without_a_certificate_does_not_learn_this_address_and_is_not_dialled() {
    let proxy = proxy(79, &[80, 81]).await;
    let (begins, stranger) = in_order(80, 81);
    let inside = registered(begins, &proxy, proxy.address(), &[79, stranger]).await;
    let outside =
        Daemon::start_with(stranger, Config::new(vec![loopback()]), Rules::welcoming(&[79, begins]).silent())
            .await;
    dial_through(&outside, &inside, &proxy, proxy.address()).await;
    until("a circuit", || figures(&inside.handle)[2] == 1).await;
    until("its end, for nothing was shown", || figures(&inside.handle)[2] == 0).await;
    let counted = inside.handle.figures();
    assert_eq!((counted.punched_total.get(), counted.punches_failed_total.get()), (0, 0));
    assert_eq!(outside.handle.figures().punched_total.get(), 0);
}

/// It could learn the source addresses of others.
#[tokio::test]
async fn a_proxy_does_not_reveal_the_addresses_of_peers_that_it_does_not_carry() {
    let proxy = proxy(82, &[83]).await;
    let mut member = Daemon::start(83, Rules::welcoming(&[82])).await;
    member.dial(&proxy).await;
    member.ready(&proxy).await;
    until("both are ready", || proxy.handle.is_ready(member.key())).await;
    // An empty question is encoded like `Where`, which requests the asker's own address.
    let answer = member.handle.ask(proxy.key(), Protocol::Punch, b"", DEADLINE).await;
    assert!(matches!(answer, Err(AskError::Broken { .. })), "{answer:?}");
    assert_eq!(proxy.handle.figures().streams_refused_total.get(), 1);
}
