//! Flight recorder: the last seconds of all processes at the full rate, in memory, and recordings of them on
//! disk when something happens.
//!
//! [`ring`] and [`trigger`] are the pure parts: which sweeps are stored, and when they are recorded. [`tap`]
//! fills the ring on the sampling thread; [`worker`] takes triggers and orders and writes recordings, for
//! which `conditions` watches the conditions of triggers; [`store`] is the folder of recordings.
//! Not here: the format of a recording (`wire::recording`), queries (`query`).

mod conditions;
pub mod config;
mod parts;
pub mod ring;
pub mod store;
pub mod tap;
pub mod trigger;
pub mod worker;
