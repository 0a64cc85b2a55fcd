//! The flight recorder: the last seconds of all processes at the full rate in memory, and recordings of them on disk when
//! something happens.
//!
//! [`ring`] and [`trigger`] are the pure parts: what is held, and when it is kept. [`tap`] fills the ring on the sampling
//! thread, [`desk`] hears the triggers and orders and writes, `conditions` listens for it to the processes, [`store`] is the folder.
//! Not here: the form of a recording (`wire::recording`), what a user asks (`query`).

mod conditions;
pub mod config;
pub mod desk;
mod parts;
pub mod ring;
pub mod store;
pub mod tap;
pub mod trigger;
