//! Modules: programs of other authors that extend the sensor. Collectors return figures; handlers receive
//! entries, events and metrics (WallMon, sections 3.2 and 4.1).
//!
//! ```text
//! folder ─▶ trust, spec ─▶ worker ─▶ one task a module ─▶ runner: child (a process) · wasm (in this one)
//!                                    │                  ═ protocol: lines of JSON
//!                                    ├ feed: subscription, journal, sweeps
//!                                    ├ life: backoff, quarantine
//!                                    └ answers ─▶ board ─▶ a collector of the host's metrics
//! ```
//! Rules: a file of the host's operator names what runs, never a query; calls to one module never overlap,
//! because one task makes them one after the other; calls, answers and the resources of a process are
//! bounded. Not bounded here: how many processes a module starts, and what a process does that leaves its
//! group (docs/modules.md).
//! Not here: the answers of `sensor.modules` (`query::modules`).

pub mod child;
pub mod config;
mod debounce;
pub mod feed;
pub mod figure_cache;
mod folder;
mod key;
pub mod life;
pub mod protocol;
pub mod runner;
pub mod spec;
mod stderr;
mod task;
pub mod trust;
#[cfg(feature = "wasm")]
pub mod wasm;
pub mod worker;
