//! History of the host's metrics on disk: its configuration, and the thread that stores every sweep.
//!
//! Not here: the format and the queries (`store`), the method (`query::history`).

pub mod config;
pub mod worker;
