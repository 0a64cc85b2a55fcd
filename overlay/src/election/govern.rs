//! What a representative does each heartbeat: who is there, who stands by, what the members are told.
//!
//! Pure. Coverage is who is heard and obeys. The domain is partial if hosts are missing that another
//! representative may speak for: any host lately, or a share of them (see `Config::partial_recent`); and while members
//! that are there do not obey yet: any in a new reign, half of them later.
//! Not here: heartbeats (`beat`), what the reporting layer collects.

use super::link::Link;
use super::node::{Duty, Node};
use crate::membership::MEMBERS_MAX;
use wire::id::PeerKey;
use wire::membership::{Member, Message, State};
use wire::time::Moment;

/// How often the same change of the table is sent to one member, at most: until its heartbeat says that it
/// has it.
const TABLE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(900);

/// A sensor that stretches its timers by more than this is a poor standby.
const STANDBY_STRETCH_MAX: u8 = 3;

impl Node {
    /// A representative's round.
    pub(super) fn govern(&mut self, now: Moment) {
        self.recheck(now);
        if !matches!(self.duty, Duty::Representative(_)) {
            return;
        }
        self.call_roll(now);
        self.choose_standbys(now);
        self.contest(now);
        self.tell_table(now);
        self.prefer(now);
    }

    /// At the beginning of a reign: whoever has a link is in the table, though the former representative may not have told of
    /// it yet, and whoever has none is not taken for alive.
    pub(super) fn call_first_roll(&mut self, now: Moment) {
        let linked = self.links.values().filter(|link| !link.left).filter_map(|link| link.member.clone());
        let met = std::mem::take(&mut self.met).into_values();
        let unknown: Vec<_> =
            linked.chain(met).filter(|member| self.table.get(&member.key).is_none()).collect();
        for member in unknown {
            self.table.put(Member { state: State::Suspect, ..member }, now);
        }
        for key in std::mem::take(&mut self.gone) {
            self.table.mark(&key, State::Left, now);
        }
        let keys: Vec<_> = self.table.rows().map(|row| row.member.key).collect();
        for key in keys {
            if key != self.me.key
                && !self.links.contains_key(&key)
                && self.table.get(&key).is_some_and(|row| row.member.state == State::Alive)
            {
                self.table.mark(&key, State::Suspect, now);
            }
        }
    }

    /// A link ended: a sensor that was reported to no one yet is not forgotten with it.
    pub(super) fn remember(&mut self, link: Link, now: Moment) {
        let Some(member) = link.member.filter(|member| self.table.get(&member.key).is_none()) else { return };
        if matches!(self.duty, Duty::Representative(_)) {
            let state = if link.left { State::Left } else { State::Suspect };
            self.table.put(Member { state, ..member }, now);
        } else if self.met.len() < MEMBERS_MAX {
            self.met.insert(member.key, member);
        }
    }

    /// Who is there, who obeys, whether that is the whole domain.
    fn call_roll(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let (claim, since) = (rule.claim, rule.since);
        let patience = self.patience(1, now);
        self.table.meet(self.about_us(), now);
        let mut coverage = vec![self.me.key];
        let (mut weight, mut surely) = (1, 1);
        for (key, link) in &self.links {
            let Some(heard) = link.heard.filter(|_| !link.left) else { continue };
            let patience = patience.max(self.config.suspicion * u32::from(link.stretch));
            if let Some(member) = &link.member
                && now.since(heard) < patience
            {
                let known = self.table.get(key).is_some_and(|row| row.member == *member);
                if !known {
                    self.table.meet(member.clone(), now);
                }
                self.table.touch(key, now);
            }
            // Silence ends coverage only with the link or death: a burst of loss changes no list.
            if now.since(heard) < self.config.member_dead && link.view.claim == Some(claim) {
                coverage.push(*key);
                weight += u16::from(now.since(heard) < patience);
                surely += u16::from(now.since(heard) < self.config.suspicion);
            }
        }
        coverage.sort_unstable();
        self.mark_silent(now);
        self.table.forget(self.config.dead_kept, self.config.left_kept, now);
        let partial = self.is_partial(&coverage, since, now);
        if let Duty::Representative(rule) = &mut self.duty {
            rule.coverage = coverage;
            rule.weight = weight;
            rule.surely = surely;
            rule.partial = partial;
        }
    }

    fn mark_silent(&mut self, now: Moment) {
        let stretch = self.stretch(now);
        let suspect = self.config.suspicion * 2 * stretch / 100;
        let dead = self.config.member_dead * stretch / 100;
        let mut silent = Vec::new();
        for row in self.table.rows() {
            let silence = now.since(row.heard);
            let told = self.links.get(&row.member.key).map_or(1, |link| u32::from(link.stretch));
            let state = match row.member.state {
                State::Alive | State::Suspect if silence >= dead.max(self.config.member_dead * told) => {
                    State::Dead
                }
                State::Alive if silence >= suspect.max(self.config.suspicion * told) => State::Suspect,
                State::Alive | State::Suspect | State::Dead | State::Left => continue,
            };
            silent.push((row.member.key, state));
        }
        for (key, state) in silent.into_iter().filter(|(key, _)| *key != self.me.key) {
            self.table.mark(&key, state, now);
        }
    }

