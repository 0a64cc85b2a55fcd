//! Modules: collectors that give figures and handlers that take what flows, written by others (WallMon, sections 3.2 and 4.1).
//!
//! ```text
//! folder ─▶ trust, spec ─▶ desk ─▶ one task a module ─▶ runner: child (a process) · wasm (in this one) ═ protocol: lines of JSON
//!                                    │ feed: subscription, journal, sweeps    │ answers
//!                                    └ life: backoff, quarantine              └▶ board ─▶ a collector of the host's figures
//! ```
//! Rules: what runs is named by a file of the host's operator, never by a query; calls into one module never overlap, for one
//! task makes them one after the other; a call, an answer and what a process may take are bounded. Not bounded here: how many processes
//! a module starts, and what one does that leaves its group (docs/modules.md).
//! Not here: the answers of `sensor.modules` (`query::modules`).

pub mod board;
pub mod child;
pub mod config;
pub mod desk;
mod doubt;
pub mod feed;
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
