//! Reports within a domain: streams of members to the representative, and this sensor's own stream to it.
//!
//! Rules: the election decides whether this sensor's store is open and where its report goes; a stream is
//! accepted only from a publisher of this domain, for the host in its certificate; a refusal is sent with its
//! reason.
//! Not here: the messages on a stream (`sensor::report`, `sensor::representative`), the election
//! (`overlay::domain`).

use super::overlay::Overlay;
use daemon::shutdown::Tasks;
use overlay::authenticator::Authenticator;
use overlay::clock;
use overlay::domain::{DomainHandle, ObservedMember, View};
use overlay::election;
use overlay::hub::Session;
use overlay::identity::admission::{Action, Principal};
use overlay::net::handle::Handle;
use overlay::net::protocol::Protocol;
use sensor::report::link::{Link, Route};
use sensor::report::own_route::own_stream;
use sensor::representative::hosts::{ElectionEntry, Liveness, Role};
use sensor::representative::service::{self, Duty};
use sensor::representative::session::{self, Duplex};
use sensor::run::{Sensor, Status};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wire::credential::Certificate;
use wire::id::{DomainName, HostName, PeerKey};
use wire::membership::{Load, State};
use wire::report::FromRepresentative;

/// Timeout for opening a stream to the representative.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// Retry interval if the representative cannot be reached: the election makes the connection.
const OPEN_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Timeout for sending a refusal to a member.
const REFUSAL_WITHIN: Duration = Duration::from_secs(5);
/// Most refusals that are being sent; beyond them a stream is closed without a reason.
const REFUSALS_MAX: usize = 64;
/// Interval at which the election receives the host's load.
const LOAD_EVERY: Duration = Duration::from_secs(5);

pub(crate) struct Reporting {
    acceptor: ReportAcceptor,
    updater: ElectionUpdater,
    link: Link,
    route: MemberRoute,
}

impl Reporting {
    /// The reports of `sensor`, with the membership of `members`. `None` if the sensor's report was already
    /// taken.
    pub(crate) fn open(
        sensor: &mut Sensor,
        overlay: &mut Overlay,
        certificate: &Certificate,
        members: &DomainHandle,
    ) -> Option<Reporting> {
        let (service, link, status) = (sensor.representative(), sensor.take_report()?, sensor.status());
        let lease = members.clone();
        service.set_lease(Box::new(move || lease.may_serve()));
        let route = MemberRoute {
            net: overlay.net.clone(),
            view: members.view(),
            service: service.clone(),
            host: certificate.host.clone(),
            leads_to: None,
        };
        let acceptor = ReportAcceptor {
            sessions: overlay.hub.sessions(Protocol::Report),
            gate: Arc::clone(&overlay.gate),
            domain: certificate.domain.clone(),
            service: service.clone(),
        };
        let updater = ElectionUpdater { members: members.clone(), service, status };
        Some(Reporting { acceptor, updater, link, route })
    }

    /// Report, and accept reports, until `shutdown`. The returned token fires when the representative was
    /// notified that this sensor leaves.
    pub(crate) fn spawn(self, tasks: &mut Tasks, shutdown: &CancellationToken) -> CancellationToken {
        let Reporting { acceptor, updater, link, route } = self;
        let (ending, reported) = (shutdown.clone(), CancellationToken::new());
        let guard = reported.clone().drop_guard();
        tasks.spawn_sure("report", async move {
            link.run(route, ending.clone()).await;
            drop(guard);
            ending.cancelled().await;
        });
        let ending = shutdown.clone();
        tasks.spawn_sure("reports of members", async move {
            tokio::select! {
                () = ending.cancelled() => {}
                () = acceptor.run() => {}
                () = updater.run() => {}
            }
        });
        reported
    }
}

/// Applies the state of the election: whether this sensor represents its domain, and the role of each host.
struct ElectionUpdater {
    members: DomainHandle,
    service: service::Handle,
    status: Status,
}

