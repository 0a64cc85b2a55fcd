//! Methods of a sensor: `sensor.*` and `domain.*` (`docs/methods.md`).
//!
//! Each file declares its methods and answers them from data that the tail, the sampler and the journal have
//! published. Only `sensor.events`, `domain.events` and `sensor.take` wait for new data, if called with
//! `wait`.
//! Not here: how a call arrives and how values are encoded (`rpc`).

pub mod archive;
mod block_query;
mod call_page;
pub mod call_processes;
pub mod calls;
pub mod channels;
pub mod control;
pub mod declared;
pub mod domain;
pub mod domain_events;
pub mod domain_history;
pub mod domain_metrics;
mod encoded_events;
mod event_query;
pub mod events;
mod exported_minutes;
pub mod files;
pub mod history;
mod history_answer;
mod history_cursor;
mod job_import;
mod job_index;
mod job_measurements;
mod job_report;
mod job_search;
pub mod job_series;
mod jobs;
pub mod metrics;
pub mod modules;
mod past;
pub mod past_processes;
pub mod process_history;
pub mod processes;
pub mod recordings;
mod samples;
