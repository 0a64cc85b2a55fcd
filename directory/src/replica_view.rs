//! The table as another directory sees it: its summary by numbers, what it lacks, what it replicates.
//!
//! Pure. Rule: an item from another directory is valid for at most its remaining time there; the same number
//! received again changes nothing; a statement of this process is never sent.
//! Not here: when directories exchange items (`replicate`).

use crate::opened::{Opened, OpenedDenial, OpenedItem};
use crate::registry::outcome::Refused;
use crate::registry::{Registry, Source};
use std::time::Duration;
use wire::id::DomainName;
use wire::replication::{BUCKETS, Detail};
use wire::time::Moment;

#[allow(clippy::cast_possible_truncation)] // A thousand.
pub(crate) const BUCKETS_U16: u16 = BUCKETS as u16;

impl Registry {
    /// The digest, which another directory compares with its own.
    #[must_use]
    pub fn sums(&self) -> &[u64] {
        self.buckets.sums()
    }

    /// Details of the domains in buckets where `sums` differ, for `buckets` buckets from bucket `start`.
    /// Returns them with the number of buckets examined before the limit of `most` domains.
    #[must_use]
    pub fn details(&self, start: u16, buckets: u16, sums: &[u64], most: usize) -> (Vec<Detail>, u16) {
        let mut details = Vec::new();
        let buckets = buckets.min(BUCKETS_U16);
        for step in 0..buckets {
            let Some(names) = self.buckets.differing(usize::from(start) + usize::from(step), sums) else {
                continue;
            };
            if details.len() + names.len() > most && !details.is_empty() {
                return (details, step);
            }
            // A bucket holds about a hundredth of what fits in an answer; only names chosen on purpose could
            // fill one.
            details.extend(names.iter().filter_map(|name| self.detail(name)).take(most));
        }
        (details, buckets)
    }

    /// Summary of `domain` for other directories.
    #[must_use]
    pub fn detail(&self, domain: &DomainName) -> Option<Detail> {
        self.entries.get(domain)?.detail(domain)
    }

    /// Whether a directory that holds `detail` has anything that is missing here.
    #[must_use]
    pub fn lacks(&self, detail: &Detail) -> bool {
        match self.entries.get(&detail.domain) {
            Some(entry) => entry.lacks(detail),
            None => true,
        }
    }

    /// All items of `domain` to replicate, with their remaining time at `now`.
    #[must_use]
    pub fn items(&self, domain: &DomainName, now: Moment) -> Vec<OpenedItem> {
        let Some(entry) = self.entries.get(domain) else { return Vec::new() };
        let now = self.latest.max(now);
        let signed = entry.slots().iter().filter(|slot| slot.opened.statement().is_some());
        let statements = signed.map(|slot| {
            let answer = slot.answer(now);
            let opened = slot.opened.clone();
            OpenedItem::Statement { opened, age: answer.age, remaining: answer.lease_remaining }
        });
        let farewell = entry
            .left
            .as_ref()
            .and_then(|left| Some(OpenedItem::Farewell { left: left.signed.clone()?, age: left.age(now) }));
        let denials = entry.denials().iter().cloned().map(OpenedItem::Denial);
        statements.chain(farewell).chain(denials).collect()
    }

    /// Merge an item from another directory that was requested at most `elapsed` ago. Returns whether
    /// anything changed.
    ///
    /// # Errors
    /// As [`Registry::register`] and [`Registry::leave`]; an item that is behind the table is not an error
    /// here.
    pub fn merge(&mut self, item: OpenedItem, elapsed: Duration, now: Moment) -> Result<bool, Refused> {
        self.expire(now);
        let revision = self.revision();
        match item {
            OpenedItem::Statement { opened, age, remaining } => {
                let age = age.saturating_add(elapsed);
                let remaining = remaining.saturating_sub(elapsed);
                match self.take(opened, Source { age, lease: Some(remaining) }) {
                    Ok(_) | Err(Refused::Behind { .. } | Refused::Left { .. } | Refused::Crowded { .. }) => {}
                    Err(refused) => return Err(refused),
                }
            }
            OpenedItem::Farewell { left, age } => match self.leave(left, age.saturating_add(elapsed), now) {
                Ok(_) | Err(Refused::Left { .. }) => {}
                Err(refused) => return Err(refused),
            },
            OpenedItem::Denial(denial) => return self.deny(denial),
        }
        let changed = self.revision() != revision;
        self.counts.merged_total += u64::from(changed);
        Ok(changed)
    }

    /// Store a revocation list if it is newer than the stored one. Returns whether it was.
    ///
    /// # Errors
    /// If the domain is new and the table is full.
    pub fn deny(&mut self, denial: OpenedDenial) -> Result<bool, Refused> {
        let domain = denial.domain.clone();
        match self.entries.get(&domain) {
            Some(entry) if !entry.is_newer_denial(denial.number) => return Ok(false),
            Some(_) => {}
            None => self.make_place(&domain)?,
        }
        self.change(&domain, |entry| entry.deny(denial));
        Ok(true)
    }

    /// Newest revocation lists of `domain`: at most one of its root and one of its issuer.
    #[must_use]
    pub fn denials(&self, domain: &DomainName) -> &[OpenedDenial] {
        self.entries.get(domain).map_or(&[], |entry| entry.denials())
    }

    /// Count an item from another directory that the table refused.
    pub(crate) fn count_refused(&mut self) {
        self.counts.refused_total += 1;
    }

    /// Insert a record from a snapshot, `age` old, as last seen and never live.
    ///
    /// # Errors
    /// As [`Registry::register`]; a live record in the table stays.
    pub fn restore(&mut self, opened: Opened, age: Duration, now: Moment) -> Result<(), Refused> {
        self.expire(now);
        self.take(opened, Source { age, lease: None })
            .map(|_| ())
            .inspect_err(|_| self.counts.refused_total += 1)
    }
}
