//! HTTP: the sockets of a daemon, what may come in there, and which call each request is.
//!
//! ```text
//! socket ─▶ server ─▶ connection: TLS, upgrade ─▶ guarded_stream (framing, deadlines) ─▶ hyper ─▶ router (axum): origin, authorizer
//!                                                                              calls ◀─ a path ─┘
//! ```
//! Not here: what is answered (`dispatch`), how it is written (`codec`).

pub mod authorizer;
pub mod config;
pub mod listener;
pub mod server;
pub mod upgrade;

mod answer;
mod body;
mod calls;
mod connection;
mod connections;
mod framing;
mod guarded_stream;
mod origin;
mod router;
mod socket;
