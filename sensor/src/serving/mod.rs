//! Which processes serve a call: an event's job matched with the processes of this host.
//!
//! [`named`], [`known`] and [`meant`] are the pure parts: what a process says of itself, what follows for its children, and whether that
//! is the job or call that is meant. [`read`] asks `/proc` and [`job_file`] the files that processes name; [`watch`] sees
//! newcomers on the sampling thread, `asker` asks them on a thread that can be given up, and [`roll`] keeps ready who serves what a consumer asks for.
//! Not here: calls (`log_filters::join`), samples (`recorder`), the answer (`query`).

pub(crate) mod asker;
pub mod job_file;
pub mod known;
pub mod meant;
pub mod named;
pub mod read;
pub mod roll;
pub mod watch;
