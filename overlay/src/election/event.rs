//! Inputs and outputs of the state machine, and its states.
//!
//! Pure. Outputs are to be carried out in order, and at once except for disk and network.

use crate::membership::Profile;
use compact_str::CompactString;
use wire::id::PeerKey;
use wire::membership::{Load, Message, Term};

/// What happens to a sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A link to the peer is up and its certificate was checked. Once per peer, whichever side dialled.
    Connected(PeerKey, Profile),
    /// The link to the peer is closed, or a dial failed.
    Disconnected(PeerKey),
    /// A message came over the link to the peer.
    Received(PeerKey, Message),
    /// The deadline of [`super::Node::poll_timeout`] passed: its [`super::Timer`]s fire.
    Timeout,
    /// This is on disk.
    Persisted(Persisted),
    /// The load of this host, for the next heartbeats.
    LoadMeasured(Load),
    /// The daemon stops: it sends what [`super::Node::poll_output`] returns, and ends.
    Stop,
}

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send on the link to the peer; drop the message if the link is closed.
    Send(PeerKey, Message),
    /// Dial the peer at these addresses; report the result by [`Input::Connected`] or
    /// [`Input::Disconnected`]. Possible for a peer that is just connecting.
    Connect(PeerKey, Vec<CompactString>),
    /// Close the link, then report [`Input::Disconnected`].
    Disconnect(PeerKey),
    /// Resolve the names of the seeds again and dial them, and the representative that the directory names
    /// for this domain.
    DialSeeds,
    /// Write this and sync, then report [`Input::Persisted`]. Of several only the last matters.
    Persist(Persisted),
    /// The state changed. A representative registers its domain with this.
    State(State),
    /// This sensor lost the role to the peer: hand over what the reporting layer stores.
    HandOver(PeerKey),
}

/// State of the machine: a row group of the transition table at the head of `election`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It obeys a leader that it hears.
    Following,
    /// It has no leader, or lost it.
    Searching,
    /// Its turn came; its term is being written to disk.
    Promoting,
    /// It represents the domain.
    Serving,
    /// It represents the domain, was suspended, and does not serve until its peers confirm.
    Rechecking,
    /// It left the domain.
    Stopped,
}

/// Role of a sensor in its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It reports to the representative, or searches for one.
    Member,
    /// It takes over if the representative is lost.
    Standby,
    /// It represents the domain.
    Representative,
}

impl Role {
    /// Its name in messages and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Member => "member",
            Role::Standby => "standby",
            Role::Representative => "representative",
        }
    }
}

/// State of the election, for the daemon around this core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// This sensor's role.
    pub role: Role,
    /// The representative, while this sensor hears it.
    pub representative: Option<PeerKey>,
    /// Its term; the highest one accepted while none is heard.
    pub term: Term,
    /// At the representative: whether hosts of the domain are missing that another may represent.
    pub partial: bool,
    /// At the representative: the sensors that it hears and that obey it, itself included, by key.
    pub coverage: Vec<PeerKey>,
}

/// What a sensor stores on disk for its next incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Persisted {
    /// The highest term it used or accepted.
    pub term: Term,
    /// How often it started.
    pub incarnation: u64,
}
