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

/// Bit of the kinds: the filter has the hours of the events. Programs before it look at the bits of kinds only.
const HAS_HOURS: u32 = 1 << 31;

/// Most hours in a filter: a block of more is one of a log that is no journal of events as they happen.
const HOURS_MAX: usize = 256;

/// Most hours that are looked for one by one.
const HOURS_SOUGHT_MAX: u64 = 48;

const HOUR_US: i64 = 3_600_000_000;

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

    /// An hour since 1970.
    fn hour(hour: i64) -> Term {
        Term::of(b't', &hour.to_le_bytes())
    }

    fn new(field: u8, text: &str) -> Term {
        Term::of(field, text.as_bytes())
    }

    fn of(field: u8, bytes: &[u8]) -> Term {
        Term(xxhash_rust::xxh3::xxh3_64_with_seed(bytes, u64::from(field)))
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
        let from = since.map_or(self.since, |since| since.micros().max(self.since));
        let to = until.map_or(self.until, |until| until.micros().min(self.until));
        from <= to && self.may_have_hour(from.div_euclid(HOUR_US), to.div_euclid(HOUR_US))
    }

    /// Whether an event of these hours may be in the block. Files that are read at once from their starts are weeks
    /// apart, so that the times between the first and the last event are not those of the events.
    fn may_have_hour(&self, from: i64, to: i64) -> bool {
        let is_known = self.kinds & HAS_HOURS != 0 && from.abs_diff(to) < HOURS_SOUGHT_MAX;
        !is_known || (from..=to).any(|hour| self.may_have(Term::hour(hour)))
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
    hours: BTreeSet<i64>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            since: i64::MAX,
            until: i64::MIN,
            kinds: 0,
            terms: BTreeSet::new(),
            hours: BTreeSet::new(),
        }
    }
}

impl Collector {
    /// Adds an event of this call.
    pub fn add(&mut self, content: &Content, call: &str) {
        let time = content.time.micros();
        (self.since, self.until) = (self.since.min(time), self.until.max(time));
        self.kinds |= kind_bit(content.kind);
        if self.hours.len() <= HOURS_MAX {
            self.hours.insert(time.div_euclid(HOUR_US));
        }
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
        let Collector { since, until, mut kinds, mut terms, hours } = std::mem::take(self);
        if hours.len() <= HOURS_MAX {
            kinds |= HAS_HOURS;
            terms.extend(hours.into_iter().map(Term::hour));
        }
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

const _: () = assert!(Kind::ALL.len() < 31);

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
    fn hours_between_the_first_and_the_last_event_without_events_are_denied() {
        let hours = |hours: &[i64]| {
            let mut collector = Collector::default();
            for hour in hours {
                collector.add(&content(hour * HOUR_US + 5), "");
            }
            collector.finish()
        };
        let at = |hour: i64, micros| Some(Time::from_micros(hour * HOUR_US + micros));
        let weeks_apart = hours(&[-1, 0, 500]);
        assert!(!weeks_apart.may_have_time(at(200, 0), at(201, 0)));
        for hour in [-1, 0, 500] {
            assert!(weeks_apart.may_have_time(at(hour, 5), at(hour, 5)), "{hour}");
            assert!(weeks_apart.may_have_time(at(hour - 20, 0), at(hour + 20, 0)), "{hour}");
        }
        assert!(!weeks_apart.may_have_time(at(500, 6), None) && !weeks_apart.may_have_time(None, at(-1, 4)));
        assert!(weeks_apart.may_have_time(at(1, 0), at(499, 0)), "more hours than are looked for");
        let all: Vec<i64> = (0..i64::try_from(HOURS_MAX).expect("few") + 2).map(|nth| nth * 2).collect();
        assert!(hours(&all).may_have_time(at(1, 0), at(1, 9)), "more hours than are kept");
        assert!(!hours(&all[..HOURS_MAX]).may_have_time(at(1, 0), at(1, 9)));
    }

    #[test]
    fn a_block_without_events_has_nothing() {
        let summary = Collector::default().finish();
        assert!(!summary.may_have_time(Some(Time::from_micros(0)), None));
        assert!(!summary.may_have(Term::user("")) && !summary.may_have_kind(Kind::ALL));
    }
}
