//! Messages between the sensors of one domain on `/visperf/control/1`: the members, the representative, and
//! suspected failures.
//!
//! Pure. Every message is one frame of [`crate::codec`] on a one-way stream; each side has its own. The
//! exchange, in the order in which a sensor takes part in it:
//!
//! ```text
//! any link      Heartbeat  ⇄  Heartbeat      each 400 ms; the first ones carry `about`, until known
//! to a stray    Redirect   →                 the representative's address
//! from the rep  Heartbeat{reign}, Members →  its claim; the changes of the member table
//! suspicion     Question   →  ← Answer       "did you lose it too?"
//! clean stop    Resign or Leave →
//! healing       Yield      →                 the lower claim gives way and transfers its table
//! ```
//!
//! A promotion is announced by a heartbeat with its reign, sent at once. Not here: the rules
//! (`overlay::election`), certificates and the proof of addresses (`overlay`'s hello).

use crate::id::{HostName, PeerKey};
use compact_str::CompactString;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Longest control message, in bytes: a table of 1,024 members with the longest names and addresses.
pub const MESSAGE_LEN_MAX_BYTES: usize = 2 << 20;

/// Most addresses of one member: a few interfaces, both families. The sender truncates more.
pub const ADDRESSES_MAX: usize = 4;

/// Longest address, in bytes: a name of [`crate::id::NAME_LEN_MAX_BYTES`] within a multiaddress.
pub const ADDRESS_LEN_MAX_BYTES: usize = 320;

/// Bits of a term that are the mark of its holder.
const MARK_BITS: u32 = 20;

/// Fencing term of a representative: a round number, with a mark of the holder in the low bits. A higher one
/// wins.
///
/// The mark (20 bits of the hash of domain and key) makes the terms that two halves of a split domain reach
/// in the same round different, so a directory never has one term with two contents. Terms stay below 2^53
/// for 8 billion rounds, so every client represents them exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

impl Term {
    /// Lower than every term.
    pub const NONE: Term = Term(0);

    /// Number of the promotions before, as far as the holder knew.
    #[must_use]
    pub const fn round(self) -> u64 {
        self.0 >> MARK_BITS
    }

    /// The lowest term of the next round, for the holder with this mark.
    #[must_use]
    pub const fn next_for(self, mark: u32) -> Term {
        Term((self.round().saturating_add(1) << MARK_BITS) | (mark as u64 & ((1 << MARK_BITS) - 1)))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Claim to represent the domain under a term. Claims are ordered: the greater one wins; equal terms (two
/// keys with one mark) are ordered by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Fencing term of the claim.
    pub term: Term,
    /// Key of the claimant.
    pub holder: PeerKey,
}

/// Liveness of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Heard recently.
    Alive,
    /// Not heard for a while.
    Suspect,
    /// Not heard for so long that it counts as gone; it is still dialled.
    Dead,
    /// It announced that it leaves.
    Left,
}

impl State {
    /// The state as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Alive => "alive",
            State::Suspect => "suspect",
            State::Dead => "dead",
            State::Left => "left",
        }
    }
}

/// One sensor of the domain, as it is sent to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Key of the sensor.
    pub key: PeerKey,
    /// Number of its starts, which identifies this run.
    pub incarnation: u64,
    /// Liveness of the sensor.
    pub state: State,
    /// Host of the sensor.
    pub host: HostName,
    /// Whether its certificate lets it represent the domain. Not verified until it is connected.
    pub may_represent: bool,
    /// Priority set by the operator: the highest represents.
    pub priority: u8,
    /// Addresses to dial, as multiaddresses, the best first; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<CompactString>,
}

impl Member {
    /// Whether its lengths are within the limits.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.addresses.len() <= ADDRESSES_MAX
            && self.addresses.iter().all(|address| address.len() <= ADDRESS_LEN_MAX_BYTES)
    }
}

/// Load of a host; included in every heartbeat, so the representative's table is half a second old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Load average over one minute, in thousandths.
    pub load1_milli: u32,
    /// Processors in use, in thousandths of all.
    pub cpu_permille: u16,
    /// Memory in use, in thousandths of all.
    pub memory_permille: u16,
    /// Number of the sensor's parts that report a problem (a full disk, a collector that fails).
    pub complaints: u16,
}

/// Version of the representative's table that a member has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableVersion {
    /// Term under which it was sent; [`Term::NONE`] without a table.
    pub term: Term,
    /// Number of the last change in it.
    pub version: u64,
}

/// The sender's view of the domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The claim it accepts, the highest so far.
    pub claim: Option<Claim>,
    /// Whether it lost the claimant.
    pub lost: bool,
    /// The highest term it knows, accepted or not: it accepts no new claim below it.
    pub floor: Term,
    /// How many sensors that representative reported to cover.
    pub covered: u16,
    /// Version of its member table.
    pub held: TableVersion,
}

/// Status of a representative, sent by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reign {
    /// Fencing term of its claim.
    pub term: Term,
    /// Standbys in the order of succession; at most two.
    pub standbys: Vec<PeerKey>,
    /// Number of sensors that it hears and that accept it, including itself.
    pub covered: u16,
    /// Number of the last change of its table.
    pub version: u64,
    /// Hash of that table.
    pub digest: u64,
}

