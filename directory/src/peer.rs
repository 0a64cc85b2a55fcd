//! State of one peer directory: the open questions, and the domains still to be fetched.
//!
//! Pure. Bounded: a few open questions of each kind, and at most `WANTED_MAX` domains to fetch. Not here:
//! the processing of the answers (`replicate`).

use std::collections::BTreeMap;
use std::time::Duration;
use wire::id::{DomainName, PeerKey};
use wire::replication::Detail;
use wire::time::Moment;

/// Most open fetches: the answers are long, and one may be late.
const FETCHES_MAX: usize = 4;

/// Most unanswered hints: beyond this the peer cannot keep up, and its next digest covers everything.
const HINTS_MAX: usize = 16;

/// Most domains to fetch; the remaining ones differ again in the next digest.
const WANTED_MAX: usize = 20_000;

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
    /// `details`: the domains to fetch, sorted by name.
    Fetch {
        at: Moment,
        details: Vec<Detail>,
    },
}

impl Ask {
    pub(crate) fn at(&self) -> Moment {
        match self {
            Ask::Digest { at, .. } | Ask::Hints { at } | Ask::Fetch { at, .. } => *at,
        }
    }
}

/// A peer directory.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) key: PeerKey,
    pub(crate) digest_at: Moment,
    pub(crate) asks: BTreeMap<u64, Ask>,
    /// Domains to fetch: the peer announced something that this directory lacks.
    pub(crate) wanted: BTreeMap<DomainName, Detail>,
    /// Whether the last digest was answered and no question failed since.
    pub(crate) heard: bool,
    /// Rest of a digest round: the next bucket and the number of buckets; `None` after the last part.
    pub(crate) rest: Option<(u16, u16)>,
    /// Whether the peer reported that it has settled.
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

    /// Drop the questions older than `timeout`. Returns whether there were any.
    pub(crate) fn give_up(&mut self, now: Moment, timeout: Duration) -> bool {
        let before = self.asks.len();
        self.asks.retain(|_, ask| now.since(ask.at()) < timeout);
        self.asks.len() < before
    }
}
