//! Where the grid comes from, and the state of that source.
//!
//! Pure. Not here: connections themselves (`live`), reading of logs (`replay`).

use super::source::Source;
use crate::feed::Status;
use wire::time::Time;

/// Source and its status.
#[derive(Clone)]
pub struct Connection {
    source: Source,
    status: Status,
    /// When the status arrived.
    updated_at: Option<Time>,
}

impl Connection {
    pub(super) fn new(source: Source) -> Connection {
        Connection { source, status: Status::Beginning, updated_at: None }
    }

    pub(super) fn set_status(&mut self, status: Status, at: Time) {
        (self.status, self.updated_at) = (status, Some(at));
    }

    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    #[must_use]
    pub fn updated_at(&self) -> Option<Time> {
        self.updated_at
    }
}
