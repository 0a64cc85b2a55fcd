//! Swarm of a daemon: its behaviours, and their limits, on top of its transport.
//!
//! Not here: the transport itself (`transport`), the task that owns the swarm (`event_loop`).

use super::Error;
use super::conversion::multiaddr;
use super::event_loop::{Behaviour, CONNECTIONS_OF_PEER_MAX, Config, SPARE};
use super::half_open::HalfOpen;
use super::keepalive::{PING_INTERVAL, PING_TIMEOUT};
use super::outbound::OutboundTransport;
use super::security::Security;
use super::streams::Streams;
use super::{circuits, transport};
use crate::identity::key::Key;
use libp2p::connection_limits::{self, ConnectionLimits};
use libp2p::core::upgrade::Version;
use libp2p::{Swarm, ping, relay};

/// Build the swarm of the daemon of this key on this transport, and start its listeners.
///
/// # Errors
/// If an address cannot be listened on.
pub(super) fn build(
    config: &Config,
    key: &Key,
    security: Security,
    (outbound, half_open): (OutboundTransport, HalfOpen),
) -> Result<Swarm<Behaviour>, Error> {
    // Connections in the middle of a handshake are limited where they are accepted (`half_open`).
    let limits = ConnectionLimits::default()
        .with_max_pending_outgoing(Some(64))
        .with_max_established(Some(config.connections_max.saturating_add(SPARE)))
        .with_max_established_per_peer(Some(CONNECTIONS_OF_PEER_MAX));
    let local = key.for_transport().public().to_peer_id();
    let (circuits, through) = relay::client::new(local);
    let proxy = config.is_proxy.then(|| relay::Behaviour::new(local, circuits::limits()));
    let behaviour = Behaviour {
        limits: connection_limits::Behaviour::new(limits),
        ping: ping::Behaviour::new(
            ping::Config::new().with_interval(PING_INTERVAL).with_timeout(PING_TIMEOUT),
        ),
        streams: Streams::new(config.spoken),
        through,
        proxy: proxy.into(),
    };
    // A stream's protocol is proposed together with its first bytes: a question takes one round trip, not
    // two.
    let swarm_config = libp2p::swarm::Config::with_tokio_executor()
        .with_substream_upgrade_protocol_override(Version::V1Lazy);
    let transport = transport::build(security, circuits, outbound, half_open);
    let mut swarm = Swarm::new(transport, behaviour, local, swarm_config);
    for address in &config.listen {
        let listened = swarm.listen_on(multiaddr(*address));
        listened.map_err(|error| Error::Listen { address: *address, reason: error.to_string() })?;
    }
    Ok(swarm)
}
