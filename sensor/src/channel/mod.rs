//! Channels: subscriptions of consumers to the processes, metrics, events and calls of this host, evaluated
//! here when they are due.
//!
//! Pure parts: [`fields`] lists the fields that requests can name, [`selection`] and [`predicate`] choose
//! records (selectors and the compiled filter), [`condition`] signals thresholds, and [`script`] runs what a
//! filter cannot express; [`parts`] holds these together. [`account`] is the account of a subscription, with
//! its budget ([`meter`]) and its [`queue`]. [`process_evaluation`] (with [`memory`] and [`changes`]),
//! [`host_evaluation`] and [`event_evaluation`] (with [`call_states`]) evaluate each kind, and [`outcome`] is
//! the result of one evaluation. [`subscription`] is one subscription as a whole, [`owner`] its owner,
//! [`budget`] what all may use together, and [`relay`] one subscription shared by all consumers with the same
//! request to another host.
//! Shells: [`hub`] stores all subscriptions and hands out their entries; [`scheduler`] evaluates them;
//! [`handover`] brings the process sweeps from the sampling thread, and [`pump`] the events and the sweeps
//! over the host.
//! Not here: the sweeps (`process`, `sample`), the journal (`journal`), the methods (`query`).

pub mod account;
pub mod budget;
pub mod call_states;
pub mod changes;
pub mod condition;
pub mod event_evaluation;
pub mod fields;
mod figures;
pub mod handover;
pub mod host_evaluation;
pub mod hub;
pub mod memory;
pub mod meter;
pub mod outcome;
pub mod owner;
pub mod parts;
pub mod predicate;
pub mod process_evaluation;
pub mod pump;
pub mod queue;
pub mod refusal;
pub mod relay;
pub mod scheduler;
pub mod script;
pub mod selection;
pub mod subscription;
