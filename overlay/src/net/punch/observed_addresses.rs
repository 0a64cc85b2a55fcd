//! Source addresses from which daemons reached this proxy by plain TCP, after any address translation.
//!
//! Rules: one entry for each such connection; the lock is held for one look-up or change. Connections over
//! HTTPS and circuits are not in here: plain TCP does not lead back to them.
//! Not here: which peer may ask (`mod`).

use libp2p::swarm::ConnectionId;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::id::PeerKey;

/// The addresses of each daemon, oldest connection first.
#[derive(Debug, Default)]
pub(super) struct ObservedAddresses(Mutex<BTreeMap<PeerKey, BTreeMap<ConnectionId, SocketAddr>>>);

impl ObservedAddresses {
    pub(super) fn handle_established(&self, connection: ConnectionId, peer: PeerKey, from: SocketAddr) {
        self.lock().entry(peer).or_default().insert(connection, from);
    }

    pub(super) fn handle_closed(&self, connection: ConnectionId, peer: PeerKey) {
        let mut all = self.lock();
        let Some(of_peer) = all.get_mut(&peer) else { return };
        of_peer.remove(&connection);
        if of_peer.is_empty() {
            all.remove(&peer);
        }
    }

    /// The source address of the newest connection of `peer`.
    pub(super) fn at(&self, peer: PeerKey) -> Option<SocketAddr> {
        self.lock().get(&peer)?.last_key_value().map(|(_, from)| *from)
    }

    /// Whether a connection of `peer` comes from `ip`.
    pub(super) fn is_from(&self, peer: PeerKey, ip: IpAddr) -> bool {
        self.lock().get(&peer).is_some_and(|of_peer| of_peer.values().any(|from| from.ip() == ip))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerKey, BTreeMap<ConnectionId, SocketAddr>>> {
        // Each change above is complete before anything could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_peer_is_known_as_long_as_its_connection() {
        let (observed, peer, id) =
            (ObservedAddresses::default(), PeerKey([1; 32]), ConnectionId::new_unchecked);
        let [one, other]: [SocketAddr; 2] =
            ["203.0.113.1:7318", "203.0.113.2:9"].map(|at| at.parse().expect("an address"));
        assert_eq!((observed.at(peer), observed.is_from(peer, one.ip())), (None, false));
        observed.handle_established(id(1), peer, one);
        observed.handle_established(id(2), peer, other);
        assert_eq!(observed.at(peer), Some(other));
        assert!(observed.is_from(peer, one.ip()) && observed.is_from(peer, other.ip()));
        assert!(!observed.is_from(PeerKey([2; 32]), one.ip()), "another one");
        observed.handle_closed(id(2), peer);
        assert_eq!((observed.at(peer), observed.is_from(peer, other.ip())), (Some(one), false));
        observed.handle_closed(id(1), peer);
        assert!(observed.lock().is_empty());
    }
}
