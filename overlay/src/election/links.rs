//! Links that are up, by peer.
//!
//! Pure. Invariant: one link per peer, and at most [`LINKS_MAX`].
//! Not here: which links are needed (`node::connections`), dials (`dialer`).

use super::link::Link;
use crate::membership::MEMBERS_MAX;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::PeerKey;
use wire::membership::{Claim, Load, TableVersion};
use wire::time::Moment;

/// Most links: every member, and as many again that come and go.
const LINKS_MAX: usize = 2 * MEMBERS_MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<PeerKey, Link>,
}

impl Links {
    /// Add a link. Returns false, and adds nothing, if there are too many.
    pub(super) fn insert(&mut self, peer: PeerKey, link: Link) -> bool {
        let has_room = self.links.len() < LINKS_MAX;
        if has_room {
            self.links.insert(peer, link);
        }
        has_room
    }

    pub(super) fn remove(&mut self, peer: &PeerKey) -> Option<Link> {
        self.links.remove(peer)
    }

    pub(super) fn get(&self, peer: &PeerKey) -> Option<&Link> {
        self.links.get(peer)
    }

    pub(super) fn get_mut(&mut self, peer: &PeerKey) -> Option<&mut Link> {
        self.links.get_mut(peer)
    }

    pub(super) fn contains(&self, peer: &PeerKey) -> bool {
        self.links.contains_key(peer)
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    /// Every link, by key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&PeerKey, &Link)> {
        self.links.iter()
    }

    pub(super) fn peers(&self) -> Vec<PeerKey> {
        self.links.keys().copied().collect()
    }

    pub(super) fn load(&self, peer: &PeerKey) -> Option<Load> {
        self.links.get(peer).map(|link| link.report().load)
    }

    /// The followers under `claim` that lack changes of the table at `held`, each with what it holds.
    pub(super) fn needing_table(
        &mut self,
        claim: Claim,
        held: TableVersion,
        now: Moment,
    ) -> Vec<(PeerKey, TableVersion)> {
        let behind = self.links.iter_mut().filter_map(|(key, link)| {
            let needs = link.needs_table(claim, held, now);
            needs.then(|| (*key, link.view().held))
        });
        behind.collect()
    }

    /// A recheck starts: no peer has confirmed yet.
    pub(super) fn clear_confirmations(&mut self) {
        self.links.values_mut().for_each(|link| link.set_confirmed(false));
    }

    /// How many peers confirmed the claim, of how many that were heard and have not left.
    pub(super) fn confirmations(&self) -> (usize, usize) {
        let heard = || self.links.values().filter(|link| link.last_heard().is_some() && !link.has_left());
        (heard().filter(|link| link.is_confirmed()).count(), heard().count())
    }

    /// Whether a peer that was heard within `patience` has accepted a term above `claim` and has no
    /// representative now: it cannot obey `claim`.
    pub(super) fn has_stuck_peer(&self, claim: Claim, patience: Duration, now: Moment) -> bool {
        self.links.values().any(|link| {
            let view = link.view();
            let is_above = view.floor > claim.term && !link.obeys(claim);
            let is_free = view.lost || view.claim.is_none_or(|other| other < claim);
            is_above && is_free && link.is_fresh(patience, now)
        })
    }
}
