//! Cursor of a reader of the domain's events, in a form that survives a change of the representative.
//!
//! Pure, except that it reads the store. A cursor names a store and a place in it. A new representative has
//! another store, in which the same events are in another order, so it cannot continue at a place of the old
//! one.
//! It does not need to. With every acknowledgement a member receives a watermark: "at this place of this
//! store all my events before that number were stored". It reports its watermarks to the next representative.
//! So for each sensor the new representative knows which of its events were stored before the cursor; it
//! skips those and returns everything else that it has, from its oldest event on. The new cursor contains the
//! old one, because members that connect later report their watermarks later. For members that are gone and
//! report none, the representative itself sends watermarks to its standbys.
//! Rule: a watermark may be older than the cursor; then some events are returned twice, recognized by their
//! ids. No event is skipped that the reader has not seen. Events that the new store does not hold and that
//! the reader may not have seen are counted: exactly where a watermark is as new as the cursor, else as an
//! upper bound.

use super::store::reader::{Reader, Stored};
use crate::segments::Error;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wire::id::SensorKey;
use wire::report::{Mark, StoreKey};

/// Most places in a cursor: the present store and those before it. Watermarks of ten stores are stored for
/// each host (`wire::report::marks`): a reader that is away for more changes of the representative may
/// receive events again.
pub(super) const PLACES_MAX: usize = 16;

/// A place in one store, and in the stores before it; the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    places: Vec<(StoreKey, u64)>,
}

/// A text could not be parsed as a cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no cursor; expected one of a former answer, as it stood there")]
pub struct CursorError {
    found: String,
}

impl Cursor {
    /// Creates a cursor at this place of this store.
    #[must_use]
    pub fn new(store: StoreKey, at: u64) -> Cursor {
        Cursor { places: vec![(store, at)] }
    }

    /// Returns the newest of the stores that it was used with.
    #[must_use]
    pub fn store(&self) -> Option<StoreKey> {
        self.places.first().map(|(store, _)| *store)
    }

    /// Returns its place in this store, if it was used there.
    #[must_use]
    pub fn at(&self, store: StoreKey) -> Option<u64> {
        self.places.iter().find(|(known, _)| *known == store).map(|(_, at)| *at)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (store, at)) in self.places.iter().enumerate() {
            let mark = if nth == 0 { "" } else { "~" };
            write!(f, "{mark}{store}.{at}")?;
        }
        Ok(())
    }
}

impl FromStr for Cursor {
    type Err = CursorError;
    fn from_str(text: &str) -> Result<Cursor, CursorError> {
        let refuse = || CursorError { found: text.chars().take(80).collect() };
        let place = |text: &str| {
            let (store, at) = text.split_once('.')?;
            let is_key = store.len() == 16 && store.bytes().all(|byte| byte.is_ascii_hexdigit());
            let store = u64::from_str_radix(store, 16).ok().filter(|_| is_key)?;
            let at = at.parse().ok().filter(|_| at.bytes().all(|byte| byte.is_ascii_digit()))?;
            Some((StoreKey(store), at))
        };
        let places: Option<Vec<_>> = text.split('~').take(PLACES_MAX + 1).map(place).collect();
        match places {
            Some(places) if places.len() <= PLACES_MAX => Ok(Cursor { places }),
            Some(_) | None => Err(refuse()),
        }
    }
}

/// For each sensor, the first event that it was requested to send, and the watermarks that it reported.
pub type SensorMarks = BTreeMap<SensorKey, (u64, Vec<Mark>)>;

/// What readers need to know of earlier stores.
#[derive(Default)]
struct EarlierStores {
    known: SensorMarks,
    /// The stores before this one, the newest first.
    before: Vec<StoreKey>,
}

impl EarlierStores {
    /// Lists earlier stores: first those that watermarks were received of as a standby, then those that most
    /// members' newest watermarks are of.
    fn new(known: SensorMarks, stores: Vec<StoreKey>, own: StoreKey) -> EarlierStores {
        let mut by_members: BTreeMap<StoreKey, usize> = BTreeMap::new();
        for (_, marks) in known.values() {
            let newest = marks.iter().rev().find(|mark| mark.store != own);
            newest.into_iter().for_each(|mark| *by_members.entry(mark.store).or_default() += 1);
        }
        let mut others: Vec<(usize, StoreKey)> =
            by_members.into_iter().map(|(store, members)| (members, store)).collect();
        others.sort_unstable_by(|one, other| other.cmp(one));
        let mut before: Vec<StoreKey> = Vec::new();
        for store in stores.into_iter().chain(others.into_iter().map(|(_, store)| store)) {
            if store != own && !before.contains(&store) && before.len() < PLACES_MAX - 1 {
                before.push(store);
            }
        }
        EarlierStores { known, before }
    }
}

/// The domain's events for readers, from a cursor on; cheap to clone.
#[derive(Clone)]
pub struct Feed {
    reader: Reader,
    earlier: Arc<Mutex<Arc<EarlierStores>>>,
    settled: Arc<AtomicBool>,
}

/// Result of one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events that matched, in the order of the store.
    pub events: Vec<Stored>,
    /// Cursor to continue from.
    pub cursor: Cursor,
    /// Whether there are more events to examine now.
    pub has_more: bool,
    /// Number of events that the reader may not have seen and that are no longer stored: exact for a cursor
    /// of this store, an upper bound for a cursor of another.
    pub missed: u64,
}

impl Feed {
    pub(super) fn new(reader: Reader) -> Feed {
        Feed { reader, earlier: Arc::default(), settled: Arc::default() }
    }

