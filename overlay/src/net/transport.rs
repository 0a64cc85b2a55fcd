//! What leads out (`way_out`), or a circuit through a proxy, then TLS or Noise, then Yamux: the routes by which bytes reach another
//! daemon.
//!
//! Rule: through a proxy the encryption is with the daemon at the other end: the proxy sees encrypted bytes.
//! Not here: who is dialled (`redial`), what is said (`streams`).

use super::half_open::HalfOpen;
use super::handshake::Handshakes;
use super::security::Security;
use super::way_out::WayOut;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::Boxed;
use libp2p::core::upgrade::Version;
use libp2p::{PeerId, Transport as _, relay, yamux};
use std::time::Duration;

/// How long a dialled connection may take to be made, encrypted and multiplexed; for those accepted see `handshake`.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Streams of one connection at a time: what a peer may have open each way, with room.
const STREAMS_MAX: usize = 512;

/// The transport of a daemon whose connections are encrypted by `security`; `circuits` leads through proxies, `way_out`, which decides
/// by `half_open` what it accepts, to the daemon that is dialled.
pub(super) fn build(
    security: Security,
    circuits: relay::client::Transport,
    way_out: WayOut,
    half_open: HalfOpen,
) -> Boxed<(PeerId, StreamMuxerBox)> {
    let mut multiplex = yamux::Config::default();
    multiplex.set_max_num_streams(STREAMS_MAX);
    // The circuits first: what leads out would take the proxy's address for the daemon's.
    let transport = circuits
        .or_transport(way_out)
        .upgrade(Version::V1Lazy)
        .authenticate(security)
        .multiplex(multiplex)
        .outbound_timeout(DIAL_TIMEOUT)
        .boxed();
    Handshakes::new(transport, half_open).boxed()
}
