//! Coverage of a representative: the sensors that acknowledge its claim.
//!
//! Pure. Three counts are taken, from generous to strict: the list of sensors that obey and are not dead,
//! which is published; those heard within the patience, which is compared with other representatives; those
//! heard within the suspicion whatever stretches the timers (`strict`), which is sent to others, so that only
//! what is surely heard replaces another representative.
//! Not here: what larger coverage means (`node::claims`).

use super::Config;
use super::links::Links;
use super::roster::Roster;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, State};
use wire::time::Moment;

#[derive(Clone, Debug)]
pub(super) struct Coverage {
    /// Sorted by key, this sensor included.
    members: Vec<PeerKey>,
    reachable: u16,
    strict: u16,
    /// How many of the sensors that were asked before the promotion had lost the previous leader, this one
    /// included: so many acknowledgements are expected, once they had the time to send them.
    expected_acks: u16,
    is_partial: bool,
}

impl Coverage {
    /// Coverage at the promotion: this sensor only.
    pub(super) fn new(me: PeerKey, expected_acks: u16) -> Coverage {
        Coverage { members: vec![me], reachable: 1, strict: 1, expected_acks, is_partial: false }
    }

    pub(super) fn members(&self) -> &[PeerKey] {
        &self.members
    }

    pub(super) fn reachable(&self) -> u16 {
        self.reachable
    }

    pub(super) fn strict(&self) -> u16 {
        self.strict
    }

    pub(super) fn expected_acks(&self) -> u16 {
        self.expected_acks
    }

    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Count the sensors that obey `claim`.
    pub(super) fn count(
        &mut self,
        me: PeerKey,
        claim: Claim,
        links: &Links,
        patience: Duration,
        config: &Config,
        now: Moment,
    ) {
        self.members = vec![me];
        (self.reachable, self.strict) = (1, 1);
        for (key, link) in links.iter() {
            // Silence ends coverage only with the link or with death: a burst of loss changes no list.
            if link.is_fresh(config.member_dead, now) && link.obeys(claim) {
                self.members.push(*key);
                self.reachable += u16::from(link.is_fresh(link.patience(patience, config.suspicion), now));
                self.strict += u16::from(link.is_fresh(config.suspicion, now));
            }
        }
        self.members.sort_unstable();
    }

    /// Decide whether the domain is partial: whether hosts are missing that another representative may cover.
    /// That is any host that went missing recently, or a share of them (see [`Config::partial_recent`]), or
    /// members that are there and do not obey yet: any of them in a new reign, half of them later.
    pub(super) fn update_partial(
        &mut self,
        links: &Links,
        roster: &Roster,
        since: Moment,
        config: &Config,
        now: Moment,
    ) {
        let is_new = now.since(since) < config.suspicion * 2;
        let (mut known, mut missing, mut is_recent, mut uncovered) = (0, 0, false, 0);
        for row in roster.table().rows().filter(|row| row.member.state != State::Left) {
            known += 1;
            if self.members.binary_search(&row.member.key).is_ok() {
                continue;
            }
            uncovered += 1;
            let link = links.get(&row.member.key);
            let obeys_another = link.is_some_and(|link| {
                let view = link.view();
                !view.lost && view.claim.is_some() && now.since(link.since()) > config.suspicion
            });
            let is_gone =
                row.member.state != State::Alive && link.is_none_or(|link| link.last_heard().is_some());
            if is_gone || obeys_another {
                missing += 1;
                is_recent |= now.since(row.since) < config.partial_recent;
            }
        }
        let is_stranded = config.has_seeds && known <= 1;
        let lacks_acks = uncovered > 0 && (is_new || 2 * uncovered >= known);
        let is_share = missing * 100 > known * config.partial_percent;
        self.is_partial = is_stranded || lacks_acks || is_recent || is_share;
    }
}
