//! Calls: the methods of a daemon, what is given to them, who may call them, and one call run.
//!
//! ```text
//! call ─▶ dispatcher: method, params, scope ─▶ elsewhere, for another daemon ─▶ handler ─▶ written: a value or a document
//! ```
//! Not here: how a call is read and its answer written (`codec`), calls whose answers go on (`stream`), HTTP (`http`).

pub mod apart;
pub mod elsewhere;
pub mod method;
pub mod openapi;
pub mod params;
pub mod scope;
pub mod statistics;
pub mod typed;
pub mod written;

pub(crate) mod introspection;
pub(crate) mod source;

mod dispatcher;
mod help;
mod schema;

pub use dispatcher::Dispatcher;
pub(crate) use dispatcher::{checked, now, too_large};
