//! Daemons of the tests: real event loops on loopback, admitted by a list.

use crate::net::principal::principal;
use overlay::identity::admission::Principal;
use overlay::identity::key::Key;
use overlay::net::event_loop::{Config, Event, EventLoop};
use overlay::net::handle::{Answer, Handle};
use overlay::net::hello::Admission;
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use overlay::net::stream::Stream;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::id::PeerKey;

/// The key of a number.
pub(crate) fn key(number: u8) -> PeerKey {
    Key::from_seed([number; 32]).peer()
}

/// Admission of the tests' daemons: a list of peers, and revocations.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    welcome: BTreeSet<PeerKey>,
    proof: &'static [u8],
    revoked: Arc<Mutex<BTreeSet<PeerKey>>>,
}

impl Rules {
    pub(crate) fn welcoming(numbers: &[u8]) -> Rules {
        let welcome = numbers.iter().map(|number| key(*number)).collect();
        Rules { welcome, proof: b"let me in", revoked: Arc::default() }
    }

    /// The same for a daemon that shows no certificate.
    pub(crate) fn silent(self) -> Rules {
        Rules { proof: b"", ..self }
    }

    pub(crate) fn revoke(&self, peer: PeerKey) {
        self.revoked.lock().expect("not poisoned").insert(peer);
    }
}

impl Admission for Rules {
    fn proof(&self) -> Vec<u8> {
        self.proof.to_vec()
    }

    fn admit(&self, peer: PeerKey, proof: &[u8]) -> Result<Arc<Principal>, String> {
        assert_eq!(proof, b"let me in");
        if self.welcome.contains(&peer) {
            Ok(Arc::new(principal(peer)))
        } else {
            Err("not on the list of this test".to_owned())
        }
    }

    fn review(&self, principal: &Principal) -> Result<(), String> {
        let revoked = self.revoked.lock().expect("not poisoned").contains(&principal.peer);
        if revoked { Err("revoked by this test".to_owned()) } else { Ok(()) }
    }
}

pub(crate) struct Daemon {
    pub(crate) handle: Handle,
    events: Option<mpsc::Receiver<Event>>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
    address: SocketAddr,
}

impl Daemon {
    pub(crate) async fn start(number: u8, rules: Rules) -> Daemon {
        Daemon::start_at(number, SocketAddr::from(([127, 0, 0, 1], 0)), rules).await
    }

    pub(crate) async fn start_at(number: u8, listen: SocketAddr, rules: Rules) -> Daemon {
        Daemon::start_with(number, Config::new(vec![listen]), rules).await
    }

    /// A daemon with this many places, and this idle timeout while most of them are taken.
    pub(crate) async fn start_small(
        number: u8,
        (connections_max, crowded_idle): (u32, Duration),
        rules: Rules,
    ) -> Daemon {
        let config = Config::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
        Daemon::start_with(number, Config { connections_max, crowded_idle, ..config }, rules).await
    }

    pub(crate) async fn start_with(number: u8, config: Config, rules: Rules) -> Daemon {
        Daemon::start_admitting(number, config, Arc::new(rules)).await
    }

    /// A daemon with this admission.
    pub(crate) async fn start_admitting(number: u8, config: Config, admission: Arc<dyn Admission>) -> Daemon {
        let mut daemon = Daemon::open(number, config, admission);
        let mut listening = daemon.handle.listening();
        daemon.address = listening.wait_for(|all| !all.is_empty()).await.expect("runs")[0];
        daemon
    }

    /// A daemon that does not listen.
    pub(crate) fn start_deaf(number: u8, rules: Rules) -> Daemon {
        Daemon::open(number, Config::new(Vec::new()), Arc::new(rules))
    }

    fn open(number: u8, config: Config, admission: Arc<dyn Admission>) -> Daemon {
        use std::hash::{BuildHasher, Hasher};
        let start = std::hash::RandomState::new().build_hasher().finish();
        let (event_loop, handle, events) =
            EventLoop::open(config, &Key::from_seed([number; 32]), admission, start).expect("listens");
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(event_loop.run(shutdown.clone()));
        let address = SocketAddr::from(([0, 0, 0, 0], 0));
        Daemon { handle, events: Some(events), shutdown, running, address }
    }

    pub(crate) fn key(&self) -> PeerKey {
        self.handle.me()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn dial(&self, other: &Daemon) {
        self.handle.keep(Target::Peer(other.key()), vec![other.address.into()]).await;
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.expect("no panic");
    }

    pub(crate) async fn next_event<T>(&mut self, wanted: impl Fn(Event) -> Option<T>) -> T {
        let events = self.events.as_mut().expect("nothing else reads them");
        let searching = async {
            loop {
                let event = events.recv().await.expect("runs");
                if let Some(found) = wanted(event) {
                    return found;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), searching).await.expect("it happens in time")
    }

    pub(crate) async fn ready(&mut self, other: &Daemon) {
        let peer = other.key();
        self.next_event(|event| {
            if let Event::Ready { principal, .. } = event {
                (principal.peer == peer).then_some(())
            } else {
                None
            }
        })
        .await;
    }

    pub(crate) async fn unwelcome(&mut self, other: &Daemon) -> String {
        let expected = other.key();
        self.next_event(|event| {
            if let Event::Unwelcome { peer, reason } = event {
                (peer == expected).then_some(reason)
            } else {
                None
            }
        })
        .await
    }

    pub(crate) async fn stream(&mut self, wanted: Protocol) -> Stream {
        self.next_event(|event| {
            if let Event::Stream { protocol, stream, .. } = event {
                (protocol == wanted).then_some(stream)
            } else {
                None
            }
        })
        .await
    }

    /// Take questions and drop them, like a daemon that stops.
    pub(crate) fn drop_queries(&mut self) {
        let mut events = self.events.take().expect("taken once");
        tokio::spawn(async move { while events.recv().await.is_some() {} });
    }

    /// Answer every question from now on with `answer`; other events are dropped.
    pub(crate) fn answer_queries(&mut self, answer: impl Fn(&[u8]) -> Answer + Send + 'static) {
        let mut events = self.events.take().expect("nothing else reads them");
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if let Event::Question(question) = event {
                    let _ = question.reply.send(answer(&question.body));
                }
            }
        });
    }
}
