//! Registration of a domain in a directory: the record of its representative.
//!
//! Pure. Records are merged by (term, sequence), never by clock (reliability: only its origin extends a
//! lease). A record is sent signed, with the certificate chain of its signer, as a
//! [`crate::credential::Statement`].
//! Not here: the table and its rules (`directory::registry`).

use crate::address::Address;
use crate::id::{DomainName, HostName, PeerKey};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// Kind of sensor that answers for the domain (visPerf section 3.3: "the type of the target remote sensor").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensorType {
    /// Aggregates its domain.
    Representative,
    /// Answers for its own host.
    Member,
}

impl SensorType {
    /// The type as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SensorType::Representative => "representative",
            SensorType::Member => "member",
        }
    }
}

/// Record of a domain, as its representative states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the domain.
    pub domain: DomainName,
    /// Host of the representative.
    pub host: HostName,
    /// Port of its query interface.
    pub port: u16,
    /// Kind of sensor.
    pub sensor_type: SensorType,
    /// Addresses of its query interface, as `http://HOST:PORT`, the best first.
    pub addresses: Vec<String>,
    /// Fencing term of the representative; a higher one wins.
    pub term: u64,
    /// Number of this statement within the term; a higher one wins.
    pub sequence: u64,
    /// Time when the representative made it, by its own clock; displayed, never compared.
    pub stated: Time,
    /// Address and coverage in the overlay; `None` for a representative of this process.
    pub reach: Option<Reach>,
}

/// Most overlay addresses in a record: all interfaces of a host, with some to spare.
pub const REACH_ADDRESSES_MAX: usize = 16;

/// Most hosts that a partial representative lists by name.
pub const PART_HOSTS_MAX: usize = 1000;

/// Keys and addresses of a representative in the overlay, and the hosts that it covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Root key of the domain.
    pub root: PeerKey,
    /// Key of the representative.
    pub peer: PeerKey,
    /// Addresses to dial, the best first; at most [`REACH_ADDRESSES_MAX`].
    pub addresses: Vec<Address>,
    /// Hosts that it answers for.
    pub coverage: Coverage,
}

/// Hosts of its domain that a representative answers for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coverage {
    /// All hosts that it knows.
    Whole {
        /// Number of hosts.
        hosts: u32,
    },
    /// A part: the domain is split, or a host serves only itself.
    Part {
        /// Names of the hosts that report to it; at most [`PART_HOSTS_MAX`].
        hosts: Vec<HostName>,
        /// Number of hosts; larger than the list if that was truncated.
        hosts_total: u32,
    },
}
