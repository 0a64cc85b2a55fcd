//! Copies of the newest samples: a representative fetches them from the members, and a standby from it, as minutes
//! ([`super::minutes`]).
//!
//! Pure. Rule: a block has consecutive rows of one host, with the numbers of the store that it was read from. Who
//! receives one checks what it says beside the block. Not here: the encoding of a block (`store`).

use super::Packed;
use super::minutes::NewNames;
use crate::id::HostName;
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// Samples that follow what was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Samples {
    /// Blocks of each host.
    pub hosts: Vec<HostSamples>,
    /// Nothing follows at the moment.
    pub is_end: bool,
}

/// Samples of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSamples {
    /// Host of the samples.
    pub host: HostName,
    /// Names of the numbers in the blocks.
    pub names: NewNames,
    /// Blocks, in their order.
    pub blocks: Vec<SampleBlock>,
}

/// Consecutive rows of samples, encoded by columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleBlock {
    /// Number of the row after the last one, in the store that it was read from.
    pub next: u64,
    /// Time of the last row.
    pub last: Time,
    /// Latest time of a row: not that of the last one after the clock was set back.
    pub latest: Time,
    /// Head of the block.
    pub head: Packed,
    /// Its chunks.
    pub body: Packed,
}
