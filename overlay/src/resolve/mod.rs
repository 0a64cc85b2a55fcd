//! Resolver: finds a domain's representative for sensors and viewers. It asks the directories and caches
//! their answers.
//!
//! ```text
//! resolve(domain) -> Now(outcome), or Asked -> Ask to two directories -> replies -> Found(domain, outcome)
//!                    if one fails, or does not answer within half a second, the next is asked
//! ```
//! Pure: callers pass `now` and verified answers, and send what [`Resolver::poll_output`] returns.
//! Rules: of all answers, cached ones included, the highest number counts, so that no directory can lead back
//! to an old representative. If every directory is dead, a known domain is returned with the age of the
//! answer. That a domain is not known is cached for a few seconds only.
//! Not here: verification of records, the file and streams (`asker`; `stored` provides the file's bytes).

pub mod asker;
mod lookup;
pub mod stored;

use crate::dice::Dice;
use lookup::Lookup;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::credential::Statement;
use wire::id::{DomainName, PeerKey};
use wire::registration::Record;
use wire::replication::Number;
use wire::time::Moment;

/// Most domains cached: as many as a large grid has; the least recently used makes room.
pub const DOMAINS_MAX: usize = 10_000;

/// Most look-ups at a time; more are answered from the cache.
pub const LOOKUPS_MAX: usize = 1000;

/// How long a live answer is used without asking again: the interval between two renewals.
pub const FRESH_FOR: Duration = Duration::from_secs(5);

/// How long it is cached that a domain is not known.
pub const UNKNOWN_FOR: Duration = Duration::from_secs(2);

/// How many directories are asked at once, and how many answers are compared.
pub const COMPARED: usize = 2;

/// Time without enough answers after which another directory is asked.
pub const ANOTHER_AFTER: Duration = Duration::from_millis(500);

/// Timeout of a look-up: then it ends with the answers that there are.
pub const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// A representative's record from a directory, verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedRecord {
    pub record: Record,
    /// The signed record, to be passed on.
    pub statement: Statement,
    /// Time since it was signed.
    pub age: Duration,
    /// Remaining lease; zero if it is over, so that the representative is only last seen.
    pub remaining: Duration,
}

impl VerifiedRecord {
    /// Number of the record among those of its domain.
    #[must_use]
    pub fn number(&self) -> Number {
        let peer = self.record.reach.as_ref().map_or(PeerKey([0; 32]), |reach| reach.peer);
        Number { term: self.record.term, peer, sequence: self.record.sequence }
    }
}

/// Answer of a directory, verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The domain has, or had, a representative.
    Known {
        /// The record with the highest number.
        primary: Box<VerifiedRecord>,
        /// Live representatives of hosts that the primary does not cover.
        partial: Vec<VerifiedRecord>,
    },
    /// The domain left, at that number.
    Left {
        /// Number of the leave.
        number: Number,
        /// Time since the leave.
        age: Duration,
    },
    /// The directory does not know the domain.
    Unknown,
    /// The directory does not know yet, did not answer, or sent an invalid answer.
    Nothing,
}

/// Where an outcome comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From directories that were asked just now; how many answered.
    Asked(usize),
    /// From an answer of the last [`FRESH_FOR`].
    Fresh,
    /// From the cache: no directory answered.
    Memory,
}

/// The representative of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The record with the highest number; its age and lease as of now.
    pub primary: VerifiedRecord,
    /// Live representatives of hosts that the primary does not cover, the highest number first.
    pub partial: Vec<VerifiedRecord>,
    pub source: Source,
    /// Whether all directories that answered agree; if not, one of them is behind or hides something.
    pub agreed: bool,
}

/// Outcome of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The domain has a representative.
    Found(Box<Found>),
    /// The domain left this long ago.
    Left(Duration),
    /// The directories do not know the domain.
    Unknown,
    /// No directory answered, and the domain is not in the cache.
    Unreachable,
}

