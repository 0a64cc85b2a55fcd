//! The HTTP access layer of every daemon: XML-RPC and JSON, limits, introspection.
//!
//! A daemon fills a [`method::Registry`] and hands it to [`server::serve`]; it never sees HTTP, XML or JSON.
//! ```text
//! socket → TLS, if any → guarded_stream (framing, deadlines) → hyper → routes (Host, Origin, entrance, body) → xmlrpc | json
//!        → dispatch (params, deadline, panic) → handler → xml_writer | json → socket
//!                                                      → elsewhere → a document that another daemon wrote → socket
//!        → follow (one question of many, answer by answer) ─▶ dispatch …
//! ```
//! Not here: any state of any daemon; who may come in ([`entrance`] asks whoever decides that).

pub mod apart;
pub mod codec;
pub mod config;
pub mod dispatch;
pub mod elsewhere;
pub mod entrance;
pub mod fault;
pub mod follow;
pub mod hatch;
pub mod json;
pub mod limits;
pub mod listener;
pub mod method;
pub mod moment;
pub mod openapi;
pub mod packed;
pub mod params;
pub mod server;
pub mod statistics;
pub mod typed;
pub mod value;
pub mod written;
pub mod xml_writer;
pub mod xmlrpc;

mod body;
mod connections;
mod framing;
mod guarded_stream;
mod help;
mod introspection;
mod origin;
mod query;
mod routes;
mod schema;
mod socket;
mod source;
mod xml_scalars;
mod xml_tokens;
