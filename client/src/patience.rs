//! How long an answer is waited for.
//!
//! Shell: the timers of the runtime.

use crate::error::Error;
use std::time::Duration;
use tokio::time::timeout;

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest time from the request to the end of its answer. Connecting comes before it, and takes 60 s at most.
    pub most: Duration,
    /// The longest time in which nothing of the answer comes.
    pub silence: Duration,
    /// After how long the function set by [`crate::Client::on_wait`] is called; never where there is no value.
    pub notice_after: Option<Duration>,
}

impl Patience {
    /// At most so long in all.
    #[must_use]
    pub const fn of(most: Duration) -> Patience {
        Patience { most, silence: most, notice_after: None }
    }

    /// The next thing that comes, unless it takes longer than `silence`.
    pub(crate) async fn unless_silent<T>(
        &self,
        address: &str,
        what: impl Future<Output = T>,
    ) -> Result<T, Error> {
        timeout(self.silence, what).await.map_err(|_| Patience::late(address, self.silence))
    }

    /// All of it, unless it takes longer than `most`.
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
    /// 40 s: a daemon gives up after 30 s itself.
    fn default() -> Patience {
        Patience::of(Duration::from_secs(40))
    }
}