/// Keepalive of the sender, with its view of the domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Number of the heartbeat on this link: a gap shows loss, and an older one is ignored.
    pub sequence: u64,
    /// Number of the sender's starts.
    pub incarnation: u64,
    /// Number of the last heartbeat received from the receiver on this link; 0 for none.
    pub echo: u64,
    /// Time since that heartbeat in milliseconds; `None` if there is none.
    pub heard_ms: Option<u32>,
    /// Factor of its timers, because it is slow or loses messages: 1 to 8.
    pub stretch: u8,
    /// Whether it may become the representative now.
    pub may_stand: bool,
    /// Whether it wants to keep this link open.
    pub wanted: bool,
    /// Load of its host.
    pub load: Load,
    /// Its view of the domain.
    pub view: View,
    /// Its claim, if it is the receiver's representative.
    pub reign: Option<Reign>,
    /// Number of starts of the receiver that it knows; 0 for none.
    pub knows: u64,
    /// Data of the sender, until the receiver has them.
    pub about: Option<Box<Member>>,
}

/// Changes of the representative's member table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// Fencing term of the representative.
    pub term: Term,
    /// Version to which these changes apply; `None`: these are the whole table.
    pub since: Option<TableVersion>,
    /// Number of the last change.
    pub version: u64,
    /// Members, each with the number of its last change.
    pub members: Vec<(u64, Member)>,
    /// For members that are not alive, the seconds since they were last heard. Earlier versions do not send
    /// it.
    #[serde(deserialize_with = "last_or_none")]
    pub silent: Vec<(PeerKey, u32)>,
}

/// Last field of a message: empty if the message ends before it.
fn last_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(PeerKey, u32)>, D::Error> {
    Ok(Vec::deserialize(deserializer).unwrap_or_default())
}

/// Question whether the receiver has lost this representative, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Number of the question at the sender.
    pub number: u64,
    /// The representative's claim; `None` asks for any representative.
    pub claim: Option<Claim>,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the question.
    pub number: u64,
    /// Whether the sender lost it, or knows none.
    pub lost: bool,
    /// The sender's view, for a representative that checks whether it still is one.
    pub view: View,
    /// The best candidate that it hears, including itself, so that sensors that do not yet know each other
    /// agree.
    pub best: Option<Box<Member>>,
}

/// A message of `/visperf/control/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Keepalive.
    Heartbeat(Heartbeat),
    /// The member table changed.
    Members(Members),
    /// Question about a lost representative.
    Question(Question),
    /// Answer to a question.
    Answer(Answer),
    /// Another sensor represents the domain.
    Redirect {
        /// Claim of that sensor.
        claim: Claim,
        /// Key and addresses of that sensor.
        holder: Box<Member>,
    },
    /// The sender resigns as the representative.
    Resign {
        /// Claim that ends.
        claim: Claim,
        /// Suggested successor, if it knows one.
        to: Option<PeerKey>,
    },
    /// The sender leaves the domain's sensors (a clean stop).
    Leave {
        /// Number of starts of the run that ends.
        incarnation: u64,
    },
    /// The sender yields to the receiver's claim, and transfers its member table.
    Yield {
        /// The claim that ended.
        claim: Claim,
        /// Its member table.
        members: Vec<Member>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_round_beats_every_mark_of_an_earlier_one() {
        let first = Term::NONE.next_for(u32::MAX);
        let second = first.next_for(0);
        assert!(Term::NONE < first && first < second);
        assert_eq!((first.round(), second.round()), (1, 2));
        assert_ne!(first.next_for(7), first.next_for(8));
    }

    #[test]
    fn a_table_of_the_version_before_is_read_and_that_version_reads_ours() {
        /// Without the field that was added.
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Former {
            term: Term,
            since: Option<TableVersion>,
            version: u64,
            members: Vec<(u64, Member)>,
        }
        let former = Former { term: Term(5), since: None, version: 7, members: Vec::new() };
        let read: Members = postcard::from_bytes(&postcard::to_stdvec(&former).unwrap()).unwrap();
        assert_eq!((read.version, &read.silent), (7, &Vec::new()));
        let ours = Members { silent: vec![(PeerKey([7; 32]), 3600)], ..read };
        let bytes = postcard::to_stdvec(&ours).unwrap();
        assert_eq!(postcard::from_bytes::<Former>(&bytes).unwrap(), former);
        assert_eq!(postcard::from_bytes::<Members>(&bytes).unwrap(), ours);
    }

    #[test]
    fn a_heartbeat_is_small() {
        let key = PeerKey([7; 32]);
        let claim = Claim { term: Term(5).next_for(3), holder: key };
        let view = View { claim: Some(claim), floor: claim.term, ..View::default() };
        let beat = Heartbeat {
            sequence: 100_000,
            echo: 3,
            incarnation: 12,
            heard_ms: Some(480),
            stretch: 1,
            may_stand: true,
            wanted: true,
            load: Load { load1_milli: 1500, cpu_permille: 300, memory_permille: 700, complaints: 0 },
            view,
            reign: None,
            knows: 3,
            about: None,
        };
        let mut frame = Vec::new();
        crate::codec::encode(&Message::Heartbeat(beat), &mut frame).expect("short");
        assert!(frame.len() <= 100, "a heartbeat takes {} bytes", frame.len());
    }
}
