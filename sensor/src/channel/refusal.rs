//! Subscription ids, and the errors of a refused or unknown subscription.
//!
//! Not here: the subscriptions (`hub`).

use super::hub::{IDLE_MAX, QUEUES_MAX_BYTES, SUBSCRIPTIONS_MAX};
use super::owner::Part;
use super::subscription;
use std::fmt;

/// Id of a subscription: drawn at random, so that no client uses another's by accident.
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
    /// The request is invalid.
    #[error(transparent)]
    Wanted(#[from] subscription::Error),
    /// Too many subscriptions.
    #[error(
        "expected at most {SUBSCRIPTIONS_MAX} subscriptions, and of one user at most half of those that others left, found as \
         many; end one, or ask again later"
    )]
    Full,
    /// No room for its queue; carries the bytes that are lacking.
    #[error(
        "expected queues of at most {QUEUES_MAX_BYTES} bytes together, and of one user at most half of what others left, found \
         {0} more; ask for a smaller queue_bytes, or end another subscription"
    )]
    Queues(u64),
    /// No such subscription.
    #[error("no subscription {0:?}; one that is not read for {IDLE_MAX:?} ends; subscribe again")]
    Unknown(String),
    /// The subscription belongs to a part of the sensor.
    #[error(
        "subscription: expected one of a caller, found one of the {}'s own; change {} instead",
        .0.as_str(),
        .0.instead()
    )]
    Own(Part),
    /// This daemon does not know which processes serve jobs.
    #[error(
        "selection: expected neither job nor call, as this daemon does not know who serves them; ask the sensor of that host"
    )]
    NoRolls,
    /// The system returned no random number.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}
