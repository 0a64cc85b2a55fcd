//! The monitor directory service: a domain's name in, where its representative answers out.
//!
//! It keeps soft state: a representative states its record again and again, and what is not stated
//! again is no longer *live* but *last seen*. Nothing here decides who may register (callers check).
//!
//! [`registry`] and [`oddity`] decide (pure), [`snapshot`] keeps the table over a restart, [`handle`]
//! shares the one table between tasks, [`methods`] answers queries, [`run`] is the task that expires and
//! saves.

pub mod config;
pub mod handle;
pub mod methods;
pub mod oddity;
pub mod registry;
pub mod run;
pub mod snapshot;
