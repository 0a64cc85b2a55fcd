//! Log filters and their engine: log lines in, interaction events out.
//!
//! Pure: bytes and the time of reading are the input, events are the output. A filter is data
//! (`filters/*.toml`); the code knows no product. Not here: files (`sensor::tail`), the folder of users'
//! filters.

#![warn(missing_docs)]

pub mod across;
mod amount;
mod beginning;
pub mod calendar;
mod captures;
mod chief;
mod definition;
mod details;
mod earlier_runs;
mod ending;
pub mod engine;
pub mod error;
mod expression;
mod fields;
pub mod filter;
pub mod found;
mod implied;
pub mod job_usage;
pub mod join;
mod json;
mod lives;
mod memory;
mod namesakes;
mod operation;
mod pattern;
mod progress;
mod reason;
mod references;
pub mod registry;
mod relation;
mod reported_value;
mod sameness;
mod span;
mod steps;
pub mod test_lines;
pub mod timestamp;
mod value;
mod whole;
