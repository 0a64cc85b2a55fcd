//! What the frames of the store say.
//!
//! Pure. This is a format on disk: the order of variants and fields is part of it, and a batch comes first, as
//! [`crate::segments::chain`] says.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::id::{Generation, HostName, PeerKey, SensorKey};
use wire::report::{Mark, Run, StoreKey};
use wire::time::Time;
use wire::version::Trailing;

/// The beginning of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Which store.
    pub key: StoreKey,
    /// The number the next event gets.
    pub next: u64,
    /// The number the next lane gets.
    pub next_lane: u32,
    /// The version of the segment's frames ([`wire::version::DOMAIN_STORE`]). It stays last, and
    /// what is before it as it is: version 1 is also written without it.
    pub version: Trailing,
}

/// What the store knows of one sensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Which sensor.
    pub sensor: SensorKey,
    /// The daemon that speaks for it.
    pub peer: PeerKey,
    /// Its host.
    pub host: HostName,
    /// The first of its events that is not stored.
    pub next: u64,
    /// The first of its events that was asked for: those before it are not here.
    pub from: u64,
    /// Its journal went back once: to this event, when the store was at this place.
    pub rewound: Option<(u64, u64)>,
    /// What earlier stores had of it.
    pub marks: Vec<Mark>,
    /// Its generations by the number under which their events are joined, unique in the store.
    pub lanes: BTreeMap<Generation, u32>,
    /// Its events that are known to be lost.
    pub lost: u64,
    /// Its events that were set aside: they claim a host it may not speak for.
    pub refused: u64,
    /// When it was last heard, by the representative's clock.
    pub heard: Time,
}

/// Consecutive events of one sensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The number of the first in the store.
    pub at: u64,
    /// Which sensor.
    pub sensor: SensorKey,
    /// The number of the first in its journal.
    pub first: u64,
    /// The first of its events that is neither stored nor lost nor refused after this batch.
    pub next: u64,
    /// Of those before `next`, so many more are lost.
    pub lost: u64,
    /// And so many more were set aside.
    pub refused: u64,
    /// When, by the representative's clock.
    pub stored: Time,
    /// The events; their calls are the domain's.
    pub runs: Vec<Run>,
}

impl Batch {
    /// How many events it holds.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|run| run.records.len() as u64).sum()
    }

    /// Whether it only moves the sensor on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The body of a frame as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Events.
    Batch(Batch),
    /// A segment begins.
    Head(Head),
    /// A sensor: part of the head, or changed since.
    Member(Member),
    /// Part of the head: some of the calls.
    Calls(Vec<u8>),
    /// The head is complete.
    HeadEnd,
    /// A sensor is forgotten.
    Forgotten(SensorKey),
}

/// The body of a frame as it is written: the same bytes without owning them.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum BodyRef<'a> {
    /// See [`Body::Batch`].
    Batch(&'a Batch),
    /// See [`Body::Head`].
    Head(&'a Head),
    /// See [`Body::Member`].
    Member(&'a Member),
    /// See [`Body::Calls`].
    Calls(&'a [u8]),
    /// See [`Body::HeadEnd`].
    HeadEnd,
    /// See [`Body::Forgotten`].
    Forgotten(SensorKey),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::chain;

    #[test]
    fn what_is_written_by_reference_is_read_as_owned_and_its_number_found() {
        let batch = Batch {
            at: 9,
            sensor: SensorKey(3),
            first: 1,
            next: 5,
            lost: 4,
            refused: 0,
            stored: Time::default(),
            runs: Vec::new(),
        };
        let mut out = Vec::new();
        let sum = chain::encode(77, BodyRef::Batch(&batch), &mut out).expect("short");
        let decoded: Option<((u32, Body), usize)> = wire::codec::decode(&out).expect("whole");
        assert_eq!(decoded, Some(((77, Body::Batch(batch)), out.len())));
        assert_eq!(sum, chain::checksum(&out));
        assert_eq!(chain::batch_first(&out), Ok(Some(9)));
    }
}
