//! Lease table of the directory: which representative answers for a domain, and until when.
//!
//! Pure: it has no clock; callers pass `now`, a moment on a clock that never goes back.
//! Invariants: the statement with the highest number of a domain is answered first; terms never go down; only
//! a higher number of the same representative starts a lease, and neither a repeated statement nor another
//! directory extends it; an expired record stays as last seen until the table needs its place; nothing at or
//! below a leave is accepted again.
//! Not here: the rules within one domain (`entry`), the expiry indexes (`expiry_index`), the exchange with other
//! directories (`replica_view`), persistence (`snapshot`), admission (`admission`).

pub mod entry;
mod expiry_index;
pub mod outcome;

use crate::buckets::Buckets;
use crate::opened::{Opened, OpenedLeave};
use crate::sanity_check;
use entry::{Entry, Left, Slot, Validity};
use expiry_index::ExpiryIndex;
use outcome::{Accepted, Refused};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::directory::DomainState;
use wire::id::DomainName;
use wire::registration::Record;
use wire::replication::Number;
use wire::time::Moment;

/// Duration of a lease: a domain counts as gone after three lost renewals.
pub const LEASE: Duration = Duration::from_secs(15);

/// Interval at which a representative states its record again.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// How long a signed leave is stored and replicated; its number is refused for longer.
pub const LEAVE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Most domains in the table: far above any grid, and about 100 MiB if every record has its maximum length.
pub const DOMAINS_MAX: usize = 100_000;

/// State of the representative of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Its lease is valid.
    Live,
    /// Its lease ended.
    Expired,
    /// Read from a snapshot and not renewed since: whether the representative runs is not known.
    Restored,
}

impl State {
    /// The state as answers report it: everything that is not live is last seen.
    #[must_use]
    pub const fn word(self) -> DomainState {
        match self {
            State::Live => DomainState::Live,
            State::Expired | State::Restored => DomainState::LastSeen,
        }
    }
}

/// Result of a look-up of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Newest record.
    pub record: &'a Record,
    pub state: State,
    /// Time since the record was accepted.
    pub age: Duration,
    /// Time until the lease ends; zero unless the record is live.
    pub lease_remaining: Duration,
    /// The record with its signed form.
    pub opened: &'a Opened,
    /// Live representatives with lower numbers that answer for hosts missing from this record, highest first.
    pub partial: Vec<Answer<'a>>,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Domains that were new or came back.
    pub registered_total: u64,
    /// Leases extended.
    pub renewed_total: u64,
    /// Records refused.
    pub refused_total: u64,
    /// Leases that ended.
    pub expired_total: u64,
    /// Last-seen records dropped because the table was full.
    pub dropped_total: u64,
    /// Statements, leaves and revocation lists merged from other directories.
    pub merged_total: u64,
    pub left_total: u64,
}

/// Lease table. See the invariants at the head of this file.
#[derive(Debug)]
pub struct Registry {
    domains_max: usize,
    pub(crate) entries: BTreeMap<DomainName, Entry>,
    expiry_index: ExpiryIndex,
    pub(crate) buckets: Buckets,
    pub(crate) counts: Counts,
    /// The latest `now` passed so far: a clock that goes back must not lengthen a lease.
    pub(crate) latest: Moment,
    /// Incremented whenever the content of a snapshot has changed.
    revision: u64,
}

/// Age of a statement, and its lease from now on; no lease for a statement from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) age: Duration,
    pub(crate) lease: Option<Duration>,
}

impl Registry {
    /// Create an empty table for up to `domains_max` domains ([`DOMAINS_MAX`] outside tests).
    #[must_use]
    pub fn new(domains_max: usize) -> Registry {
        Registry {
            domains_max,
            entries: BTreeMap::new(),
            expiry_index: ExpiryIndex::default(),
            buckets: Buckets::new(),
            counts: Counts::default(),
            latest: Moment::default(),
            revision: 0,
        }
    }

    /// Register the record of a representative, or renew its lease until [`LEASE`] from `now`.
    ///
    /// # Errors
    /// If the record is behind the stored one or a leave, contradicts the stored one, is invalid, or the
    /// table is full. The table is then unchanged, except for the counter of refusals.
    pub fn register(&mut self, opened: Opened, now: Moment) -> Result<Accepted, Refused> {
        self.register_waited(opened, Duration::ZERO, now)
    }

