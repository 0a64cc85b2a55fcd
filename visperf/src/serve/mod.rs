//! Composition of the daemons: a sensor, a directory, a proxy, or a sensor and a directory behind one
//! address.
//!
//! Wiring only: their functions are in their crates. Every daemon started here answers `daemon.info`, writes
//! the address at which it answers to `STATE/listen`, and drains at the first signal.

mod accounts;
pub(crate) mod between;
pub(crate) mod control;
pub(crate) mod discovered;
pub(crate) mod elsewhere;
mod entering;
mod following;
pub(crate) mod gateway;
pub(crate) mod grid;
pub(crate) mod info;
pub(crate) mod interfaces;
pub(crate) mod issuing;
pub(crate) mod known_logs;
mod late_files;
pub(crate) mod lookups;
pub(crate) mod member;
pub(crate) mod others;
pub(crate) mod overlay;
pub(crate) mod queries;
pub(crate) mod registration;
pub(crate) mod replica;
pub(crate) mod reporting;
pub(crate) mod start_check;
pub(crate) mod state_dir;
mod state_watch;
pub(crate) mod welcome;
