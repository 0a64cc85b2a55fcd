//! The two ends of a tunnel as plain values, the same code in the proxy and in who asks it: how they know each other,
//! what carries bytes between them, and which way is tried.
//!
//! ```text
//! digest      RFC 7616: what a client answers to a challenge, what a server answers to that
//! challenge   the same on a raw stream: both ends prove the secret, bound to the encrypted connection
//! connect     the way out through a site's own HTTP proxy
//! hash        the two hashes under both, and their keyed forms
//! carrier     a byte stream that outlives what carries it: WebSocket, or requests and answers of HTTP
//! ladder      which way to a proxy is tried first, and which worked
//! sessions    the carriers of a proxy, by client
//! ```
//! Pure: no runtime, no file, no socket, no clock, no dice; callers pass nonces and send what they get.
//! Not here: streams in one connection and their flow control (libp2p's, in `overlay`); accounts, and who may do what
//! (`proxy`).

pub mod carrier;
pub mod challenge;
pub mod connect;
pub mod digest;
pub mod hash;
pub mod ladder;
pub mod sessions;

/// The TCP port of a proxy, unless another is named.
pub const PORT: u16 = 7321;
