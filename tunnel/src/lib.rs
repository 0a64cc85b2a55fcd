//! Tunnel protocol as pure state machines, shared by the proxy and its clients: mutual authentication, the
//! resumable byte stream, and the choice of the transport.
//!
//! ```text
//! digest      RFC 7616: what a client answers to a challenge, what a server answers to that
//! challenge   the same on a raw stream: both ends prove the secret, bound to the encrypted connection
//! connect     a connection through a site's own HTTP proxy
//! hash        the hash functions under both, and their keyed forms
//! carrier     a resumable byte stream over a WebSocket, or over HTTP requests and answers
//! ladder      the order in which transports to a proxy are tried
//! sessions    the carriers of a proxy, by client
//! ```
//! Pure: no runtime, no file, no socket, no clock, no random numbers; callers pass nonces and send the
//! output.
//! Not here: streams within one connection and their flow control (libp2p's, in `overlay`); accounts and
//! permissions (`proxy`).

pub mod carrier;
pub mod challenge;
pub mod connect;
pub mod digest;
pub mod hash;
pub mod ladder;
pub mod sessions;

/// Default TCP port of a proxy.
pub const PORT: u16 = 7321;
