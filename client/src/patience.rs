//! Timeouts of an answer.
//!
//! Shell: the timers of the runtime.

use crate::error::Error;
use std::time::Duration;
use tokio::time::timeout;

/// Timeouts of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Longest time from the request to the end of its answer. Connecting is not included, and takes 60 s at
    /// most.
    pub most: Duration,
    /// Longest time without a byte of the answer.
    pub silence: Duration,
    /// Delay before the function set by [`crate::Client::on_wait`] is called; `None` never calls it.
    pub notice_after: Option<Duration>,
}

impl Patience {
    /// At most `most` in all.
    #[must_use]
    pub const fn of(most: Duration) -> Patience {
        Patience { most, silence: most, notice_after: None }
    }

    /// Wait for the next part, at most `silence`.
    pub(crate) async fn unless_silent<T>(
        &self,
        address: &str,
        what: impl Future<Output = T>,
    ) -> Result<T, Error> {
        timeout(self.silence, what).await.map_err(|_| Patience::late(address, self.silence))
    }

    /// Wait for the whole answer, at most `most`.
    pub(crate) async fn all<T>(
        &self,
        address: &str,
        what: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        timeout(self.most, what).await.unwrap_or_else(|_| Err(Patience::late(address, self.most)))
    }

    fn late(address: &str, after: Duration) -> Error {
        Error::Late { address: address.to_owned(), after }
    }
}

impl Default for Patience {
    /// 40 s: longer than the timeout of the daemon itself, 30 s.
    fn default() -> Patience {
        Patience::of(Duration::from_secs(40))
    }
}
