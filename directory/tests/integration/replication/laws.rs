//! Laws of replication: what holds at every moment of every history, and what holds once all faults have
//! ended.

use crate::replication::statements::domain;
use crate::replication::world::DOMAINS;
use directory::registry::{LEASE, Registry, State};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::DomainName;
use wire::replication::Number;
use wire::time::Moment;

type Of<T> = BTreeMap<DomainName, T>;

/// Longest delay of a message to a directory that is not lost.
const ON_THE_WAY: Duration = Duration::from_millis(3500);

/// Longest pause that a directory does not notice.
const UNNOTICED: Duration = Duration::from_secs(2);

/// The true history, and the violations found.
pub(crate) struct Laws {
    /// When a representative stated a number.
    said: BTreeMap<(DomainName, Number), Duration>,
    /// When a directory last accepted a number from its representative itself.
    accepted: BTreeMap<(DomainName, Number), Duration>,
    /// Leaves that each directory knows and has not lost by a crash.
    left: Vec<Of<Number>>,
    /// All leaves ever made.
    leaves: Of<Vec<Number>>,
    /// The highest number that each directory has answered since its start, outside leaves.
    answered: Vec<Of<Number>>,
    /// Numbers that each directory had at its start.
    restored: Vec<Of<Number>>,
    /// For each domain, the highest number in any directory when all faults ended.
    highest: Of<Number>,
    healed_at: Duration,
    pub(crate) broken: Vec<String>,
}

impl Laws {
    pub(crate) fn new(count: usize) -> Laws {
        Laws {
            said: BTreeMap::new(),
            accepted: BTreeMap::new(),
            left: vec![Of::new(); count],
            leaves: Of::new(),
            answered: vec![Of::new(); count],
            restored: vec![Of::new(); count],
            highest: Of::new(),
            healed_at: Duration::MAX,
            broken: Vec::new(),
        }
    }

    pub(crate) fn said(&mut self, domain: &DomainName, number: Number, now: Duration) {
        self.said.insert((domain.clone(), number), now);
    }

    pub(crate) fn accepted(&mut self, domain: &DomainName, number: Number, now: Duration) {
        let at = self.accepted.entry((domain.clone(), number)).or_insert(now);
        *at = (*at).max(now);
        if let Some(highest) = self.highest.get_mut(domain) {
            *highest = number.max(*highest);
        }
    }

    pub(crate) fn may_leave(&mut self, domain: &DomainName, number: Number) {
        self.leaves.entry(domain.clone()).or_default().push(number);
    }

    pub(crate) fn left(&mut self, at: usize, domain: &DomainName, number: Number) {
        let left = self.left[at].entry(domain.clone()).or_insert(number);
        *left = number.max(*left);
    }

    /// A crash may lose what the snapshot did not contain yet.
    pub(crate) fn forgot(&mut self, at: usize) {
        self.left[at].clear();
        self.answered[at].clear();
        self.restored[at].clear();
    }

    pub(crate) fn restarted(&mut self, at: usize, registry: &Registry, now: Moment) {
        let held = registry.domains(now).map(|held| (held.record.domain.clone(), held.opened.number()));
        self.restored[at] = held.collect();
    }

    pub(crate) fn healed<'a>(
        &mut self,
        now: Duration,
        directories: impl Iterator<Item = (&'a Registry, Moment)>,
    ) {
        self.healed_at = now;
        for (registry, now) in directories {
            for held in registry.domains(now) {
                let number = held.opened.number();
                let highest = self.highest.entry(held.record.domain.clone()).or_insert(number);
                *highest = number.max(*highest);
            }
        }
    }

