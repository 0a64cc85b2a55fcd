//! Trial of logs against filters, without a daemon: used by `visperf filter try` and `filter new`.
//!
//! Rule: a log is read once, from front to back, in bounded memory.

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
