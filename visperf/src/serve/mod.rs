//! Composition of the daemons: a sensor, a directory, a proxy, or a sensor and a directory behind one
//! address.
//!
//! Wiring only: their functions are in their crates. Every daemon started here answers `daemon.info`, writes
//! the address at which it answers to `STATE/listen`, and drains at the first signal.

mod accounts;
pub(crate) mod admission_status;
mod archiving;
pub(crate) mod control;
mod credentials;
pub(crate) mod discovered;
#[cfg(feature = "export")]
mod exported_days;
#[cfg(not(feature = "export"))]
#[path = "no_exported_days.rs"]
mod exported_days;
pub(crate) mod forward;
pub(crate) mod grid;
mod guest_login;
pub(crate) mod info;
pub(crate) mod inter_domain;
pub(crate) mod interfaces;
pub(crate) mod issuing;
mod job_indexing;
pub(crate) mod known_logs;
mod late_files;
pub(crate) mod lookups;
pub(crate) mod member;
pub(crate) mod overlay;
pub(crate) mod proxy;
pub(crate) mod queries;
pub(crate) mod registration;
pub(crate) mod remote_domains;
pub(crate) mod replica;
pub(crate) mod reporting;
mod retry_representative;
pub(crate) mod start_check;
pub(crate) mod state_dir;
mod state_watch;