    fn is_partial(&self, coverage: &[PeerKey], since: Moment, now: Moment) -> bool {
        let is_new = now.since(since) < self.config.suspicion * 2;
        let (mut known, mut missing, mut lately, mut uncovered) = (0, 0, false, 0);
        for row in self.table.rows().filter(|row| row.member.state != State::Left) {
            known += 1;
            if coverage.binary_search(&row.member.key).is_ok() {
                continue;
            }
            uncovered += 1;
            let link = self.links.get(&row.member.key);
            let elsewhere = link.is_some_and(|link| {
                !link.view.lost && link.view.claim.is_some() && now.since(link.since) > self.config.suspicion
            });
            let gone = row.member.state != State::Alive && link.is_none_or(|link| link.heard.is_some());
            if gone || elsewhere {
                missing += 1;
                lately |= now.since(row.since) < self.config.partial_recent;
            }
        }
        let stranded = self.config.has_seeds && known <= 1;
        // Those that are there and have not said yet that they obey.
        let unheard = uncovered > 0 && (is_new || 2 * uncovered >= known);
        stranded || unheard || lately || missing * 100 > known * self.config.partial_percent
    }

    /// Who is fit to stand by: the present ones while they are, then by rank; those who lost the role lately come last.
    fn choose_standbys(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let patience = self.patience(1, now) * 2;
        let fit = |key: &PeerKey| {
            self.links.get(key).is_some_and(|link| {
                link.standing.may_represent
                    && link.member.is_some()
                    && link.is_fresh(patience.max(self.config.suspicion * u32::from(link.stretch)), now)
                    && link.view.claim == Some(rule.claim)
            })
        };
        let lags = |key: &PeerKey| self.links.get(key).is_some_and(|link| link.stretch > STANDBY_STRETCH_MAX);
        let cools_off = |key: &PeerKey| self.links.get(key).is_some_and(|link| !link.may_stand);
        let stays = |key: &PeerKey| fit(key) && !lags(key) && !cools_off(key);
        let mut standbys: Vec<_> = rule.standbys.iter().copied().filter(stays).collect();
        if standbys.len() < self.config.standbys {
            let rank = |key: &PeerKey| self.links.get(key).map(|link| link.rank);
            let mut others: Vec<_> = rule
                .coverage
                .iter()
                .filter(|key| fit(key) && !standbys.contains(key))
                .map(|key| (cools_off(key), lags(key), rank(key), *key))
                .collect();
            others.sort();
            let room = self.config.standbys - standbys.len();
            standbys.extend(others.into_iter().take(room).map(|(_, _, _, key)| key));
        }
        if let Duty::Representative(rule) = &mut self.duty {
            rule.standbys = standbys;
        }
    }

    /// A sensor that once obeyed a higher term, and has no one now, cannot obey ours: raise it.
    fn contest(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let (claim, contested) = (rule.claim, rule.contested);
        let patience = self.patience(1, now);
        let stuck = self.links.values().any(|link| {
            let above = link.view.floor > claim.term && link.view.claim != Some(claim);
            let free = link.view.lost || link.view.claim.is_none_or(|other| other < claim);
            above && free && link.is_fresh(patience, now)
        });
        let since = contested.unwrap_or(now);
        if let Duty::Representative(rule) = &mut self.duty {
            rule.contested = stuck.then_some(since);
        }
        if stuck && now.since(since) >= self.config.reassert {
            self.raise(now);
        }
    }

    /// Send what changed to every follower that lacks it.
    fn tell_table(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        let claim = rule.claim;
        let held = self.table.held();
        let mut behind = Vec::new();
        for (key, link) in &mut self.links {
            let lacks = link.view.claim == Some(claim) && link.view.held != held;
            let sent = link
                .sent
                .is_some_and(|(version, at)| version == held.version && now.since(at) < TABLE_INTERVAL);
            if lacks && !sent {
                link.sent = Some((held.version, now));
                behind.push((*key, link.view.held));
            }
        }
        for (key, from) in behind {
            let members = self.table.changes_since(from, now);
            self.send(key, Message::Members(members));
        }
    }

    /// After a long and healthy reign, follow the operator's wish.
    fn prefer(&mut self, now: Moment) {
        let Duty::Representative(rule) = &self.duty else { return };
        if now.since(rule.since) < self.config.sticky || rule.raising.is_some() {
            return;
        }
        let patience = self.patience(1, now);
        let fit = self.links.iter().filter(|(_, link)| {
            link.standing.may_represent
                && link.may_stand
                && link.standing.priority > self.me.standing.priority
                && link.stretch == 1
                && now.since(link.since) >= self.config.sticky
                && link.is_fresh(patience, now)
                && link.view.claim == Some(rule.claim)
        });
        let best = fit.min_by_key(|(_, link)| link.rank).map(|(key, _)| *key);
        if let Some(best) = best {
            self.resign_to(best, now);
        }
    }
}
