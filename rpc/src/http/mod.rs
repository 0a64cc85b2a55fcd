//! HTTP layer of a daemon: listeners, connections, authorization and routing.
//!
//! ```text
//! socket ─▶ server ─▶ connection: TLS, upgrade ─▶ guarded_stream (framing, deadlines) ─▶ hyper ─▶ router (axum): origin, authorizer
//!                                                                              calls ◀─ a path ─┘
//! ```
//! Not here: running a call (`dispatch`), encoding the answer (`codec`).

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
