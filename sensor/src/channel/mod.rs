//! Channels: what consumers want of the processes of this host, evaluated here at each sweep that is due to them.
//!
//! Pure parts: [`fields`] names the numbers and texts there are, [`predicate`] is a filter made ready, [`condition`] signals,
//! [`meter`] and [`queue`] hold a subscription to its budget, [`subscription`] is one of them as a whole. [`script`] runs
//! what a filter cannot say. [`hub`] is the shell: it sees each sweep, keeps all subscriptions, and hands out what waits.
//! Not here: the sweeps (`process`), the methods (`query`).

pub mod condition;
pub mod fields;
pub mod hub;
pub mod meter;
pub mod predicate;
pub mod queue;
pub mod script;
pub mod selection;
pub mod subscription;
