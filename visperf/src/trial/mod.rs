//! Logs tried against filters, without a daemon: what `visperf filter try` and `filter new` are made of.
//!
//! Rule: a log is read once, from front to back, in memory that does not grow with it.

pub(crate) mod choice;
pub(crate) mod event;
pub(crate) mod hour_offsets;
pub(crate) mod input;
pub(crate) mod known_stamps;
pub(crate) mod line_numbers;
pub(crate) mod log;
pub(crate) mod pattern;
pub(crate) mod shape;
pub(crate) mod skeleton;
pub(crate) mod stamps;
pub(crate) mod summary;
pub(crate) mod unknown;
pub(crate) mod zones;
