//! The number of a subscription, and why one is refused or not found.
//!
//! Not here: the subscriptions (`hub`).

use super::hub::{IDLE_MAX, QUEUES_MAX_BYTES, SUBSCRIPTIONS_MAX};
use super::owner::Part;
use super::subscription;
use std::fmt;

/// Which subscription: drawn at random, so that no one takes another's by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(super) u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for Id {
    type Err = Error;

    fn from_str(text: &str) -> Result<Id, Error> {
        let number = (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(Id).ok_or_else(|| Error::Unknown(text.chars().take(32).collect()))
    }
}

/// Why a subscription is refused or not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be made.
    #[error(transparent)]
    Wanted(#[from] subscription::Error),
    /// There are too many.
    #[error(
        "expected at most {SUBSCRIPTIONS_MAX} subscriptions, and of one user at most half of those that others left, found as \
         many; end one, or ask again later"
    )]
    Full,
    /// There is no room for its queue.
    #[error(
        "expected queues of at most {QUEUES_MAX_BYTES} bytes together, and of one user at most half of what others left, found \
         {0} more; ask for a smaller queue_bytes, or end another subscription"
    )]
    Queues(u64),
    /// There is none.
    #[error("no subscription {0:?}; one that is not read for {IDLE_MAX:?} ends; subscribe again")]
    Unknown(String),
    /// It is the sensor's own.
    #[error(
        "subscription: expected one of a caller, found one of the {}'s own; change {} instead",
        .0.as_str(),
        .0.instead()
    )]
    Own(Part),
    /// No one here knows who serves jobs.
    #[error(
        "selection: expected neither job nor call, as this daemon does not know who serves them; ask the sensor of that host"
    )]
    NoRolls,
    /// No number could be drawn.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}
