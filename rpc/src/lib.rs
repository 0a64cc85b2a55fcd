//! HTTP query interface of every daemon: XML-RPC and JSON, limits, introspection.
//!
//! A daemon fills a [`dispatch::method::Registry`] and passes it to [`http::server::serve`]; it never sees
//! HTTP, XML or JSON.
//! ```text
//! http ─▶ a request ─▶ codec: reads ─▶ dispatch ─▶ handler ─▶ codec: writes ─▶ http
//!                                              └▶ elsewhere ─▶ a document that another daemon wrote ─▶ http
//!                   └▶ stream: repeated calls of one method, answer by answer ─▶ dispatch …
//! ```
//! Each folder imports only those after it: `http`, `stream`, `dispatch`, `codec`; all of them import the
//! files beside the folders.
//! Not here: the state of any daemon; accounts (an [`http::authorizer::Authorizer`] decides).

#![warn(missing_docs)]

pub mod codec;
pub mod dispatch;
pub mod fault;
pub mod http;
pub mod limits;
pub mod stream;
pub mod stream_limits;
