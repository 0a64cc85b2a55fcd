//! What a directory keeps of a domain: where its representative is, and how long that holds.
//!
//! Pure. Merged by (term, sequence), never by clock (reliability: a lease is extended only by its origin).
//! It travels signed, with why to believe its signer, as a [`crate::credential::Statement`].
//! Not here: the table and its rules (`directory::registry`).

use crate::address::Address;
use crate::id::{DomainName, HostName, PeerKey};
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
    /// When the representative made it, by its own clock; shown, never compared.
    pub stated: Time,
    /// Where it answers in the overlay; none if it is known to this process alone.
    pub reach: Option<Reach>,
}

/// Most overlay addresses in a record: every interface of a host with some to spare.
pub const REACH_ADDRESSES_MAX: usize = 16;

/// Most hosts that a partial representative lists by name.
pub const PART_HOSTS_MAX: usize = 1000;

/// Where a representative answers in the overlay, and for which hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// The domain's root key.
    pub root: PeerKey,
    /// The representative's key.
    pub peer: PeerKey,
    /// Where to dial it, the best first; at most [`REACH_ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
    /// Which hosts it answers for.
    pub coverage: Coverage,
}

/// Which of its domain's hosts a representative answers for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coverage {
    /// All it knows of.
    Whole {
        /// How many.
        hosts: u32,
    },
    /// A part: the domain is split, or a host serves itself.
    Part {
        /// Those that report to it, by name; at most [`PART_HOSTS_MAX`].
        hosts: Vec<HostName>,
        /// How many it reports for; more than are named where the list was cut.
        hosts_total: u32,
    },
}
