//! Session of a guest: queries to a domain from outside, with an account at a proxy, encrypted from end to
//! end.
//!
//! ```text
//! visitor ══ TLS or Noise (direct, WebSocket, polling, CONNECT) ══▶ proxy: log in, receive a visa, a place
//!    └═══ TLS or Noise end to end, as bytes through the proxy ═══▶ representative: gets the visa, answers
//! ```
//! Rules: the proxy is authenticated by the key that the user entered, the representative by the domain's
//! root, which the user named or which the proxy reports (the caller can show it); any other daemon is
//! refused. The proxy sees the login, and how many bytes pass. While a session lasts, the visa is renewed and
//! a new representative is found automatically.
//! Not here: the queries (the callers), permissions (`crate::identity::guest_certificate`, the daemons), files.

mod admission;
mod login;

use crate::authenticator::Authenticator;
use crate::clock;
use crate::identity::admission::Gate;
use crate::identity::guest_certificate::LIFE;
use crate::identity::key::Key;
use crate::identity::revocation_lists::RevocationLists;
use crate::identity::trust::Trust;
use crate::net;
use crate::net::dial_error::DialErrorKind;
use crate::net::event_loop::{Config, Event, EventLoop};
use crate::net::handle::{AskError, Handle};
use crate::net::outbound::HttpProxy;
use crate::net::protocol::Protocol;
use crate::net::redial::Target;
use admission::GuestAdmission;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tunnel::digest::client::Login;
use wire::address::Address;
use wire::entering::Place;
use wire::id::{DomainName, PeerKey};
use wire::join::Directory;
use wire::time::Moment;

/// Timeout for connecting to the proxy, for its answers to a login, and for its acceptance of the visa.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Retry interval of the login: an election is over by then.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Polling interval of the connection's state.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What to visit: the proxy, the account, the domain and its expected root.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// The proxy: its key and addresses.
    pub proxy: Directory,
    /// The account and its secret.
    pub login: Login,
    pub domain: DomainName,
    /// The domain's root, if it is known: no other is accepted.
    pub root: Option<PeerKey>,
    /// The site's own HTTP proxy, where connections out lead through one.
    pub http_proxy: Option<HttpProxy>,
}

impl SessionSpec {
    /// Addresses of the proxy, for messages.
    #[must_use]
    pub fn at(&self) -> String {
        self.proxy.addresses.iter().map(Address::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// Reason why the domain cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The overlay could not start.
    #[error("{0}")]
    Net(String),
    /// The proxy was not reached.
    #[error(
        "no proxy of that key was reached at {at} within {} s, by whatever way; is a proxy running there, and is its key \
         as it printed it?",
        waited.as_secs()
    )]
    Unreached {
        /// Addresses of the proxy, for the message.
        at: String,
        waited: Duration,
    },
    /// A daemon with another key is there.
    #[error(
        "expected the proxy of key {expected} at {at}, found a daemon of key {found}; `visperf key` on the proxy's host prints \
         its key, as the proxy does at its start: if that is the one that was found, name it in --via"
    )]
    Other {
        at: String,
        found: PeerKey,
        /// The key in the request.
        expected: PeerKey,
    },
    /// The connection was refused.
    #[error(
        "expected a proxy at {at}, found none that listens there (the connection was refused); is `visperf proxy` \
         running on that host, and is this the port of its door or of its overlay?"
    )]
    Closed {
        /// Addresses of the proxy, for the message.
        at: String,
    },
    /// The proxy has no room for another handshake.
    #[error(
        "the proxy at {at} is full: too many connections wait for their handshake, most of them from this host's address; \
         try again in a few seconds"
    )]
    Full {
        /// Addresses of the proxy, for the message.
        at: String,
    },
    /// The name has no address.
    #[error("expected a proxy at {at}, found no address of that name; is it written as it should be?")]
    Nowhere {
        /// Addresses of the proxy, for the message.
        at: String,
    },
    /// The daemon there is not a proxy.
    #[error(
        "the daemon at {at} has that key, but is not a proxy, so it has no logins; --via names a proxy, as that prints \
         itself at its start"
    )]
    NoProxy {
        /// Addresses of the proxy, for the message.
        at: String,
    },
    /// The proxy refused, with its reason.
    #[error("the proxy refused: {0}")]
    Refused(String),
    /// The proxy did not prove that it knows the account's secret.
    #[error("the proxy did not prove that it knows the account; it may be another than it says")]
    Unproved,
    /// The answer of the proxy cannot be decoded.
    #[error("what the proxy says is not understood; is it of another version?")]
    Unreadable,
    /// The proxy knows no route to the domain.
    #[error("{0}")]
    NoPlace(String),
    /// The domain has another root than expected.
    #[error(
        "expected the domain {domain} of root {expected}, found one of root {found}: another domain has taken its name, or the \
         domain was created again; if its operator says that this is right, name it once with --root {found}"
    )]
    Root {
        domain: DomainName,
        /// The root that the proxy reports.
        found: PeerKey,
        /// The root that was known.
        expected: PeerKey,
    },
    /// The representative was not reached through the proxy.
    #[error("the representative of {domain} was not reached through the proxy within {} s{why}", waited.as_secs())]
    Away {
        domain: DomainName,
        waited: Duration,
        /// The known reason, as the end of the sentence.
        why: String,
    },
}