impl ElectionUpdater {
    async fn run(self) {
        let mut view = self.members.view();
        let mut load_ticks = tokio::time::interval(LOAD_EVERY);
        loop {
            let known = view.borrow_and_update().clone();
            // Set the places first: at the start of a term readers wait for those hosts.
            self.service.set_election(places(&known));
            self.service.set_partial(known.state.partial);
            self.service.set_duty(duty(&known));
            tokio::select! {
                changed = view.changed() => if changed.is_err() {
                    // The election has ended, and with it this sensor's membership.
                    self.service.set_duty(Duty::Rest);
                    return std::future::pending().await;
                },
                _ = load_ticks.tick() => self.send_load(),
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest whole number there is"
    )]
    fn send_load(&self) {
        let Some(figures) = self.status.figures() else { return };
        let share = |part: f64| (part * 1000.0) as u16;
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
        let used = figures.memory_used.zip(figures.memory_total).map(|(used, of)| used as f64 / of as f64);
        self.members.set_load(Load {
            load1_milli: figures.load.map_or(0, |[one, ..]| (one * 1000.0) as u32),
            cpu_permille: figures.cpu_used.map_or(0, share),
            memory_permille: used.map_or(0, share),
            complaints: u16::try_from(self.status.health().len()).unwrap_or(u16::MAX),
        });
    }
}

fn duty(view: &View) -> Duty {
    match view.state.role {
        election::Role::Representative => Duty::Serve { term: view.state.term.0 },
        election::Role::Member | election::Role::Standby => Duty::Rest,
    }
}

fn places(view: &View) -> BTreeMap<HostName, ElectionEntry> {
    let role = |peer: &PeerKey| match () {
        () if view.state.representative == Some(*peer) => Role::Representative,
        () if view.standbys.contains(peer) => Role::Standby,
        () => Role::Member,
    };
    let (now, wall) = (clock::now(), clock::calendar());
    let gone = |seen: &ObservedMember| {
        let standing = match seen.member.state {
            State::Alive => return None,
            // At the start of a term: the previous representative heard it, this one does not.
            State::Suspect | State::Dead => Liveness::Silent,
            State::Left => Liveness::Left,
        };
        Some((standing, wall.minus(now.since(seen.heard))))
    };
    // If two sensors have the same host name, the one that is not gone counts.
    let mut places = BTreeMap::new();
    for seen in &view.members {
        let place = ElectionEntry { role: role(&seen.member.key), gone: gone(seen) };
        let known = places.entry(seen.member.host.clone()).or_insert(place);
        if known.gone.is_some() {
            *known = place;
        }
    }
    places
}

/// Accepts streams of members.
struct ReportAcceptor {
    sessions: mpsc::Receiver<Session>,
    gate: Arc<Authenticator>,
    domain: DomainName,
    service: service::Handle,
}

impl ReportAcceptor {
    async fn run(mut self) {
        let mut refusals = JoinSet::new();
        loop {
            let Session { peer, principal, stream } = tokio::select! {
                session = self.sessions.recv() => match session {
                    Some(session) => session,
                    // The overlay has ended: no further stream arrives.
                    None => return std::future::pending().await,
                },
                Some(_) = refusals.join_next() => continue,
            };
            match self.check(&principal) {
                Ok(host) => {
                    let (serial, stream) = (principal.serial, Box::new(stream));
                    self.service.receive(session::Session { peer, serial, host, stream });
                }
                Err(why) if refusals.len() < REFUSALS_MAX => _ = refusals.spawn(refuse(stream, why)),
                Err(_) => {}
            }
        }
    }

    /// The host for which this peer may report.
    fn check(&self, principal: &Principal) -> Result<HostName, String> {
        let (Some(host), Some(domain)) = (&principal.host, &principal.domain) else {
            return Err("a directory reports nothing".to_owned());
        };
        self.gate.check(principal, Action::Publish { host }).map_err(|refused| refused.to_string())?;
        if *domain != self.domain {
            return Err(format!("this is {}, no representative of {domain}", self.domain));
        }
        Ok(host.clone())
    }
}

async fn refuse(mut stream: overlay::net::stream::Stream, why: String) {
    let mut frame = Vec::new();
    if wire::report::encode(&FromRepresentative::Refused(why.into()), &mut frame).is_err() {
        return;
    }
    let sending = async {
        stream.write_all(&frame).await?;
        stream.shutdown().await
    };
    // The member may have closed the stream.
    let _ = tokio::time::timeout(REFUSAL_WITHIN, sending).await;
}

/// Connection of a member to the representative of its domain, which may be itself.
struct MemberRoute {
    net: Handle,
    view: watch::Receiver<Arc<View>>,
    service: service::Handle,
    host: HostName,
    /// The peer of the stream that was opened last.
    leads_to: Option<PeerKey>,
}

impl MemberRoute {
    /// Open a stream to this representative; `None` if that fails now.
    async fn stream_to(&self, peer: PeerKey) -> Option<Box<dyn Duplex>> {
        if peer == self.net.me() {
            self.service.wait_open().await;
            return Some(Box::new(own_stream(&self.service, peer, self.host.clone())));
        }
        match self.net.open(peer, Protocol::Report, OPEN_WITHIN).await {
            Ok(stream) => Some(Box::new(stream)),
            Err(error) => {
                tracing::debug!(%peer, %error, "no stream to the representative");
                tokio::time::sleep(OPEN_AGAIN_AFTER).await;
                None
            }
        }
    }
}

impl Route for MemberRoute {
    type Stream = Box<dyn Duplex>;

    async fn open(&mut self) -> Box<dyn Duplex> {
        loop {
            let wanted = self.view.borrow_and_update().state.representative;
            self.leads_to = wanted;
            let opening = async {
                match wanted {
                    Some(peer) => self.stream_to(peer).await,
                    None => std::future::pending().await,
                }
            };
            let mut view = self.view.clone();
            let other = async { view.wait_for(|view| view.state.representative != wanted).await.is_ok() };
            tokio::select! {
                opened = opening => if let Some(stream) = opened {
                    return stream;
                },
                is_other = other => if !is_other {
                    // The election has ended: the daemon is about to stop.
                    return std::future::pending().await;
                },
            }
        }
    }

    async fn moved(&mut self) {
        let (leads_to, mut view) = (self.leads_to, self.view.clone());
        // While no representative is known, the stream may still be open; otherwise it breaks by itself.
        let is_other = |view: &Arc<View>| {
            view.state.representative.is_some_and(|representative| Some(representative) != leads_to)
        };
        if view.wait_for(is_other).await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests;
