//! Whether the representative is lost, and whether to stand for it.
//!
//! Pure. In order: silence beyond the patience (or its own word that it goes) begins a suspicion; whoever's
//! turn comes near asks the sensors it hears; whose turn it is and who has half of them on its side stands.
//! Turns: the standbys as named, then by rank; a second each. Who hears no one waits longest, since it is
//! rather the one that is cut off.
//! Not here: terms (`claim`).

use super::Rank;
use super::link::Link;
use super::node::{Duty, Node};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Answer, Claim, Member, Message, Question, State, Term};
use wire::time::Moment;

/// Rounds of questions after which they become rarer, five times.
const EAGER_ROUNDS: u32 = 20;

/// A suspicion under way.
#[derive(Clone, Debug)]
pub(super) struct Candidacy {
    /// From when on waits count; may lie ahead.
    since: Option<Moment>,
    asked: Option<Moment>,
    rounds: u32,
}

impl Candidacy {
    pub(super) fn new(since: Moment) -> Candidacy {
        Candidacy { since: Some(since), asked: None, rounds: 0 }
    }

    pub(super) fn begin(&mut self, since: Moment) {
        *self = Candidacy::new(since);
    }

    /// Whether there was one.
    pub(super) fn end(&mut self) -> bool {
        self.since.take().is_some()
    }
}

/// A place in the order of turns; the least is first.
type Turn = (usize, Rank);

impl Node {
    /// Whether no representative is heard.
    pub(super) fn is_lost(&self, now: Moment) -> bool {
        let Some(following) = &self.following else {
            return !matches!(self.duty, Duty::Representative(_));
        };
        let patience = self.patience(following.stretch, now);
        let silence = now.since(following.heard);
        let Some(link) = self.accepted.and_then(|claim| self.links.get(&claim.holder)) else {
            // That it runs slowly, here or there, excuses silence; not that its link ended and it cannot be dialled.
            let dial = self.accepted.and_then(|claim| self.dials.get(&claim.holder));
            let is_refused = silence >= self.config.heartbeat * 2 && dial.is_some_and(|dial| dial.tries > 0);
            return following.gone || is_refused || silence >= patience;
        };
        // It does not hear us: half a link carries no reports.
        let deaf = match link.hears_us {
            Some(ago) => ago >= patience && now.since(link.resumed) >= self.config.heartbeat * 2,
            None => now.since(link.since) >= patience * 2,
        };
        following.gone || now.since(following.heard) >= patience || (deaf && link.heard.is_some())
    }

    /// Whether a sensor that does not lag would take the representative for lost. One that lags waits longer before it stands, but
    /// others may follow another one by now: they say so if they are asked.
    fn is_silent(&self, now: Moment) -> bool {
        self.following.as_ref().is_some_and(|following| now.since(following.heard) >= self.config.suspicion)
    }

    /// A member's look at the representative.
    pub(super) fn attend(&mut self, now: Moment) {
        if !self.is_lost(now) {
            if self.candidacy.end() {
                self.figures.refuted_total += 1;
            }
            if self.is_silent(now) {
                self.ask(now);
            }
            return;
        }
        let since = match self.candidacy.since {
            Some(since) => since,
            None => {
                self.figures.suspicions_total += 1;
                self.candidacy.begin(now);
                now
            }
        };
        if now < since || !self.me.standing.may_represent || matches!(self.duty, Duty::Promoting(_)) {
            return;
        }
        let Some(wait) = self.wait(now) else { return };
        if now.plus(self.config.question * 2) >= since.plus(wait) {
            self.ask(now);
        }
        if now >= since.plus(wait) && self.is_confirmed(now) && !self.is_taken(now) {
            self.promote(now);
        }
    }

    /// Whether others need not stand before us: not who lost the role lately, nor who may take a part of the domain for the
    /// whole.
    pub(super) fn may_stand(&self, now: Moment) -> bool {
        self.me.standing.may_represent && self.cool_off.is_over(&self.config, now) && self.knows_domain(now)
    }

    /// Whether the representative that is obeyed has reported others, or covered no sensor that is silent here.
    fn knows_domain(&self, now: Moment) -> bool {
        let Some(following) = &self.following else { return true };
        let is_told = self.table.rows().any(|row| row.member.key != self.me.key);
        // It covered itself and us, too.
        is_told || self.reachable(now).count() + 2 >= usize::from(following.covered)
    }

