//! Refusals of this daemon by others, for its health: a daemon that was revoked, or whose clock is wrong, has
//! to report that itself.
//!
//! Rule: a refusal counts until the peer admits this daemon, or has not repeated it for [`FORGOTTEN_AFTER`].
//! In the health of a host that its domain's representative hears, a live member's refusal counts only once
//! it lasts ([`LASTING`]): while a host joins, other members may not know yet what they need to admit it.
//! Not here: which peers this daemon admits (`overlay::identity::admission`).

use overlay::authenticator::Authenticator;
use overlay::clock;
use overlay::domain::View;
use overlay::election::Role;
use overlay::hub::PeerEvent;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use wire::id::PeerKey;
use wire::membership::State;
use wire::time::Moment;

/// A daemon that refuses is dialled again within this time, if the connection is still needed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);

/// A refusal by a live member lasts if it was repeated after this time: longer than the pauses between the
/// first dials.
const LASTING: Duration = Duration::from_secs(30);

/// Most refusals that are stored: more need not be reported.
const KEPT_MAX: usize = 16;

/// Most daemons that are named for one reason.
const SHOWN_MAX: usize = 3;

/// Refusal by one daemon.
#[derive(Clone, Debug)]
struct Refusal {
    /// First refusal since the daemon last admitted this one.
    first: Moment,
    last: Moment,
    reason: String,
}

impl Refusal {
    /// Whether the refusal can be ignored: the domain sees this host as live, and the refusing member too.
    fn is_passing(&self, peer: PeerKey, view: &View) -> bool {
        let Some(seen) = view.members.iter().find(|seen| seen.member.key == peer) else { return false };
        let is_heard_by = |key: PeerKey| key != peer && view.state.role != Role::Representative;
        let is_seen_well = view.state.representative.is_some_and(is_heard_by) || seen.heard > self.last;
        seen.member.state == State::Alive && is_seen_well && self.last.since(self.first) < LASTING
    }
}

/// The refusals; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdmissionStatus {
    refusals: Arc<Mutex<BTreeMap<PeerKey, Refusal>>>,
    /// Knows the clocks of other members.
    gate: Option<Arc<Authenticator>>,
}

impl AdmissionStatus {
    pub(crate) fn of(gate: Arc<Authenticator>) -> AdmissionStatus {
        AdmissionStatus { gate: Some(gate), ..AdmissionStatus::default() }
    }

