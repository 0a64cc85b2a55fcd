//! Channels: what consumers want of the processes of this host, evaluated here at each sweep that is due to them.
//!
//! Pure parts: [`changes`] is what a consumer knows that wants no more than them, [`fields`] names the numbers and texts there are, [`predicate`] is a filter made ready, [`condition`] signals,
//! [`meter`] and [`queue`] hold a subscription to its budget, [`subscription`] is one of them as a whole, [`relay`] one for all who want the
//! same of another host. [`script`] runs
//! what a filter cannot say. [`hub`] is the shell: it sees each sweep, keeps all subscriptions, and hands out what waits.
//! Not here: the sweeps (`process`), the methods (`query`).

pub mod changes;
pub mod condition;
pub mod fields;
pub mod hub;
pub mod meter;
pub mod predicate;
pub mod queue;
pub mod relay;
pub mod script;
pub mod selection;
pub mod subscription;
