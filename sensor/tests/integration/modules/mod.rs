//! Running modules: real processes over a simulated sensor, correct ones and others.

#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod failing;
mod feeding;
mod handlers;
mod limited;
mod replaced;
mod rig;
mod shipped;
#[cfg(feature = "wasm")]
mod wasm;