    /// As [`Registry::register`], for a statement that may have waited for `waited`, which is subtracted from
    /// its lease.
    ///
    /// # Errors
    /// As [`Registry::register`].
    pub fn register_waited(
        &mut self,
        opened: Opened,
        waited: Duration,
        now: Moment,
    ) -> Result<Accepted, Refused> {
        self.expire(now);
        let source = Source { age: waited, lease: Some(LEASE.saturating_sub(waited)) };
        let taken = self.take(opened, source).inspect_err(|_| self.counts.refused_total += 1)?;
        match taken {
            Accepted::Unchanged => {}
            Accepted::Registered => self.counts.registered_total += 1,
            Accepted::Renewed | Accepted::Partial { .. } => self.counts.renewed_total += 1,
        }
        Ok(taken)
    }

    /// Process the leave of a domain: no statement up to its number is answered again. Returns whether the
    /// leave is new.
    ///
    /// # Errors
    /// If a higher leave is stored, or the table is full.
    pub fn leave(&mut self, left: OpenedLeave, age: Duration, now: Moment) -> Result<bool, Refused> {
        self.expire(now);
        let number = left.number();
        let domain = left.leave.domain.clone();
        sanity_check::check_number(number)
            .map_err(|violation| Refused::Invalid { domain: domain.clone(), violation })?;
        if let Some(entry) = self.entries.get(&domain) {
            let behind = |held: Number| Refused::Left {
                domain: domain.clone(),
                left_term: held.term,
                left_sequence: held.sequence,
            };
            if !entry.admit_leave(number).map_err(behind)? {
                return Ok(false);
            }
        } else {
            self.make_place(&domain)?;
        }
        let (heard, gone_since) = (self.latest, millis(self.latest.0).saturating_sub(millis(age)));
        self.change(&domain, |entry| {
            entry.leave(Left { number, signed: Some(left), heard, age_before: age });
            entry.gone_since = gone_since;
        });
        self.counts.left_total += 1;
        Ok(true)
    }

    /// End every lease that is over at `now`. Returns the domains whose first representative's lease ended,
    /// longest gone first.
    pub fn expire(&mut self, now: Moment) -> Vec<DomainName> {
        self.latest = self.latest.max(now);
        let now = self.latest;
        let mut ended = Vec::new();
        while let Some(domain) = self.expiry_index.lease_over(now) {
            if self.change_quietly(&domain, |entry| entry.expire(now)) {
                self.counts.expired_total += 1;
                ended.push(domain);
            }
        }
        while let Some(domain) = self.expiry_index.leave_over(now) {
            self.change(&domain, |entry| {
                if let Some(left) = &mut entry.left {
                    left.signed = None;
                }
            });
        }
        ended
    }

