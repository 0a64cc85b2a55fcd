//! Modules as they run: real processes over a made-up sensor, honest ones and others.

#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub, dead_code)]

#[path = "../report/rig.rs"]
mod report;
#[path = "../journal/simulated.rs"]
mod simulated;

mod failing;
mod feeding;
mod handlers;
mod limited;
mod replaced;
mod rig;
mod shipped;
#[cfg(feature = "wasm")]
mod wasm;