/// Reason why a session that was open cannot be used now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The reason as text.
    pub why: String,
    /// Whether it will not recover by itself.
    pub is_final: bool,
}

/// Progress of a session.
#[derive(Clone, Debug)]
enum Stage {
    /// Not logged in, with the reason.
    Outside(Error),
    /// Logged in.
    Inside(Place),
}

/// Session of a visitor. It ends when it is dropped.
#[derive(Debug)]
pub struct GuestSession {
    net: Handle,
    domain: DomainName,
    stage: watch::Receiver<Stage>,
    admission: Arc<GuestAdmission>,
    _tasks: JoinSet<()>,
}

impl GuestSession {
    /// Connect, log in, and reach the domain's representative, within `deadline`. Call it within a tokio
    /// runtime.
    ///
    /// # Errors
    /// The reason why the domain cannot be asked.
    pub async fn open(spec: SessionSpec, deadline: Duration) -> Result<GuestSession, Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| Error::Net(error.to_string()))?;
        let key = Key::from_seed(seed);
        let start = u64::try_from(clock::now().0.as_nanos()).unwrap_or(u64::MAX);
        // No root of the domain is trusted before it is known.
        let trust = Trust::of_directory(BTreeMap::new());
        let gate = Gate::new(trust, RevocationLists::default(), BTreeSet::from([spec.proxy.key]));
        let admission = Arc::new(GuestAdmission::new(Authenticator::joining(gate), spec.proxy.key));
        let config = Config {
            via: vec![spec.proxy.clone()],
            is_visitor: true,
            http_proxy: spec.http_proxy.clone(),
            ..Config::new(Vec::new())
        };
        let opened = EventLoop::open(config, &key, admission.clone(), start);
        let (event_loop, net, events) = opened.map_err(|error: net::Error| Error::Net(error.to_string()))?;
        let unreached = Error::Unreached { at: spec.at(), waited: deadline };
        let (stages, stage) = watch::channel(Stage::Outside(unreached));
        let domain = spec.domain.clone();
        let login_task =
            LoginTask { net: net.clone(), admission: admission.clone(), spec, stages, logged_in: None };
        let mut tasks = JoinSet::new();
        tasks.spawn(event_loop.run(CancellationToken::new()));
        tasks.spawn(hear(events, login_task.spec.proxy.key, admission.clone()));
        tasks.spawn(login_task.run());
        let session = GuestSession { net, domain, stage, admission, _tasks: tasks };
        session.reach(deadline, Error::is_hopeless).await?;
        Ok(session)
    }

    /// The trusted root of the domain.
    #[must_use]
    pub fn root(&self) -> Option<PeerKey> {
        self.admission.root()
    }

    /// Whether the representative can be asked now.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn check_open(&self) -> Result<(), Outage> {
        match &*self.stage.borrow() {
            Stage::Inside(place) if self.net.is_ready(place.representative) => Ok(()),
            Stage::Inside(_) => Err(Outage {
                why: format!("the representative of {} is not reached", self.domain),
                is_final: false,
            }),
            Stage::Outside(error) => Err(Outage { why: error.to_string(), is_final: error.is_final() }),
        }
    }

    /// Ask the domain's representative; `question` builds the question for the time that is left. If the
    /// representative is gone, the next one is asked again, so the question must only read.
    ///
    /// # Errors
    /// If no representative is reached within `deadline`.
    pub async fn ask(
        &self,
        question: impl Fn(Duration) -> Vec<u8>,
        deadline: Duration,
    ) -> Result<(PeerKey, Result<Vec<u8>, AskError>), Error> {
        let began = clock::now();
        let left = || deadline.saturating_sub(clock::now().since(began));
        loop {
            let peer = self.reach(left(), Error::is_final).await?;
            let answered = self.net.ask(peer, Protocol::Query, &question(left()), left()).await;
            let is_gone = matches!(answered, Err(AskError::Open { .. } | AskError::Broken { .. }));
            if !is_gone || left() < AGAIN_AFTER {
                return Ok((peer, answered));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Wait until the representative can be asked, or the error of the session satisfies `gives_up`.
    async fn reach(&self, deadline: Duration, gives_up: fn(&Error) -> bool) -> Result<PeerKey, Error> {
        let mut stage = self.stage.clone();
        let reached = async {
            loop {
                let known = stage.borrow_and_update().clone();
                match known {
                    Stage::Inside(place) if self.net.is_ready(place.representative) => {
                        return Ok(place.representative);
                    }
                    Stage::Outside(error) if gives_up(&error) => return Err(error),
                    Stage::Inside(_) | Stage::Outside(_) => {}
                }
                // An error means that the session has ended; then this waits for the deadline.
                let _ = tokio::time::timeout(LOOK_INTERVAL, stage.changed()).await;
            }
        };
        match tokio::time::timeout(deadline, reached).await {
            Ok(reached) => reached,
            Err(_) => Err(self.why(deadline)),
        }
    }

    fn why(&self, waited: Duration) -> Error {
        match self.stage.borrow().clone() {
            Stage::Outside(Error::Unreached { at, .. }) => Error::Unreached { at, waited },
            Stage::Outside(error) => error,
            Stage::Inside(_) => {
                let why = match self.admission.refusal() {
                    Some(reason) => format!(": it refused: {reason}"),
                    None => {
                        "; it has to hold a registration with that proxy (`visperf sensor --via`)".to_owned()
                    }
                };
                Error::Away { domain: self.domain.clone(), waited, why }
            }
        }
    }
}

impl Error {
    /// Whether the first connection need not wait: the condition is not about to change.
    fn is_hopeless(&self) -> bool {
        match self {
            Error::Other { .. } | Error::Closed { .. } | Error::Nowhere { .. } | Error::NoPlace(_) => true,
            Error::Net(_) | Error::Unreached { .. } | Error::Away { .. } | Error::Full { .. } => false,
            Error::NoProxy { .. }
            | Error::Refused(_)
            | Error::Unproved
            | Error::Unreadable
            | Error::Root { .. } => self.is_final(),
        }
    }

    /// Whether a retry is useless.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Error::NoProxy { .. }
            | Error::Refused(_)
            | Error::Unproved
            | Error::Unreadable
            | Error::Root { .. } => true,
            // The daemon that is there may be replaced, and one that is missing may start.
            Error::Other { .. } | Error::Closed { .. } | Error::Nowhere { .. } | Error::Full { .. } => false,
            Error::Net(_) | Error::Unreached { .. } | Error::NoPlace(_) | Error::Away { .. } => false,
        }
    }
}