    /// Record refusals until `shutdown`.
    pub(crate) async fn listen(self, mut peers: broadcast::Receiver<PeerEvent>, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                event = peers.recv() => match event {
                    Ok(event) => self.take(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    pub(super) fn take(&self, event: PeerEvent) {
        let mut refusals = self.lock();
        match event {
            PeerEvent::Ready(principal, _) => drop(refusals.remove(&principal.peer)),
            PeerEvent::Unwelcome(peer, reason) => {
                if refusals.len() < KEPT_MAX || refusals.contains_key(&peer) {
                    let now = clock::now();
                    let first = refusals.get(&peer).map_or(now, |before| before.first);
                    refusals.insert(peer, Refusal { first, last: now, reason });
                }
            }
            PeerEvent::Gone(_) => {}
        }
    }

    /// All problems, as sentences: each reason once.
    pub(crate) fn health(&self) -> Vec<String> {
        self.health_but(|_, _| false)
    }

    /// The problems of this host, without passing refusals in its domain, whose state is `view`.
    pub(crate) fn health_within(&self, view: &View) -> Vec<String> {
        self.health_but(|peer, refusal| refusal.is_passing(peer, view))
    }

    /// The same without the refusals for which `is_left_out` returns true.
    fn health_but(&self, is_left_out: impl Fn(PeerKey, &Refusal) -> bool) -> Vec<String> {
        let now = clock::now();
        let mut refusals = self.lock();
        refusals.retain(|_, refusal| now.since(refusal.last) < FORGOTTEN_AFTER);
        let mut by_reason: BTreeMap<&str, Vec<PeerKey>> = BTreeMap::new();
        for (peer, refusal) in refusals.iter().filter(|(peer, refusal)| !is_left_out(**peer, refusal)) {
            by_reason.entry(&refusal.reason).or_default().push(*peer);
        }
        let reasons = by_reason.iter().map(|(reason, peers)| match peers.as_slice() {
            [peer] => format!("daemon {peer} does not let this one in: {reason}"),
            _ => format!("{} daemons do not let this one in ({}): {reason}", peers.len(), some(peers)),
        });
        // A wrong clock comes first, since it is the cause of refusals.
        self.gate.iter().flat_map(|gate| gate.clock_health()).chain(reasons).collect()
    }

    /// Whether one of these daemons refuses this one.
    pub(crate) fn is_refused_by(&self, peers: &[PeerKey]) -> bool {
        let now = clock::now();
        let refusals = self.lock();
        peers
            .iter()
            .any(|peer| refusals.get(peer).is_some_and(|refusal| now.since(refusal.last) < FORGOTTEN_AFTER))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, Refusal>> {
        // Entries are inserted complete.
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first of the peers, and a mark if there are more.
fn some(peers: &[PeerKey]) -> String {
    let shown: Vec<String> = peers.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
    let more = if peers.len() > SHOWN_MAX { " …" } else { "" };
    shown.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use overlay::domain::ObservedMember;
    use overlay::election::{self, Figures};
    use wire::membership::{Member, Term};

    #[test]
    fn a_reason_is_reported_once_with_the_peers_that_give_it() {
        let welcome = AdmissionStatus::default();
        assert_eq!(welcome.health(), [""; 0]);
        let key = |byte| PeerKey([byte; 32]);
        welcome.take(PeerEvent::Unwelcome(key(1), "revoked".to_owned()));
        assert!(welcome.health()[0].ends_with("does not let this one in: revoked"), "{:?}", welcome.health());
        welcome.take(PeerEvent::Unwelcome(key(2), "revoked".to_owned()));
        welcome.take(PeerEvent::Unwelcome(key(2), "revoked".to_owned()));
        welcome.take(PeerEvent::Gone(key(2)));
        assert!(welcome.is_refused_by(&[key(3), key(2)]) && !welcome.is_refused_by(&[key(3)]));
        let (one, two, three) = (key(1), key(2), key(3));
        let expected = format!("2 daemons do not let this one in ({one}, {two}): revoked");
        assert_eq!(welcome.health(), [expected]);
        for byte in [3, 4] {
            welcome.take(PeerEvent::Unwelcome(key(byte), "revoked".to_owned()));
        }
        let expected = format!("4 daemons do not let this one in ({one}, {two}, {three} …): revoked");
        assert_eq!(welcome.health(), [expected]);
    }

    /// State of a domain as a host sees it: `key` is a member in this state, and `representative` is heard.
    fn view(role: Role, representative: Option<PeerKey>, key: PeerKey, state: State) -> View {
        let host = wire::id::HostName::try_from("wn01").unwrap();
        let addresses = Vec::new();
        let member = Member { key, incarnation: 1, state, host, may_represent: true, priority: 0, addresses };
        let state =
            election::State { role, representative, term: Term(1), partial: false, coverage: Vec::new() };
        let members = vec![ObservedMember { member, load: None, heard: Moment::default() }];
        View { state, members, standbys: Vec::new(), figures: Figures::default(), dropped_total: 0 }
    }

    #[test]
    fn a_passing_refusal_of_a_live_member_is_no_trouble_of_a_host_that_is_heard() {
        let (key, other) = (PeerKey([1; 32]), PeerKey([2; 32]));
        let welcome = AdmissionStatus::default();
        let refuse = |lasted: Duration| {
            let last = clock::now();
            let first = Moment(last.0.saturating_sub(lasted));
            let reason = "about to join".to_owned();
            welcome.lock().insert(key, Refusal { first, last, reason });
        };
        let is_shown = |view: &View| !welcome.health_within(view).is_empty();
        refuse(Duration::ZERO);
        let heard = view(Role::Member, Some(other), key, State::Alive);
        assert!(!is_shown(&heard) && welcome.health().len() == 1, "faults name it all the same");
        assert!(is_shown(&view(Role::Member, None, key, State::Alive)), "no representative hears this host");
        assert!(is_shown(&view(Role::Member, Some(key), key, State::Alive)), "the representative refuses");
        assert!(is_shown(&view(Role::Member, Some(other), key, State::Dead)), "that one is not well");
        assert!(is_shown(&view(Role::Member, Some(other), other, State::Alive)), "it is no member");
        assert!(is_shown(&view(Role::Representative, Some(other), key, State::Alive)), "of a domain of one");
        let mut owned = view(Role::Representative, Some(other), key, State::Alive);
        owned.members[0].heard = clock::now().plus(Duration::from_secs(1));
        assert!(!is_shown(&owned), "the representative heard it after that");
        if clock::now().0 > LASTING {
            refuse(LASTING);
            assert!(is_shown(&heard), "it lasts");
        }
    }
}
