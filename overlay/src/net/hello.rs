//! Hello: the first message on a connection, and the admission that decides on it.
//!
//! ```text
//! opener ── Hello { version, start, program, proof, time } ──▶
//!        ◀── Verdict: Welcome, or Refused with the reason ──
//! ```
//!
//! Each side opens one on every new connection, and repeats it until it is welcomed, when its clock or its
//! certificate changed, and at least every six hours, so that the other side knows its time. Not here:
//! certificates (`identity`), which [`Admission`] reads.

use crate::identity::admission::Principal;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use wire::at_end::AtEnd;
use wire::id::PeerKey;
use wire::time::Time;

/// Version of the exchange; a peer of a version that is not read is refused with a reason.
pub const VERSION: u16 = wire::version::HELLO.written;

/// The hello itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`] of the sender.
    pub version: u16,
    /// Random number of the process: a different number means that the peer was restarted, so older
    /// connections are dead.
    pub start: u64,
    /// Program and version, for people.
    pub program: String,
    /// Certificate chain, from [`Admission::proof`].
    pub proof: Vec<u8>,
    /// Wall clock of the sender; `None` from a version that sends none.
    pub time: AtEnd<Time>,
}

/// Answer to a hello, and to the opening of a lasting stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    Welcome,
    /// Refused, with the reason.
    Refused(String),
}

/// Decides which peers are admitted, and what they may open.
pub trait Admission: Send + Sync + 'static {
    /// What this daemon shows of itself: its certificate chain.
    fn proof(&self) -> Vec<u8>;

    /// The principal of `peer`, from the `proof` that it shows.
    ///
    /// # Errors
    /// The reason for the refusal, as the peer will receive it.
    fn admit(&self, peer: PeerKey, proof: &[u8]) -> Result<Arc<Principal>, String>;

    /// `peer`, which shows `proof`, sent its `time`; called whether it is admitted or not.
    fn note_time(&self, peer: PeerKey, proof: &[u8], time: Time) {
        let _ = (peer, proof, time);
    }

    /// Whether an earlier admission still holds: not expired, and not revoked since.
    ///
    /// # Errors
    /// The reason why it no longer holds.
    fn review(&self, principal: &Principal) -> Result<(), String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hello of version 1 before it sent a time.
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
