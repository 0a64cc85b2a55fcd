//! History on disk: the thread that stores every sweep of the host, and the one that stores copies of the minutes
//! of the domain's hosts.
//!
//! Not here: the format and the queries (`store`), the method (`query::history`).

pub mod copied;
pub mod copies;
pub mod exported;
pub(crate) mod failure;
pub mod handle;
pub mod sweeps;
pub(crate) mod writing;
