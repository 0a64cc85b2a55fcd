//! Driver of a sensor's membership in its domain: the shell around [`crate::election::Node`].
//!
//! One task owns the core and its `links`; other parts read the [`View`] that it publishes.
//! Rule: outputs are carried out in order; a term is on disk before the core is notified of it; the last
//! messages (resign, leave) are written before the task ends.
//! Not here: any decision (`election`), reporting and queries (the daemons).

mod links;
mod term_file;

use crate::authenticator::Authenticator;
use crate::clock;
use crate::election::{self, Figures, Input, Me, Node, Output, Persisted, Role, State};
use crate::hub::{PeerEvent, Session};
use crate::identity::admission::{Action, Principal};
use crate::membership::Profile;
use crate::net::handle::Handle;
use crate::net::redial::Target;
use links::{LinkEvent, Links};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;
use wire::address::Address;
use wire::credential;
use wire::id::{DomainName, HostName, PeerKey};
use wire::membership::{Load, Member};
use wire::time::Moment;

pub use term_file::{Error, load as load_term};

/// Most events of links that may wait: a heartbeat of each of 500 members, with room.
const EVENTS_MAX: usize = 1024;

/// Publishing interval of the view when nothing else happens.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(500);

/// Timeout for writing the last messages.
const FAREWELL: Duration = Duration::from_secs(1);

/// Configuration of a sensor's membership.
#[derive(Debug)]
pub struct Config {
    /// Parameters of the election.
    pub election: election::Config,
    pub me: Me,
    /// Addresses to dial first to find members; names are resolved at every attempt.
    pub seeds: Vec<Address>,
    /// Folder of the file with the term.
    pub folder: PathBuf,
    /// Random seed of the jitter, different from other sensors'.
    pub seed: u64,
}

/// A member as this sensor sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedMember {
    pub member: Member,
    /// Load of its host, if this sensor receives it.
    pub load: Option<Load>,
    /// When the member was last heard, as far as this sensor knows.
    pub heard: Moment,
}

/// State of the domain as this sensor knows it; each change replaces the whole.
#[derive(Clone, Debug)]
pub struct View {
    /// The representative, and this sensor's role.
    pub state: State,
    /// All known members, by key.
    pub members: Vec<ObservedMember>,
    /// The standbys of the representative, the next representative first.
    pub standbys: Vec<PeerKey>,
    /// Counters of the election.
    pub figures: Figures,
    /// Messages dropped because there was no link or a slow one.
    pub dropped_total: u64,
}

impl View {
    /// Counters of the election and of its messages, with their names in `daemon.info`.
    #[must_use]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.figures.counters();
        counters.push(("messages_dropped_total", self.dropped_total));
        counters
    }
}

/// End of the lease: until when this sensor may answer for the domain, in microseconds of the monotonic
/// clock; 0 if it may not.
#[derive(Debug, Default)]
struct Lease(AtomicU64);

impl Lease {
    fn set(&self, until: Option<Moment>) {
        let micros = until.map_or(0, |until| u64::try_from(until.0.as_micros()).unwrap_or(u64::MAX));
        self.0.store(micros, Ordering::Release);
    }

    fn holds(&self) -> bool {
        clock::now().0 <= Duration::from_micros(self.0.load(Ordering::Acquire))
    }
}

/// Retry interval for storing a term after an error.
const STORE_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Handle of the membership task, for other parts of the daemon.
#[derive(Clone, Debug)]
pub struct DomainHandle {
    lease: Arc<Lease>,
    /// Error for which the last term is not on disk yet.
    trouble: watch::Receiver<Option<String>>,
    view: watch::Receiver<Arc<View>>,
    load: watch::Sender<Load>,
    met: mpsc::Sender<(PeerKey, Vec<Address>)>,
}

impl DomainHandle {
    /// The current view, with a receiver to wait for changes.
    #[must_use]
    pub fn view(&self) -> watch::Receiver<Arc<View>> {
        self.view.clone()
    }

    /// Whether this sensor may answer for the domain now; check it before every answer, record or
    /// acknowledgement given as the representative. It is false right after the process was stopped, until
    /// other members confirm that it still represents them.
    #[must_use]
    pub fn may_serve(&self) -> bool {
        self.lease.holds()
    }

