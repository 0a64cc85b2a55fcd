//! Queries of a node: its state, its lease, its members and figures.
//!
//! Pure. Rule: a query changes nothing; what depends on time is computed for the `now` that is passed.

use super::Node;
use crate::election::leader::Leader;
use crate::election::leadership::Stage;
use crate::election::{Figures, Phase, Role, State};
use crate::membership::Table;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, Load};
use wire::time::Moment;

impl Node {
    /// The state of the transition table that this sensor is in at `now`.
    #[must_use]
    pub fn phase(&self, now: Moment) -> Phase {
        match &self.stage {
            _ if self.local.is_stopping() => Phase::Stopped,
            Stage::Member if self.is_lost(now) => Phase::Searching,
            Stage::Member => Phase::Following,
            Stage::Promoting(_) => Phase::Promoting,
            Stage::Representative(leadership) if leadership.lease().is_suspended() => Phase::Rechecking,
            Stage::Representative(_) => Phase::Serving,
        }
    }

    /// The state at `now`, as it is reported to the daemon.
    #[must_use]
    pub fn state(&self, now: Moment) -> State {
        if let Some(leadership) = self.stage.leadership() {
            return State {
                role: Role::Representative,
                representative: Some(self.local.key()),
                term: leadership.claim().term,
                partial: leadership.coverage().is_partial(),
                coverage: leadership.coverage().members().to_vec(),
            };
        }
        let is_standby = self.standbys().contains(&self.local.key());
        let accepted = self.terms.accepted();
        State {
            role: if is_standby { Role::Standby } else { Role::Member },
            representative: accepted.filter(|_| !self.is_lost(now)).map(|claim| claim.holder),
            term: accepted.map_or(self.terms.min_term(), |claim| claim.term),
            partial: false,
            coverage: Vec::new(),
        }
    }

    /// The highest claim that this sensor accepted, of another sensor or of its own.
    #[must_use]
    pub fn accepted(&self) -> Option<Claim> {
        self.terms.accepted()
    }

    /// The domain's members, as far as this sensor knows.
    #[must_use]
    pub fn table(&self) -> &Table {
        self.roster.table()
    }

    /// The standbys of the current representative, in the order in which they take over.
    #[must_use]
    pub fn standbys(&self) -> &[PeerKey] {
        match self.stage.leadership() {
            Some(leadership) => leadership.standbys(),
            None => self.leader.as_ref().map_or(&[], Leader::standbys),
        }
    }

    /// The load of `peer`, if it is connected.
    #[must_use]
    pub fn load_of(&self, peer: &PeerKey) -> Option<Load> {
        self.links.load(peer)
    }

    /// Whether this sensor may answer for the domain at `now`. To be checked before every answer, record or
    /// acknowledgement given as representative.
    #[must_use]
    pub fn may_serve(&self, now: Moment) -> bool {
        self.serves_until().is_some_and(|until| now <= until)
    }

    /// Until when this sensor may answer for the domain without another input; `None` if it may not.
    #[must_use]
    pub fn serves_until(&self) -> Option<Moment> {
        let lease = self.stage.leadership()?.lease();
        if !self.config.mechanisms.recheck {
            return Some(Moment(Duration::MAX));
        }
        (!lease.is_suspended()).then(|| self.timers.last_input().plus(lease.duration(&self.config)))
    }

    /// The figures as of `now`.
    #[must_use]
    pub fn figures(&self, now: Moment) -> Figures {
        Figures {
            term: self.terms.min_term(),
            stretch_percent: self.health.stretch_percent(&self.config, now),
            loss_permille: self.health.loss_permille(),
            lag: self.health.lag_at(&self.config, now),
            links: self.links.len(),
            members: self.table().count(),
            members_refused_total: self.table().refused_total(),
            ..self.counters.totals()
        }
    }
}
