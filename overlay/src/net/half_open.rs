//! How many connections of one source may be on their way in: accepted, and not yet known by whose key.
//!
//! Rule: one source has at most [`OF_SOURCE_MAX`] at a time, whichever way they come, so that it cannot take all the places there
//! are ([`IN_ALL_MAX`]) and keep everybody else out; each that was let in leaves once, when it stands or fails. What comes through
//! a proxy's circuit has no address and is the proxy's to limit.
//! Not here: connections that stand (`libp2p::connection_limits`), and who may stay (`guests`).

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, ListenFailure, NetworkBehaviour, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm, dummy,
};
use libp2p::{Multiaddr, PeerId};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::task::{Context, Poll};

/// Most on their way in, of all sources.
pub(super) const IN_ALL_MAX: u32 = 128;

/// Most of one source: a site behind one address comes back a few at a time, each within a few round trips.
pub(super) const OF_SOURCE_MAX: usize = 32;

/// Why one was not let in.
#[derive(Debug, thiserror::Error)]
#[error("expected at most {OF_SOURCE_MAX} connections of {0} on their way in, found more")]
pub(super) struct Refused(IpAddr);

/// Those on their way in.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    sources: HashMap<IpAddr, usize>,
    each: HashMap<ConnectionId, IpAddr>,
}

impl HalfOpen {
    fn begin(&mut self, id: ConnectionId, source: IpAddr) -> Result<(), Refused> {
        let of_source = self.sources.entry(source).or_insert(0);
        if *of_source >= OF_SOURCE_MAX {
            return Err(Refused(source));
        }
        *of_source += 1;
        self.each.insert(id, source);
        Ok(())
    }

    fn end(&mut self, id: ConnectionId) {
        let Some(source) = self.each.remove(&id) else { return };
        let Some(of_source) = self.sources.get_mut(&source) else { return };
        *of_source -= 1;
        if *of_source == 0 {
            self.sources.remove(&source);
        }
    }
}

/// Where a connection comes from; none where its address has no host in it.
fn source(of: &Multiaddr) -> Option<IpAddr> {
    let host = of.iter().next()?;
    let address = if let Protocol::Ip4(address) = host {
        IpAddr::from(address)
    } else if let Protocol::Ip6(address) = host {
        IpAddr::from(address)
    } else {
        return None;
    };
    let is_through = of.iter().any(|part| matches!(part, Protocol::P2pCircuit));
    (!is_through).then(|| wire::source::source(address))
}

impl NetworkBehaviour for HalfOpen {
    type ConnectionHandler = dummy::ConnectionHandler;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        source(remote).map_or(Ok(()), |source| self.begin(id, source)).map_err(ConnectionDenied::new)
    }

    fn handle_established_inbound_connection(
        &mut self,
        id: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        self.end(id);
        Ok(dummy::ConnectionHandler)
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(dummy::ConnectionHandler)
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        if let FromSwarm::ListenFailure(ListenFailure { connection_id, .. }) = event {
            self.end(connection_id);
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: THandlerOutEvent<Self>) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_source_leaves_places_for_others_and_each_leaves_once() {
        let (mut half_open, local) = (HalfOpen::default(), Multiaddr::empty());
        let mut come = |id: usize, from: &str| {
            let from = from.parse().expect("an address");
            half_open
                .handle_pending_inbound_connection(ConnectionId::new_unchecked(id), &local, &from)
                .is_ok()
        };
        assert!((0..OF_SOURCE_MAX).all(|id| come(id, &format!("/ip4/10.0.0.1/tcp/{id}"))));
        assert!(!come(100, "/ip4/10.0.0.1/tcp/9") && !come(101, "/ip4/10.0.0.1/tcp/9/https"));
        assert!(come(102, "/ip4/10.0.0.2/tcp/9"), "another source");
        let through = PeerId::random();
        assert!(come(103, &format!("/ip4/10.0.0.1/tcp/9/p2p/{through}/p2p-circuit")), "by a circuit");
        half_open.end(ConnectionId::new_unchecked(0));
        half_open.end(ConnectionId::new_unchecked(0));
        half_open.end(ConnectionId::new_unchecked(103));
        let mut come = |id: usize| half_open.begin(ConnectionId::new_unchecked(id), [10, 0, 0, 1].into());
        assert!(come(104).is_ok() && come(105).is_err(), "one place was left");
        (0..200).for_each(|id| half_open.end(ConnectionId::new_unchecked(id)));
        assert!(half_open.sources.is_empty() && half_open.each.is_empty());
    }
}