    /// The next end of a lease or of the retention of a leave: when to call [`Registry::expire`] next.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Moment> {
        self.expiry_index.next()
    }

    /// The record of `domain` and its state.
    #[must_use]
    pub fn resolve(&self, domain: &DomainName, now: Moment) -> Option<Answer<'_>> {
        self.entries.get(domain).and_then(|entry| entry.answer(self.latest.max(now)))
    }

    /// The number and the age of the leave of `domain`, if no newer statement followed.
    #[must_use]
    pub fn left(&self, domain: &DomainName, now: Moment) -> Option<(Number, Duration)> {
        let entry = self.entries.get(domain).filter(|entry| entry.slots().is_empty())?;
        let left = entry.left.as_ref()?;
        Some((left.number, left.age(self.latest.max(now))))
    }

    /// Highest number known for `domain`.
    #[must_use]
    pub fn highest(&self, domain: &DomainName) -> Option<Number> {
        self.entries.get(domain).and_then(Entry::highest)
    }

    /// Every domain that has or had a representative, sorted by name.
    pub fn domains(&self, now: Moment) -> impl Iterator<Item = Answer<'_>> {
        let now = self.latest.max(now);
        self.entries.values().filter_map(move |entry| entry.answer(now))
    }

    /// Counters since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Revision of the content: it differs whenever there is something new to save.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Remove everything of `domain`, because it is no longer admitted.
    pub fn forget(&mut self, domain: &DomainName) {
        if let Some(entry) = self.entries.remove(domain) {
            self.expiry_index.take_out(domain, &entry);
            self.buckets.change(domain, entry.summed, 0);
            self.revision += 1;
        }
    }

    /// Process a statement from any source; the caller updates the counters.
    pub(crate) fn take(&mut self, opened: Opened, source: Source) -> Result<Accepted, Refused> {
        let domain = opened.record().domain.clone();
        sanity_check::check(opened.record())
            .map_err(|violation| Refused::Invalid { domain: domain.clone(), violation })?;
        let accepted = match self.entries.get(&domain) {
            Some(entry) => entry.admit(&opened)?,
            None => {
                self.make_place(&domain)?;
                Accepted::Registered
            }
        };
        // A live representative keeps its lease: a repeated statement or a snapshot changes nothing.
        let from_disk = source.lease.is_none();
        if accepted == Accepted::Unchanged || from_disk && accepted != Accepted::Registered {
            return Ok(Accepted::Unchanged);
        }
        let validity = match source.lease {
            None => Validity::Gone(State::Restored),
            Some(Duration::ZERO) => Validity::Gone(State::Expired),
            Some(lease) => Validity::Until(self.latest.plus(lease.min(LEASE))),
        };
        let age_before = source.age;
        let slot = Slot { opened, heard: self.latest, age_before, validity };
        let since = millis(self.latest.0).saturating_sub(millis(age_before));
        self.change(&domain, |entry| {
            entry.gone_since = since;
            entry.put(slot);
        });
        Ok(accepted)
    }

    /// Ensure a place for `domain`: if the table is full, drop the domain that is gone longest.
    pub(crate) fn make_place(&mut self, domain: &DomainName) -> Result<(), Refused> {
        if self.entries.len() >= self.domains_max {
            let Some(oldest) = self.expiry_index.longest_gone() else {
                return Err(Refused::Full { domain: domain.clone(), domains_max: self.domains_max });
            };
            self.forget(&oldest);
            self.counts.dropped_total += 1;
        }
        Ok(())
    }

    /// Change the entry of `domain`, created if missing, and update the indexes, the digest and the revision.
    pub(crate) fn change<T>(&mut self, domain: &DomainName, change: impl FnOnce(&mut Entry) -> T) -> T {
        self.revision += 1;
        self.change_quietly(domain, change)
    }

    fn change_quietly<T>(&mut self, domain: &DomainName, change: impl FnOnce(&mut Entry) -> T) -> T {
        if let Some(entry) = self.entries.get(domain) {
            self.expiry_index.take_out(domain, entry);
        }
        let entry = self.entries.entry(domain.clone()).or_default();
        let result = change(entry);
        self.expiry_index.put_in(domain, entry);
        let sum = entry.sum(domain);
        self.buckets.change(domain, std::mem::replace(&mut entry.summed, sum), sum);
        result
    }
}

