//! Members of the domain: the table, and changes that no representative has reported yet.
//!
//! Pure. Invariant: a member that is in the table is not in `recently_linked`; both lists are bounded.
//! Not here: the rules of the table (`membership`), which peers are linked (`links`).

use super::Config;
use super::link::Link;
use super::links::Links;
use super::local_sensor::LocalSensor;
use crate::membership::{MEMBERS_MAX, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::membership::{Member, Members, Reign, State, TableVersion, Term};
use wire::time::Moment;

#[derive(Clone, Debug)]
pub(super) struct Roster {
    table: Table,
    /// Members whose link ended before the representative reported them: this sensor adds them to the table
    /// if it becomes representative.
    recently_linked: BTreeMap<PeerKey, Member>,
    /// Members that left while another sensor was representative: marked in the table at the next promotion.
    departed: BTreeSet<PeerKey>,
}

impl Roster {
    pub(super) fn new(domain: DomainName) -> Roster {
        Roster { table: Table::new(domain), recently_linked: BTreeMap::new(), departed: BTreeSet::new() }
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn digest(&mut self) -> u64 {
        self.table.digest()
    }

    /// A member of the table.
    pub(super) fn member(&self, key: &PeerKey) -> Option<&Member> {
        self.table.get(key).map(|row| &row.member)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.table.rows().map(|row| &row.member)
    }

    /// A link to `peer` is up.
    pub(super) fn linked(&mut self, peer: &PeerKey) {
        self.departed.remove(peer);
        self.recently_linked.remove(peer);
    }

    /// A link ended: its peer is remembered if no representative has reported it.
    pub(super) fn unlinked(&mut self, link: &Link, represents: bool, now: Moment) {
        let Some(member) = link.member().filter(|member| self.member(&member.key).is_none()) else { return };
        if represents {
            let state = if link.has_left() { State::Left } else { State::Suspect };
            self.table.put(Member { state, ..member.clone() }, now);
        } else if self.recently_linked.len() < MEMBERS_MAX {
            self.recently_linked.insert(member.key, member.clone());
        }
    }

    /// A peer said that it leaves.
    pub(super) fn left(&mut self, peer: PeerKey, represents: bool, now: Moment) {
        if represents {
            self.table.mark(&peer, State::Left, now);
        } else if self.departed.len() < MEMBERS_MAX {
            self.departed.insert(peer);
        }
    }

    /// Another sensor is the representative from now on: it marks departed members itself.
    pub(super) fn follow(&mut self) {
        self.departed.clear();
    }

    /// Apply changes of the leader's table.
    pub(super) fn apply(&mut self, members: Members, now: Moment) {
        self.table.apply(members, now);
        self.recently_linked.retain(|key, _| self.table.get(key).is_none());
    }

    /// Compare the copy with what the leader reports; returns false, and requests the whole table, if it
    /// differs.
    pub(super) fn verify(&mut self, reign: &Reign) -> bool {
        let is_same_version = self.table.held() == TableVersion { term: reign.term, version: reign.version };
        let is_equal = !is_same_version || self.table.digest() == reign.digest;
        if !is_equal {
            self.table.doubt();
        }
        is_equal
    }

    /// Add what a previous representative knew; its members are suspect until they are heard.
    pub(super) fn merge(&mut self, members: Vec<Member>, me: PeerKey, now: Moment) {
        for member in members.into_iter().filter(Member::is_bounded) {
            let is_known = self.table.get(&member.key).is_some();
            if !is_known && member.key != me && member.state != State::Left {
                self.table.put(Member { state: State::Suspect, ..member }, now);
            }
        }
    }

    /// The table is this sensor's own under `term`.
    pub(super) fn own(&mut self, term: Term, now: Moment) {
        self.table.own(term, now);
    }

    /// Bring the table up to date after a promotion: a peer with a link is in it, though the previous
    /// representative may not have reported it, and one without a link is not alive.
    pub(super) fn take_over(&mut self, links: &Links, me: PeerKey, now: Moment) {
        let linked = links.iter().filter(|(_, link)| !link.has_left());
        let linked = linked.filter_map(|(_, link)| link.member().cloned());
        let recent = std::mem::take(&mut self.recently_linked).into_values();
        let unknown: Vec<_> =
            linked.chain(recent).filter(|member| self.table.get(&member.key).is_none()).collect();
        for member in unknown {
            self.table.put(Member { state: State::Suspect, ..member }, now);
        }
        for key in std::mem::take(&mut self.departed) {
            self.table.mark(&key, State::Left, now);
        }
        let is_silent = |member: &&Member| {
            member.key != me && !links.contains(&member.key) && member.state == State::Alive
        };
        let silent: Vec<_> = self.members().filter(is_silent).map(|member| member.key).collect();
        for key in silent {
            self.table.mark(&key, State::Suspect, now);
        }
    }

    /// Bring the table up to date in a round of the representative: add and refresh the peers that are heard,
    /// mark the silent ones, drop those that are gone for long.
    pub(super) fn refresh(
        &mut self,
        local: &LocalSensor,
        links: &Links,
        (patience, stretch): (Duration, u32),
        config: &Config,
        now: Moment,
    ) {
        self.table.meet(local.member(), now);
        for (key, link) in links.iter() {
            if let Some(member) = link.member()
                && link.is_fresh(link.patience(patience, config.suspicion), now)
            {
                if self.member(key) != Some(member) {
                    self.table.meet(member.clone(), now);
                }
                self.table.touch(key, now);
            }
        }
        self.mark_silent(local.key(), links, stretch, config, now);
        self.table.forget(config.dead_kept, config.left_kept, now);
    }

    fn mark_silent(&mut self, me: PeerKey, links: &Links, stretch: u32, config: &Config, now: Moment) {
        let suspect_after = config.suspicion * 2 * stretch / 100;
        let dead_after = config.member_dead * stretch / 100;
        let mut changes = Vec::new();
        for row in self.table.rows().filter(|row| row.member.key != me) {
            let silence = now.since(row.heard);
            let peer_stretch = links.get(&row.member.key).map_or(1, |link| u32::from(link.report().stretch));
            let is_dead = silence >= dead_after.max(config.member_dead * peer_stretch);
            let is_suspect = silence >= suspect_after.max(config.suspicion * peer_stretch);
            let state = match row.member.state {
                State::Alive | State::Suspect if is_dead => State::Dead,
                State::Alive if is_suspect => State::Suspect,
                State::Alive | State::Suspect | State::Dead | State::Left => continue,
            };
            changes.push((row.member.key, state));
        }
        for (key, state) in changes {
            self.table.mark(&key, state, now);
        }
    }
}
