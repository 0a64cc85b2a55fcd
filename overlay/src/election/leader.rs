//! The leader: the representative that this sensor obeys, as its heartbeats describe it.
//!
//! Pure. Invariant: there is a leader only while the accepted claim is another sensor's; a heartbeat of the
//! leader revokes that it is gone.
//! Not here: the claim itself (`terms`), own leadership (`leadership`).

use super::Config;
use super::link::Link;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::Reign;
use wire::time::Moment;

#[derive(Clone, Debug)]
pub(super) struct Leader {
    last_heard: Moment,
    stretch: u8,
    standbys: Vec<PeerKey>,
    coverage: u16,
    is_gone: bool,
    resigned_to_us: bool,
}

impl Leader {
    /// A leader whose claim was just accepted.
    pub(super) fn new(now: Moment) -> Leader {
        Leader {
            last_heard: now,
            stretch: 1,
            standbys: Vec::new(),
            coverage: 0,
            is_gone: false,
            resigned_to_us: false,
        }
    }

    /// A heartbeat with its claim came over `link`.
    pub(super) fn refresh(&mut self, reign: &Reign, link: Option<&Link>, now: Moment) {
        self.last_heard = link.and_then(Link::last_heard).unwrap_or(now);
        self.stretch = link.map_or(1, |link| link.report().stretch);
        self.standbys.clone_from(&reign.standbys);
        self.coverage = reign.covered;
        self.is_gone = false;
    }

    /// It left, or runs as another incarnation without a claim.
    pub(super) fn set_gone(&mut self) {
        self.is_gone = true;
    }

    /// It resigned, in favour of this sensor or not.
    pub(super) fn resign(&mut self, to_us: bool) {
        self.is_gone = true;
        self.resigned_to_us = to_us;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(super) fn resigned_to_us(&self) -> bool {
        self.resigned_to_us
    }

    pub(super) fn standbys(&self) -> &[PeerKey] {
        &self.standbys
    }

    /// How many sensors it covers, itself included.
    pub(super) fn coverage(&self) -> u16 {
        self.coverage
    }

    /// By how much it stretches its timers.
    pub(super) fn stretch(&self) -> u8 {
        self.stretch
    }

    pub(super) fn silence(&self, now: Moment) -> Duration {
        now.since(self.last_heard)
    }

    /// Whether it is lost: it is gone, silent for `patience`, or cannot be reached in one direction. A slow
    /// process on either side excuses silence; a closed link whose dial failed is not excused.
    pub(super) fn is_lost(
        &self,
        link: Option<&Link>,
        has_dial_failed: bool,
        patience: Duration,
        config: &Config,
        now: Moment,
    ) -> bool {
        let silence = self.silence(now);
        if self.is_gone || silence >= patience {
            return true;
        }
        match link {
            Some(link) => link.is_deaf(patience, config.heartbeat, now),
            None => has_dial_failed && silence >= config.heartbeat * 2,
        }
    }
}