pub(crate) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::own_record;
    use wire::id::HostName;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    fn record(domain: &str, term: u64, sequence: u64) -> Opened {
        Opened::own(own_record(domain, term, sequence))
    }

    fn seen(registry: &Registry, domain: &str, secs: u64) -> (State, u64, u64) {
        let domain = DomainName::try_from(domain).expect("a name");
        let answer = registry.resolve(&domain, at(secs)).expect("held");
        (answer.state, answer.age.as_secs(), answer.lease_remaining.as_secs())
    }

    #[test]
    fn a_domain_lives_as_long_as_it_is_renewed() {
        let mut registry = Registry::new(10);
        assert_eq!(registry.register(record("a", 1, 1), at(0)), Ok(Accepted::Registered));
        assert_eq!(seen(&registry, "a", 5), (State::Live, 5, 10));
        assert_eq!(registry.register(record("a", 1, 2), at(5)), Ok(Accepted::Renewed));
        assert_eq!(seen(&registry, "a", 19), (State::Live, 14, 1));
        assert_eq!(seen(&registry, "a", 20), (State::Expired, 15, 0));
        assert_eq!(registry.next_expiry(), Some(at(20)));
        assert_eq!(registry.expire(at(19)), []);
        assert_eq!(registry.expire(at(20)), [crate::testing::domain("a")]);
        assert_eq!(seen(&registry, "a", 100), (State::Expired, 95, 0));
        assert_eq!(registry.register(record("a", 1, 3), at(101)), Ok(Accepted::Registered));
        assert_eq!(seen(&registry, "a", 101), (State::Live, 0, 15));
    }

    #[test]
    fn saying_it_again_extends_nothing() {
        let mut registry = Registry::new(10);
        registry.register(record("a", 1, 1), at(0)).expect("new");
        assert_eq!(registry.register(record("a", 1, 1), at(10)), Ok(Accepted::Unchanged));
        assert_eq!(seen(&registry, "a", 15), (State::Expired, 15, 0));
        assert_eq!(registry.register(record("a", 1, 1), at(16)), Ok(Accepted::Unchanged));
        assert_eq!(seen(&registry, "a", 16), (State::Expired, 16, 0));
    }

    #[test]
    fn what_is_behind_is_refused_with_both_numbers() {
        let mut registry = Registry::new(10);
        registry.register(record("a", 3, 7), at(0)).expect("new");
        for (term, sequence) in [(3, 6), (2, 900)] {
            let refused = registry.register(record("a", term, sequence), at(1)).expect_err("behind");
            assert_eq!(
                refused.to_string(),
                format!(
                    "term {term}, sequence {sequence} of a is behind term 3, sequence 7, which is held; \
                     state a higher one"
                )
            );
        }
        assert_eq!(registry.register(record("a", 4, 0), at(1)), Ok(Accepted::Renewed));
        assert_eq!(registry.counts().refused_total, 2);
    }

    #[test]
    fn two_representatives_with_one_term_contradict() {
        let mut registry = Registry::new(10);
        registry.register(record("a", 3, 7), at(0)).expect("new");
        let other = Record { host: HostName::try_from("n2").expect("a name"), ..own_record("a", 3, 7) };
        let other = Opened::own(other);
        assert!(matches!(registry.register(other, at(1)), Err(Refused::Contradicts { .. })));
        assert_eq!(seen(&registry, "a", 1).0, State::Live);
    }

    #[test]
    fn a_full_table_drops_the_longest_gone_and_never_a_live_one() {
        let mut registry = Registry::new(3);
        registry.register(record("old", 1, 1), at(0)).expect("place");
        registry.register(record("later", 1, 1), at(5)).expect("place");
        registry.register(record("live", 1, 1), at(25)).expect("place");
        registry.register(record("new1", 1, 1), at(26)).expect("in the place of old");
        registry.register(record("new2", 1, 1), at(26)).expect("in the place of later");
        let names: Vec<String> = registry.domains(at(26)).map(|a| a.record.domain.to_string()).collect();
        assert_eq!(names, ["live", "new1", "new2"]);
        assert_eq!(registry.counts().dropped_total, 2);
        let refused = registry.register(record("new3", 1, 1), at(26)).expect_err("all live");
        assert!(matches!(refused, Refused::Full { domains_max: 3, .. }));
    }

    #[test]
    fn of_the_restored_the_oldest_goes_first() {
        let mut registry = Registry::new(2);
        registry.restore(record("a", 1, 1), Duration::from_secs(50), at(1)).expect("place");
        registry.restore(record("b", 1, 1), Duration::from_secs(90), at(1)).expect("place");
        registry.register(record("c", 1, 1), at(2)).expect("in the place of b");
        let names: Vec<String> = registry.domains(at(2)).map(|a| a.record.domain.to_string()).collect();
        assert_eq!(names, ["a", "c"]);
    }

    #[test]
    fn what_is_restored_is_last_seen_with_its_age_until_renewed() {
        let mut registry = Registry::new(3);
        registry.restore(record("a", 2, 9), Duration::from_secs(100), at(1)).expect("place");
        assert_eq!(seen(&registry, "a", 4), (State::Restored, 103, 0));
        assert_eq!(registry.register(record("a", 2, 9), at(4)), Ok(Accepted::Unchanged));
        assert!(registry.register(record("a", 2, 8), at(4)).is_err(), "the high-water mark was restored");
        assert_eq!(seen(&registry, "a", 4).0, State::Restored);
        assert_eq!(registry.register(record("a", 2, 10), at(4)), Ok(Accepted::Registered));
        registry.restore(record("a", 2, 11), Duration::ZERO, at(5)).expect("ignored");
        assert_eq!(seen(&registry, "a", 5), (State::Live, 1, 14));
    }
}
