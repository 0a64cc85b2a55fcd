//! History of metrics on disk: every sample, and summaries of each minute and hour, within a limit of space.
//!
//! Samples go through [`writer::Writer`], queries through [`reader::Reader`]. Not here: what is measured, and
//! the methods that answer (`sensor`).

mod block;
pub mod bucket;
mod bucket_row;
mod bytes;
mod chunk;
mod column;
pub mod columns;
mod compaction;
pub mod copied_names;
pub mod copy;
pub mod copy_samples;
pub mod daily;
pub mod daily_copy;
pub mod exact;
pub mod exported;
mod frame;
mod frame_file;
mod head;
mod head_log;
mod host;
pub mod mark;
pub mod merge;
mod names;
mod open;
mod packed;
pub mod page;
pub mod plan;
pub mod query;
pub mod reader;
mod rollup;
mod rows;
mod segment;
pub mod tier;
pub mod tier_files;
pub mod writer;
