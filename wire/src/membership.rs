//! Messages between the sensors of one domain on `/visperf/control/1`: who is there, who represents
//! the domain, and who is thought lost.
//!
//! Pure. Every message is one frame of [`crate::codec`] on a one-way stream; each side has its own. The
//! exchange, in the order in which a sensor lives through it:
//!
//! ```text
//! any link      Heartbeat  ⇄  Heartbeat      each 500 ms; the first ones carry `about`, until known
//! to a stray    Redirect   →                 "the representative is there"
//! from the rep  Heartbeat{reign}, Members →  its claim; the table of members, as far as it changed
//! suspicion     Question   →  ← Answer       "did you lose it too?"
//! clean stop    Resign or Leave →
//! healing       Yield      →                 the lower claim gives way and hands its table over
//! ```
//!
//! A promotion is announced by a heartbeat with its reign, sent at once.
//! Not here: the rules (`overlay::election`), certificates and addresses' proof (`overlay`'s hello).

use crate::id::{HostName, PeerKey};
use compact_str::CompactString;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Longest control message, in bytes: a table of 1,024 members with the longest names and addresses.
pub const MESSAGE_LEN_MAX_BYTES: usize = 2 << 20;

/// Most addresses of one member: a few interfaces, both families. More are cut by the sender.
pub const ADDRESSES_MAX: usize = 4;

/// Longest address, in bytes: a name of [`crate::id::NAME_LEN_MAX_BYTES`] within a multiaddress.
pub const ADDRESS_LEN_MAX_BYTES: usize = 320;

/// Bits of a term that mark its holder.
const MARK_BITS: u32 = 20;

/// Fencing term of a representative: a round, and below it a mark of the holder. A higher one wins.
///
/// The mark (20 bits of the hash of domain and key) makes the terms that two halves of a split domain
/// reach in the same round differ, so a directory never holds one term with two contents. Below 2^53
/// for 8 billion rounds, so every client counts with it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

impl Term {
    /// Before every term.
    pub const NONE: Term = Term(0);

    /// How many promotions came before, as far as the holder knew.
    #[must_use]
    pub const fn round(self) -> u64 {
        self.0 >> MARK_BITS
    }

    /// The lowest term of the round after this one, for the holder with this mark.
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

/// Who says to represent the domain, under which term. Ordered: the greater one is obeyed; equal terms
/// (two keys with one mark) by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// Under which term.
    pub term: Term,
    /// Who.
    pub holder: PeerKey,
}

/// Whether a member is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Heard lately.
    Alive,
    /// Not heard for a while.
    Suspect,
    /// Not heard for so long that it is counted as gone; dialled still.
    Dead,
    /// It said that it goes.
    Left,
}

impl State {
    /// The word for it.
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
    /// Who.
    pub key: PeerKey,
    /// Which of its lives: it counts its starts.
    pub incarnation: u64,
    /// Whether it is there.
    pub state: State,
    /// Its host.
    pub host: HostName,
    /// Whether its certificate lets it represent the domain. Hearsay until it is met.
    pub may_represent: bool,
    /// The operator's wish: the highest represents.
    pub priority: u8,
    /// Where it can be dialled, as multiaddresses, the best first; at most [`ADDRESSES_MAX`].
    pub addresses: Vec<CompactString>,
}

impl Member {
    /// Whether its lengths are within what may be sent.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.addresses.len() <= ADDRESSES_MAX
            && self.addresses.iter().all(|address| address.len() <= ADDRESS_LEN_MAX_BYTES)
    }
}

/// How busy a host is; rides on every heartbeat, so the representative's table is half a second old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Load average over one minute, in thousandths.
    pub load1_milli: u32,
    /// Processors in use, in thousandths of all.
    pub cpu_permille: u16,
    /// Memory in use, in thousandths of all.
    pub memory_permille: u16,
    /// How many of the sensor's parts complain (a full disk, a collector that fails).
    pub complaints: u16,
}

/// Which state of the representative's table a member holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Under which term it was sent; [`Term::NONE`] if nothing is held.
    pub term: Term,
    /// Number of the last change it has.
    pub version: u64,
}

