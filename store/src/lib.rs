//! History of metrics on disk.

mod block;
pub mod bucket;
mod bytes;
mod chunk;
mod column;
pub mod exact;
mod frame;
mod head;
mod head_log;
mod host;
pub mod mark;
mod names;
mod open;
mod packed;
pub mod plan;
pub mod query;
pub mod reader;
mod rollup;
mod segment;
pub mod tier;
pub mod tier_files;
pub mod writer;
