//! The lease table of the directory: which representative answers for a domain, and until when.
//!
//! Pure: it keeps no clock; callers pass `now`, a moment on a clock that never goes back.
//! Invariants: of everything accepted for a domain the highest (term, sequence) is held; terms never go
//! down; a lease is extended only by a higher (term, sequence) and never shortened; an expired record
//! stays and is told as last seen, until the table needs its place.
//! Not here: persistence (`snapshot`), who may register (the callers), replication between directories.

use crate::oddity::{self, Odd};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::id::DomainName;
use wire::registration::Record;
use wire::time::Moment;

/// How long a statement holds: three renewals may be lost before a domain counts as gone.
pub const LEASE: Duration = Duration::from_secs(15);

/// How often a representative states its record again.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// Most domains held: far above any grid, and about 100 MiB when every record is as long as it may be.
pub const DOMAINS_MAX: usize = 100_000;

/// What became of an accepted record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The domain was not known, or its lease had ended.
    Registered,
    /// The lease was extended.
    Renewed,
    /// Said again word for word: nothing changed, the lease least of all.
    Unchanged,
}

/// Why a record was refused; the table is as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A newer statement is held.
    #[error(
        "term {term}, sequence {sequence} of {domain} is behind term {held_term}, sequence {held_sequence}, \
         which is held; state a higher one"
    )]
    Behind {
        /// The domain.
        domain: DomainName,
        /// Stated.
        term: u64,
        /// Stated.
        sequence: u64,
        /// Held.
        held_term: u64,
        /// Held.
        held_sequence: u64,
    },
    /// The same term and sequence with another content: two representatives use one term, or it is forged.
    #[error(
        "term {term}, sequence {sequence} of {domain} is held with another content (host {held_host}); \
         only one representative may use a term, and each statement needs a new sequence"
    )]
    Contradicts {
        /// The domain.
        domain: DomainName,
        /// Of both.
        term: u64,
        /// Of both.
        sequence: u64,
        /// Whose statement is held.
        held_host: String,
    },
    /// Something in the record cannot be right.
    #[error("record of {domain}: {odd}")]
    Odd {
        /// The domain.
        domain: DomainName,
        /// What.
        odd: Odd,
    },
    /// No place, and every domain held is live.
    #[error("{domain} is new and the table already holds {domains_max} live domains, the most it may")]
    Full {
        /// The domain.
        domain: DomainName,
        /// How many.
        domains_max: usize,
    },
}

/// Whether a domain's representative is known to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Its lease holds.
    Live,
    /// Its lease ended.
    Expired,
    /// Read from a snapshot and not stated since: whether it is there is not known.
    Restored,
}

impl State {
    /// The word for it in answers: what is not live is last seen.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Expired | State::Restored => "last_seen",
        }
    }
}

/// What the table says about a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The newest statement.
    pub record: &'a Record,
    /// Whether it still holds.
    pub state: State,
    /// Time since it was accepted.
    pub age: Duration,
    /// Time until the lease ends; zero unless live.
    pub lease_remaining: Duration,
}

/// What happened since the start; all only grow.
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
}

#[derive(Debug)]
struct Entry {
    record: Record,
    /// When it was accepted, or read from the snapshot.
    heard: Moment,
    /// Its age at `heard`: zero but for a restored one.
    age_before: Duration,
    held: Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// In `leases` under this moment.
    Until(Moment),
    /// In `gone` under this key; never [`State::Live`].
    Gone { since: GoneSince, state: State },
}

/// Milliseconds on the directory's clock at which a domain went; below zero for one restored from
/// before that clock began.
type GoneSince = i64;

/// The table. See the rules at the head of this file.
#[derive(Debug)]
pub struct Registry {
    domains_max: usize,
    entries: BTreeMap<DomainName, Entry>,
    /// Live domains by the end of their lease.
    leases: BTreeSet<(Moment, DomainName)>,
    /// Last-seen domains, longest gone first.
    gone: BTreeSet<(GoneSince, DomainName)>,
    counts: Counts,
    /// The latest `now` ever passed: a clock that goes back must not lengthen a lease.
    latest: Moment,
    /// Grows whenever what a snapshot holds has changed.
    revision: u64,
}

impl Registry {
    /// An empty table for up to `domains_max` domains ([`DOMAINS_MAX`] outside tests).
    #[must_use]
    pub fn new(domains_max: usize) -> Registry {
        Registry {
            domains_max,
            entries: BTreeMap::new(),
            leases: BTreeSet::new(),
            gone: BTreeSet::new(),
            counts: Counts::default(),
            latest: Moment::default(),
            revision: 0,
        }
    }

    /// A representative states its record: registers the domain or renews its lease until [`LEASE`] from
    /// `now`.
    ///
    /// # Errors
    /// If the record is behind what is held, contradicts it, is odd, or there is no place for it. The
    /// table is then as before, but for the count of refusals.
    pub fn register(&mut self, record: Record, now: Moment) -> Result<Accepted, Refused> {
        self.expire(now);
        let accepted = self.admit(&record).inspect_err(|_| self.counts.refused_total += 1)?;
        match accepted {
            Accepted::Unchanged => return Ok(Accepted::Unchanged),
            Accepted::Registered => self.counts.registered_total += 1,
            Accepted::Renewed => self.counts.renewed_total += 1,
        }
        let domain = record.domain.clone();
        let until = self.latest.plus(LEASE);
        let entry =
            Entry { record, heard: self.latest, age_before: Duration::ZERO, held: Held::Until(until) };
        if let Some(before) = self.entries.insert(domain.clone(), entry) {
            self.forget_order(&domain, before.held);
        }
        self.leases.insert((until, domain));
        self.revision += 1;
        Ok(accepted)
    }

