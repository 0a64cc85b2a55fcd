//! Channels: what consumers want of what flows at this host, evaluated here when it is due to them.
//!
//! Pure parts: [`fields`] names the numbers and texts there are, [`selection`] who is meant, [`predicate`] is a filter made ready,
//! [`condition`] signals, [`parts`] is these with a script, [`account`] what every subscription has, held to its budget by [`meter`] and
//! [`queue`]. [`of_processes`] with [`memory`] and [`changes`], [`of_host`], and [`of_happenings`] with [`standings`] are what the
//! kinds tell, [`subscription`] is one as a whole, [`relay`] one for all who want the same of another host.
//! [`script`] runs what a filter cannot say, [`outcome`] is what one evaluation comes to, [`owner`] whose a subscription is, [`budget`]
//! what all may use together. [`hub`] is the shell: it keeps all subscriptions and hands out what waits; [`evaluating`] shows them what
//! flows; [`handover`] brings the sweeps from the sampling thread, and [`pump`] the rest.
//! Not here: the sweeps (`process`, `sample`), the journal (`journal`), the methods (`query`).

pub mod account;
pub mod budget;
pub mod changes;
pub mod condition;
pub mod evaluating;
pub mod fields;
mod figures;
pub mod handover;
pub mod hub;
pub mod memory;
pub mod meter;
pub mod of_happenings;
pub mod of_host;
pub mod of_processes;
pub mod outcome;
pub mod owner;
pub mod parts;
pub mod predicate;
pub mod pump;
pub mod queue;
pub mod refusal;
pub mod relay;
pub mod script;
pub mod selection;
pub mod standings;
pub mod subscription;
