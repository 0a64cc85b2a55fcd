//! Ended calls in a database on disk: stored within a limit of space, and found by time, user, host, name, job
//! and outcome.
//!
//! Shell over SQLite, which no other crate names. Rules: a call is one row, replaced when more is known of it; its
//! id may be used again by a later call, which is another row. A query reads a bounded number of rows, whatever is
//! asked. Without queries nothing is open but the writer, and that only once there was something to store.
//! A directory has another database: [`job_index`], of the jobs of all domains.
//! Not here: how events become calls (`log_filters::join`), calls that have not ended.

#![warn(missing_docs)]

mod amounts;
pub mod answer;
mod completing;
mod copy;
mod database;
mod filter;
pub mod importing;
pub mod job_index;
mod keeping;
mod row;
pub mod store;
