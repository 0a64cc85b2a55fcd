//! The tail against real files: rotation, truncation, loss and crashes, with clock and waking in the hands
//! of the tests.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, unreachable_pub)]

mod rig;
#[allow(dead_code)] // The tests of the journal use more of it.
#[path = "../journal/simulated.rs"]
mod simulated;

mod cases;
mod disk;
mod losses;
mod names;
mod scripts;
mod thread;
