//! Watermarks received as a standby: which events of every member earlier representatives had already stored.
//!
//! Pure. A live member brings its own watermarks ([`wire::report::Mark`]). A member that is gone brings none;
//! the previous representative is one of them. Without its watermarks, readers would receive all its events
//! again.
//! Rule: for each store the last watermark of a sensor is authoritative, because the sensor's journal may
//! have gone back. Earlier watermarks are stored beside it, for readers that had not read as far when the
//! representative was lost.
//! Not here: which events a reader has seen by these watermarks ([`super::cursor`]), sending them to standbys
//! (`standbys`).

use super::admit::SENSORS_MAX;
use super::cursor::PLACES_MAX;
use std::collections::BTreeMap;
use wire::at_end::AtEnd;
use wire::id::SensorKey;
use wire::report::marks::MarkList;
use wire::report::{Mark, Marks, StoreKey};

/// Most stores that a cursor names beside the present one: as many as a cursor has room for.
pub const STORES_MAX: usize = PLACES_MAX - 1;

/// Watermarks by sensor, and the stores that they are from, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Watermarks {
    of: BTreeMap<SensorKey, MarkList>,
    stores: Vec<StoreKey>,
}

impl Watermarks {
    /// Adds watermarks that the present representative sent.
    pub fn take(&mut self, marks: Marks) {
        let Marks { store, at, members, whole: AtEnd(whole) } = marks;
        if whole.unwrap_or(false) {
            self.of.values_mut().for_each(|marks| marks.forget_store(store));
        }
        self.stores.retain(|known| *known != store);
        self.stores.push(store);
        let too_many = self.stores.len().saturating_sub(STORES_MAX);
        self.stores.drain(..too_many);
        for (sensor, next) in members {
            let marks = self.of.entry(sensor).or_default();
            if marks.iter().filter(|mark| mark.store == store).last().is_some_and(|last| last.next > next) {
                marks.forget_beyond(next);
            }
            marks.add(Mark { store, at, next });
        }
        while self.of.len() > SENSORS_MAX {
            self.of.pop_last();
        }
    }

    /// Forgets the watermarks of a sensor beyond `next`: its journal ends there, so its later numbers mean
    /// other events now. Returns whether there were any.
    pub fn forget_beyond(&mut self, sensor: SensorKey, next: u64) -> bool {
        let Some(marks) = self.of.get_mut(&sensor) else { return false };
        let is_beyond = marks.iter().any(|mark| mark.next > next);
        marks.forget_beyond(next);
        is_beyond
    }

    /// Returns the watermarks of a sensor.
    pub fn of(&self, sensor: SensorKey) -> impl Iterator<Item = Mark> {
        self.of.get(&sensor).into_iter().flat_map(MarkList::iter)
    }

    /// Returns the stores that watermarks were received of, the newest first.
    pub fn stores(&self) -> impl Iterator<Item = StoreKey> {
        self.stores.iter().rev().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(store: u64, at: u64, members: &[(u64, u64)]) -> Marks {
        let members = members.iter().map(|(sensor, next)| (SensorKey(*sensor), *next)).collect();
        Marks { store: StoreKey(store), at, members, whole: AtEnd(None) }
    }

    fn next_of(sent: &Watermarks, sensor: u64) -> Vec<(u64, u64, u64)> {
        sent.of(SensorKey(sensor)).map(|mark| (mark.store.0, mark.at, mark.next)).collect()
    }

    #[test]
    fn what_readers_behind_the_last_word_have_seen_is_known_too() {
        let mut all = Watermarks::default();
        all.take(sent(1, 5, &[(7, 3), (8, 2)]));
        all.take(sent(1, 9, &[(7, 6)]));
        assert_eq!((next_of(&all, 7), next_of(&all, 8)), (vec![(1, 5, 3), (1, 9, 6)], vec![(1, 5, 2)]));
    }

    #[test]
    fn numbers_that_mean_other_events_now_are_forgotten() {
        let mut all = Watermarks::default();
        all.take(sent(1, 5, &[(7, 3)]));
        all.take(sent(1, 9, &[(7, 6)]));
        all.take(sent(1, 12, &[(7, 4)]));
        assert_eq!(next_of(&all, 7), [(1, 5, 3), (1, 12, 4)], "its journal has gone back");
        all.take(sent(2, 1, &[(7, 1)]));
        assert_eq!(next_of(&all, 7).len(), 3, "another store that has less says nothing of that");
        assert!(all.forget_beyond(SensorKey(7), 3) && !all.forget_beyond(SensorKey(7), 3));
        assert_eq!(next_of(&all, 7), [(1, 5, 3), (2, 1, 1)]);
    }

    #[test]
    fn a_whole_word_takes_the_place_of_all_before() {
        let mut all = Watermarks::default();
        all.take(sent(1, 5, &[(7, 3), (8, 3)]));
        all.take(sent(2, 5, &[(7, 1)]));
        all.take(Marks { whole: AtEnd(Some(true)), ..sent(1, 9, &[(7, 4)]) });
        assert_eq!((next_of(&all, 7), next_of(&all, 8)), (vec![(2, 5, 1), (1, 9, 4)], vec![]));
    }

    #[test]
    fn readers_are_notified_of_the_last_stores() {
        let mut all = Watermarks::default();
        let last = STORES_MAX as u64 + 1;
        (1..=last).chain([2]).for_each(|store| all.take(sent(store, 1, &[])));
        let stores: Vec<u64> = all.stores().map(|store| store.0).collect();
        assert_eq!((stores[..3].to_vec(), stores.len()), (vec![2, last, last - 1], STORES_MAX));
    }
}
