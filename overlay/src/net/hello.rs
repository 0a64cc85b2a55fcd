//! What two daemons say first, and who decides whether that is enough.
//!
//! ```text
//! opener ── Hello { version, start, program, proof } ──▶
//!        ◀── Verdict: Welcome, or Refused with the reason ──
//! ```
//!
//! Each side opens one on every new connection. Not here: certificates (`identity`), which [`Admission`]
//! reads.

use crate::identity::admission::Principal;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wire::id::PeerKey;

/// Version of the exchanges; a peer of another is refused in words.
pub const VERSION: u16 = 1;

/// What a daemon says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`] of the speaker.
    pub version: u16,
    /// Drawn at its start: another number means that the process was started again, so older connections
    /// are dead.
    pub start: u64,
    /// Program and version, for people.
    pub program: String,
    /// Its certificate chain, as [`Admission`] wrote it.
    pub proof: Vec<u8>,
}

/// What is said to that, and to whoever opens a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Go on.
    Welcome,
    /// No, and why.
    Refused(String),
}

/// Decides who a peer is and what it may open.
pub trait Admission: Send + Sync + 'static {
    /// What this daemon shows.
    fn proof(&self) -> Vec<u8>;

    /// Who `peer` is, by what it shows.
    ///
    /// # Errors
    /// Why it is refused, as it will be told.
    fn admit(&self, peer: PeerKey, proof: &[u8]) -> Result<Arc<Principal>, String>;

    /// Whether what was admitted earlier still holds: not expired, not revoked since.
    ///
    /// # Errors
    /// Why it no longer does.
    fn review(&self, principal: &Principal) -> Result<(), String>;
}