/// Note refusals and failed dials. When the connection to the proxy is lost, the visa is withdrawn until the
/// next login.
async fn hear(mut events: mpsc::Receiver<Event>, proxy: PeerKey, admission: Arc<GuestAdmission>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Unwelcome { reason, .. } => admission.note_refusal(reason),
            Event::Gone(peer) if peer == proxy => admission.gate().show_nothing(),
            Event::DialFailed(Target::Peer(peer), why) if peer == proxy => admission.note_dial_error(why),
            // A visitor answers no questions.
            Event::Ready { .. }
            | Event::Gone(_)
            | Event::DialFailed(..)
            | Event::Question(_)
            | Event::Stream { .. } => {}
        }
    }
}

/// Task that maintains a session: logs in, renews the visa, finds a new representative.
struct LoginTask {
    net: Handle,
    admission: Arc<GuestAdmission>,
    spec: SessionSpec,
    stages: watch::Sender<Stage>,
    logged_in: Option<Moment>,
}

impl LoginTask {
    async fn run(mut self) {
        loop {
            match self.enter().await {
                Ok(place) => {
                    self.stages.send_replace(Stage::Inside(place.clone()));
                    self.stay(&place).await;
                }
                Err(error) if error.is_final() => {
                    self.stages.send_replace(Stage::Outside(error));
                    return;
                }
                Err(error) => {
                    // A representative that is reached without the proxy is used meanwhile.
                    let is_reached = match &*self.stages.borrow() {
                        Stage::Inside(place) => self.net.is_ready(place.representative),
                        Stage::Outside(_) => false,
                    };
                    if !is_reached {
                        self.stages.send_replace(Stage::Outside(error));
                    }
                    tokio::time::sleep(AGAIN_AFTER).await;
                }
            }
        }
    }

