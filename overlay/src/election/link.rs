//! What is known of one connected peer, and of one that is being dialled.
//!
//! Pure. Sequence numbers count per link, so that a peer that starts anew is heard at once.
//! Not here: what follows from it.

use super::Rank;
use crate::membership::Standing;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Answer, Heartbeat, Load, Member, View};
use wire::time::Moment;

/// Most heartbeats counted as missed at once: five minutes; a link does not live so long in silence.
const MISSED_MAX: u64 = 600;

/// An answer to our last question.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub lost: bool,
    /// The best candidate the peer hears.
    pub best: Option<Member>,
    pub at: Moment,
}

/// One connected peer.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub standing: Standing,
    pub rank: Rank,
    pub since: Moment,
    /// When its last heartbeat came.
    pub heard: Option<Moment>,
    pub sequence_in: u64,
    pub sequence_out: u64,
    pub incarnation: u64,
    /// Who it says it is, with what its certificate says.
    pub member: Option<Member>,
    /// Which of our lives it knows.
    pub knows: u64,
    pub stretch: u8,
    pub may_stand: bool,
    /// Whether it wants the link; taken for granted until it says.
    pub wants: bool,
    pub load: Load,
    pub view: View,
    /// How long ago it had heard us, when it last said.
    pub hears_us: Option<Duration>,
    pub answer: Option<Answered>,
    /// When it was last told where the representative is.
    pub redirected: Option<Moment>,
    /// Up to which change the table was sent, and when.
    pub sent: Option<(u64, Moment)>,
    pub unwanted: Option<Moment>,
    /// Whether it confirmed our claim since we stood still.
    pub confirmed: bool,
    pub left: bool,
}

impl Link {
    pub(super) fn new(standing: Standing, rank: Rank, now: Moment) -> Link {
        Link {
            standing,
            rank,
            since: now,
            heard: None,
            sequence_in: 0,
            sequence_out: 0,
            incarnation: 0,
            member: None,
            knows: 0,
            stretch: 1,
            may_stand: true,
            wants: true,
            load: Load::default(),
            view: View::default(),
            hears_us: None,
            answer: None,
            redirected: None,
            sent: None,
            unwanted: None,
            confirmed: false,
            left: false,
        }
    }

    /// Whether it was heard within `span`.
    pub(super) fn is_fresh(&self, span: Duration, now: Moment) -> bool {
        !self.left && self.heard.is_some_and(|heard| now.since(heard) < span)
    }

    /// Take in a heartbeat that is newer than the last; how many before it did not come.
    pub(super) fn hear(&mut self, beat: &mut Heartbeat, now: Moment) -> u64 {
        let missed = if self.sequence_in == 0 { 0 } else { beat.sequence - self.sequence_in - 1 };
        let missed = missed.min(MISSED_MAX);
        self.sequence_in = beat.sequence;
        self.heard = Some(now);
        self.incarnation = beat.incarnation;
        self.stretch = beat.stretch.clamp(1, 8);
        self.may_stand = beat.may_stand;
        self.wants = beat.wanted;
        self.load = beat.load;
        self.view = beat.view;
        self.knows = beat.knows;
        self.hears_us = beat.heard_ms.map(|ms| Duration::from_millis(u64::from(ms)));
        missed
    }

    /// Take in who it says it is; its certificate goes before its word.
    pub(super) fn introduce(&mut self, from: PeerKey, about: Member) -> bool {
        if !about.is_bounded() || about.key != from {
            return false;
        }
        let Standing { host, may_represent, priority } = self.standing.clone();
        self.member = Some(Member { host, may_represent, priority, ..about });
        true
    }

    pub(super) fn answered(&mut self, answer: Answer, now: Moment) {
        let best = answer.best.map(|best| *best).filter(Member::is_bounded);
        self.view = answer.view;
        self.answer = Some(Answered { lost: answer.lost, best, at: now });
    }
}

/// A peer that is or was dialled, and is not connected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dial {
    /// Failures in a row.
    pub tries: u32,
    /// Since when a dial is under way.
    pub started: Option<Moment>,
    /// Not before.
    pub next: Moment,
}