    /// Health messages of this part, as sentences.
    #[must_use]
    pub fn health(&self) -> Vec<String> {
        let trouble = self.trouble.borrow();
        let shown = |error: &String| format!("{error}; this sensor does not stand for election until it can");
        trouble.iter().map(shown).collect()
    }

    /// Set the load of this host, which is sent with every heartbeat.
    pub fn set_load(&self, load: Load) {
        self.load.send_replace(load);
    }

    /// Dial `peer`, a member that can be reached at `addresses` according to the directory.
    pub async fn meet(&self, peer: PeerKey, addresses: Vec<Address>) {
        // An error means that the task has ended: no member needs to be dialled.
        let _ = self.met.send((peer, addresses)).await;
    }
}

/// Membership task of a sensor.
pub struct Domain {
    config: Config,
    node: Node,
    net: Handle,
    gate: Arc<Authenticator>,
    links: Links,
    events: mpsc::Receiver<LinkEvent>,
    peers: broadcast::Receiver<PeerEvent>,
    sessions: mpsc::Receiver<Session>,
    met: mpsc::Receiver<(PeerKey, Vec<Address>)>,
    load: watch::Receiver<Load>,
    view: watch::Sender<Arc<View>>,
    stored: mpsc::Receiver<Persisted>,
    store: mpsc::Sender<Persisted>,
    trouble: watch::Sender<Option<String>>,
    lease: Arc<Lease>,
}

impl Domain {
    /// Read the term, and be ready to [`Domain::run`].
    ///
    /// # Errors
    /// If the term's file cannot be read.
    pub fn open(
        config: Config,
        net: Handle,
        gate: Arc<Authenticator>,
        peers: broadcast::Receiver<PeerEvent>,
        sessions: mpsc::Receiver<Session>,
    ) -> Result<(Domain, DomainHandle), Error> {
        let persisted = term_file::load(&config.folder)?;
        let now = clock::now();
        let node = Node::new(config.election.clone(), config.me.clone(), persisted, config.seed, now);
        let (events_tx, events) = mpsc::channel(EVENTS_MAX);
        let (met_tx, met) = mpsc::channel(16);
        let (load_tx, load) = watch::channel(Load::default());
        let (store, stored) = mpsc::channel(4);
        let links = Links::new(net.clone(), events_tx);
        let (view, view_rx) = watch::channel(Arc::new(view_of(&node, &links, now)));
        let lease = Arc::new(Lease::default());
        let (trouble, trouble_rx) = watch::channel(None);
        let handle = DomainHandle {
            lease: Arc::clone(&lease),
            trouble: trouble_rx,
            view: view_rx,
            load: load_tx,
            met: met_tx,
        };
        let domain = Domain {
            config,
            node,
            net,
            gate,
            links,
            events,
            peers,
            sessions,
            met,
            load,
            view,
            stored,
            store,
            trouble,
            lease,
        };
        Ok((domain, handle))
    }

