//! What is known of one connected peer, and of one that is being dialled.
//!
//! Pure. Sequence numbers count per link, so that a peer that restarts is heard at once.
//! Not here: what follows from it.

use super::Rank;
use crate::membership::Standing;
use std::collections::VecDeque;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Answer, Heartbeat, Load, Member, View};
use wire::time::Moment;

/// Most heartbeats counted as missed at once: five minutes; a link does not live so long in silence.
const MISSED_MAX: u64 = 600;

/// Heartbeats of which it is kept when they were sent: half a minute, longer than silence on a link that stands.
const BEATS_KEPT: usize = 64;

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
    /// When it sent the last heartbeat that came, as far as that can be told.
    pub heard: Option<Moment>,
    pub sequence_in: u64,
    pub sequence_out: u64,
    /// When our last heartbeats were sent, the newest last.
    beats: VecDeque<Moment>,
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
    /// When it was heard first after a silence that was suspicious: what it says of us until it had the time to hear us is the past.
    pub resumed: Moment,
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
            beats: VecDeque::new(),
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
            resumed: now,
            confirmed: false,
            left: false,
        }
    }

    /// Whether it was heard within `span`.
    pub(super) fn is_fresh(&self, span: Duration, now: Moment) -> bool {
        !self.left && self.heard.is_some_and(|heard| now.since(heard) < span)
    }

    /// The next heartbeat is sent; its number.
    pub(super) fn count_beat(&mut self, now: Moment) -> u64 {
        self.sequence_out += 1;
        if self.beats.len() >= BEATS_KEPT {
            self.beats.pop_front();
        }
        self.beats.push_back(now);
        self.sequence_out
    }

    /// How long a heartbeat was under way, with the one of ours that it answers: what TCP held back while the network
    /// was cut, or waited while this process stood still, is old when it comes. Clocks are not compared.
    pub(super) fn lateness(&self, beat: &Heartbeat, now: Moment) -> Duration {
        let Some(ago) = self.sequence_out.checked_sub(beat.echo).filter(|_| beat.echo > 0) else {
            return Duration::ZERO;
        };
        let at = usize::try_from(ago).ok().and_then(|ago| self.beats.len().checked_sub(ago + 1));
        // One that is no longer kept was sent before all that are.
        let sent = at.map_or(self.beats.front(), |at| self.beats.get(at)).copied().unwrap_or(now);
        let idle = Duration::from_millis(beat.heard_ms.unwrap_or(0).into());
        now.since(sent).saturating_sub(idle)
    }

    /// Take in a heartbeat that is newer than the last and was so long under way; how many before it did not come.
    pub(super) fn hear(&mut self, beat: &Heartbeat, lateness: Duration, now: Moment) -> u64 {
        let missed = if self.sequence_in == 0 { 0 } else { beat.sequence - self.sequence_in - 1 };
        self.sequence_in = beat.sequence;
        let sent = Moment(now.0.saturating_sub(lateness));
        self.heard = Some(self.heard.map_or(sent, |heard| heard.max(sent)));
        missed.min(MISSED_MAX)
    }

    /// Believe what it says.
    pub(super) fn believe(&mut self, beat: &Heartbeat) {
        self.incarnation = beat.incarnation;
        self.stretch = beat.stretch.clamp(1, 8);
        self.may_stand = beat.may_stand;
        self.wants = beat.wanted;
        self.load = beat.load;
        self.view = beat.view;
        self.knows = beat.knows;
        self.hears_us = beat.heard_ms.map(|ms| Duration::from_millis(u64::from(ms)));
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
