//! Transport of each connection: direct, punched, circuit, WebSocket, CONNECT or polling.
//!
//! Rules: one entry for each open connection; the lock is held for one look-up or change.
//! Not here: which transport is tried (`tunnel::ladder`).

use libp2p::swarm::ConnectionId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tunnel::ladder::TransportKind;
use wire::id::PeerKey;

/// The transports of all open connections.
#[derive(Debug, Default)]
pub(super) struct ConnectionTransports(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    all: BTreeMap<ConnectionId, (PeerKey, TransportKind)>,
    counts: BTreeMap<TransportKind, u64>,
}

impl ConnectionTransports {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Both tables are changed together, and nothing between the changes can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn handle_established(
        &self,
        connection: ConnectionId,
        peer: PeerKey,
        transport: TransportKind,
    ) {
        let mut state = self.lock();
        state.all.insert(connection, (peer, transport));
        *state.counts.entry(transport).or_insert(0) += 1;
    }

    pub(super) fn handle_closed(&self, connection: ConnectionId) {
        let mut state = self.lock();
        if let Some((_, transport)) = state.all.remove(&connection)
            && let Some(count) = state.counts.get_mut(&transport)
        {
            *count -= 1;
        }
    }

    /// The peer of a connection.
    pub(super) fn peer(&self, connection: ConnectionId) -> Option<PeerKey> {
        self.lock().all.get(&connection).map(|(peer, _)| *peer)
    }

    /// Number of connections by `transport`.
    pub(super) fn count(&self, transport: TransportKind) -> u64 {
        self.lock().counts.get(&transport).copied().unwrap_or(0)
    }

    /// At most `most` connections that are not direct, newest first.
    pub(super) fn indirect(&self, most: usize) -> Vec<(PeerKey, TransportKind)> {
        let state = self.lock();
        let not_direct =
            state.all.values().rev().filter(|(_, transport)| *transport != TransportKind::Direct);
        not_direct.take(most).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_and_listed_by_transport() {
        let transports = ConnectionTransports::default();
        let id = ConnectionId::new_unchecked;
        let (one, other) = (PeerKey([1; 32]), PeerKey([2; 32]));
        transports.handle_established(id(1), one, TransportKind::Direct);
        transports.handle_established(id(2), one, TransportKind::Polling);
        transports.handle_established(id(3), other, TransportKind::Polling);
        assert_eq!((transports.peer(id(1)), transports.peer(id(3))), (Some(one), Some(other)));
        transports.handle_closed(id(2));
        transports.handle_closed(id(2));
        assert_eq!(transports.peer(id(2)), None);
        assert_eq!(TransportKind::ALL.map(|transport| transports.count(transport)), [1, 0, 0, 0, 0, 1]);
        assert_eq!(transports.indirect(8), [(other, TransportKind::Polling)]);
        assert_eq!(transports.indirect(0), []);
    }
}
