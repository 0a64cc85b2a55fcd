//! Client of the query interface of visperf's daemons: typed calls, and streams of answers.
//!
//! ```no_run
//! use client::connect::Tcp;
//! use client::typed::About;
//! use client::{Client, Error};
//! use wire::api::calls::{CallsParams, DomainCallsParams};
//!
//! # async fn run() -> Result<(), Error> {
//! let mut client = Client::new(Tcp("127.0.0.1:7317".to_owned()));
//! let wanted = CallsParams { user: Some("ada".to_owned()), limit: 10, ..CallsParams::default() };
//! for call in client.call(&DomainCallsParams(wanted), &About::default()).await?.calls {
//!     println!("{} {}", call.id, call.state.as_str());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! blocking ─▶ client, follow ─▶ exchange (hyper) ─▶ connect: Tcp | Local | a program's own
//!                  typed            login (Digest)           proxy_address (TLS)
//! ```
//! Programs without a runtime use [`blocking::Client`]. For a daemon behind a proxy use
//! [`Client::logging_in`] and a [`proxy_address::ProxyAddress`]; for any other route implement
//! [`connect::Connect`].
//! Not here: the types of the methods (`wire::api`), the choice of the daemon (the programs).

#![warn(missing_docs)]

pub mod blocking;
mod client;
pub mod connect;
mod error;
mod exchange;
pub mod follow;
mod login;
mod patience;
pub mod proxy_address;
pub mod query;
pub mod recovery;
pub mod typed;

pub use client::{Answer, Client};
pub use error::Error;
pub use login::Login;
pub use patience::Patience;
