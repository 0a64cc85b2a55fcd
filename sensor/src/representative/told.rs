//! What this sensor was told, as a standby, of all members' events in the stores of its predecessors.
//!
//! Pure. A member that lives brings its own marks ([`wire::report::Mark`]); one that is gone, or was started anew as the former
//! representative is when it comes back, brings none. Without them readers would be given all its events again.
//! Rule: of a sensor the last word counts, as its journal may have gone back; stores are forgotten in the order in which they
//! were heard of.
//! Not here: what readers have seen by it ([`super::cursor`]), telling standbys (`standbys`).

use super::admit::SENSORS_MAX;
use std::collections::BTreeMap;
use wire::id::SensorKey;
use wire::report::{Mark, Marks, StoreKey};

/// Stores of which is known what they had: as many as a cursor has places beside that of the present one.
pub const STORES_MAX: usize = 2;

/// By store, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Told(Vec<(StoreKey, BTreeMap<SensorKey, Mark>)>);

impl Told {
    /// The present representative told this.
    pub fn take(&mut self, marks: Marks) {
        let Marks { store, at, members } = marks;
        let known = self.0.iter().position(|(known, _)| *known == store);
        let mut of_store = known.map_or_else(BTreeMap::new, |place| self.0.remove(place).1);
        of_store.extend(members.into_iter().map(|(sensor, next)| (sensor, Mark { store, at, next })));
        while of_store.len() > SENSORS_MAX {
            of_store.pop_last();
        }
        self.0.push((store, of_store));
        let too_many = self.0.len().saturating_sub(STORES_MAX);
        self.0.drain(..too_many);
    }

    /// The sensor's journal ends before that: its numbers mean other events now.
    pub fn forget_beyond(&mut self, sensor: SensorKey, next: u64) {
        for (_, of_store) in &mut self.0 {
            if of_store.get(&sensor).is_some_and(|mark| mark.next > next) {
                of_store.remove(&sensor);
            }
        }
    }

    /// What is known of a sensor.
    pub fn of(&self, sensor: SensorKey) -> impl Iterator<Item = Mark> {
        self.0.iter().filter_map(move |(_, of_store)| of_store.get(&sensor).copied())
    }

    /// The stores that were heard of, the newest first.
    pub fn stores(&self) -> impl Iterator<Item = StoreKey> {
        self.0.iter().rev().map(|(store, _)| *store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(store: u64, at: u64, members: &[(u64, u64)]) -> Marks {
        let members = members.iter().map(|(sensor, next)| (SensorKey(*sensor), *next)).collect();
        Marks { store: StoreKey(store), at, members }
    }

    fn next_of(told: &Told, sensor: u64) -> Vec<(u64, u64, u64)> {
        told.of(SensorKey(sensor)).map(|mark| (mark.store.0, mark.at, mark.next)).collect()
    }

    #[test]
    fn the_last_word_of_each_sensor_and_store_counts() {
        let mut all = Told::default();
        all.take(told(1, 5, &[(7, 3), (8, 2)]));
        all.take(told(1, 9, &[(7, 6)]));
        assert_eq!((next_of(&all, 7), next_of(&all, 8)), (vec![(1, 9, 6)], vec![(1, 5, 2)]));
        all.take(told(2, 1, &[(7, 1)]));
        assert_eq!(all.stores().map(|store| store.0).collect::<Vec<_>>(), [2, 1]);
        all.forget_beyond(SensorKey(7), 4);
        assert_eq!(next_of(&all, 7), [(2, 1, 1)], "event 6 is another one now");
        all.take(told(3, 1, &[]));
        assert!(next_of(&all, 8).is_empty(), "the oldest store is forgotten");
    }
}
