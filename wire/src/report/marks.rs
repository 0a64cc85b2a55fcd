//! Watermarks of one sensor: how many of its events each store had, at successive positions.
//!
//! Pure. Rule: a mark at a position before others of its store means that the store was reset, and those are
//! dropped. All recent marks of the two newest stores are stored; when a store has too many, every second one
//! of the older half is dropped, so older marks are further apart. Of earlier stores, which most readers have
//! left, a few are stored: so there is room for ten stores.
//! Not here: what readers have seen, according to the marks.

use super::{MARKS_MAX, Mark, StoreKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Most marks of one store.
const OF_STORE_MAX: usize = 32;
/// Marks stored of a store before the two newest, by how many came after them: for readers that had all of
/// it, and for those that were a little behind.
const OF_OLDER_STORE: [usize; 4] = [0, 1, 4, 16];

/// The marks in the order in which they were learnt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MarkList(VecDeque<Mark>);

impl MarkList {
    /// Add a mark. Returns `false` if it equals the last one of its store.
    pub fn add(&mut self, mark: Mark) -> bool {
        let of_store = |known: &&Mark| known.store == mark.store;
        if self.0.iter().rev().find(of_store) == Some(&mark) {
            return false;
        }
        self.0.retain(|known| known.store != mark.store || known.at < mark.at);
        self.0.push_back(mark);
        if self.0.iter().filter(of_store).count() > OF_STORE_MAX {
            let mut nth = 0;
            self.0.retain(|known| {
                nth += usize::from(known.store == mark.store);
                known.store != mark.store || nth > OF_STORE_MAX / 2 || nth % 2 == 1
            });
        }
        if self.0.len() > MARKS_MAX {
            self.thin_older_stores();
        }
        if self.0.len() > MARKS_MAX {
            self.forget_oldest_store();
        }
        true
    }

    /// Thin out the marks of all stores except the two most recent ones.
    fn thin_older_stores(&mut self) {
        let mut newest: Vec<StoreKey> = Vec::new();
        let mut counts: BTreeMap<StoreKey, usize> = BTreeMap::new();
        for mark in self.0.iter().rev() {
            if newest.len() < 2 && !newest.contains(&mark.store) {
                newest.push(mark.store);
            }
            *counts.entry(mark.store).or_default() += 1;
        }
        // A store that was thinned out before is unchanged.
        counts.retain(|store, count| !newest.contains(store) && *count > OF_OLDER_STORE.len());
        self.0.retain(|mark| {
            counts.get_mut(&mark.store).is_none_or(|left| {
                *left -= 1;
                OF_OLDER_STORE.contains(left)
            })
        });
    }

    /// Drop the marks of the store with the oldest last mark.
    fn forget_oldest_store(&mut self) {
        let is_last = |(place, mark): &(usize, &Mark)| {
            self.0.iter().skip(place + 1).all(|later| later.store != mark.store)
        };
        let oldest = self.0.iter().enumerate().find(is_last).map(|(_, mark)| mark.store);
        self.0.retain(|known| Some(known.store) != oldest);
    }

    /// Drop all marks of a store.
    pub fn forget_store(&mut self, store: StoreKey) {
        self.0.retain(|known| known.store != store);
    }

    /// Drop the marks beyond `next`, where the sensor's journal now ends: higher numbers will refer to other
    /// events.
    pub fn forget_beyond(&mut self, next: u64) {
        self.0.retain(|mark| mark.next <= next);
    }

    /// All marks, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Mark> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(store: u64, at: u64) -> Mark {
        Mark { store: StoreKey(store), at, next: at * 10 }
    }

    fn places(list: &MarkList, store: u64) -> Vec<u64> {
        list.iter().filter(|mark| mark.store == StoreKey(store)).map(|mark| mark.at).collect()
    }

    #[test]
    fn the_last_marks_of_a_store_are_close_and_the_first_far_apart() {
        let mut list = MarkList::default();
        assert!((0..1000).all(|at| list.add(mark(1, at))));
        assert!(!list.add(mark(1, 999)), "it is known already");
        let more = Mark { next: 1_000_000, ..mark(1, 999) };
        assert!(list.add(more) && !list.add(more) && list.iter().last() == Some(more), "at the same place");
        let places = places(&list, 1);
        assert!(places.len() <= OF_STORE_MAX && places.first() == Some(&0), "{places:?}");
        assert_eq!(places[places.len() - OF_STORE_MAX / 2..], (984..1000).collect::<Vec<_>>());
    }

    #[test]
    fn stores_before_the_two_newest_are_thinned_and_then_the_oldest_forgotten() {
        let mut list = MarkList::default();
        for store in 1..=12 {
            (0..32).for_each(|at| assert!(list.add(mark(store, at))));
            assert!(list.iter().count() <= MARKS_MAX);
        }
        assert_eq!((places(&list, 12).len(), places(&list, 11).len()), (32, 32));
        assert_eq!((places(&list, 10), places(&list, 5)), (vec![15, 27, 30, 31], vec![15, 27, 30, 31]));
        let known = (1..=12).filter(|store| !places(&list, *store).is_empty()).count();
        assert!(known >= 10, "{known}");
        // An old store is the present one again.
        (32..64).for_each(|at| assert!(list.add(mark(6, at))));
        assert_eq!((places(&list, 6).last(), places(&list, 12).len()), (Some(&63), 32));
    }

    #[test]
    fn places_that_mean_others_now_are_forgotten() {
        let mut list = MarkList::default();
        (0..10).for_each(|at| assert!(list.add(mark(1, at)) && list.add(mark(2, at))));
        assert!(list.add(Mark { next: 7, ..mark(1, 5) }), "the store went back");
        assert_eq!((places(&list, 1), places(&list, 2).len()), (vec![0, 1, 2, 3, 4, 5], 10));
        list.forget_store(StoreKey(2));
        assert_eq!(list.iter().count(), 6);
    }

    #[test]
    fn marks_of_numbers_that_mean_other_events_now_are_forgotten() {
        let mut list = MarkList::default();
        (0..10).for_each(|at| assert!(list.add(mark(1, at))));
        list.forget_beyond(40);
        assert_eq!(places(&list, 1), [0, 1, 2, 3, 4]);
    }
}
