//! Joining while a listener is filled with connections whose handshake never ends.

use crate::joining::rig::{Head, Newcomer, SOON, now};
use overlay::identity::token::Spec;
use overlay::joining::{self, Tried};
use overlay::net::handshake::DIRECT_MAX;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

/// Pause between the end of a connection and the next one in its place.
const PAUSE: Duration = Duration::from_millis(10);

/// What each connection sends: nothing; or a proposal of TLS and the header of its first record, which
/// announces 4 KiB.
const SILENT: &[u8] = b"";
const STOPS_WITHIN_TLS: &[u8] = b"\x13/multistream/1.0.0\n\x0f/visperf/tls/1\n\x16\x03\x01\x10\x00\x01";

/// Connections that send part of a handshake; each is made again as soon as it is closed, until this is
/// dropped.
struct Flood {
    _tasks: JoinSet<()>,
    made: Arc<AtomicUsize>,
}

impl Flood {
    /// Open this many to `at` from each of these loopback addresses; returns once all were made. Each sends
    /// `bytes` alone.
    async fn start(at: SocketAddr, bytes: &'static [u8], sources: &[u8], of_each: usize) -> Flood {
        let (mut tasks, made) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
        for source in sources {
            let source = IpAddr::V4(Ipv4Addr::new(127, 0, 0, *source));
            for _ in 0..of_each {
                tasks.spawn(keep_up(at, bytes, source, Arc::clone(&made)));
            }
        }
        let all = sources.len() * of_each;
        crate::joining::rig::until("a flood", || made.load(Ordering::Relaxed) >= all).await;
        Flood { _tasks: tasks, made }
    }
}

async fn keep_up(at: SocketAddr, bytes: &[u8], source: IpAddr, made: Arc<AtomicUsize>) {
    loop {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::new(source, 0)).expect("an address of loopback");
        if let Ok(mut stream) = socket.connect(at).await {
            made.fetch_add(1, Ordering::Relaxed);
            let _closed = stream.write_all(bytes).await;
            let _closed = stream.read_to_end(&mut Vec::new()).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_of_other_addresses_delay_no_join() {
    for bytes in [SILENT, STOPS_WITHIN_TLS] {
        let head = Head::new("UT-ICL");
        let _running = head.start().await;
        let flood = Flood::start(head.address, bytes, &[2, 3, 4, 5, 6, 7], 45).await;
        for number in 0..3 {
            let newcomer = Newcomer::new();
            let began = now();
            newcomer.join(&format!("wn{number}"), &head.token(Spec::default())).await.expect("admitted");
            let took = now().since(began);
            assert!(took < DIRECT_MAX, "it waited for places: {took:?}");
        }
        assert!(flood.made.load(Ordering::Relaxed) > 270, "they were closed, and made again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_is_full_of_the_own_address_says_so_and_lets_in_later() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    // A newcomer may get the place of a handshake that has just stalled, so try several times.
    for number in 0..5 {
        let flood = Flood::start(head.address, SILENT, &[1], 200).await;
        let newcomer = Newcomer::new();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
        let mut progress = |tried: &Tried| {
            let _full = sender.try_send(tried.said.clone());
        };
        let (joiner, token) = (newcomer.joiner(&format!("wn{number}"), SOON), head.token(Spec::default()));
        let mut joining = std::pin::pin!(joining::join(&token, &joiner, &mut progress));
        let said = tokio::select! {
            joined = &mut joining => {
                joined.expect("admitted");
                continue;
            }
            said = receiver.recv() => said.expect("a first attempt"),
        };
        drop(flood);
        joining.await.expect("admitted");
        let is_full =
            said.contains("the daemon there is full") && said.contains("try again in a few seconds");
        let is_cut = said.contains("closed before the handshake was done");
        assert!(is_full || is_cut, "{said}");
        if is_full {
            return;
        }
    }
    panic!("none saw that it is full");
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed_after_the_time_of_a_handshake() {
    let head = Head::new("UT-ICL");
    let _running = head.start().await;
    // Parts of a daemon's first bytes, and no more.
    for bytes in [b"\x13/multistream/1.0.0\n", STOPS_WITHIN_TLS] {
        let began = now();
        let mut stream = tokio::net::TcpStream::connect(head.address).await.expect("accepted");
        stream.write_all(bytes).await.expect("written");
        let mut answered = Vec::new();
        let reading = stream.read_to_end(&mut answered);
        let _closed = tokio::time::timeout(SOON, reading).await.expect("closed");
        let took = now().since(began);
        assert!((DIRECT_MAX / 2..DIRECT_MAX * 3).contains(&took), "{took:?}");
        let agreed: &[u8] = if bytes == STOPS_WITHIN_TLS { b"\x0f/visperf/tls/1\n" } else { b"" };
        assert!(answered.ends_with(agreed), "TLS was agreed on: {answered:?}");
    }
}

#[tokio::test]
async fn what_is_no_daemon_is_distinguished_from_one_that_closes_the_connection() {
    let head = Head::new("UT-ICL");
    for (answer, expected) in [
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "closed before the handshake was done"),
        (
            format!("HTTP/1.1 400 Bad Request\r\n\r\n{}", "x".repeat(100)),
            "something answers there that is no daemon",
        ),
        (String::new(), "closed before the handshake was done"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("bound");
        let mut serving = JoinSet::new();
        let bytes = answer.clone();
        serving.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _failed = stream.write_all(bytes.as_bytes()).await;
                let _failed = stream.shutdown().await;
                let _ended = tokio::time::timeout(DIRECT_MAX, stream.read_to_end(&mut Vec::new())).await;
            }
        });
        let token = wire::join::Token { addresses: vec![at.into()], ..head.token(Spec::default()) };
        let joiner = Newcomer::new();
        let joiner = joiner.joiner("wn01", Duration::from_secs(4));
        let error = joining::join(&token, &joiner, &mut |_| ()).await.expect_err("no daemon").to_string();
        assert!(error.contains(expected), "{answer:?}: {error}");
    }
}