    /// Hold connections to the seeds until `shutdown`, without membership: a sensor that may not publish is
    /// no member of the domain, and only asks others.
    pub async fn run_as_guest(mut self, shutdown: CancellationToken) {
        for seed in &self.config.seeds {
            self.net.keep(Target::Seed(seed.clone()), vec![seed.clone()]).await;
        }
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(session) = self.sessions.recv() => drop(session),
                Some(met) = self.met.recv() => drop(met),
            }
        }
    }

    /// Run the membership until `shutdown`, then resign and leave.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let (persist, writing) = self.writer();
        let mut publish = tokio::time::interval(PUBLISH_INTERVAL);
        let mut writing = std::pin::pin!(writing);
        loop {
            self.carry_out(&persist).await;
            self.lease.set(self.node.serves_until());
            let due = self.node.poll_timeout();
            tokio::select! {
                () = shutdown.cancelled() => break,
                // It ends with this task.
                () = &mut writing => {}
                Some(event) = self.events.recv() => self.handle_link(event),
                Some(session) = self.sessions.recv() => self.handle_session(session),
                Ok(event) = self.peers.recv() => self.handle_peer(&event),
                Some((peer, addresses)) = self.met.recv() => self.links.dial(peer, addresses),
                Some(persisted) = self.stored.recv() => self.node.handle(Input::Persisted(persisted), clock::now()),
                Ok(()) = self.load.changed() => {
                    let load = *self.load.borrow_and_update();
                    self.node.handle(Input::LoadMeasured(load), clock::now());
                }
                () = sleep_until(due) => self.node.handle(Input::Timeout, clock::now()),
                _ = publish.tick() => self.tick(),
            }
        }
        self.lease.set(None);
        self.node.handle(Input::Stop, clock::now());
        self.carry_out(&persist).await;
        self.publish();
        self.links.flush(FAREWELL).await;
    }

    /// Build the future that stores terms. It stores the latest requested one, and retries each until the
    /// disk takes it: a sensor must not be a candidate with a term that is not stored.
    fn writer(&self) -> (watch::Sender<Persisted>, impl Future<Output = ()> + use<>) {
        let (sender, mut wanted) = watch::channel(Persisted::default());
        wanted.mark_unchanged();
        let (folder, store, trouble) = (self.config.folder.clone(), self.store.clone(), self.trouble.clone());
        let writing = async move {
            while wanted.changed().await.is_ok() {
                loop {
                    let (persisted, folder) = (*wanted.borrow_and_update(), folder.clone());
                    let writing = tokio::task::spawn_blocking(move || term_file::store(&folder, persisted));
                    let Err(error) = writing.await.expect("writing does not panic") else {
                        trouble.send_replace(None);
                        // The driver reads until it ends.
                        let _ = store.send(persisted).await;
                        break;
                    };
                    if trouble.send_replace(Some(error.to_string())).is_none() {
                        tracing::warn!(%error, "the election's term is not on disk");
                    }
                    tokio::time::sleep(STORE_AGAIN_AFTER).await;
                }
            }
        };
        (sender, writing)
    }

    async fn carry_out(&mut self, persist: &watch::Sender<Persisted>) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Send(peer, message) => self.links.send(peer, message),
                Output::Connect(peer, addresses) => {
                    let addresses = addresses.into_iter().filter_map(|text| Address::try_from(text).ok());
                    self.links.dial(peer, addresses.collect());
                }
                Output::Disconnect(peer) => {
                    tracing::debug!(me = %self.config.me.key, %peer, "closing a link");
                    self.links.close(peer).await;
                    self.node.handle(Input::Disconnected(peer), clock::now());
                }
                Output::DialSeeds => {
                    for seed in &self.config.seeds {
                        self.net.keep(Target::Seed(seed.clone()), vec![seed.clone()]).await;
                    }
                    self.welcome_all();
                }
                Output::Persist(persisted) => drop(persist.send_replace(persisted)),
                Output::State(state) => {
                    tracing::info!(
                        role = state.role.as_str(),
                        representative = state.representative.map(tracing::field::display),
                        host = state
                            .representative
                            .and_then(|peer| self.host(peer))
                            .map(tracing::field::display),
                        term = state.term.0,
                        partial = state.partial,
                        covered = state.coverage.len(),
                        "the domain's state changed"
                    );
                    self.publish();
                    if state.representative.is_some() && state.role != Role::Representative {
                        self.forget_seeds().await;
                    }
                }
                Output::HandOver(peer) => tracing::info!(%peer, "handed the domain over"),
            }
        }
    }

    /// The host of a member, if it is known.
    fn host(&self, peer: PeerKey) -> Option<HostName> {
        if peer == self.config.me.key {
            return Some(self.config.me.profile.host.clone());
        }
        let host = self.node.table().get(&peer).map(|row| row.member.host.clone());
        host.or_else(|| self.net.principal(peer).and_then(|principal| principal.host.clone()))
    }

    /// Open links to all connected members of the domain, whichever side dialled, and however long ago.
    fn welcome_all(&mut self) {
        for principal in self.net.ready() {
            if self.profile(&principal).is_some() {
                self.links.welcome(principal.peer);
            }
        }
    }

    /// The domain is found: not all members have to hold connections to the seeds.
    async fn forget_seeds(&self) {
        for seed in &self.config.seeds {
            self.net.forget(Target::Seed(seed.clone())).await;
        }
    }

    fn tick(&mut self) {
        for peer in self.links.drop_halves() {
            tracing::debug!(me = %self.config.me.key, %peer, "a link stayed half open");
            self.node.handle(Input::Disconnected(peer), clock::now());
        }
        self.publish();
    }

    fn publish(&self) {
        self.view.send_replace(Arc::new(view_of(&self.node, &self.links, clock::now())));
    }

    fn handle_link(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Opened(peer, stream) => {
                tracing::debug!(me = %self.config.me.key, %peer, "opened a control stream");
                if self.links.handle_opened(peer, stream) {
                    self.handle_up(peer);
                }
            }
            LinkEvent::Failed(peer) => {
                tracing::debug!(me = %self.config.me.key, %peer, "no control stream could be opened");
                self.links.handle_failed(peer);
                self.node.handle(Input::Disconnected(peer), clock::now());
            }
            LinkEvent::Heard(peer, number, message) => {
                if self.links.is_current(peer, number) && self.links.is_up(peer) {
                    self.node.handle(Input::Received(peer, message), clock::now());
                }
            }
            LinkEvent::Ended(peer, number) => {
                if self.links.handle_ended(peer, number) {
                    tracing::debug!(me = %self.config.me.key, %peer, "a link ended");
                    self.node.handle(Input::Disconnected(peer), clock::now());
                }
            }
        }
    }

    fn handle_session(&mut self, session: Session) {
        // Only a sensor of this domain takes part in it.
        if self.profile(&session.principal).is_none() {
            tracing::warn!(target: "audit", peer = %session.peer, "a control stream from outside the domain");
            return;
        }
        tracing::debug!(me = %self.config.me.key, peer = %session.peer, "a control stream was opened to us");
        if self.links.handle_session(session.peer, session.stream) {
            self.handle_up(session.peer);
        }
    }

    fn handle_up(&mut self, peer: PeerKey) {
        tracing::debug!(me = %self.config.me.key, %peer, "a link is up");
        let Some(principal) = self.net.principal(peer) else { return };
        if let Some(profile) = self.profile(&principal) {
            self.node.handle(Input::Connected(peer, profile), clock::now());
        }
    }

    /// The profile of a principal in this domain; `None` if it is of another.
    fn profile(&self, principal: &Principal) -> Option<Profile> {
        profile(principal, &self.config.election.domain, &self.gate)
    }

    fn handle_peer(&mut self, event: &PeerEvent) {
        match event {
            // A peer that a seed led to, or that dialled this sensor: if it is of the domain, open a link.
            PeerEvent::Ready(principal, _) if self.profile(principal).is_some() => {
                self.links.welcome(principal.peer);
            }
            PeerEvent::Ready(..) | PeerEvent::Unwelcome(..) => {}
            PeerEvent::Gone(peer) => {
                if self.links.handle_gone(*peer) {
                    self.node.handle(Input::Disconnected(*peer), clock::now());
                }
            }
        }
    }
}

/// The profile of a certificate's holder in `domain`: a sensor that publishes, and perhaps may represent.
#[must_use]
pub fn profile(principal: &Principal, domain: &DomainName, gate: &Authenticator) -> Option<Profile> {
    let host = principal.host.clone()?;
    if principal.domain.as_ref() != Some(domain) || !principal.roles.has(credential::Role::Publisher) {
        return None;
    }
    let may_represent = gate.check(principal, Action::Represent).is_ok();
    Some(Profile { host, may_represent, priority: principal.priority })
}

fn view_of(node: &Node, links: &Links, now: Moment) -> View {
    let members = node.table().rows().map(|row| ObservedMember {
        load: node.load_of(&row.member.key),
        member: row.member.clone(),
        heard: row.heard,
    });
    View {
        state: node.state(now),
        members: members.collect(),
        standbys: node.standbys().to_vec(),
        figures: node.figures(now),
        dropped_total: links.dropped_total,
    }
}

async fn sleep_until(due: Option<Moment>) {
    match due {
        Some(due) => tokio::time::sleep(due.since(clock::now())).await,
        None => std::future::pending().await,
    }
}
