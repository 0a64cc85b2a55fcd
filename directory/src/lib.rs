//! The monitor directory service: a domain's name in, where its representative answers out.
//!
//! It keeps soft state: a representative states its record again and again, and what is not stated
//! again is no longer *live* but *last seen*. One to seven directories hold the same.
//!
//! [`registry`], [`verdict`], [`entry`] and [`oddity`] decide what is held, [`replicate`] what one
//! directory among several sends and asks, [`admission`] from which peers anything is taken (all pure). [`kept`] and
//! [`snapshot`] keep the table over a restart, [`handle`] shares the one table between tasks, [`methods`] answers queries,
//! [`discovery`] gives Prometheus the hosts, [`run`] is the task that expires and saves.

pub mod admission;
pub mod admitted_file;
pub mod answers;
mod buckets;
pub mod config;
pub mod discovery;
mod ends;
pub mod entry;
pub mod handle;
mod holdings;
mod intake;
pub mod kept;
pub mod methods;
pub mod oddity;
pub mod opened;
mod peer;
pub mod registry;
pub mod replicate;
pub mod run;
pub mod service;
pub mod snapshot;
#[cfg(test)]
mod testing;
pub mod verdict;
