//! One look-up under way: whom to ask next, and when there is enough.
//!
//! Pure. Rule: as many directories are open as answers are still wanted; one more whenever one failed or half a
//! second passed. Not here: what the answers say (`resolve`).

use super::{ANOTHER_AFTER, COMPARED, LOOKUP_TIMEOUT};
use wire::id::PeerKey;
use wire::replication::Number;
use wire::time::Moment;

/// The gist of an answer, to compare answers by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Number(Number),
    Unknown,
}

#[derive(Debug)]
pub(super) struct Lookup {
    /// Not yet asked, the next first.
    to_ask: std::collections::VecDeque<PeerKey>,
    /// Asked and not answered.
    open: Vec<(PeerKey, Moment)>,
    said: Vec<Said>,
    wanted: usize,
    /// How many more than wanted are asked, because others are slow.
    extra: usize,
    another_at: Moment,
    ends_at: Moment,
}

impl Lookup {
    pub(super) fn new(order: Vec<PeerKey>, now: Moment) -> Lookup {
        Lookup {
            wanted: COMPARED.min(order.len()),
            to_ask: order.into(),
            open: Vec::new(),
            said: Vec::new(),
            extra: 0,
            another_at: now.plus(ANOTHER_AFTER),
            ends_at: now.plus(LOOKUP_TIMEOUT),
        }
    }

    /// Whom to ask now, if more are to be asked.
    pub(super) fn next(&mut self, now: Moment) -> Option<PeerKey> {
        if self.said.len() + self.open.len() >= self.wanted + self.extra || self.said.len() >= self.wanted {
            return None;
        }
        let next = self.to_ask.pop_front()?;
        self.open.push((next, now));
        Some(next)
    }

    pub(super) fn asked_at(&self, directory: PeerKey) -> Option<Moment> {
        self.open.iter().find(|(open, _)| *open == directory).map(|(_, at)| *at)
    }

    /// `None`: it did not answer, or nothing that helps.
    pub(super) fn answered(&mut self, directory: PeerKey, said: Option<Said>) {
        self.open.retain(|(open, _)| *open != directory);
        self.said.extend(said);
    }

    /// Time passed: one more may be asked.
    pub(super) fn another(&mut self, now: Moment) {
        if self.another_at <= now {
            self.extra += 1;
            self.another_at = now.plus(ANOTHER_AFTER);
        }
    }

    pub(super) fn is_over(&self, now: Moment) -> bool {
        self.said.len() >= self.wanted
            || self.ends_at <= now
            || self.open.is_empty() && self.to_ask.is_empty()
    }

    pub(super) fn due(&self) -> Moment {
        self.another_at.min(self.ends_at)
    }

    pub(super) fn answers(&self) -> usize {
        self.said.len()
    }

    pub(super) fn agreed(&self) -> bool {
        self.said.windows(2).all(|two| two[0] == two[1])
    }
}
