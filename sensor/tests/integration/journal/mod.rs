//! The journal after every kind of damage to the end of a file: torn, cut, flipped, unsynced, written out of
//! order, refused.

#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod dying;
mod log;

mod ends;
mod packed;
mod power;
mod readers;
mod retention;
mod unreadable;
