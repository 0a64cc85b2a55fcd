//! Monitor directory service: resolves the name of a domain to the address of its representative.
//!
//! The state is soft: a representative states its record periodically, and a record that is not renewed
//! changes from *live* to *last seen*. One to seven directories replicate the same state.
//!
//! [`registry`], [`verdict`], [`entry`] and [`oddity`] decide what is stored, [`replicate`] what a directory
//! exchanges with its peers, [`admission`] which domains are accepted (all pure). [`kept`] and [`snapshot`]
//! save the table across a restart, [`handle`] shares the table between tasks, [`methods`] answers queries,
//! [`discovery`] lists the hosts for Prometheus, [`run`] is the task that expires and saves.

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
