//! Connections between daemons: one task owns the libp2p swarm, every other part uses a [`handle::Handle`].
//!
//! ```text
//!   handle ──commands──▶ event_loop (swarm: transport, ping, limits, streams) ──events──▶ the daemon
//!                          │ a stream comes in
//!                          ▼
//!                        accept: hello, or is this principal allowed? ──question──▶ the daemon ──answer──▶
//! ```
//!
//! Rule: every queue, table and frame has its bound; what does not fit is refused with a reason that the peer
//! receives, and counted ([`figures::Figures`]), never dropped silently.
//! Not here: decisions on received messages (`membership`, `election`), which peers are admitted
//! (`identity`).

pub mod accept;
mod batch;
mod circuits;
pub mod connected_peers;
mod connection_transports;
mod conversion;
pub mod dial_error;
mod dialling;
pub mod event_loop;
pub mod figures;
pub mod frames;
mod greeting;
mod half_open;
pub mod handle;
pub mod handshake;
pub mod hello;
pub mod https_stream;
mod keepalive;
pub mod outbound;
pub mod protocol;
mod punch;
mod question_pool;
pub mod redial;
pub mod security;
pub mod stream;
mod streams;
mod swarm;
mod swarm_events;
mod tls;
mod transport;

/// Why the overlay could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The daemon's key cannot be used for the transport.
    #[error("the daemon's key cannot be used: {0}")]
    Key(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        address: std::net::SocketAddr,
        /// The error of the operating system.
        reason: String,
    },
}
