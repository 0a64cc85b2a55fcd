//! Monitor directory service: resolves the name of a domain to the address of its representative.
//!
//! The state is soft: a representative states its record periodically, and a record that is not renewed
//! changes from *live* to *last seen*. One to seven directories replicate the same state.
//!
//! [`registry`] and [`sanity_check`] decide what is stored, [`replicate`] what a directory
//! exchanges with its peers, [`admission`] which domains are accepted (all pure). [`stored_domain`] and [`snapshot`]
//! save the table across a restart, [`handle`] shares the table between tasks, [`methods`] answers queries,
//! [`discovery`] lists the hosts for Prometheus, [`run`] is the task that expires and saves. [`job_index`] has the ended jobs of
//! all domains.

pub mod admission;
pub mod admitted_file;
pub mod answers;
mod buckets;
pub mod config;
pub mod discovery;
pub mod faults;
pub mod handle;
mod intake;
pub mod job_index;
pub mod methods;
pub mod opened;
mod peer;
pub mod registry;
mod replica_view;
pub mod replicate;
pub mod run;
pub mod sanity_check;
pub mod service;
pub mod snapshot;
pub mod stored_domain;
#[cfg(test)]
mod testing;
