//! What a directory keeps of a domain: where its representative is, and how long that holds.
//!
//! Pure. Merged by (term, sequence), never by clock (reliability: a lease is extended only by its origin).
//! Not here: the table and its rules (`directory::registry`).

use crate::id::{DomainName, HostName};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// What kind of sensor answers for the domain (visPerf section 3.3: "the type of the target remote sensor").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensorType {
    /// Aggregates its domain.
    Representative,
    /// Answers for its own host.
    Member,
}

impl SensorType {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SensorType::Representative => "representative",
            SensorType::Member => "member",
        }
    }
}

/// One domain's record, as its representative states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The domain.
    pub domain: DomainName,
    /// The representative's host.
    pub host: HostName,
    /// The port of its query interface.
    pub port: u16,
    /// What kind of sensor it is.
    pub sensor_type: SensorType,
    /// Every address it answers on, as `http://HOST:PORT`, the best first.
    pub addresses: Vec<String>,
    /// Fencing term of the representative; a higher one wins.
    pub term: u64,
    /// Number of this statement within the term; a higher one wins.
    pub sequence: u64,
    /// When the representative made it, by its own clock; told, never compared.
    pub stated: Time,
}
