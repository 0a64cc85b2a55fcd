//! Summary of a block: the times and kinds of its events, and a Bloom filter of their names.
//!
//! Pure. Rule: a summary may say that a block has what it does not have, never the reverse; so a query that
//! skips blocks finds every event. This is a format on disk.
//! Not here: which names a query looks for (`query::block_query`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use wire::event::{Content, Kind};
use wire::time::Time;

/// Bits of the filter for each distinct name: one in a thousand names that are not there is found. A query
/// for a user looks for each call of the user: hundreds.
const BITS_PER_TERM: usize = 16;

/// Bits that are set for each name.
const PROBES: u64 = 8;

/// A name in the summaries, by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(u64);

impl Term {
    #[must_use]
    pub fn job(job: &str) -> Term {
        Term::new(b'j', job)
    }

    #[must_use]
    pub fn user(user: &str) -> Term {
        Term::new(b'u', user)
    }

    /// The full name of a host, or its first label.
    #[must_use]
    pub fn host(host: &str) -> Term {
        Term::new(b'h', host)
    }

    #[must_use]
    pub fn call(call: &str) -> Term {
        Term::new(b'c', call)
    }

    fn new(field: u8, text: &str) -> Term {
        Term(xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), u64::from(field)))
    }

    /// The bits of this name in a filter of this length.
    fn bits(self, len: u64) -> impl Iterator<Item = u64> {
        let (start, step) = (self.0, self.0.rotate_left(32) | 1);
        (0..PROBES).map(move |nth| start.wrapping_add(step.wrapping_mul(nth)) % len)
    }
}

/// The events of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The earliest and the latest time of an event; the reverse of each other if there are no events.
    since: i64,
    until: i64,
    /// One bit for each kind, in the order of [`Kind::ALL`].
    kinds: u32,
    filter: Vec<u8>,
}

impl Summary {
    /// Whether an event of one of these kinds may be in the block.
    #[must_use]
    pub fn may_have_kind(&self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| self.kinds & kind_bit(*kind) != 0)
    }

    /// Whether an event from `since` to `until` may be in the block.
    #[must_use]
    pub fn may_have_time(&self, since: Option<Time>, until: Option<Time>) -> bool {
        since.is_none_or(|since| since.micros() <= self.until)
            && until.is_none_or(|until| until.micros() >= self.since)
    }

    /// Whether an event with this name may be in the block.
    #[must_use]
    pub fn may_have(&self, term: Term) -> bool {
        let len = self.filter.len() as u64 * 8;
        len > 0
            && term.bits(len).all(|bit| {
                let (byte, bit) = place(bit);
                self.filter[byte] & bit != 0
            })
    }
}

/// Collects the summary of a block.
#[derive(Debug)]
pub struct Collector {
    since: i64,
    until: i64,
    kinds: u32,
    terms: BTreeSet<Term>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector { since: i64::MAX, until: i64::MIN, kinds: 0, terms: BTreeSet::new() }
    }
}

impl Collector {
    /// Adds an event of this call.
    pub fn add(&mut self, content: &Content, call: &str) {
        let time = content.time.micros();
        (self.since, self.until) = (self.since.min(time), self.until.max(time));
        self.kinds |= kind_bit(content.kind);
        self.terms.extend([Term::job(&content.job), Term::user(&content.user), Term::call(call)]);
        for party in content.from.split(',').chain(content.to.split(',')).map(str::trim) {
            self.terms.insert(Term::host(party));
            if let Some((label, _)) = party.split_once('.') {
                self.terms.insert(Term::host(label));
            }
        }
    }

    /// Returns the summary of the events so far, and starts another one.
    pub fn finish(&mut self) -> Summary {
        let Collector { since, until, kinds, terms } = std::mem::take(self);
        let mut filter = vec![0; (terms.len() * BITS_PER_TERM).div_ceil(8)];
        let len = filter.len() as u64 * 8;
        for bit in terms.into_iter().flat_map(|term| term.bits(len)) {
            let (byte, bit) = place(bit);
            filter[byte] |= bit;
        }
        Summary { since, until, kinds, filter }
    }
}

fn place(bit: u64) -> (usize, u8) {
    (usize::try_from(bit / 8).expect("a filter fits in memory"), 1 << (bit % 8))
}

fn kind_bit(kind: Kind) -> u32 {
    1 << Kind::ALL.iter().position(|known| *known == kind).expect("it is one of all")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(nth: i64) -> Content {
        let mut content = Content::new(Kind::JobStart, Time::from_micros(nth));
        content.job = nth.to_string().into();
        content.user = format!("user{}", nth % 7).into();
        content.to = format!("wn{}.example, wn{}.example", nth % 50, nth % 31).into();
        content
    }

    fn summary() -> Summary {
        let mut collector = Collector::default();
        (100..1100).for_each(|nth| collector.add(&content(nth), &format!("slurm:{nth}")));
        collector.finish()
    }

    #[test]
    fn nothing_that_is_there_is_denied() {
        let summary = summary();
        for nth in 100..1100 {
            let content = content(nth);
            let terms = [
                Term::job(&content.job),
                Term::user(&content.user),
                Term::call(&format!("slurm:{nth}")),
                Term::host(&format!("wn{}", nth % 50)),
                Term::host(&format!("wn{}.example", nth % 31)),
            ];
            assert!(terms.into_iter().all(|term| summary.may_have(term)), "{nth}");
            assert!(summary.may_have_time(Some(content.time), Some(content.time)));
        }
        assert!(summary.may_have_kind(&[Kind::JobEnd, Kind::JobStart]));
    }

    #[test]
    fn most_of_what_is_not_there_is_denied() {
        let summary = summary();
        let found = (0..10_000).filter(|nth| summary.may_have(Term::user(&format!("other{nth}")))).count();
        assert!(found < 40, "{found}");
        assert!(!summary.may_have_kind(&[Kind::JobEnd]));
        let at = |micros| Some(Time::from_micros(micros));
        assert!(!summary.may_have_time(at(1100), None) && !summary.may_have_time(None, at(99)));
        assert!(summary.may_have_time(at(1099), at(5000)) && summary.may_have_time(at(0), at(100)));
    }

    #[test]
    fn a_block_without_events_has_nothing() {
        let summary = Collector::default().finish();
        assert!(!summary.may_have_time(Some(Time::from_micros(0)), None));
        assert!(!summary.may_have(Term::user("")) && !summary.may_have_kind(Kind::ALL));
    }
}
