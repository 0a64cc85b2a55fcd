//! Forks, execs and exits as the kernel's process events connector tells them: how short lives are seen where no program
//! may be loaded into the kernel.
//!
//! [`message`] is what the kernel sends, [`stories`] what it adds up to; both are pure. [`listener`] is the shell: a socket
//! (connector.rst of the kernel's documentation, linux/cn_proc.h) and a thread that looks into `/proc` the moment something
//! is told, for the connector itself tells numbers only. [`heard`] adds it to a way of reading.
//! Rule: what was told and not received is counted. What ends before it is looked at is told without its command.
//! Not here: sweeps (`procfs`).

pub mod heard;
pub mod listener;
pub mod message;
pub mod stories;
