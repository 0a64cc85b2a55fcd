//! The tail against real files: rotation, truncation, loss and crashes, with clock and waking in the hands
//! of the tests.

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
