//! Test fixtures: the two ends of a tunnel, the firewall between them, and a line that can be cut.

#[path = "../../../overlay/tests/integration/net/principal.rs"]
mod principal;

use overlay::identity::admission::Principal;
use overlay::identity::key::Key;
use overlay::net::event_loop::{Config, Event, EventLoop};
use overlay::net::handle::Handle;
use overlay::net::hello::Admission;
use overlay::net::https_stream::tunnels::{FIRST_BYTE, Tunnels};
use principal::principal;
use proxy::certificate::{Certificate, Origin};
use proxy::upgrade::TunnelUpgrade;
use rpc::dispatch::Dispatcher;
use rpc::dispatch::method::Registry;
use rpc::dispatch::statistics::Statistics;
use rpc::http::server::{self, ListenerOptions};
use rpc::http::upgrade::{Duplex, Upgrade, UpgradeAnswer, UpgradeRequest, Work};
use rpc::limits::Limits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use wire::id::PeerKey;
use wire::join::Directory;

/// Timeout of every wait.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Wait until the condition is true.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    until_within(WAIT_MAX, what, is_so).await;
}

/// Wait until the condition is true, for at most `most`.
pub(crate) async fn until_within(most: Duration, what: &str, is_so: impl Fn() -> bool) {
    let mut look = tokio::time::interval(Duration::from_millis(10));
    let looking = async {
        while !is_so() {
            look.tick().await;
        }
    };
    tokio::time::timeout(most, looking).await.unwrap_or_else(|_| panic!("expected {what} within {most:?}"));
}

/// Accepts every peer.
struct Anybody;

impl Admission for Anybody {
    fn proof(&self) -> Vec<u8> {
        b"let me in".to_vec()
    }

    fn admit(&self, peer: PeerKey, _: &[u8]) -> Result<Arc<Principal>, String> {
        Ok(Arc::new(principal(peer)))
    }

    fn review(&self, _: &Principal) -> Result<(), String> {
        Ok(())
    }
}

pub(crate) struct End {
    pub(crate) handle: Handle,
    events: Option<mpsc::Receiver<Event>>,
    answering: JoinSet<()>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
}

impl End {
    pub(crate) fn start(number: u8, config: Config) -> End {
        let key = Key::from_seed([number; 32]);
        let (event_loop, handle, events) =
            EventLoop::open(config, &key, Arc::new(Anybody), u64::from(number)).expect("listens");
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(event_loop.run(shutdown.clone()));
        End { handle, events: Some(events), answering: JoinSet::new(), shutdown, running }
    }

    /// A daemon inside, registered with the proxy of this key, whose listener is at `door`.
    pub(crate) fn inside(number: u8, proxy: PeerKey, door: SocketAddr) -> End {
        let via = vec![Directory { key: proxy, addresses: vec![door.into()] }];
        End::start(number, Config { via, ..Config::new(Vec::new()) })
    }

    pub(crate) fn key(&self) -> PeerKey {
        self.handle.me()
    }

    pub(crate) fn figure(&self, name: &str) -> u64 {
        let counters = self.handle.figures().counters();
        counters.into_iter().find(|(known, _)| *known == name).expect("a figure of that name").1
    }

    pub(crate) async fn ready(&mut self, peer: PeerKey) {
        let events = self.events.as_mut().expect("nothing else reads them");
        let waiting = async {
            loop {
                let event = events.recv().await.expect("runs");
                if matches!(&event, Event::Ready { principal, .. } if principal.peer == peer) {
                    return;
                }
                super::answer(event);
            }
        };
        tokio::time::timeout(WAIT_MAX, waiting).await.expect("they agree in time");
    }

    /// Take the receiver of overlay events, for tests that read it themselves.
    pub(crate) fn take_events(&mut self) -> mpsc::Receiver<Event> {
        self.events.take().expect("nothing else reads them")
    }

    /// From now on, answer queries by sending them back.
    pub(crate) fn answer_queries(&mut self) {
        let mut events = self.take_events();
        self.answering.spawn(async move {
            while let Some(event) = events.recv().await {
                super::answer(event);
            }
        });
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.expect("no panic");
    }
}

/// What the firewall blocks on the path to the listener.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wall {
    pub(crate) stops_plain: bool,
    pub(crate) stops_upgrade: bool,
}

/// Upgrade handler behind a firewall.
struct Walled(TunnelUpgrade, Wall);

