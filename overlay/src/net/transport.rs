//! TCP, Noise, Yamux: the one way in which bytes reach another daemon.
//!
//! Rule: a peer that stops acknowledging is noticed by the kernel within [`USER_TIMEOUT`] although nothing
//! above writes (libp2p's own pings do not close a connection).
//! Not here: who is dialled (`redial`), what is said (`streams`).

use super::Error;
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::Boxed;
use libp2p::core::upgrade::Version;
use libp2p::identity::Keypair;
use libp2p::{PeerId, Transport as _, noise, tcp, yamux};
use std::time::Duration;

/// How long sent bytes may stay unacknowledged before the kernel gives the connection up (`tcp(7)`,
/// `TCP_USER_TIMEOUT`): as long as two missed pings.
pub(super) const USER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may take to be encrypted and multiplexed.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Streams of one connection at a time: 64 questions at once each way and what lasts, with room.
const STREAMS_MAX: usize = 256;

/// The transport of a daemon whose key is `key`.
///
/// # Errors
/// If the key cannot sign for Noise.
pub(super) fn build(key: &Keypair) -> Result<Boxed<(PeerId, StreamMuxerBox)>, Error> {
    let noise = noise::Config::new(key).map_err(|error| Error::Key(error.to_string()))?;
    let mut multiplex = yamux::Config::default();
    multiplex.set_max_num_streams(STREAMS_MAX);
    let tcp = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true));
    Ok(tcp
        .map(|stream, _| {
            limit_silence(&stream.0);
            stream
        })
        .upgrade(Version::V1Lazy)
        .authenticate(noise)
        .multiplex(multiplex)
        .timeout(HANDSHAKE_TIMEOUT)
        .boxed())
}

fn limit_silence(stream: &tokio::net::TcpStream) {
    let millis = u32::try_from(USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, millis) {
        // Pings still find a dead peer, only later.
        tracing::debug!(%error, "cannot limit how long a peer may stay silent");
    }
}
