//! Sources of a grid: a log, a daemon, or a file.
//!
//! Pure. Not here: reading a source (`replay`, `live`, `export::grid_file`).

use std::net::SocketAddr;

/// Source of the grid that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A log, by its name.
    Log(String),
    /// A daemon, by its address.
    Daemon(String),
    /// A saved grid, by the name of its file.
    File(String),
}

impl Source {
    /// Whether there are daemons to query.
    #[must_use]
    pub fn is_daemon(&self) -> bool {
        matches!(self, Source::Daemon(_))
    }

    /// Whether its daemon knows the user: by a local socket or by a proxy's account, but not by an address of TCP.
    #[must_use]
    pub fn is_identified(&self) -> bool {
        match self {
            Source::Daemon(address) => address.parse::<SocketAddr>().is_err(),
            Source::Log(_) | Source::File(_) => true,
        }
    }
}
