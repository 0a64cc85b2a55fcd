//! Types that cross a process boundary of visperf, and their framing.
//!
//! Pure: no runtime, no file, no socket, no clock. A type here is written by one program and read by another,
//! or written to disk by one run and read by the next, so changing one changes a format: see [`version`].
//!
//! Not here: the display of values to people or scripts (`rpc` and the daemons).

#![warn(missing_docs)]

pub mod address;
pub mod api;
pub mod at_end;
pub mod backoff;
pub mod bytes;
pub mod call;
pub mod channel;
pub mod codec;
pub mod control;
pub mod credential;
pub mod entering;
pub mod event;
pub mod fault;
pub mod harmless;
pub mod id;
pub mod join;
pub mod membership;
pub mod name_match;
pub mod near_names;
pub mod process;
pub mod query;
pub mod recording;
pub mod registration;
pub mod replication;
pub mod report;
pub mod sample;
pub mod sealed;
pub mod shell;
pub mod shown;
pub mod source;
pub mod text_regex;
pub mod time;
pub mod version;
