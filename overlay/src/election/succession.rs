//! Order of succession: which sensor becomes a candidate first, and how long this one waits.
//!
//! Pure: a view of the sub-states that changes none of them. The order is the standbys as the leader named
//! them, then by [`Rank`]; each place waits one second more. A sensor that hears no other waits longest,
//! since it is rather the one that is cut off.
//! Not here: when a leader is lost (`leader`), terms (`terms`).

use super::Config;
use super::dialer::Dialer;
use super::leader::Leader;
use super::link::Link;
use super::links::Links;
use super::local_sensor::LocalSensor;
use super::roster::Roster;
use super::terms::Terms;
use crate::membership::Rank;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Member, State};
use wire::time::Moment;

/// A place in the order; the least is first.
type Place = (usize, Rank);

pub(super) struct Succession<'a> {
    pub config: &'a Config,
    pub local: &'a LocalSensor,
    pub links: &'a Links,
    pub dialer: &'a Dialer,
    pub roster: &'a Roster,
    pub terms: &'a Terms,
    pub leader: Option<&'a Leader>,
    /// Whether this sensor has not lost the role recently.
    pub has_cooled_off: bool,
    /// Factor of the timers, in per cent.
    pub stretch: u32,
    /// Silence after which a peer is not counted as reachable.
    pub patience: Duration,
    pub now: Moment,
}

impl<'a> Succession<'a> {
    /// Whether this sensor may stand as any other: it has not lost the role recently, and it does not take a
    /// part of the domain for the whole.
    pub(super) fn may_stand(&self) -> bool {
        self.local.may_represent() && self.has_cooled_off && self.knows_domain()
    }

    /// Whether the leader has reported other members, or covers no sensor that is silent here.
    fn knows_domain(&self) -> bool {
        let Some(leader) = self.leader else { return true };
        let has_members = self.roster.members().any(|member| member.key != self.local.key());
        // The leader counts itself and this sensor too.
        has_members || self.reachable().count() + 2 >= usize::from(leader.coverage())
    }

    /// How long after the start of the suspicion this sensor stands; `None` while others should.
    pub(super) fn wait(&self) -> Option<Duration> {
        if self.leader.is_some_and(Leader::resigned_to_us) {
            return Some(Duration::ZERO);
        }
        let reachable = self.reachable().count();
        let may_stand = self.may_stand();
        if !may_stand {
            if self.reachable().any(|(_, link)| link.may_represent() && link.report().may_stand) {
                return None;
            }
            if reachable == 0 || !self.knows_domain() {
                return Some(self.config.alone);
            }
        }
        // If all that are left lost the role recently, they take turns as others do, after the place of one
        // that may not have lost it and is not heard here.
        let unheard = usize::from(!may_stand && self.unheard().next().is_some());
        let places = u32::try_from(self.places_ahead(!may_stand) + unheard).unwrap_or(u32::MAX);
        let wait = (self.config.next_rank * self.stretch / 100).saturating_mul(places);
        let is_accompanied = reachable > 0 || !self.config.mechanisms.confirmation;
        Some(if is_accompanied { wait } else { wait.max(self.wait_alone()) })
    }

    /// How long a sensor that hears no other waits at least.
    fn wait_alone(&self) -> Duration {
        let holder = self.terms.holder();
        let is_other = |member: &Member| member.key != self.local.key() && Some(member.key) != holder;
        let has_others = self.roster.members().any(|member| is_other(member) && member.state != State::Left);
        match (has_others, holder) {
            (true, _) => self.config.alone,
            (false, Some(_)) => self.config.next_rank,
            (false, None) if self.config.has_seeds => self.config.first_alone,
            (false, None) => Duration::ZERO,
        }
    }