/// What [`Resolver::resolve`] returns at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolving {
    Now(Outcome),
    /// Directories are asked; [`Output::Found`] follows.
    Asked,
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Ask a directory; its answer goes to [`Resolver::handle_reply`].
    Ask {
        /// Key of the directory.
        directory: PeerKey,
        /// The domain to look up.
        domain: DomainName,
    },
    /// A look-up ended: send the outcome to all callers that wait for this domain.
    Found(DomainName, Outcome),
}

/// What is cached about a domain.
#[derive(Clone, Debug)]
struct Memory {
    primary: Option<Remembered>,
    partial: Vec<Remembered>,
    left: Option<(Number, Moment, Duration)>,
    /// When directories last answered about it.
    heard: Option<Moment>,
    /// Until when it counts as unknown.
    unknown_until: Option<Moment>,
    used: u64,
}

#[derive(Clone, Debug)]
struct Remembered {
    heard: VerifiedRecord,
    at: Moment,
}

impl Remembered {
    fn now(&self, now: Moment) -> VerifiedRecord {
        let passed = now.since(self.at);
        let mut heard = self.heard.clone();
        heard.age = heard.age.saturating_add(passed);
        heard.remaining = heard.remaining.saturating_sub(passed);
        heard
    }
}

/// The resolver; its rules are at the head of this file.
#[derive(Debug)]
pub struct Resolver {
    directories: Vec<PeerKey>,
    memory: BTreeMap<DomainName, Memory>,
    lookups: BTreeMap<DomainName, Lookup>,
    outputs: VecDeque<Output>,
    dice: Dice,
    uses: u64,
    /// Grows when the stored part of the cache changes.
    revision: u64,
}

impl Resolver {
    /// A resolver that asks `directories`; `seed` decides in which order.
    #[must_use]
    pub fn new(directories: Vec<PeerKey>, seed: u64) -> Resolver {
        Resolver {
            directories,
            memory: BTreeMap::new(),
            lookups: BTreeMap::new(),
            outputs: VecDeque::new(),
            dice: Dice::new(seed),
            uses: 0,
            revision: 0,
        }
    }

    /// Look up `domain`'s representative; returns it at once if the last answer is fresh.
    pub fn resolve(&mut self, domain: &DomainName, now: Moment) -> Resolving {
        self.uses += 1;
        if let Some(memory) = self.memory.get_mut(domain) {
            memory.used = self.uses;
            if let Some(outcome) = memory.fresh(now) {
                return Resolving::Now(outcome);
            }
        }
        if self.lookups.contains_key(domain) {
            return Resolving::Asked;
        }
        if self.directories.is_empty() || self.lookups.len() >= LOOKUPS_MAX {
            return Resolving::Now(self.last_known(domain, now));
        }
        let first = usize::try_from(self.dice.below(self.directories.len() as u64)).unwrap_or(0);
        let mut order = self.directories.clone();
        order.rotate_left(first);
        let mut lookup = Lookup::new(order, now);
        self.ask(domain, &mut lookup, now);
        self.lookups.insert(domain.clone(), lookup);
        Resolving::Asked
    }

    /// Store this daemon's own record, which it published as the representative of its domain. Directories
    /// are asked all the same: there may be other representatives.
    pub fn handle_own(&mut self, own: VerifiedRecord, now: Moment) {
        let domain = own.record.domain.clone();
        self.make_place(&domain);
        let uses = self.uses;
        let memory = self.memory.entry(domain).or_insert_with(|| Memory::new(uses));
        let before = memory.number();
        memory.take(own, now);
        if memory.number() != before {
            self.revision += 1;
        }
    }

    /// The cached answer about `domain` turned out to be useless: the next call asks the directories.
    pub fn doubt(&mut self, domain: &DomainName) {
        if let Some(memory) = self.memory.get_mut(domain) {
            memory.heard = None;
        }
    }

