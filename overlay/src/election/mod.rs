//! Who represents a domain: one sensor's part in membership and election.
//!
//! Pure. [`Node`] takes what happened and `now`, and hands out what to do:
//!
//! ```text
//! handle_connected / handle_disconnected / handle_message / handle_timeout / handle_persisted / handle_lag …
//!     → poll_output: Send, Connect, Disconnect, DialSeeds, Persist, State, HandOver
//!     → poll_timeout: when to call handle_timeout
//! ```
//!
//! The rules, and where they are kept:
//!
//! * **Star** (`reach`): every sensor keeps links to the representative and its standbys; a heartbeat goes
//!   over each link both ways (`beat`), so the standbys know who is reachable before they are needed.
//! * **Suspicion** (`candidacy`): 1.5 s of silence, stretched by own lag and loss (`health`) and by what the
//!   representative says of its own. A candidate asks its reachable sensors and stands only if half of them
//!   lost the representative too, or it resigned, and not beside another who hears it and reigns already; each next rank
//!   (`rank`) waits a second more. Who was not told yet who belongs to the domain, and hears fewer than it covered,
//!   stands last.
//! * **Fencing** (`claim`): a promotion raises the term above all it ever heard of and uses it when it is on
//!   disk. A sensor obeys the highest claim it accepted; ties cannot come up within a round but for one pair
//!   of keys in a million ([`wire::membership::Term`]), and then the key decides.
//! * **Lease** (`lease`): a representative that did not run for most of the suspicion does not serve until
//!   half of its links confirm it.
//! * **Healing**: of two representatives that meet, the one that covers fewer sensors resigns to the other,
//!   which raises its term above both and so changes nothing for its sensors; at equal coverage the lower
//!   term yields. What unseats another is heard without doubt: within the suspicion, however patient the ear, and of
//!   those who promised to obey as long as they had no time to do so. So a host that was cut off for a while, and served itself under a higher term, does not
//!   take the domain with it when it returns. The one who gives way hands over its table (and, through
//!   [`Output::HandOver`], what the reporting layer keeps).
//! * **Calm**: an incumbent stays (only a higher operator's priority moves it, after ten minutes: the order
//!   of hashes is no one's wish); who lost the role stands last for a minute, doubling to ten, if others may
//!   stand, and after ten seconds of silence if no other does: a crash is never waited out.
//!
//! Every number is in [`Config`]. Not here: the table of members (`membership`), certificates (the shell
//! passes each peer's [`crate::membership::Standing`]), sockets and disks.

mod beat;
mod candidacy;
mod claim;
mod config;
mod cool_off;
mod figures;
mod govern;
mod health;
mod lease;
mod link;
mod node;
mod rank;
mod reach;

use compact_str::CompactString;
use wire::id::PeerKey;
use wire::membership::{Message, Term};

pub use config::{Config, Mechanisms};
pub use figures::Figures;
pub use node::{Me, Node};
pub use rank::Rank;

/// What a sensor keeps on disk for its next life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persisted {
    /// The highest term it used or obeyed.
    pub term: Term,
    /// How often it started.
    pub incarnation: u64,
}

/// A sensor's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reports to the representative, or looks for one.
    Member,
    /// Takes over if the representative goes.
    Standby,
    /// Represents the domain.
    Representative,
}

impl Role {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Member => "member",
            Role::Standby => "standby",
            Role::Representative => "representative",
        }
    }
}

/// How things stand, for the daemon around this core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// This sensor's part.
    pub role: Role,
    /// Who represents the domain, as far as this sensor hears it.
    pub representative: Option<PeerKey>,
    /// Under which term; the highest obeyed if no one is heard.
    pub term: Term,
    /// At the representative: whether hosts of the domain are missing that another may represent.
    pub partial: bool,
    /// At the representative: the sensors it hears that obey it, itself included, by key.
    pub coverage: Vec<PeerKey>,
}

/// What the shell is to do. Outputs are to be carried out in order, and at once but for disk and network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send on the link to this peer; drop it if the link is gone.
    Send(PeerKey, Message),
    /// Dial this peer at these addresses; report success by `handle_connected`, failure by
    /// `handle_disconnected`. May be told for a peer that is just connecting.
    Connect(PeerKey, Vec<CompactString>),
    /// Close the link; then call `handle_disconnected`.
    Disconnect(PeerKey),
    /// Resolve the seeds' names again and dial them, and the representative that the directory names for this domain.
    DialSeeds,
    /// Write this and sync; then call `handle_persisted`. Of several only the last matters.
    Persist(Persisted),
    /// How things stand changed. A representative registers its domain with this.
    State(State),
    /// This sensor lost the role to that one: hand over what the reporting layer keeps.
    HandOver(PeerKey),
}
