//! What a sensor answers: the methods `sensor.*` and `domain.*` (`docs/methods.md`).
//!
//! Each file declares its methods and answers them from what the tail, the sampler and the journal have
//! published; none waits for another but `sensor.events` and `sensor.take` with `wait`.
//! Not here: how a call arrives and how values are written (`rpc`).

mod call_page;
pub mod call_processes;
pub mod calls;
pub mod channels;
pub(crate) mod chosen;
pub mod control;
pub mod declared;
pub mod domain;
pub mod domain_events;
pub mod domain_metrics;
pub mod events;
pub mod files;
mod found;
pub mod metrics;
pub mod modules;
pub mod past_processes;
pub mod processes;
pub mod recordings;
mod samples;
