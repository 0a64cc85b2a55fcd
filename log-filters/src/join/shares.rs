//! Calls by the sensor that opened them: the sensor with most calls loses one when room is needed.
//!
//! Pure. Rule: a sensor that opens calls without end displaces its own once no sensor has more; of several
//! with equally many, the one with the highest key loses. With one sensor it is the order of opening.
//! Not here: the choice among its calls (`super`).

use std::collections::{BTreeMap, VecDeque};
use wire::id::SensorKey;

/// Slots of calls by the sensor that opened them, in order of opening. A call that was merged into another
/// one stays here until its turn comes.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares(BTreeMap<SensorKey, VecDeque<u64>>);

impl Shares {
    /// Record that a sensor opened a call.
    pub(super) fn push(&mut self, owner: SensorKey, slot: u64) {
        self.0.entry(owner).or_default().push_back(slot);
    }

    /// The sensor with most calls.
    pub(super) fn largest(&self) -> Option<SensorKey> {
        self.0.iter().max_by_key(|(_, slots)| slots.len()).map(|(owner, _)| *owner)
    }

    /// Calls of a sensor, oldest first.
    pub(super) fn oldest(&self, owner: SensorKey) -> impl Iterator<Item = &u64> {
        self.0.get(&owner).into_iter().flatten()
    }

    /// Remove one of a sensor's calls.
    pub(super) fn take(&mut self, owner: SensorKey, at: usize) -> Option<u64> {
        let slots = self.0.get_mut(&owner)?;
        let slot = slots.remove(at);
        if slots.is_empty() {
            self.0.remove(&owner);
        }
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use wire::call::Authority;
    use wire::event::Content;
    use wire::time::Time;

    fn open(joiner: &mut Joiner, sensor: u64, name: &str) {
        let keys = Keys {
            scope: "test".into(),
            names: vec![name.into()],
            parent: None,
            naming: Naming::Unique,
            authority: Authority::Scheduler,
        };
        let content = Content::new(Kind::JobSubmit, Time::from_micros(1_000_000));
        let found = Found { offset: 0, number: 0, content, keys: Some(keys) };
        let id = Id { sensor: SensorKey(sensor), generation: Generation(1), offset: 0, number: 0 };
        joiner.join(&found, id);
    }

    fn held(joiner: &Joiner, prefix: &str) -> usize {
        joiner.calls().filter(|call| call.id.starts_with(prefix)).count()
    }

    #[test]
    fn who_opens_without_end_pushes_out_its_own() {
        let mut joiner = Joiner::new(100);
        for number in 0..30 {
            open(&mut joiner, 1, &format!("a{number}"));
            open(&mut joiner, 2, &format!("b{number}"));
        }
        for number in 0..10_000 {
            open(&mut joiner, 3, &format!("evil{number}"));
        }
        let all = ["test:a", "test:b", "test:evil"].map(|prefix| held(&joiner, prefix));
        assert_eq!(all, [30, 30, 40]);
        // After a restart from disk, the sensors that opened the calls are known, too.
        let kept = postcard::to_stdvec(&joiner).expect("plain");
        let mut joiner: Joiner = postcard::from_bytes(&kept).expect("as written");
        for number in 10_000..10_100 {
            open(&mut joiner, 3, &format!("evil{number}"));
        }
        assert_eq!(["test:a", "test:b", "test:evil"].map(|prefix| held(&joiner, prefix)), all);
    }

    #[test]
    fn no_sensor_takes_more_than_an_equal_share_from_one_that_had_all() {
        let mut joiner = Joiner::new(100);
        (0..100).for_each(|number| open(&mut joiner, 1, &format!("a{number}")));
        (0..1_000).for_each(|number| open(&mut joiner, 2, &format!("evil{number}")));
        assert_eq!((held(&joiner, "test:a"), held(&joiner, "test:evil")), (50, 50));
    }
}