    /// The peers that are heard, except the lost leader.
    pub(super) fn reachable(&self) -> impl Iterator<Item = (&'a PeerKey, &'a Link)> + use<'a> {
        let (holder, patience, now) = (self.terms.holder(), self.patience, self.now);
        self.links.iter().filter(move |(key, link)| Some(**key) != holder && link.is_fresh(patience, now))
    }

    fn place(&self, key: PeerKey, rank: Rank) -> Place {
        let standbys = self.leader.map_or(&[][..], Leader::standbys);
        let position = standbys.iter().position(|standby| *standby == key).unwrap_or(usize::MAX);
        (position, rank)
    }

    /// How many places are ahead of this sensor: those of the peers it hears, of the best candidates they
    /// hear, and of the members that the table calls alive. Sensors that lost the role recently count only if
    /// `any`.
    fn places_ahead(&self, any: bool) -> usize {
        let ours = self.place(self.local.key(), self.local.rank());
        let mut ahead = BTreeSet::new();
        for (key, link) in self.reachable() {
            let stands = link.may_represent() && (any || link.report().may_stand);
            if stands && self.place(*key, link.rank()) < ours {
                ahead.insert(*key);
            }
            let answer = link.answer(self.config.answer_kept, self.now);
            if let Some(best) = answer.and_then(|answer| answer.best.as_ref())
                && self.may_be_there(best)
                && self.place(best.key, Rank::of(&self.config.domain, best.key, best.priority)) < ours
            {
                ahead.insert(best.key);
            }
        }
        for (member, rank) in self.unheard() {
            if self.place(member.key, rank) < ours {
                ahead.insert(member.key);
            }
        }
        ahead.len()
    }

    /// Candidates that the table calls alive and to which there is no link.
    fn unheard(&self) -> impl Iterator<Item = (&Member, Rank)> {
        let alive = self.roster.table().rows().filter(|row| row.member.state == State::Alive);
        alive.map(|row| (&row.member, row.rank)).filter(|(member, _)| self.may_be_there(member))
    }

    /// Whether a candidate without a link may be there all the same: no dial to it has just failed.
    fn may_be_there(&self, member: &Member) -> bool {
        let is_candidate =
            member.key != self.local.key() && Some(member.key) != self.terms.holder() && member.may_represent;
        is_candidate
            && !self.links.contains(&member.key)
            && !self.dialer.is_failing(&member.key, self.config, self.now)
    }

    /// Whether half of the reachable peers have lost the leader too, or it is gone by its own report.
    pub(super) fn is_confirmed(&self) -> bool {
        let is_gone = self.leader.is_some_and(Leader::is_gone);
        is_gone
            || !self.config.mechanisms.confirmation
            || 2 * self.confirming().count() >= self.reachable().count()
    }

    /// The reachable peers that answered recently that they have lost the leader too.
    fn confirming(&self) -> impl Iterator<Item = &Link> {
        self.reachable().map(|(_, link)| link).filter(|link| {
            link.answer(self.config.answer_kept, self.now).is_some_and(|answer| answer.has_lost)
        })
    }

    /// How many sensors are expected to obey this one, itself included: those that confirmed and have not
    /// found another leader since.
    pub(super) fn expected_acks(&self) -> u16 {
        let confirming = self.confirming().filter(|link| link.view().lost).count();
        u16::try_from(confirming + 1).unwrap_or(u16::MAX)
    }

    /// Whether a peer that hears this sensor represents the domain already, and only waits to be notified
    /// that this one lost its leader. Not for long after this sensor's turn: a peer that does not include it
    /// by then is no leader of it.
    pub(super) fn is_taken(&self, suspected_since: Option<Moment>) -> bool {
        let turn = suspected_since.zip(self.wait()).map(|(since, wait)| since.plus(wait));
        if turn.is_none_or(|turn| self.now >= turn.plus(self.config.suspicion * 2)) {
            return false;
        }
        self.reachable().any(|(key, link)| {
            let view = link.view();
            let reigns = view.claim.is_some_and(|claim| claim.holder == *key && self.terms.is_new(claim));
            let hears_us = link.report().hears_us.is_some_and(|ago| ago < self.patience);
            link.may_represent() && reigns && !view.lost && hears_us
        })
    }

    /// The first candidate in the order, of the reachable peers and this sensor; `None` if that is the asker.
    pub(super) fn best(&self, asker: PeerKey) -> Option<Box<Member>> {
        let ours = self.may_stand().then_some((self.place(self.local.key(), self.local.rank()), None));
        let heard = self.reachable().filter(|(_, link)| link.report().may_stand && link.may_represent());
        let heard = heard.filter_map(|(key, link)| {
            link.member().map(|member| (self.place(*key, link.rank()), Some(member)))
        });
        let (_, best) = ours.into_iter().chain(heard).min_by_key(|(place, _)| *place)?;
        let best = best.cloned().unwrap_or_else(|| self.local.member());
        (best.key != asker).then(|| Box::new(best))
    }
}
