//! How far each sensor's events are stored, and under which number its files' events are joined.
//!
//! Pure. Invariant: applying the frames of a segment in order to the ledger of its head gives the ledger at
//! its end; writing and recovery use the same functions.

use super::frame::{Batch, Head, Member};
use std::collections::BTreeMap;
use wire::id::{Generation, SensorKey};
use wire::report::StoreKey;
use wire::version::{DOMAIN_STORE, Trailing};

/// The version of a segment that begins now.
const VERSION: Trailing = Trailing(DOMAIN_STORE.written);

/// Most generations of one sensor that have a lane: those numbered lowest go first. One that comes again
/// gets another lane, which matters only for calls of shared names that were under way in it.
pub const LANES_MAX: usize = 512;

/// What the store knows at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// Which store.
    pub key: StoreKey,
    /// The number the next event gets.
    pub next: u64,
    /// Every sensor.
    pub members: BTreeMap<SensorKey, Member>,
    next_lane: u32,
}

/// Why a batch does not follow from what was before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not the next number.
    #[error("batch begins with event {found} of the store, expected {expected}")]
    Place {
        /// As written.
        found: u64,
        /// By the frames before.
        expected: u64,
    },
    /// Of a sensor that never came.
    #[error("batch of sensor {0}, which is not known")]
    Unknown(SensorKey),
    /// It goes back in the sensor's events.
    #[error("batch of sensor {sensor} begins with event {found}, expected {expected} or later")]
    Order {
        /// Which sensor.
        sensor: SensorKey,
        /// As written.
        found: u64,
        /// By the frames before.
        expected: u64,
    },
}

impl Ledger {
    /// Nothing is stored.
    #[must_use]
    pub fn new(key: StoreKey) -> Ledger {
        Ledger::from_head(&Head { key, next: 0, next_lane: 1, version: VERSION })
    }

    /// What a head begins with.
    #[must_use]
    pub fn from_head(head: &Head) -> Ledger {
        Ledger { key: head.key, next: head.next, next_lane: head.next_lane, members: BTreeMap::new() }
    }

    /// The beginning of a segment that begins now.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { key: self.key, next: self.next, next_lane: self.next_lane, version: VERSION }
    }

    /// A sensor is so from now on.
    pub fn apply_member(&mut self, member: Member) {
        self.members.insert(member.sensor, member);
    }

    /// Events are stored.
    ///
    /// # Errors
    /// If they do not follow; the ledger is then as before.
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

    /// The number under which events of this generation are joined.
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
