//! HTTP: the sockets of a daemon, what may come in there, and which call each request is.
//!
//! ```text
//! socket ─▶ server ─▶ TLS, if any ─▶ guarded_stream (framing, deadlines) ─▶ hyper ─▶ routes: origin, entrance, body ─▶ codec, dispatch
//! ```
//! Not here: what is answered (`dispatch`), how it is written (`codec`).

pub mod config;
pub mod entrance;
pub mod hatch;
pub mod listener;
pub mod server;

mod body;
mod connections;
mod framing;
mod guarded_stream;
mod origin;
mod routes;
mod socket;