/// How the sender sees the domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The claim it obeys, the highest it ever accepted.
    pub claim: Option<Claim>,
    /// Whether it lost the holder.
    pub lost: bool,
    /// The highest term it knows of, accepted or not: below it, it accepts nothing new.
    pub floor: Term,
    /// How many sensors that representative said to cover.
    pub covered: u16,
    /// The table it holds.
    pub held: Held,
}

/// What a representative says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reign {
    /// Its term.
    pub term: Term,
    /// Who takes over, the first first; at most two.
    pub standbys: Vec<PeerKey>,
    /// How many sensors it hears that obey it, itself included.
    pub covered: u16,
    /// Number of the last change of its table.
    pub version: u64,
    /// Hash of that table.
    pub digest: u64,
}

/// The sender is there, and how it sees things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Counts the heartbeats on this link: gaps are loss, and an old one is not taken for news.
    pub sequence: u64,
    /// Which life of the sender.
    pub incarnation: u64,
    /// The receiver's last heartbeat that it heard on this link; 0 for none.
    pub echo: u64,
    /// How long ago it heard the receiver, in milliseconds; `None` if not yet.
    pub heard_ms: Option<u32>,
    /// By how much it stretches its timers, since it lags or loses: 1 to 8.
    pub stretch: u8,
    /// Whether it may stand for representative now.
    pub may_stand: bool,
    /// Whether it wants this link kept.
    pub wanted: bool,
    /// How busy its host is.
    pub load: Load,
    /// How it sees the domain.
    pub view: View,
    /// Its claim, if it represents the domain to the receiver.
    pub reign: Option<Reign>,
    /// Which life of the receiver it knows; 0 for none.
    pub knows: u64,
    /// Who the sender is, until the receiver knows.
    pub about: Option<Box<Member>>,
}

/// Changes of the representative's table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// Under which term.
    pub term: Term,
    /// What the receiver must hold for these to complete it; `None`: these are the whole table.
    pub since: Option<Held>,
    /// Number of the last change.
    pub version: u64,
    /// Each with the number of its last change.
    pub members: Vec<(u64, Member)>,
    /// For how many seconds each of them that is not alive has not been heard. Earlier versions do not send it.
    #[serde(deserialize_with = "last_or_none")]
    pub silent: Vec<(PeerKey, u32)>,
}

/// The last field of a message: none where the message ends before it.
fn last_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(PeerKey, u32)>, D::Error> {
    Ok(Vec::deserialize(deserializer).unwrap_or_default())
}

/// Did you lose this representative too?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Counts the sender's questions.
    pub number: u64,
    /// Which one; `None`: do you know any?
    pub claim: Option<Claim>,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Of the question.
    pub number: u64,
    /// Whether the sender lost it, or knows none.
    pub lost: bool,
    /// The sender's view, for a representative that asks whether it still is one.
    pub view: View,
    /// The best candidate it hears, itself included, so that sensors who do not yet know each other agree.
    pub best: Option<Box<Member>>,
}

/// A message of `/visperf/control/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// I am here.
    Heartbeat(Heartbeat),
    /// The table of members changed.
    Members(Members),
    /// Did you lose it too?
    Question(Question),
    /// Yes or no.
    Answer(Answer),
    /// Another represents the domain: this one.
    Redirect {
        /// Its claim.
        claim: Claim,
        /// Where it is.
        holder: Box<Member>,
    },
    /// The sender's claim ends here.
    Resign {
        /// Which.
        claim: Claim,
        /// Who should follow at once, if it knows one.
        to: Option<PeerKey>,
    },
    /// The sender leaves the domain's sensors (a clean stop).
    Leave {
        /// Which life ends.
        incarnation: u64,
    },
    /// The sender's claim gave way to the receiver's; what it knew of members.
    Yield {
        /// The claim that ended.
        claim: Claim,
        /// Its table.
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
        /// Without what was added.
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Former {
            term: Term,
            since: Option<Held>,
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