    /// Check one directory now.
    pub(crate) fn look(&mut self, at: usize, registry: &Registry, local: Moment, now: Duration) {
        for held in registry.domains(local) {
            let (domain, number) = (&held.record.domain, held.opened.number());
            for answered in std::iter::once(&held).chain(&held.partial) {
                let number = answered.opened.number();
                let of = (domain.clone(), number);
                let since = self.accepted.get(&of).map(|at| now.saturating_sub(*at));
                if answered.state == State::Live && since.is_none_or(|since| since >= LEASE) {
                    self.broken.push(format!(
                        "lease extended: {domain} {number:?} at {at}, {since:?} after it was stated"
                    ));
                }
                let since = self.said.get(&of).map(|at| now.saturating_sub(*at));
                if answered.state == State::Live
                    && since.is_none_or(|since| since >= LEASE + ON_THE_WAY + UNNOTICED)
                {
                    self.broken
                        .push(format!("late: {domain} {number:?} live at {at} {since:?} after it was said"));
                }
                if answered.state == State::Live && self.restored[at].get(domain) == Some(&number) {
                    self.broken.push(format!("live without a new statement: {domain} {number:?} at {at}"));
                }
                if self.left[at].get(domain).is_some_and(|left| *left >= number) {
                    self.broken.push(format!("resurrected: {domain} {number:?} at {at} after it left"));
                }
            }
            let partial_above = held.partial.iter().any(|part| part.opened.number() >= number);
            if partial_above || self.answered[at].get(domain).is_some_and(|answered| *answered > number) {
                // Unless the number answered before has left.
                let leaves = self.leaves.get(domain).map_or(&[][..], Vec::as_slice);
                let answered = self.answered[at].get(domain).copied();
                let ended = answered.is_some_and(|answered| leaves.iter().any(|leave| *leave >= answered));
                if partial_above || !ended {
                    self.broken.push(format!(
                        "a lower number took over: {domain} {number:?} at {at} after {answered:?}"
                    ));
                }
            }
            self.answered[at].insert(domain.clone(), number);
        }
    }

    /// Check all directories some time after all faults ended.
    pub(crate) fn look_at_all(&mut self, directories: &[(&Registry, Moment)]) {
        let (first, now) = directories[0];
        for (at, (other, local)) in directories.iter().enumerate() {
            let (one, two) = (lasting(self, first), lasting(self, other));
            if first.sums() != other.sums() && one != two {
                self.broken.push(format!("directories 0 and {at} differ after healing: {one:?} {two:?}"));
            }
            for of in 0..DOMAINS {
                let domain = domain(of);
                let seen = |registry: &Registry, now| {
                    registry.resolve(&domain, now).map(|held| held.opened.number())
                };
                if seen(first, now) != seen(other, *local) {
                    self.broken.push(format!("directories 0 and {at} report another {domain}"));
                }
                let leaves = self.leaves.get(&domain).map_or(&[][..], Vec::as_slice);
                let known_leave = directories
                    .iter()
                    .filter_map(|(registry, _)| registry.detail(&domain).and_then(|detail| detail.left));
                let floor = known_leave.max();
                let number = seen(other, *local);
                if number <= floor && number.is_some() {
                    self.broken.push(format!("resurrected: {domain} {number:?} at {at} after all healed"));
                }
                let highest = self.highest.get(&domain).copied();
                let highest = highest.filter(|highest| !leaves.iter().any(|leave| leave >= highest));
                if number < highest {
                    self.broken
                        .push(format!("not the highest: {domain} {number:?} at {at}, {highest:?} was held"));
                }
            }
        }
    }
}

/// What a directory stores, except statements below the first that were not stated again since the faults
/// ended: those end soon, earlier where they were fetched, and at once where only a snapshot contained them.
fn lasting(laws: &Laws, registry: &Registry) -> Vec<(Option<Number>, Vec<Number>)> {
    let of_domain = |domain: DomainName| {
        let detail = registry.detail(&domain);
        let (left, mut numbers) = detail.map(|detail| (detail.left, detail.numbers)).unwrap_or_default();
        let mut is_first = true;
        numbers.retain(|number| {
            let said = laws.said.get(&(domain.clone(), *number));
            std::mem::take(&mut is_first) || said.is_some_and(|said| *said >= laws.healed_at)
        });
        (left, numbers)
    };
    (0..DOMAINS).map(domain).map(of_domain).collect()
}