    /// Whether anything is cached about `domain`.
    #[must_use]
    pub fn knows(&self, domain: &DomainName) -> bool {
        self.memory.contains_key(domain)
    }

    /// What is cached about `domain`, without asking a directory.
    #[must_use]
    pub fn last_known(&self, domain: &DomainName, now: Moment) -> Outcome {
        let outcome = self.memory.get(domain).and_then(|memory| memory.outcome(now, Source::Memory, true));
        outcome.unwrap_or(Outcome::Unreachable)
    }

    /// Every domain with a cached representative, by name.
    pub fn known(&self) -> impl Iterator<Item = &DomainName> {
        self.memory.iter().filter(|(_, memory)| memory.primary.is_some()).map(|(domain, _)| domain)
    }

    /// Take a directory's answer about `domain`, or the failure of its question.
    pub fn handle_reply(&mut self, directory: PeerKey, domain: &DomainName, reply: Reply, now: Moment) {
        let Some(asked) = self.lookups.get(domain).and_then(|lookup| lookup.asked_at(directory)) else {
            return;
        };
        // The ages and leases in the answer count from when the directory was asked, the earliest time that
        // they can be true.
        let said = self.remember(domain, reply, asked);
        let Some(mut lookup) = self.lookups.remove(domain) else { return };
        lookup.answered(directory, said);
        self.ask(domain, &mut lookup, now);
        self.finish_or_keep(domain, lookup, now);
    }

    /// Time has passed: ask further directories, and end look-ups.
    pub fn handle_timeout(&mut self, now: Moment) {
        let due = self.lookups.iter().filter(|(_, lookup)| lookup.due() <= now);
        let due: Vec<DomainName> = due.map(|(domain, _)| domain.clone()).collect();
        for domain in due {
            let Some(mut lookup) = self.lookups.remove(&domain) else { continue };
            lookup.another(now);
            self.ask(&domain, &mut lookup, now);
            self.finish_or_keep(&domain, lookup, now);
        }
    }

    /// When [`Resolver::handle_timeout`] must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.lookups.values().map(Lookup::due).min()
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// A number that changes whenever there is something new to store.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn ask(&mut self, domain: &DomainName, lookup: &mut Lookup, now: Moment) {
        while let Some(directory) = lookup.next(now) {
            self.outputs.push_back(Output::Ask { directory, domain: domain.clone() });
        }
    }

    fn finish_or_keep(&mut self, domain: &DomainName, lookup: Lookup, now: Moment) {
        if !lookup.is_over(now) {
            self.lookups.insert(domain.clone(), lookup);
            return;
        }
        let outcome = if lookup.answers() == 0 {
            self.last_known(domain, now)
        } else {
            let source = Source::Asked(lookup.answers());
            let memory = self.memory.get(domain);
            let outcome = memory.and_then(|memory| memory.outcome(now, source, lookup.agreed()));
            outcome.unwrap_or(Outcome::Unknown)
        };
        self.outputs.push_back(Output::Found(domain.clone(), outcome));
    }

    /// Cache the answer if it is higher than what is cached. Returns its summary, `None` if there is none.
    fn remember(&mut self, domain: &DomainName, reply: Reply, at: Moment) -> Option<lookup::Summary> {
        if matches!(reply, Reply::Nothing) {
            return None;
        }
        self.uses += 1;
        let uses = self.uses;
        self.make_place(domain);
        let memory = self.memory.entry(domain.clone()).or_insert_with(|| Memory::new(uses));
        let before = memory.number();
        let said = match reply {
            Reply::Nothing => return None,
            Reply::Known { primary, partial } => {
                let number = primary.number();
                memory.take(*primary, at);
                partial.into_iter().for_each(|heard| memory.take(heard, at));
                memory.heard = Some(at);
                memory.unknown_until = None;
                lookup::Summary::Number(number)
            }
            Reply::Left { number, age } => {
                memory.leave(number, at, age);
                memory.heard = Some(at);
                lookup::Summary::Number(number)
            }
            Reply::Unknown => {
                memory.unknown_until = Some(at.plus(UNKNOWN_FOR));
                lookup::Summary::Unknown
            }
        };
        if memory.number() != before {
            self.revision += 1;
        }
        Some(said)
    }

    fn make_place(&mut self, domain: &DomainName) {
        if self.memory.len() < DOMAINS_MAX || self.memory.contains_key(domain) {
            return;
        }
        // Domains without a representative are dropped first.
        let oldest = self.memory.iter().min_by_key(|(_, memory)| (memory.primary.is_some(), memory.used));
        if let Some(oldest) = oldest.map(|(domain, _)| domain.clone()) {
            self.memory.remove(&oldest);
        }
    }
}

