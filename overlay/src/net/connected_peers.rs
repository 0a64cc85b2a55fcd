//! Connected peers: the principal of each, whether both sides have admitted each other, and its open streams.
//!
//! Rule: the lock is held for one look-up or change, never across an await.
//! Not here: the decision on admission ([`super::hello::Admission`]).

use crate::clock;
use crate::identity::admission::Principal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::id::PeerKey;
use wire::time::Moment;

/// Most questions at a time to one daemon. A proxy forwards the questions of all its guests about a domain,
/// and some of these calls wait half a minute for an event: this many guests may, each with a stream and some
/// KiB at both ends.
pub const QUESTIONS_MAX: usize = 128;

/// Most streams that one admitted peer may have open to this daemon: its lasting ones and [`QUESTIONS_MAX`]
/// questions.
pub const STREAMS_MAX: usize = QUESTIONS_MAX + 8;

/// Most streams of a peer that has not shown a certificate: its hello, a join, and one of each again.
pub const STRANGER_STREAMS_MAX: usize = 4;

/// Effect of a hello or its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// This daemon refused the peer.
    pub is_refused: bool,
    /// Both sides have now admitted each other, and had not before.
    pub is_ready: bool,
    /// The peer was restarted since its last hello.
    pub is_restarted: bool,
}

#[derive(Debug, Default)]
struct ConnectedPeer {
    principal: Option<Arc<Principal>>,
    start: Option<u64>,
    has_admitted_us: bool,
    /// Streams that the peer opened.
    inbound: usize,
    /// Streams that this daemon opened.
    outbound: usize,
    /// Time at which a stream was last opened or closed.
    used: Moment,
}

impl ConnectedPeer {
    fn is_ready(&self) -> bool {
        self.has_admitted_us && self.principal.is_some()
    }
}

/// Table of the connected peers.
#[derive(Debug, Default)]
pub struct ConnectedPeers(Mutex<BTreeMap<PeerKey, ConnectedPeer>>);

/// Refusal of a further stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl ConnectedPeers {
    /// The peer is connected.
    pub fn arrive(&self, peer: PeerKey) {
        self.lock().entry(peer).or_default();
    }

    /// The peer showed a valid certificate. If its connection ended meanwhile, nothing is stored.
    pub fn admit(&self, peer: PeerKey, principal: Arc<Principal>, start: u64) -> Change {
        let mut all = self.lock();
        let Some(connected) = all.get_mut(&peer) else { return Change::default() };
        connected.used = clock::now();
        let was_ready = connected.is_ready();
        let is_restarted = connected.start.is_some_and(|before| before != start);
        if is_restarted {
            connected.has_admitted_us = false;
        }
        connected.principal = Some(principal);
        connected.start = Some(start);
        Change { is_refused: false, is_ready: !was_ready && connected.is_ready(), is_restarted }
    }

    /// The peer admitted this daemon.
    pub fn admitted_by(&self, peer: PeerKey) -> Change {
        let mut all = self.lock();
        let Some(connected) = all.get_mut(&peer) else { return Change::default() };
        let was_ready = connected.is_ready();
        connected.has_admitted_us = true;
        Change { is_refused: false, is_ready: !was_ready && connected.is_ready(), is_restarted: false }
    }

    /// The peer's last connection ended; returns whether it was ready.
    pub fn leave(&self, peer: PeerKey) -> bool {
        self.lock().remove(&peer).is_some_and(|connected| connected.is_ready())
    }

    /// The principal of the peer, if it showed a certificate.
    #[must_use]
    pub fn principal(&self, peer: PeerKey) -> Option<Arc<Principal>> {
        self.lock().get(&peer).and_then(|connected| connected.principal.clone())
    }

    #[must_use]
    pub fn is_here(&self, peer: PeerKey) -> bool {
        self.lock().contains_key(&peer)
    }

    /// Whether the peer accepted this daemon's certificate.
    #[must_use]
    pub fn has_admitted_us(&self, peer: PeerKey) -> bool {
        self.lock().get(&peer).is_some_and(|connected| connected.has_admitted_us)
    }

    /// Whether both sides have admitted each other.
    #[must_use]
    pub fn is_ready(&self, peer: PeerKey) -> bool {
        self.lock().get(&peer).is_some_and(ConnectedPeer::is_ready)
    }

    /// The principals of all peers that are ready.
    #[must_use]
    pub fn ready(&self) -> Vec<Arc<Principal>> {
        let all = self.lock();
        all.values()
            .filter(|connected| connected.is_ready())
            .filter_map(|connected| connected.principal.clone())
            .collect()
    }

    #[must_use]
    pub fn ready_len(&self) -> usize {
        self.lock().values().filter(|connected| connected.is_ready()).count()
    }

    /// Count one more stream that `peer` opened, until the returned seat is dropped.
    ///
    /// # Errors
    /// If the peer is at its limit, or its connection has ended.
    pub fn permit_inbound(self: &Arc<ConnectedPeers>, peer: PeerKey) -> Result<StreamPermit, TooMany> {
        let mut all = self.lock();
        let connected = all.get_mut(&peer).ok_or(TooMany)?;
        let most = if connected.principal.is_some() { STREAMS_MAX } else { STRANGER_STREAMS_MAX };
        if connected.inbound >= most {
            return Err(TooMany);
        }
        connected.inbound += 1;
        connected.used = clock::now();
        Ok(StreamPermit { peers: Arc::clone(self), peer, side: Side::Inbound })
    }

    /// Count one more stream that this daemon opened to `peer`.
    #[must_use]
    pub fn permit_outbound(self: &Arc<ConnectedPeers>, peer: PeerKey) -> StreamPermit {
        if let Some(connected) = self.lock().get_mut(&peer) {
            connected.outbound += 1;
            connected.used = clock::now();
        }
        StreamPermit { peers: Arc::clone(self), peer, side: Side::Outbound }
    }

    /// Whether no stream has been open with the peer for `span`.
    #[must_use]
    pub fn is_idle(&self, peer: PeerKey, span: Duration) -> bool {
        let idle = |connected: &ConnectedPeer| {
            connected.inbound + connected.outbound == 0 && clock::now().since(connected.used) >= span
        };
        self.lock().get(&peer).is_none_or(idle)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, ConnectedPeer>> {
        // Each change above is complete before anything could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Inbound,
    Outbound,
}

/// Counts a stream to its peer until it is dropped.
#[derive(Debug)]
pub struct StreamPermit {
    peers: Arc<ConnectedPeers>,
    peer: PeerKey,
    side: Side,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        if let Some(connected) = self.peers.lock().get_mut(&self.peer) {
            let count = match self.side {
                Side::Inbound => &mut connected.inbound,
                Side::Outbound => &mut connected.outbound,
            };
            *count = count.saturating_sub(1);
            connected.used = clock::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_of_a_peer_that_is_gone() {
        let (peers, peer) = (Arc::new(ConnectedPeers::default()), PeerKey([1; 32]));
        let assert_empty = |when: &str| assert!(peers.lock().is_empty(), "{when}");
        assert_eq!(peers.permit_inbound(peer).err(), Some(TooMany), "a stream of a connection that ended");
        drop(peers.permit_outbound(peer));
        assert_eq!(peers.admitted_by(peer), Change::default());
        assert_empty("who never was here");
        peers.arrive(peer);
        let permits = [peers.permit_inbound(peer).ok(), Some(peers.permit_outbound(peer))];
        assert!(peers.is_here(peer) && permits[0].is_some());
        assert!(!peers.leave(peer), "it was never ready");
        assert_empty("its streams are still held");
        drop(permits);
        assert_empty("after its last stream");
    }
}
