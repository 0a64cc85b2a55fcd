//! Ledger of numbered lines: which were written, which were received as events, and how often.
//!
//! Pure. Invariant: a verdict is clean only if every number written was received exactly once, each with its
//! own event id, and nothing else was. Not here: writing lines ([`crate::logs`]), querying events.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Received events.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Number of events received for each number.
    seen: Vec<u32>,
    /// Digests of the event ids, as long tests receive millions.
    ids: HashSet<u64>,
    ids_repeated: Vec<String>,
    unexpected: Vec<String>,
    /// Count of different numbers received.
    count: usize,
}

/// Verdict on the received events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Numbers written but never received.
    pub lost: Vec<usize>,
    /// Numbers received more than once.
    pub duplicated: Vec<usize>,
    /// Event ids received more than once.
    pub ids_repeated: Vec<String>,
    /// Received texts and numbers that were never written.
    pub unexpected: Vec<String>,
}

impl Ledger {
    /// Record an event for a number, given as text.
    pub fn enter(&mut self, id: &str, number: &str) {
        let mut digest = DefaultHasher::new();
        id.hash(&mut digest);
        if !self.ids.insert(digest.finish()) {
            self.ids_repeated.push(id.to_owned());
        }
        let Some(number) = number.parse::<usize>().ok().filter(|number| *number < 1 << 32) else {
            self.unexpected.push(number.to_owned());
            return;
        };
        if self.seen.len() <= number {
            self.seen.resize(number + 1, 0);
        }
        self.count += usize::from(self.seen[number] == 0);
        self.seen[number] += 1;
    }

    /// Count of different numbers received.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Verdict if the numbers from 1 to `written` were written.
    #[must_use]
    pub fn verdict(&self, written: usize) -> Verdict {
        let times = |number: usize| self.seen.get(number).copied().unwrap_or(0);
        let mut unexpected = self.unexpected.clone();
        let beyond = (0..self.seen.len()).filter(|number| *number == 0 || *number > written);
        unexpected.extend(beyond.filter(|number| times(*number) > 0).map(|number| number.to_string()));
        Verdict {
            lost: (1..=written).filter(|number| times(*number) == 0).collect(),
            duplicated: (1..=written).filter(|number| times(*number) > 1).collect(),
            ids_repeated: self.ids_repeated.clone(),
            unexpected,
        }
    }
}

impl Verdict {
    /// Whether nothing was lost, repeated or invented.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        *self == Verdict::default()
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (lost, duplicated) = (self.lost.len(), self.duplicated.len());
        write!(f, "{lost} lost, {duplicated} duplicated, ")?;
        write!(f, "{} ids repeated, {} unexpected", self.ids_repeated.len(), self.unexpected.len())?;
        if !self.is_clean() {
            let first = |numbers: &[usize]| numbers.iter().take(5).copied().collect::<Vec<_>>();
            write!(f, "; first lost {:?}, first duplicated ", first(&self.lost))?;
            write!(f, "{:?}, unexpected {:?}", first(&self.duplicated), self.unexpected.first())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[(&str, &str)], expected: &str) {
        let mut ledger = Ledger::default();
        entries.iter().for_each(|(id, number)| ledger.enter(id, number));
        let verdict = ledger.verdict(3).to_string();
        assert_eq!(verdict.split(';').next(), Some(expected), "{entries:?}");
    }

    #[test]
    fn it_is_clean_only_when_each_came_once() {
        check(&[("a", "1"), ("b", "3"), ("c", "2")], "0 lost, 0 duplicated, 0 ids repeated, 0 unexpected");
        check(&[("a", "1"), ("b", "3")], "1 lost, 0 duplicated, 0 ids repeated, 0 unexpected");
        let all = [("a", "1"), ("b", "2"), ("c", "3")];
        let with = |more| all.into_iter().chain([more]).collect::<Vec<_>>();
        check(&with(("d", "3")), "0 lost, 1 duplicated, 0 ids repeated, 0 unexpected");
        check(&with(("c", "3")), "0 lost, 1 duplicated, 1 ids repeated, 0 unexpected");
        check(&with(("d", "4")), "0 lost, 0 duplicated, 0 ids repeated, 1 unexpected");
        check(&with(("d", "0")), "0 lost, 0 duplicated, 0 ids repeated, 1 unexpected");
        check(&with(("d", "x")), "0 lost, 0 duplicated, 0 ids repeated, 1 unexpected");
    }
}