impl Memory {
    fn new(used: u64) -> Memory {
        Memory { primary: None, partial: Vec::new(), left: None, heard: None, unknown_until: None, used }
    }

    fn number(&self) -> Option<Number> {
        self.primary.as_ref().map(|held| held.heard.number()).max(self.left.map(|(number, ..)| number))
    }

    /// Take a record, unless a higher one of the same representative or a later leave is cached.
    fn take(&mut self, heard: VerifiedRecord, at: Moment) {
        let number = heard.number();
        if self.left.is_some_and(|(left, ..)| left >= number) {
            return;
        }
        let mut all: Vec<Remembered> =
            self.primary.take().into_iter().chain(self.partial.drain(..)).collect();
        let known = all.iter().position(|held| held.heard.number().peer == number.peer);
        match known {
            // The same record from another directory, or later: the longest lease so far counts.
            Some(known) if all[known].heard.number() == number => {
                if at.plus(heard.remaining) > all[known].at.plus(all[known].heard.remaining) {
                    all[known] = Remembered { heard, at };
                }
            }
            Some(known) if all[known].heard.number() > number => {}
            Some(known) => all[known] = Remembered { heard, at },
            None => all.push(Remembered { heard, at }),
        }
        all.sort_by_key(|held| std::cmp::Reverse(held.heard.number()));
        let mut all = all.into_iter();
        self.primary = all.next();
        self.partial =
            all.filter(|held| held.heard.remaining > at.since(held.at)).take(PARTIAL_MAX).collect();
    }

    fn leave(&mut self, number: Number, at: Moment, age: Duration) {
        if self.left.is_some_and(|(left, ..)| left >= number) {
            return;
        }
        self.left = Some((number, at, age));
        self.partial.retain(|held| held.heard.number() > number);
        if self.primary.as_ref().is_some_and(|held| held.heard.number() <= number) {
            self.primary = if self.partial.is_empty() { None } else { Some(self.partial.remove(0)) };
        }
    }

    /// The outcome without asking directories, if the cache is fresh enough.
    fn fresh(&self, now: Moment) -> Option<Outcome> {
        if self.unknown_until.is_some_and(|until| until > now) && self.primary.is_none() {
            return Some(Outcome::Unknown);
        }
        let is_fresh = self.heard.is_some_and(|heard| now.since(heard) < FRESH_FOR);
        let is_live = self.primary.as_ref().is_some_and(|held| !held.now(now).remaining.is_zero());
        if is_fresh && is_live { self.outcome(now, Source::Fresh, true) } else { None }
    }

    fn outcome(&self, now: Moment, source: Source, agreed: bool) -> Option<Outcome> {
        let Some(primary) = &self.primary else {
            return self.left.map(|(_, at, age)| Outcome::Left(age.saturating_add(now.since(at))));
        };
        let partial = self.partial.iter().map(|held| held.now(now));
        let partial = partial.filter(|heard| !heard.remaining.is_zero()).collect();
        Some(Outcome::Found(Box::new(Found { primary: primary.now(now), partial, source, agreed })))
    }
}

/// Most partial representatives cached per domain: as many as directories send.
const PARTIAL_MAX: usize = 3;

#[cfg(test)]
mod tests;
