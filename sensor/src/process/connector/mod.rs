//! Forks, execs and exits from the kernel's process events connector: shows short-lived processes where no
//! BPF program can be loaded.
//!
//! [`message`] decodes what the kernel sends, [`tracker`] combines it; both are pure. [`listener`] is the
//! shell: a socket (connector.rst of the kernel's documentation, linux/cn_proc.h) and a thread that reads
//! `/proc` as soon as an event arrives, because the connector itself reports only ids. [`combined`] adds the
//! result to another source.
//! Rule: lost events are counted. A process that ends before the thread reads it is reported without its
//! command line.
//! Not here: sweeps (`procfs`).

pub mod combined;
pub mod listener;
pub mod message;
pub mod tracker;
