//! What one directory keeps of another: the questions that are open, and what is still to be asked for.
//!
//! Pure. Bounded: a few open questions of each kind, and no more wanted domains than a table holds.
//! Not here: what the answers do (`replicate`).

use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::replication::Detail;
use wire::time::Moment;

/// Most questions for items open at a time: the answers are long, and one may be late.
const FETCHES_MAX: usize = 4;

/// Most hints unanswered at a time: beyond it the other cannot keep up, and its next digest has it all.
const HINTS_MAX: usize = 16;

/// Most domains wanted at a time; the others differ again in the next digest.
const WANTED_MAX: usize = 20_000;

/// An open question.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Digest {
        at: Moment,
        start: u16,
        buckets: u16,
    },
    Hints {
        at: Moment,
    },
    /// What was wanted, by domain.
    Fetch {
        at: Moment,
        details: Vec<Detail>,
    },
}

impl Ask {
    /// When it was asked.
    pub(crate) fn at(&self) -> Moment {
        match self {
            Ask::Digest { at, .. } | Ask::Hints { at } | Ask::Fetch { at, .. } => *at,
        }
    }
}

/// Another directory.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) key: PeerKey,
    pub(crate) digest_at: Moment,
    pub(crate) asks: BTreeMap<u64, Ask>,
    /// What it has, by its word, and this directory lacks.
    pub(crate) wanted: BTreeMap<DomainName, Detail>,
    /// Whether its last digest answer came, and all since was answered.
    pub(crate) heard: bool,
    /// Where the round of digests goes on: from this bucket so many; none once it is through.
    pub(crate) rest: Option<(u16, u16)>,
    /// Whether it said that it has settled itself.
    pub(crate) settled: bool,
}

impl Peer {
    pub(crate) fn new(key: PeerKey, digest_at: Moment) -> Peer {
        Peer {
            key,
            digest_at,
            asks: BTreeMap::new(),
            wanted: BTreeMap::new(),
            heard: false,
            rest: None,
            settled: false,
        }
    }

    pub(crate) fn want(&mut self, detail: Detail) {
        if self.wanted.len() < WANTED_MAX || self.wanted.contains_key(&detail.domain) {
            self.wanted.insert(detail.domain.clone(), detail);
        }
    }

    pub(crate) fn may_fetch(&self) -> bool {
        self.asks.values().filter(|ask| matches!(ask, Ask::Fetch { .. })).count() < FETCHES_MAX
    }

    pub(crate) fn may_hint(&self) -> bool {
        self.asks.values().filter(|ask| matches!(ask, Ask::Hints { .. })).count() < HINTS_MAX
    }

    pub(crate) fn is_fetching(&self, domain: &DomainName) -> bool {
        self.asks.values().any(|ask| match ask {
            Ask::Fetch { details, .. } => {
                details.binary_search_by(|detail| detail.domain.cmp(domain)).is_ok()
            }
            Ask::Digest { .. } | Ask::Hints { .. } => false,
        })
    }

    /// Drop the questions older than `timeout`; whether there was one.
    pub(crate) fn give_up(&mut self, now: Moment, timeout: Duration) -> bool {
        let before = self.asks.len();
        self.asks.retain(|_, ask| now.since(ask.at()) < timeout);
        self.asks.len() < before
    }
}