impl Upgrade for Walled {
    fn takes_plain(&self, byte: u8) -> bool {
        assert!(byte != FIRST_BYTE || self.0.takes_plain(byte));
        !self.1.stops_plain && self.0.takes_plain(byte)
    }

    fn take_plain(&self, stream: TcpStream, source: SocketAddr) -> Work<'_, ()> {
        self.0.take_plain(stream, source)
    }

    fn upgrade(&self) -> &'static [u8] {
        if self.1.stops_upgrade { b"nothing begins so" } else { self.0.upgrade() }
    }

    fn take_upgrade(&self, stream: Box<dyn Duplex>, source: SocketAddr) -> Work<'_, ()> {
        self.0.take_upgrade(stream, source)
    }

    fn path(&self) -> &'static str {
        self.0.path()
    }

    fn ask<'a>(&'a self, asked: UpgradeRequest<'a>) -> Work<'a, UpgradeAnswer> {
        self.0.ask(asked)
    }
}

/// A proxy with its listener.
pub(crate) struct Gate {
    pub(crate) end: End,
    pub(crate) door: SocketAddr,
    pub(crate) tunnels: Arc<Tunnels>,
    _folder: tempfile::TempDir,
    _serving: JoinSet<()>,
}

impl Gate {
    pub(crate) async fn open(number: u8, wall: Wall) -> Gate {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let end = End::start(number, Config { is_proxy: true, ..Config::new(vec![listen]) });
        end.handle.listening().wait_for(|all| !all.is_empty()).await.expect("runs");
        let folder = tempfile::tempdir().expect("a folder");
        let names = vec!["localhost".to_owned()];
        let origin = Origin::Own { folder: folder.path().to_owned(), names };
        let tls = Certificate::open(origin).expect("a certificate").acceptor();
        let tunnels = Tunnels::new(&end.handle);
        let hatch = Walled(TunnelUpgrade::new(Arc::clone(&tunnels)), wall);
        let door = ListenerOptions { authorizer: None, tls: Some(tls), upgrade: Some(Arc::new(hatch)) };
        let listener = server::bind("127.0.0.1:0".parse().expect("an address")).await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let dispatcher = Dispatcher::new(Registry::new(), Limits::default(), Arc::new(Statistics::default()));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let _ = server::serve_with(door, listener, Arc::new(dispatcher), CancellationToken::new()).await;
        });
        Gate { end, door: address, tunnels, _folder: folder, _serving: serving }
    }

    pub(crate) fn key(&self) -> PeerKey {
        self.end.key()
    }

    pub(crate) fn figure(&self, name: &str) -> u64 {
        let counters = self.tunnels.counters();
        counters.into_iter().find(|(known, _)| *known == name).expect("a figure of that name").1
    }
}

/// A line between the two ends that can be cut.
pub(crate) struct Between {
    pub(crate) address: SocketAddr,
    /// Bytes sent towards the listener.
    pub(crate) passed: Arc<AtomicU64>,
    lines: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl Between {
    pub(crate) async fn open(door: SocketAddr) -> Between {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let lines: Arc<Mutex<JoinSet<()>>> = Arc::default();
        let passed: Arc<AtomicU64> = Arc::default();
        let mut accepting = JoinSet::new();
        let (held, counted) = (Arc::clone(&lines), Arc::clone(&passed));
        accepting.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                held.lock().await.spawn(pass(near, door, counted));
            }
        });
        Between { address, passed, lines, _accepting: accepting }
    }

    /// Cut all connections of the line. New connections are possible.
    pub(crate) async fn cut(&self) {
        self.lines.lock().await.shutdown().await;
    }
}

async fn pass(near: TcpStream, door: SocketAddr, counted: Arc<AtomicU64>) {
    let Ok(far) = TcpStream::connect(door).await else { return };
    let (mut near_read, mut near_write) = near.into_split();
    let (mut far_read, mut far_write) = far.into_split();
    let out = async {
        let mut page = vec![0; 4096];
        loop {
            match tokio::io::AsyncReadExt::read(&mut near_read, &mut page).await {
                Ok(count) if count > 0 => {
                    counted.fetch_add(count as u64, Ordering::Relaxed);
                    if tokio::io::AsyncWriteExt::write_all(&mut far_write, &page[..count]).await.is_err() {
                        return;
                    }
                }
                Ok(_) | Err(_) => return,
            }
        }
    };
    let back = tokio::io::copy(&mut far_read, &mut near_write);
    tokio::select! { () = out => {}, _ = back => {} }
}