    /// Wait until a new login is needed: half of the visa's life is over, or the representative or the proxy
    /// is gone.
    async fn stay(&self, place: &Place) {
        let mut was_ready = clock::now();
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = clock::now();
            if self.net.is_ready(place.representative) {
                was_ready = now;
            }
            let is_over = self.logged_in.is_none_or(|at| now.since(at) >= LIFE / 2);
            let is_gone = now.since(was_ready) >= AGAIN_AFTER * 2;
            if is_over || is_gone || !self.net.is_ready(self.spec.proxy.key) {
                return;
            }
        }
    }

    /// Log in at the proxy, show the visa to it and to the representative, and dial the representative.
    async fn enter(&mut self) -> Result<Place, Error> {
        self.meet().await?;
        let proxy = self.spec.proxy.key;
        let inside = login::log_in(&self.net, &self.spec).await?;
        self.logged_in = Some(clock::now());
        self.admission.gate().show_visa(inside.visa);
        self.net.greet(proxy).await;
        let place = inside.place.map_err(Error::NoPlace)?;
        if let Some(expected) = self.spec.root.or(self.admission.root()).filter(|root| *root != place.root) {
            return Err(Error::Root { domain: self.spec.domain.clone(), found: place.root, expected });
        }
        if let Some(former) = self.admission.expect(&self.spec.domain, place.root, place.representative) {
            self.net.forget(Target::Peer(former)).await;
        }
        let through = self.spec.proxy.addresses.iter().filter_map(|at| at.through(proxy).ok());
        let direct = place.addresses.iter().filter(|at| at.via().is_none()).cloned();
        // The proxy has to know the visa before it opens a lasting circuit.
        let welcomed = async {
            while !self.net.is_ready(proxy) {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
        };
        if tokio::time::timeout(LOGIN_TIMEOUT, welcomed).await.is_err() {
            let reason = self.admission.refusal().unwrap_or_else(|| "it did not take the visa".to_owned());
            return Err(Error::Refused(reason));
        }
        if self.net.is_ready(place.representative) {
            self.net.greet(place.representative).await;
        } else {
            self.net.keep(Target::Peer(place.representative), direct.chain(through).collect()).await;
        }
        Ok(place)
    }

    /// Wait until the proxy is connected.
    async fn meet(&self) -> Result<(), Error> {
        let (mut met, mut dial_error) = (self.admission.met(), self.admission.dial_error());
        let at = self.spec.at();
        tokio::select! {
            biased;
            Ok(_) = met.wait_for(|met| *met) => Ok(()),
            Ok(why) = dial_error.wait_for(Option::is_some) => Err(match *why {
                Some(DialErrorKind::Other(found)) => Error::Other { at, found, expected: self.spec.proxy.key },
                Some(DialErrorKind::Nowhere) => Error::Nowhere { at },
                Some(DialErrorKind::Full) => Error::Full { at },
                Some(DialErrorKind::Closed | DialErrorKind::Cut | DialErrorKind::Foreign) | None => Error::Closed { at },
            }),
            () = tokio::time::sleep(LOGIN_TIMEOUT) => Err(Error::Unreached { at, waited: LOGIN_TIMEOUT }),
        }
    }
}
