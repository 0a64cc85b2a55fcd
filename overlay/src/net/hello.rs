//! What two daemons say first, and who decides whether that is enough.
//!
//! ```text
//! opener ── Hello { version, start, program, proof, time } ──▶
//!        ◀── Verdict: Welcome, or Refused with the reason ──
//! ```
//!
//! Each side opens one on every new connection, another when its clock was set, and one at least every six hours, so
//! that the other knows its time. Not here: certificates (`identity`), which [`Admission`]
//! reads.

use crate::identity::admission::Principal;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wire::at_end::AtEnd;
use wire::id::PeerKey;
use wire::time::Time;

/// Version of the exchanges; a peer of another is refused in words.
pub const VERSION: u16 = wire::version::HELLO.written;

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
    /// What its calendar says; of a version that sends none, none.
    pub time: AtEnd<Time>,
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

    /// `peer`, which shows `proof`, says that it is `time`; whether it is let in or not.
    fn note_time(&self, peer: PeerKey, proof: &[u8], time: Time) {
        let _ = (peer, proof, time);
    }

    /// Whether what was admitted earlier still holds: not expired, not revoked since.
    ///
    /// # Errors
    /// Why it no longer does.
    fn review(&self, principal: &Principal) -> Result<(), String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As version 1 had it before it sent a time.
    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Older {
        version: u16,
        start: u64,
        program: String,
        proof: Vec<u8>,
    }

    #[test]
    fn a_hello_is_read_by_an_older_version_and_the_other_way_round() {
        let older = || Older { version: 1, start: 7, program: "visperf".to_owned(), proof: vec![1, 2] };
        let time = AtEnd(Some(Time::from_micros(1_795_240_800_000_000)));
        let Older { version, start, program, proof } = older();
        let hello = Hello { version, start, program, proof, time };
        let mut frame = Vec::new();
        wire::codec::encode(&hello, &mut frame).expect("short");
        assert_eq!(wire::codec::decode::<Older>(&frame).expect("read"), Some((older(), frame.len())));
        assert_eq!(wire::codec::decode::<Hello>(&frame).expect("read"), Some((hello.clone(), frame.len())));
        frame.clear();
        wire::codec::encode(&older(), &mut frame).expect("short");
        let untimed = Hello { time: AtEnd(None), ..hello };
        assert_eq!(wire::codec::decode::<Hello>(&frame).expect("read"), Some((untimed, frame.len())));
    }
}