    /// How long after the suspicion it is our turn; `None` while others should.
    fn wait(&self, now: Moment) -> Option<Duration> {
        if self.following.as_ref().is_some_and(|following| following.to_us) {
            return Some(Duration::ZERO);
        }
        let reachable = self.reachable(now).count();
        let may_stand = self.may_stand(now);
        if !may_stand {
            let other = self.reachable(now).any(|(_, link)| link.standing.may_represent && link.may_stand);
            if other {
                return None;
            }
            if reachable == 0 || !self.knows_domain(now) {
                return Some(self.config.alone);
            }
        }
        // Where all that are left lost the role lately, they take turns as others do, after the turn of one that may not
        // have and is not heard here.
        let unheard = usize::from(!may_stand && self.unheard(now).next().is_some());
        let turns = u32::try_from(self.ahead(now, !may_stand) + unheard).unwrap_or(u32::MAX);
        let turns = (self.config.next_rank * self.stretch(now) / 100).saturating_mul(turns);
        if reachable > 0 || !self.config.mechanisms.confirmation {
            return Some(turns);
        }
        let holder = self.accepted.map(|claim| claim.holder);
        let other = |member: &Member| member.key != self.me.key && Some(member.key) != holder;
        let known = self.table.rows().any(|row| other(&row.member) && row.member.state != State::Left);
        let alone = match (known, self.accepted) {
            (true, _) => self.config.alone,
            (false, Some(_)) => self.config.next_rank,
            (false, None) if self.config.has_seeds => self.config.first_alone,
            (false, None) => Duration::ZERO,
        };
        Some(turns.max(alone))
    }

    /// Peers we hear, the lost representative excepted.
    fn reachable(&self, now: Moment) -> impl Iterator<Item = (&PeerKey, &Link)> {
        let holder = self.accepted.map(|claim| claim.holder);
        let patience = self.patience(1, now);
        self.links.iter().filter(move |(key, link)| Some(**key) != holder && link.is_fresh(patience, now))
    }

    fn turn(&self, key: PeerKey, rank: Rank) -> Turn {
        let standbys = self.following.as_ref().map_or(&[][..], |following| &following.standbys);
        let place = standbys.iter().position(|standby| *standby == key).unwrap_or(usize::MAX);
        (place, rank)
    }

    /// How many have their turn before us: those we hear, those others hear, and those the table calls
    /// alive, unless a dial just failed. Those who lost the role lately have a turn only if all have it that may (`any`).
    fn ahead(&self, now: Moment, any: bool) -> usize {
        let ours = self.turn(self.me.key, self.rank);
        let holder = self.accepted.map(|claim| claim.holder);
        let mut ahead = BTreeSet::new();
        for (key, link) in self.reachable(now) {
            let stands = link.standing.may_represent && (any || link.may_stand);
            if stands && self.turn(*key, link.rank) < ours {
                ahead.insert(*key);
            }
            if let Some(best) = link.answer.as_ref().and_then(|answer| answer.best.as_ref())
                && link.answer.as_ref().is_some_and(|answer| now.since(answer.at) < self.config.answer_kept)
                && self.may_be_there(best, holder, now)
                && self.turn(best.key, Rank::of(&self.config.domain, best.key, best.priority)) < ours
            {
                ahead.insert(best.key);
            }
        }
        for (member, rank) in self.unheard(now) {
            if self.turn(member.key, rank) < ours {
                ahead.insert(member.key);
            }
        }
        ahead.len()
    }

    /// Candidates that the table calls alive and to which we have no link, unless a dial just failed.
    fn unheard(&self, now: Moment) -> impl Iterator<Item = (&Member, Rank)> {
        let holder = self.accepted.map(|claim| claim.holder);
        let alive = self.table.rows().filter(|row| row.member.state == State::Alive);
        let named = alive.map(|row| (&row.member, row.rank));
        named.filter(move |(member, _)| self.may_be_there(member, holder, now))
    }

    /// Whether a candidate that we have no link to may be there all the same.
    fn may_be_there(&self, member: &Member, holder: Option<PeerKey>, now: Moment) -> bool {
        let named = member.key != self.me.key && Some(member.key) != holder && member.may_represent;
        named && !self.links.contains_key(&member.key) && !self.is_failing(&member.key, now)
    }

