//! Ledger of the store: how far each sensor's events are stored, and under which lane the events of its files
//! are joined.
//!
//! Pure. Invariant: applying the frames of a segment in order to the ledger of its head gives the ledger at
//! its end; writing and recovery use the same functions.

use super::frame::{Batch, Head, Member};
use std::collections::BTreeMap;
use wire::id::{Generation, SensorKey};
use wire::report::StoreKey;
use wire::version::{DOMAIN_STORE, Trailing};

/// Version of a segment that starts now.
const VERSION: Trailing = Trailing(DOMAIN_STORE.written);

/// Most generations of one sensor that have a lane; the lowest-numbered is dropped first. A generation that
/// comes again gets another lane, which matters only for calls of shared names that were running in it.
pub const LANES_MAX: usize = 512;

/// State of the store after a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// Key of the store.
    pub key: StoreKey,
    /// Number that the next event gets.
    pub next: u64,
    pub members: BTreeMap<SensorKey, Member>,
    next_lane: u32,
}

/// Reason why a batch does not follow the frames before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Its first event does not have the next number of the store.
    #[error("batch begins with event {found} of the store, expected {expected}")]
    Place {
        found: u64,
        /// Next number of the store.
        expected: u64,
    },
    /// Its sensor has no record.
    #[error("batch of sensor {0}, which is not known")]
    Unknown(SensorKey),
    /// It repeats events of the sensor.
    #[error("batch of sensor {sensor} begins with event {found}, expected {expected} or later")]
    Order {
        sensor: SensorKey,
        found: u64,
        /// First event of the sensor that is not stored.
        expected: u64,
    },
}

impl Ledger {
    /// Creates the ledger of an empty store.
    #[must_use]
    pub fn new(key: StoreKey) -> Ledger {
        Ledger::from_head(&Head { key, next: 0, next_lane: 1, version: VERSION })
    }

    /// Creates the ledger that a head starts with.
    #[must_use]
    pub fn from_head(head: &Head) -> Ledger {
        Ledger { key: head.key, next: head.next, next_lane: head.next_lane, members: BTreeMap::new() }
    }

    /// Returns the head of a segment that starts now.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { key: self.key, next: self.next, next_lane: self.next_lane, version: VERSION }
    }

    /// Applies a new record of a sensor.
    pub fn apply_member(&mut self, member: Member) {
        self.members.insert(member.sensor, member);
    }

    /// Applies a batch of events.
    ///
    /// # Errors
    /// If the batch does not follow; the ledger is then unchanged.
    pub fn apply_batch(&mut self, batch: &Batch) -> Result<(), Error> {
        if batch.at != self.next {
            return Err(Error::Place { found: batch.at, expected: self.next });
        }
        let Some(member) = self.members.get_mut(&batch.sensor) else {
            return Err(Error::Unknown(batch.sensor));
        };
        if batch.first < member.next || batch.next < batch.first + batch.len() {
            return Err(Error::Order { sensor: batch.sensor, found: batch.first, expected: member.next });
        }
        member.next = batch.next;
        member.lost = member.lost.saturating_add(batch.lost);
        member.refused = member.refused.saturating_add(batch.refused);
        member.heard = batch.stored;
        self.next += batch.len();
        for run in &batch.runs {
            self.lane(batch.sensor, run.generation);
        }
        Ok(())
    }

    /// Returns the lane under which events of this generation are joined.
    pub fn lane(&mut self, sensor: SensorKey, generation: Generation) -> Generation {
        let Some(member) = self.members.get_mut(&sensor) else { return Generation(0) };
        if let Some(lane) = member.lanes.get(&generation) {
            return Generation(*lane);
        }
        if member.lanes.len() == LANES_MAX {
            member.lanes.pop_first();
        }
        let lane = self.next_lane;
        self.next_lane = lane.wrapping_add(1).max(1);
        member.lanes.insert(generation, lane);
        Generation(lane)
    }
}
