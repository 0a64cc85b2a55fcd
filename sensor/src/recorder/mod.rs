//! The flight recorder: the last seconds of all processes at the full rate in memory, and recordings of them on disk when
//! something happens.
//!
//! [`ring`] and [`trigger`] are the pure parts: what is held, and when it is kept.
//! Not here: the form of a recording (`wire::recording`), what a user asks (`query`).

pub mod config;
pub mod ring;
pub mod trigger;