    fn ask(&mut self, now: Moment) {
        let eager = self.candidacy.rounds < EAGER_ROUNDS;
        let interval = if eager { self.config.question } else { self.config.question * 5 };
        if self.candidacy.asked.is_some_and(|asked| now.since(asked) < interval) {
            return;
        }
        self.candidacy.asked = Some(now);
        self.candidacy.rounds += 1;
        let peers: Vec<_> = self.reachable(now).map(|(key, _)| *key).collect();
        for peer in peers {
            self.figures.questions_total += 1;
            let question = Question { number: self.figures.questions_total, claim: self.accepted };
            self.send(peer, Message::Question(question));
        }
    }

    fn is_confirmed(&self, now: Moment) -> bool {
        let gone = self.following.as_ref().is_some_and(|following| following.gone);
        if gone || !self.config.mechanisms.confirmation {
            return true;
        }
        2 * self.confirming(now).count() >= self.reachable(now).count()
    }

    /// Those we hear who answered lately that they lost the representative too.
    fn confirming(&self, now: Moment) -> impl Iterator<Item = &Link> {
        let fresh = move |link: &&Link| {
            link.answer.as_ref().is_some_and(|a| a.lost && now.since(a.at) < self.config.answer_kept)
        };
        self.reachable(now).map(|(_, link)| link).filter(fresh)
    }

    /// How many will obey us, ourselves included, as far as they said and have not found another since.
    pub(super) fn promised(&self, now: Moment) -> u16 {
        let promised = self.confirming(now).filter(|link| link.view.lost).count();
        u16::try_from(promised + 1).unwrap_or(u16::MAX)
    }

    /// Whether somebody who hears us represents the domain already, and only waits for our word that we lost ours. Not for long:
    /// whoever does not take us in by then is none to us.
    pub(super) fn is_taken(&self, now: Moment) -> bool {
        let turn = self.candidacy.since.zip(self.wait(now)).map(|(since, wait)| since.plus(wait));
        if turn.is_none_or(|turn| now >= turn.plus(self.config.suspicion * 2)) {
            return false;
        }
        let patience = self.patience(1, now);
        self.reachable(now).any(|(key, link)| {
            let reigns = |claim: Claim| {
                claim.holder == *key
                    && claim.term >= self.floor
                    && self.accepted.is_none_or(|ours| claim > ours)
            };
            let hears_us = link.hears_us.is_some_and(|ago| ago < patience);
            link.standing.may_represent && link.view.claim.is_some_and(reigns) && !link.view.lost && hears_us
        })
    }

    /// A peer asks whether we lost its representative too.
    pub(super) fn answer(&mut self, from: PeerKey, question: Question, now: Moment) {
        let lost = self.is_lost(now);
        if let Some(accepted) = self.accepted
            && !lost
            && question.claim != Some(accepted)
            && accepted.holder != from
        {
            self.redirect(from, accepted, now);
        }
        let best = if lost { self.best(from, now) } else { None };
        let view = self.view(now);
        self.send(from, Message::Answer(Answer { number: question.number, lost, view, best }));
    }

    /// The candidate whose turn is first, of those we hear and ourselves; `None` if that is the asker.
    fn best(&self, asker: PeerKey, now: Moment) -> Option<Box<Member>> {
        let ours = self.may_stand(now).then_some((self.turn(self.me.key, self.rank), None));
        let fit = |link: &Link| link.may_stand && link.standing.may_represent;
        let heard = self.reachable(now).filter(|(_, link)| fit(link));
        let heard = heard.filter_map(|(key, link)| {
            link.member.as_ref().map(|member| (self.turn(*key, link.rank), Some(member)))
        });
        let (_, best) = ours.into_iter().chain(heard).min_by_key(|(turn, _)| *turn)?;
        let best = best.cloned().unwrap_or_else(|| self.about_us());
        (best.key != asker).then(|| Box::new(best))
    }

    /// A peer answered.
    pub(super) fn answered(&mut self, from: PeerKey, answer: Answer, now: Moment) {
        if !self.note_terms(&answer.view, Term::NONE) {
            return;
        }
        let Some(link) = self.links.get_mut(&from) else { return };
        let (number, view) = (answer.number, answer.view);
        link.answered(answer, now);
        if let Duty::Representative(_) = self.duty {
            self.rechecked(from, number, view, now);
            return;
        }
        let best = link.answer.as_ref().and_then(|answer| answer.best.clone());
        if let Some(best) = best.filter(|best| best.key != self.me.key)
            && self.is_lost(now)
        {
            if self.pointed.is_none() && !self.links.contains_key(&best.key) {
                self.pointed = Some(best);
                self.reach(now);
            }
            self.attend(now);
        } else if self.is_lost(now) {
            self.attend(now);
        }
    }
}
