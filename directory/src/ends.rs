//! What of the table ends next: leases, the keeping of leaves, and which domain is longest gone.
//!
//! Pure. Invariant: a domain is in these orders exactly as its entry says; code that changes an entry takes it
//! out before and puts it in again after.
//! Not here: the entries, and what is done when something ends (`registry`).

use crate::entry::{Entry, Held};
use crate::registry::LEAVE_KEPT;
use std::collections::BTreeSet;
use wire::id::{DomainName, PeerKey};
use wire::time::Moment;

/// The orders.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Live statements by the end of their lease.
    leases: BTreeSet<(Moment, DomainName, PeerKey)>,
    /// Domains without a live statement, longest gone first; milliseconds on the directory's clock, below zero
    /// for one restored from before that clock began.
    gone: BTreeSet<(i64, DomainName)>,
    /// Signed leaves by the end of the time that they are kept.
    leaves: BTreeSet<(Moment, DomainName)>,
}

impl Ends {
    /// Put a domain in, as its entry says.
    pub(crate) fn put_in(&mut self, domain: &DomainName, entry: &Entry) {
        for slot in entry.slots() {
            if let Held::Until(until) = slot.held {
                self.leases.insert((until, domain.clone(), slot.opened.peer()));
            }
        }
        if !entry.is_live() {
            self.gone.insert((entry.gone_since, domain.clone()));
        }
        if let Some(until) = leave_until(entry) {
            self.leaves.insert((until, domain.clone()));
        }
    }

    /// Take it out, by the same entry.
    pub(crate) fn take_out(&mut self, domain: &DomainName, entry: &Entry) {
        for slot in entry.slots() {
            if let Held::Until(until) = slot.held {
                self.leases.remove(&(until, domain.clone(), slot.opened.peer()));
            }
        }
        self.gone.remove(&(entry.gone_since, domain.clone()));
        if let Some(until) = leave_until(entry) {
            self.leaves.remove(&(until, domain.clone()));
        }
    }

    /// A domain with a lease that is over at `now`.
    pub(crate) fn lease_over(&self, now: Moment) -> Option<DomainName> {
        self.leases.first().filter(|(until, ..)| *until <= now).map(|(_, domain, _)| domain.clone())
    }

    /// A domain whose leave need not be kept any more at `now`.
    pub(crate) fn leave_over(&self, now: Moment) -> Option<DomainName> {
        self.leaves.first().filter(|(until, _)| *until <= now).map(|(_, domain)| domain.clone())
    }

    /// The domain that is longest gone.
    pub(crate) fn longest_gone(&self) -> Option<DomainName> {
        self.gone.first().map(|(_, domain)| domain.clone())
    }

    /// When the next lease, or the keeping of the next leave, ends.
    pub(crate) fn next(&self) -> Option<Moment> {
        let lease = self.leases.first().map(|(until, ..)| *until);
        let leave = self.leaves.first().map(|(until, _)| *until);
        lease.into_iter().chain(leave).min()
    }
}

/// Until when a signed leave is kept; `None` if there is none.
fn leave_until(entry: &Entry) -> Option<Moment> {
    let left = entry.left.as_ref().filter(|left| left.signed.is_some())?;
    Some(left.heard.plus(LEAVE_KEPT.saturating_sub(left.age_before)))
}
