//! The sensor of visperf: follows the middleware's logs, samples the host, answers queries.
//!
//! [`run`] puts it together from [`config`]; [`tail`] turns logs into events in the [`journal`], with the
//! filters that [`filters`] gives each file; [`sample`] reads the host, [`process`] every process on it, [`channel`] gives each consumer what it asked for, [`control`] obeys operators' orders to them, [`module`] runs what others wrote to tell or take more; [`report`] brings both to the
//! [`representative`], which sums a domain up; [`query`] answers from all of them.
//! Not here: the listener and the program (`visperf`).

pub mod channel;
pub mod config;
pub mod control;
pub mod filters;
pub mod journal;
mod likeness;
pub mod module;
pub mod process;
pub mod query;
pub mod recorder;
pub mod report;
pub mod representative;
pub mod run;
pub mod sample;
pub mod segments;
pub mod serving;
pub mod tail;
