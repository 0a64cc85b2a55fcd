//! Dispatch of calls: the methods of a daemon, their parameters, permissions, and running one call.
//!
//! ```text
//! call ─▶ dispatcher: method, params, scope ─▶ elsewhere, for another daemon ─▶ handler ─▶ written: a value or a document
//! ```
//! Not here: parsing a call and writing its answer (`codec`), streams (`stream`), HTTP (`http`).

pub mod blocking_pool;
pub mod encoded_answer;
pub mod forward;
pub mod method;
pub mod openapi;
pub mod params;
pub mod permissions;
pub mod statistics;
pub mod typed;

pub(crate) mod introspection;
pub(crate) mod source;

mod dispatcher;
mod help;
mod schema;

pub use dispatcher::Dispatcher;
pub(crate) use dispatcher::{checked, now, too_large};
