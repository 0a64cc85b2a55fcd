//! Copies of stored calls: a standby fetches those of its representative.
//!
//! ```text
//! standby                                representative
//!   FetchCalls: how far it has copied →
//!                                     ←   Calls: those that follow, and whether these are all
//! ```
//! Pure. A store gives each version of a call a larger key, so a copy continues after the last key that it has.
//! A sensor sends these frames only to one that has said that it knows them.
//! Not here: what is done with a call that is stored already (`call_store`).

use super::StoreKey;
use crate::call::StoredCall;
use serde::{Deserialize, Serialize};

/// Most stores of a fetch: representatives that the standby has copied from.
pub const POSITIONS_MAX: usize = 64;

/// How far the calls of a store are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPosition {
    /// Store that was copied.
    pub store: StoreKey,
    /// Key of the last call.
    pub key: u64,
}

/// Request for calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchCalls {
    /// How far stores are copied; all calls of another store are requested.
    pub held: Vec<CallPosition>,
    /// Approximate length of the answer, in bytes.
    pub len_bytes: u32,
}

/// Calls that follow those that were copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Where they end: the position of the next request.
    pub position: CallPosition,
    /// The calls, by their keys.
    pub calls: Vec<StoredCall>,
    /// Nothing follows at the moment.
    pub is_end: bool,
}

impl Calls {
    /// The answer of a store without any call: nothing follows, at no position.
    #[must_use]
    pub fn nothing() -> Calls {
        let position = CallPosition { store: StoreKey::default(), key: 0 };
        Calls { position, calls: Vec::new(), is_end: true }
    }
}
