//! Which processes serve a call: an event's job matched with the processes of this host.
//!
//! [`named`], [`known`] and [`meant`] are the pure parts: what a process says of itself, what follows for its children, and whether that
//! is the job or call somebody means. [`read`] asks `/proc`, [`watch`] is told of newcomers on the sampling thread and asks them
//! beside it, and [`roll`] keeps ready who serves what a consumer asks for.
//! Not here: calls (`log_filters::join`), samples (`recorder`), the answer (`query`).

pub mod known;
pub mod meant;
pub mod named;
pub mod read;
pub mod roll;
pub mod watch;
