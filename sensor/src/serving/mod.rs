//! Which processes serve a call: an event's job matched with the processes of this host.
//!
//! [`named`] and [`known`] are the pure parts: what a process says of itself, and what follows for its children. [`read`] asks
//! `/proc`, [`watch`] is told of newcomers on the sampling thread and asks them beside it.
//! Not here: calls (`log_filters::join`), samples (`recorder`), the answer (`query`).

pub mod known;
pub mod named;
pub mod read;
pub mod watch;
