//! Leadership: the reign of this sensor as representative, and the stages that lead to it.
//!
//! Pure. Invariant: the claim only grows; a raised term is used only once it is on disk.
//! Not here: the rounds of a representative (`node::representative`), terms of others (`terms`).

use super::coverage::Coverage;
use super::lease::Lease;
use super::link::Link;
use super::links::Links;
use super::{Config, State};
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, Term};
use wire::time::Moment;

/// A sensor that stretches its timers by more than this is a poor standby.
const STANDBY_STRETCH_MAX: u8 = 3;

/// Stage of this sensor.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Member,
    /// Its term is being written to disk.
    Promoting(Term),
    Representative(Box<Leadership>),
}

impl Stage {
    /// The reign, at a representative.
    pub(super) fn leadership(&self) -> Option<&Leadership> {
        match self {
            Stage::Representative(leadership) => Some(leadership),
            Stage::Member | Stage::Promoting(_) => None,
        }
    }

    pub(super) fn leadership_mut(&mut self) -> Option<&mut Leadership> {
        match self {
            Stage::Representative(leadership) => Some(leadership),
            Stage::Member | Stage::Promoting(_) => None,
        }
    }

    pub(super) fn represents(&self) -> bool {
        self.leadership().is_some()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Leadership {
    claim: Claim,
    since: Moment,
    standbys: Vec<PeerKey>,
    coverage: Coverage,
    lease: Lease,
    /// A higher term of this sensor that is being written.
    raising: Option<Term>,
    /// Since when a higher term without a holder is in the way.
    contested_since: Option<Moment>,
}

impl Leadership {
    pub(super) fn new(claim: Claim, expected_acks: u16, stretch_percent: u32, now: Moment) -> Leadership {
        Leadership {
            claim,
            since: now,
            standbys: Vec::new(),
            coverage: Coverage::new(claim.holder, expected_acks),
            lease: Lease::new(stretch_percent),
            raising: None,
            contested_since: None,
        }
    }

    pub(super) fn claim(&self) -> Claim {
        self.claim
    }

    pub(super) fn standbys(&self) -> &[PeerKey] {
        &self.standbys
    }

    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(super) fn lease_mut(&mut self) -> &mut Lease {
        &mut self.lease
    }

    pub(super) fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    pub(super) fn coverage_mut(&mut self) -> &mut Coverage {
        &mut self.coverage
    }

    pub(super) fn since(&self) -> Moment {
        self.since
    }

    /// How many sensors it covers, with all patience, as it compares itself with other representatives; none
    /// during a recheck.
    pub(super) fn coverage_reachable(&self, config: &Config, now: Moment) -> u16 {
        let is_new = now.since(self.since) < config.suspicion;
        match (self.lease.is_suspended(), is_new) {
            (true, _) => 0,
            (false, true) => self.coverage.reachable().max(self.coverage.expected_acks()),
            (false, false) => self.coverage.reachable(),
        }
    }

    /// How many sensors it reports to others that it covers: those that were heard within the suspicion; none
    /// during a recheck.
    pub(super) fn coverage_strict(&self) -> u16 {
        if self.lease.is_suspended() { 0 } else { self.coverage.strict() }
    }

    /// Whether `state` describes this reign.
    pub(super) fn is_described_by(&self, state: &State) -> bool {
        state.representative == Some(self.claim.holder)
            && (state.term, state.partial) == (self.claim.term, self.coverage.is_partial())
            && state.coverage == self.coverage.members()
    }

    /// A higher term is being written.
    pub(super) fn start_raise(&mut self, term: Term) {
        self.raising = Some(term);
    }

    pub(super) fn is_raising(&self) -> bool {
        self.raising.is_some()
    }

    /// Use the raised term if everything up to `on_disk` is on disk; returns the new claim.
    pub(super) fn finish_raise(&mut self, on_disk: Term) -> Option<Claim> {
        self.claim.term = self.raising.take_if(|raised| on_disk >= *raised)?;
        self.contested_since = None;
        Some(self.claim)
    }

    /// Note whether a higher term without a holder is in the way; returns whether it has been for too long.
    pub(super) fn contest(&mut self, is_contested: bool, config: &Config, now: Moment) -> bool {
        let since = self.contested_since.unwrap_or(now);
        self.contested_since = is_contested.then_some(since);
        is_contested && now.since(since) >= config.reassert
    }

    /// Choose the standbys: the present ones while they are fit, then by rank; those that lag or lost the
    /// role recently come last.
    pub(super) fn choose_standbys(
        &mut self,
        links: &Links,
        patience: Duration,
        config: &Config,
        now: Moment,
    ) {
        let lags = |link: &Link| link.report().stretch > STANDBY_STRETCH_MAX;
        let cools_off = |link: &Link| !link.report().may_stand;
        let fit = |key: &PeerKey| {
            links.get(key).filter(|link| {
                link.may_represent()
                    && link.member().is_some()
                    && link.is_fresh(link.patience(patience, config.suspicion), now)
                    && link.obeys(self.claim)
            })
        };
        let stays = |key: &PeerKey| fit(key).is_some_and(|link| !lags(link) && !cools_off(link));
        let mut standbys: Vec<_> = self.standbys.iter().copied().filter(stays).collect();
        if standbys.len() < config.standbys {
            let others = self.coverage.members().iter().filter(|key| !standbys.contains(key));
            let mut others: Vec<_> = others
                .filter_map(|key| fit(key).map(|link| (cools_off(link), lags(link), link.rank(), *key)))
                .collect();
            others.sort();
            let room = config.standbys - standbys.len();
            standbys.extend(others.into_iter().take(room).map(|(_, _, _, key)| key));
        }
        self.standbys = standbys;
    }

    /// After a long and healthy reign, the follower that the operator prefers: the highest priority above
    /// `own`.
    pub(super) fn preferred(
        &self,
        own: u8,
        links: &Links,
        patience: Duration,
        config: &Config,
        now: Moment,
    ) -> Option<PeerKey> {
        if now.since(self.since) < config.sticky || self.is_raising() {
            return None;
        }
        let fit = links.iter().filter(|(_, link)| {
            link.may_represent()
                && link.report().may_stand
                && link.priority() > own
                && link.report().stretch == 1
                && now.since(link.since()) >= config.sticky
                && link.is_fresh(patience, now)
                && link.obeys(self.claim)
        });
        fit.min_by_key(|(_, link)| link.rank()).map(|(key, _)| *key)
    }
}
