//! Transport stack: TCP or HTTPS (`outbound`), or a circuit through a proxy, then TLS or Noise, then Yamux.
//!
//! Rule: through a proxy the encryption is end to end, with the daemon at the other end: the proxy sees
//! encrypted bytes.
//! Not here: which daemon is dialled (`redial`), the streams (`streams`).

use super::half_open::HalfOpen;
use super::handshake::Handshakes;
use super::outbound::OutboundTransport;
use super::security::Security;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::Boxed;
use libp2p::core::upgrade::Version;
use libp2p::{PeerId, Transport as _, relay, yamux};
use std::time::Duration;

/// Timeout for dialling, encrypting and multiplexing a connection; for inbound ones see `handshake`.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Most streams of one connection: as many as a peer may have open in each direction, with room.
const STREAMS_MAX: usize = 512;

/// Build the transport: `security` encrypts, `circuits` connects through proxies, `outbound` connects
/// otherwise, and decides by `half_open` which connections it accepts.
pub(super) fn build(
    security: Security,
    circuits: relay::client::Transport,
    outbound: OutboundTransport,
    half_open: HalfOpen,
) -> Boxed<(PeerId, StreamMuxerBox)> {
    let mut multiplex = yamux::Config::default();
    multiplex.set_max_num_streams(STREAMS_MAX);
    // Circuits first: `outbound` would take the proxy's address in a circuit for the daemon's.
    let transport = circuits
        .or_transport(outbound)
        .upgrade(Version::V1Lazy)
        .authenticate(security)
        .multiplex(multiplex)
        .outbound_timeout(DIAL_TIMEOUT)
        .boxed();
    Handshakes::new(transport, half_open).boxed()
}
