//! One look-up in progress: which directory to ask next, and when there are enough answers.
//!
//! Pure. Rule: as many questions are open as answers are missing; one more is sent whenever one failed or
//! half a second has passed. Not here: the content of the answers (`resolve`).

use super::{ANOTHER_AFTER, COMPARED, LOOKUP_TIMEOUT};
use wire::id::PeerKey;
use wire::replication::Number;
use wire::time::Moment;

/// Summary of an answer, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summary {
    Number(Number),
    Unknown,
}

#[derive(Debug)]
pub(super) struct Lookup {
    /// Directories not asked yet, the next first.
    to_ask: std::collections::VecDeque<PeerKey>,
    /// Directories that have not answered yet, and when each was asked.
    open: Vec<(PeerKey, Moment)>,
    said: Vec<Summary>,
    wanted: usize,
    /// How many additional directories are asked, because others are slow.
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

    /// The directory to ask now, if one more is to be asked.
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

    /// `None`: the directory did not answer, or not usefully.
    pub(super) fn answered(&mut self, directory: PeerKey, said: Option<Summary>) {
        self.open.retain(|(open, _)| *open != directory);
        self.said.extend(said);
    }

    /// After [`ANOTHER_AFTER`], allow one more question.
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
