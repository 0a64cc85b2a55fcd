//! Expiry indexes of the table: the next lease to end, the next leave to drop, the domain that is gone
//! longest.
//!
//! Pure. Invariant: the indexes agree with the entry of each domain; code that changes an entry removes it
//! from the indexes before and inserts it again after.
//! Not here: the entries, and what happens at an expiry (`registry`).

use super::LEAVE_KEPT;
use super::entry::{Entry, Validity};
use std::collections::BTreeSet;
use wire::id::{DomainName, PeerKey};
use wire::time::Moment;

/// The three indexes.
#[derive(Debug, Default)]
pub(crate) struct ExpiryIndex {
    /// Live statements, sorted by the end of their lease.
    leases: BTreeSet<(Moment, DomainName, PeerKey)>,
    /// Domains without a live statement, longest gone first. The time is in milliseconds on the directory's
    /// clock, and negative for a domain restored from before that clock started.
    gone: BTreeSet<(i64, DomainName)>,
    /// Signed leaves, sorted by the end of their retention.
    leaves: BTreeSet<(Moment, DomainName)>,
}

impl ExpiryIndex {
    /// Insert a domain with the times of its entry.
    pub(crate) fn put_in(&mut self, domain: &DomainName, entry: &Entry) {
        for slot in entry.slots() {
            if let Validity::Until(until) = slot.validity {
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

    /// Remove a domain; `entry` must be unchanged since it was inserted.
    pub(crate) fn take_out(&mut self, domain: &DomainName, entry: &Entry) {
        for slot in entry.slots() {
            if let Validity::Until(until) = slot.validity {
                self.leases.remove(&(until, domain.clone(), slot.opened.peer()));
            }
        }
        self.gone.remove(&(entry.gone_since, domain.clone()));
        if let Some(until) = leave_until(entry) {
            self.leaves.remove(&(until, domain.clone()));
        }
    }

    /// A domain with a lease that has ended at `now`.
    pub(crate) fn lease_over(&self, now: Moment) -> Option<DomainName> {
        self.leases.first().filter(|(until, ..)| *until <= now).map(|(_, domain, _)| domain.clone())
    }

    /// A domain with a signed leave whose retention has ended at `now`.
    pub(crate) fn leave_over(&self, now: Moment) -> Option<DomainName> {
        self.leaves.first().filter(|(until, _)| *until <= now).map(|(_, domain)| domain.clone())
    }

    /// The domain that has been gone for the longest time.
    pub(crate) fn longest_gone(&self) -> Option<DomainName> {
        self.gone.first().map(|(_, domain)| domain.clone())
    }

    /// The next end of a lease or of the retention of a leave.
    pub(crate) fn next(&self) -> Option<Moment> {
        let lease = self.leases.first().map(|(until, ..)| *until);
        let leave = self.leaves.first().map(|(until, _)| *until);
        lease.into_iter().chain(leave).min()
    }
}

/// End of the retention of the signed leave; `None` if there is no signed leave.
fn leave_until(entry: &Entry) -> Option<Moment> {
    let left = entry.left.as_ref().filter(|left| left.signed.is_some())?;
    Some(left.heard.plus(LEAVE_KEPT.saturating_sub(left.age_before)))
}
