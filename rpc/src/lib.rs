//! The HTTP access layer of every daemon: XML-RPC and JSON, limits, introspection.
//!
//! A daemon fills a [`method::Registry`] and hands it to [`server::serve`]; it never sees HTTP, XML or JSON.
//! ```text
//! socket → guarded_stream (framing, deadlines) → hyper → routes (Host, Origin, body) → xmlrpc | json
//!        → dispatch (params, deadline, panic) → handler → xml_writer | json → socket
//! ```
//! Not here: any state of any daemon; who may call (a layer between the connection and `routes`, see
//! [`server`]).

pub mod config;
pub mod fault;
pub mod json;
pub mod limits;
pub mod method;
pub mod params;
pub mod statistics;
pub mod value;
pub mod xml_writer;
pub mod xmlrpc;

mod dispatch;
mod introspection;
mod xml_scalars;
mod xml_tokens;
