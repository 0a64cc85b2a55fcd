//! Members and their representative over a wire in memory: everything that may happen to either end or
//! between them, and what is stored in the end.

#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub, dead_code)]

mod rig;
#[path = "../journal/simulated.rs"]
mod simulated;

mod answers;
mod away;
mod cursors;
mod exactly_once;
mod hostile;
mod thinning;
