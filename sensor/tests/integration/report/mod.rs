//! Members and their representative over an in-memory connection: everything that may happen to either end or
//! between them, and what is stored in the end.

#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

pub(crate) mod rig;

mod answers;
mod away;
mod copies;
mod cursors;
mod exactly_once;
mod hostile;
mod thinning;
