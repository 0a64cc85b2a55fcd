//! Conversions between the types of this project and those of libp2p: keys and peer ids, socket addresses and
//! multiaddresses.
//!
//! Pure. Not here: addresses with a transport (`outbound`) or through a proxy (`circuits`).

use libp2p::multiaddr::Protocol as Part;
use libp2p::{Multiaddr, PeerId};
use std::net::{IpAddr, SocketAddr};
use wire::id::PeerKey;

/// The key in a peer id; `None` if the id is not of an ed25519 key.
pub(super) fn peer_key(id: &PeerId) -> Option<PeerKey> {
    PeerKey::from_peer_id(&id.to_bytes())
}

/// The peer id of a key; `None` if the key is not a point of the curve.
pub(super) fn peer_id(key: PeerKey) -> Option<PeerId> {
    let key = libp2p::identity::ed25519::PublicKey::try_from_bytes(&key.0).ok()?;
    Some(libp2p::identity::PublicKey::from(key).to_peer_id())
}

pub(super) fn multiaddr(address: SocketAddr) -> Multiaddr {
    let host = match address.ip() {
        IpAddr::V4(ip) => Part::Ip4(ip),
        IpAddr::V6(ip) => Part::Ip6(ip),
    };
    Multiaddr::empty().with(host).with(Part::Tcp(address.port()))
}

/// The socket address of `/ip4|ip6/…/tcp/…`; `None` if the address starts with anything else.
pub(super) fn socket_addr(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    let host = parts.next()?;
    let ip = if let Part::Ip4(ip) = host {
        IpAddr::V4(ip)
    } else if let Part::Ip6(ip) = host {
        IpAddr::V6(ip)
    } else {
        return None;
    };
    if let Part::Tcp(port) = parts.next()? { Some(SocketAddr::new(ip, port)) } else { None }
}