    /// Sets the watermarks of members' events, and the stores that they were received of as a standby, the
    /// newest first.
    pub(super) fn set_marks(&self, known: SensorMarks, stores: Vec<StoreKey>) {
        let earlier = EarlierStores::new(known, stores, self.reader.key());
        *self.earlier.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(earlier);
    }

    fn earlier(&self) -> Arc<EarlierStores> {
        Arc::clone(&self.earlier.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that every live member has reported its watermarks, or that the wait for them is over.
    pub(super) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Returns whether every live member has reported its watermarks. A reader that comes from another store
    /// before that receives events again.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    /// Returns whether a reader with this cursor last read another store.
    #[must_use]
    pub fn is_from_elsewhere(&self, cursor: &Cursor) -> bool {
        cursor.store().is_some_and(|store| store != self.reader.key())
    }

    /// Returns the reader of the store itself.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the cursor before the oldest event.
    #[must_use]
    pub fn oldest(&self) -> Cursor {
        Cursor::new(self.reader.key(), self.reader.oldest())
    }

    /// Returns the cursor after the newest event, and after all events of earlier stores: members may still
    /// be sending those.
    #[must_use]
    pub fn end(&self) -> Cursor {
        let own = (self.reader.key(), *self.reader.next().borrow());
        let before = self.earlier();
        let before = before.before.iter().map(|store| (*store, u64::MAX));
        Cursor { places: std::iter::once(own).chain(before).collect() }
    }

    /// Reads up to `limit` events that `keep` accepts, from a cursor of this or another representative.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub fn read(
        &self,
        cursor: &Cursor,
        limit: usize,
        keep: impl FnMut(&Stored) -> bool,
    ) -> Result<Page, Error> {
        self.read_some(cursor, limit, usize::MAX, keep)
    }

    /// As [`Feed::read`], but ends after examining `look_at_most` events or a few more.
    ///
    /// # Errors
    /// As [`Feed::read`].
    pub fn read_some(
        &self,
        cursor: &Cursor,
        limit: usize,
        look_at_most: usize,
        mut keep: impl FnMut(&Stored) -> bool,
    ) -> Result<Page, Error> {
        let key = self.reader.key();
        let own = cursor.at(key);
        let foreign: Vec<(StoreKey, u64)> =
            cursor.places.iter().copied().filter(|(store, _)| *store != key).collect();
        let earlier = self.earlier();
        let known = &earlier.known;
        let seen: BTreeMap<SensorKey, u64> = if foreign.is_empty() {
            BTreeMap::new()
        } else {
            known.iter().map(|(sensor, (_, marks))| (*sensor, first_unseen(marks, &foreign))).collect()
        };
        let mut missed = 0;
        let from = match own {
            Some(at) => at,
            None if foreign.is_empty() => self.reader.oldest(),
            None => {
                missed = self.not_held(known, &seen)?;
                self.reader.oldest()
            }
        };
        let page = self.reader.read_some(from, limit, look_at_most, |stored| {
            let is_seen = seen.get(&stored.event.id.sensor).is_some_and(|next| stored.number < *next);
            !is_seen && keep(stored)
        })?;
        let has_more = page.next < *self.reader.next().borrow();
        let places = std::iter::once((key, page.next)).chain(foreign).take(PLACES_MAX).collect();
        Ok(Page { events: page.events, cursor: Cursor { places }, has_more, missed: missed + page.missed })
    }

    /// Returns the number of events that are at or after a cursor of another store and not in this one.
    fn not_held(&self, known: &SensorMarks, seen: &BTreeMap<SensorKey, u64>) -> Result<u64, Error> {
        let oldest = self.reader.oldest_of()?;
        let gone = known.iter().map(|(sensor, (from, _))| {
            let held = oldest.next(*sensor).unwrap_or(0).max(*from);
            held.saturating_sub(seen.get(sensor).copied().unwrap_or(0))
        });
        Ok(gone.sum())
    }
}

/// Returns the first event that a reader at these places may not have seen.
fn first_unseen(marks: &[Mark], places: &[(StoreKey, u64)]) -> u64 {
    let before = |mark: &&Mark| places.iter().any(|(store, at)| mark.store == *store && mark.at <= *at);
    marks.iter().filter(before).map(|mark| mark.next).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_other_texts_do_not() {
        let cursor = Cursor { places: vec![(StoreKey(10), 7), (StoreKey(u64::MAX), 0)] };
        assert_eq!(cursor.to_string(), "000000000000000a.7~ffffffffffffffff.0");
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        let most = ["000000000000000a.7"; PLACES_MAX].join("~");
        assert!(most.parse::<Cursor>().is_ok());
        let long = ["000000000000000a.7"; PLACES_MAX + 1].join("~");
        for bad in ["", "7", "a.7", "000000000000000a.", "000000000000000a.+7", "+00000000000000a.7", &long] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_newest_mark_before_the_cursor_counts() {
        let mark = |store, at, next| Mark { store: StoreKey(store), at, next };
        let marks = [mark(1, 10, 3), mark(1, 20, 7), mark(1, 30, 9), mark(2, 5, 50)];
        assert_eq!(first_unseen(&marks, &[(StoreKey(1), 29)]), 7);
        assert_eq!(first_unseen(&marks, &[(StoreKey(1), 9)]), 0);
        assert_eq!(first_unseen(&marks, &[(StoreKey(1), 29), (StoreKey(2), 4)]), 7);
    }
}
