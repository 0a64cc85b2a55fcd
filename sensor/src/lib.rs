//! The sensor of visperf: follows the middleware's logs, samples the host, answers queries.
//!
//! [`run`] builds it from [`config`]. [`tail`] turns logs into events in the [`journal`], with the filters
//! that [`filters`] chooses for each file. [`sample`] reads the host and [`process`] every process on it.
//! [`channel`] evaluates consumers' subscriptions, [`control`] executes operators' commands on processes, and
//! [`module`] runs the site's modules that collect or receive more. [`job_usage`] measures what jobs use. [`report`] sends events and samples to
//! the [`representative`], which aggregates a domain. [`query`] answers from all of them.
//! Not here: the listener and the program (`visperf`).

pub mod archive;
pub mod call_history;
mod call_ids;
pub mod channel;
pub mod config;
pub mod control;
pub mod filters;
pub mod findings;
pub mod history;
pub mod job_series;
pub mod job_sums;
pub mod job_usage;
pub mod journal;
pub mod module;
mod own_log;
pub mod process;
pub mod process_history;
pub mod query;
pub mod recorder;
pub mod report;
pub mod representative;
pub mod run;
pub mod sample;
pub mod segments;
pub mod serving;
pub mod tail;