    /// Take in a record from a snapshot, `age` old: last seen, never live.
    ///
    /// # Errors
    /// As [`Registry::register`]; a domain that is already held is refused unless the record is newer.
    pub fn restore(&mut self, record: Record, age: Duration, now: Moment) -> Result<(), Refused> {
        self.expire(now);
        match self.admit(&record).inspect_err(|_| self.counts.refused_total += 1)? {
            // Nothing on disk may change what has been stated since the start.
            Accepted::Unchanged | Accepted::Renewed => return Ok(()),
            Accepted::Registered => {}
        }
        let domain = record.domain.clone();
        let since = millis(self.latest.0).saturating_sub(millis(age));
        let held = Held::Gone { since, state: State::Restored };
        let entry = Entry { record, heard: self.latest, age_before: age, held };
        if let Some(before) = self.entries.insert(domain.clone(), entry) {
            self.forget_order(&domain, before.held);
        }
        self.gone.insert((since, domain));
        Ok(())
    }

    /// End every lease that is over at `now`; the domains whose lease ended, longest gone first.
    pub fn expire(&mut self, now: Moment) -> Vec<DomainName> {
        self.latest = self.latest.max(now);
        let mut ended = Vec::new();
        while self.leases.first().is_some_and(|(until, _)| *until <= self.latest) {
            let (until, domain) = self.leases.pop_first().expect("just seen");
            let entry = self.entries.get_mut(&domain).expect("every lease has an entry");
            let since = millis(until.0);
            entry.held = Held::Gone { since, state: State::Expired };
            self.gone.insert((since, domain.clone()));
            self.counts.expired_total += 1;
            ended.push(domain);
        }
        ended
    }

    /// When the next lease ends: the moment for the next [`Registry::expire`].
    #[must_use]
    pub fn next_expiry(&self) -> Option<Moment> {
        self.leases.first().map(|(until, _)| *until)
    }

    /// What is held of `domain`.
    #[must_use]
    pub fn resolve(&self, domain: &DomainName, now: Moment) -> Option<Answer<'_>> {
        self.entries.get(domain).map(|entry| entry.answer(self.latest.max(now)))
    }

    /// Everything held, by domain.
    pub fn domains(&self, now: Moment) -> impl Iterator<Item = Answer<'_>> {
        let now = self.latest.max(now);
        self.entries.values().map(move |entry| entry.answer(now))
    }

    /// What happened since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A number that differs whenever there is something new to save.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether the record may be taken in, and as what; makes a place for it if so.
    fn admit(&mut self, record: &Record) -> Result<Accepted, Refused> {
        oddity::check(record).map_err(|odd| Refused::Odd { domain: record.domain.clone(), odd })?;
        if let Some(entry) = self.entries.get(&record.domain) {
            return entry.compare(record);
        }
        if self.entries.len() >= self.domains_max {
            let Some((_, oldest)) = self.gone.pop_first() else {
                return Err(Refused::Full { domain: record.domain.clone(), domains_max: self.domains_max });
            };
            self.entries.remove(&oldest).expect("every last-seen domain has an entry");
            self.counts.dropped_total += 1;
            self.revision += 1;
        }
        Ok(Accepted::Registered)
    }

    fn forget_order(&mut self, domain: &DomainName, held: Held) {
        let known = match held {
            Held::Until(until) => self.leases.remove(&(until, domain.clone())),
            Held::Gone { since, .. } => self.gone.remove(&(since, domain.clone())),
        };
        debug_assert!(known, "every entry stands in one order");
    }
}

impl Entry {
    fn compare(&self, record: &Record) -> Result<Accepted, Refused> {
        let held = (self.record.term, self.record.sequence);
        let (term, sequence) = (record.term, record.sequence);
        if (term, sequence) < held {
            let domain = record.domain.clone();
            return Err(Refused::Behind { domain, term, sequence, held_term: held.0, held_sequence: held.1 });
        }
        if (term, sequence) > held {
            return Ok(match self.held {
                Held::Until(_) => Accepted::Renewed,
                Held::Gone { .. } => Accepted::Registered,
            });
        }
        if *record == self.record {
            return Ok(Accepted::Unchanged);
        }
        let held_host = self.record.host.to_string();
        Err(Refused::Contradicts { domain: record.domain.clone(), term, sequence, held_host })
    }

    fn answer(&self, now: Moment) -> Answer<'_> {
        let (state, lease_remaining) = match self.held {
            Held::Until(until) if until > now => (State::Live, until.since(now)),
            Held::Until(_) => (State::Expired, Duration::ZERO),
            Held::Gone { state, .. } => (state, Duration::ZERO),
        };
        let age = now.since(self.heard).saturating_add(self.age_before);
        Answer { record: &self.record, state, age, lease_remaining }
    }
}

fn millis(span: Duration) -> GoneSince {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::id::HostName;
    use wire::registration::SensorType;
    use wire::time::Time;

    fn at(secs: u64) -> Moment {
        Moment(Duration::from_secs(secs))
    }

    fn record(domain: &str, term: u64, sequence: u64) -> Record {
        Record {
            domain: DomainName::try_from(domain).expect("a name"),
            host: HostName::try_from("n1").expect("a name"),
            port: 7741,
            sensor_type: SensorType::Representative,
            addresses: vec!["http://127.0.0.1:7741".to_owned()],
            term,
            sequence,
            stated: Time::from_micros(0),
            reach: None,
        }
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
        assert_eq!(registry.expire(at(20)), [record("a", 1, 1).domain]);
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
        let other = Record { host: HostName::try_from("n2").expect("a name"), ..record("a", 3, 7) };
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
