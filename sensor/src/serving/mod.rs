//! Which processes serve a call: matches an event's job with the processes of this host.
//!
//! [`job_names`], [`job_table`] and [`job_matcher`] are the pure parts: which job a process names, what
//! follows for its children, and whether that job matches a query. [`read`] reads `/proc` and [`job_file`]
//! the files that processes name. [`watch`] detects new processes on the sampling thread, `job_reader` reads
//! them on threads that can be abandoned (`reader_threads`), and [`roster`] caches which processes match a consumer's request.
//! Not here: calls (`log_filters::join`), samples (`recorder`), the results (`query`).

pub mod job_file;
pub mod job_matcher;
pub mod job_names;
pub(crate) mod job_reader;
pub mod job_table;
pub mod read;
mod reader_threads;
pub mod roster;
pub mod watch;
