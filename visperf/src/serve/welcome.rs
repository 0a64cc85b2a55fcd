//! Whether others let this daemon in, for its health: one that was put out of its domain, or whose clock is wrong, has
//! to say so itself.
//!
//! Rule: what a daemon said counts until it lets this one in, or has said nothing for [`FORGOTTEN_AFTER`].
//! Not here: who is let in by this daemon (`overlay::identity::admission`).

use overlay::clock;
use overlay::gatekeeper::Gatekeeper;
use overlay::hub::PeerEvent;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use wire::id::PeerKey;
use wire::time::Moment;

/// A daemon that refuses is dialled again within this time, if it still is needed.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);

/// Refusals kept: more daemons than these need not be told of.
const KEPT_MAX: usize = 16;

/// Of those that give one reason, so many are named.
const SHOWN_MAX: usize = 3;

/// What others said; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Welcome {
    refusals: Arc<Mutex<BTreeMap<PeerKey, (Moment, String)>>>,
    /// What knows the clocks of others.
    gate: Option<Arc<Gatekeeper>>,
}

impl Welcome {
    /// Of a daemon with this gate.
    pub(crate) fn of(gate: Arc<Gatekeeper>) -> Welcome {
        Welcome { gate: Some(gate), ..Welcome::default() }
    }

    /// Listen until `shutdown`.
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
                    refusals.insert(peer, (clock::now(), reason));
                }
            }
            PeerEvent::Gone(_) => {}
        }
    }

    /// What is wrong, in sentences: each reason once.
    pub(crate) fn health(&self) -> Vec<String> {
        let now = clock::now();
        let mut refusals = self.lock();
        refusals.retain(|_, (at, _)| now.since(*at) < FORGOTTEN_AFTER);
        let mut by_reason: BTreeMap<&str, Vec<PeerKey>> = BTreeMap::new();
        for (peer, (_, reason)) in refusals.iter() {
            by_reason.entry(reason).or_default().push(*peer);
        }
        let told = by_reason.iter().map(|(reason, peers)| match peers.as_slice() {
            [peer] => format!("daemon {peer} does not let this one in: {reason}"),
            _ => format!("{} daemons do not let this one in ({}): {reason}", peers.len(), some(peers)),
        });
        // A wrong clock comes first: it is the reason of refusals.
        self.gate.iter().flat_map(|gate| gate.clock_health()).chain(told).collect()
    }

    /// Whether one of these does not let this daemon in.
    pub(crate) fn is_refused_by(&self, peers: &[PeerKey]) -> bool {
        let now = clock::now();
        let refusals = self.lock();
        peers.iter().any(|peer| refusals.get(peer).is_some_and(|(at, _)| now.since(*at) < FORGOTTEN_AFTER))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, (Moment, String)>> {
        // Rows are put in whole.
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first of them, and that there are more.
fn some(peers: &[PeerKey]) -> String {
    let shown: Vec<String> = peers.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
    let more = if peers.len() > SHOWN_MAX { " …" } else { "" };
    shown.join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_and_who_gives_it() {
        let welcome = Welcome::default();
        assert_eq!(welcome.health(), [""; 0]);
        let key = |byte| PeerKey([byte; 32]);
        welcome.take(PeerEvent::Unwelcome(key(1), "revoked".to_owned()));
        assert!(welcome.health()[0].ends_with("does not let this one in: revoked"), "{:?}", welcome.health());
        welcome.take(PeerEvent::Unwelcome(key(2), "revoked".to_owned()));
        welcome.take(PeerEvent::Unwelcome(key(2), "revoked".to_owned()));
        welcome.take(PeerEvent::Gone(key(2)));
        assert!(welcome.is_refused_by(&[key(3), key(2)]) && !welcome.is_refused_by(&[key(3)]));
        let (one, two, three) = (key(1), key(2), key(3));
        let told = format!("2 daemons do not let this one in ({one}, {two}): revoked");
        assert_eq!(welcome.health(), [told]);
        for byte in [3, 4] {
            welcome.take(PeerEvent::Unwelcome(key(byte), "revoked".to_owned()));
        }
        let told = format!("4 daemons do not let this one in ({one}, {two}, {three} …): revoked");
        assert_eq!(welcome.health(), [told]);
    }
}
