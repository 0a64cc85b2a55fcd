//! The shell around libp2p: one task owns the swarm, everybody else holds a [`handle::Handle`].
//!
//! ```text
//!   handle ──commands──▶ event_loop (swarm: transport, ping, limits, streams) ──events──▶ the daemon
//!                          │ a stream comes in
//!                          ▼
//!                        accept: hello, or may this principal? ──question──▶ the daemon ──answer──▶
//! ```
//!
//! Rule: every queue, table and frame has its bound; what does not fit is refused to the peer in words and
//! counted ([`figures::Figures`]), never dropped in silence.
//! Not here: what is decided from what is heard (`membership`, `election`), who is admitted (`identity`).

pub mod accept;
mod batch;
pub mod carried;
mod circuits;
mod dialling;
pub mod event_loop;
pub mod figures;
pub mod frames;
mod greeting;
pub mod guests;
mod half_open;
pub mod handle;
pub mod handshake;
pub mod hello;
pub mod protocol;
mod punch;
mod question_pool;
pub mod redial;
mod rungs;
pub mod security;
mod silence;
pub mod stream;
mod streams;
mod swarm;
mod swarm_events;
mod tls;
mod transport;
pub mod undialled;
pub mod way_out;

/// Why the overlay could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The daemon's key is of no use.
    #[error("the daemon's key cannot be used: {0}")]
    Key(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// Which.
        address: std::net::SocketAddr,
        /// What the system said.
        reason: String,
    },
}
