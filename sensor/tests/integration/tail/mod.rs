//! The tail on real files: rotation, truncation, loss and crashes; the tests control the clock and the
//! wakeups.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, unreachable_pub)]

mod rig;

mod across;
mod awaited;
mod changed;
mod clocks;
mod confined;
mod disk;
mod filters;
mod gone;
mod losses;
mod names;
mod places;
mod records;
mod rights;
mod rotation;
mod scripts;
mod starts;
mod thread;
mod truncation;
mod watches;
