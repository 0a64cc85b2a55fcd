//! Frames of the store.
//!
//! Pure. This is a format on disk: the order of variants and fields is part of it, and a batch comes first,
//! as [`crate::segments::chain`] says.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::id::{Generation, HostName, PeerKey, SensorKey};
use wire::report::{Mark, Run, StoreKey};
use wire::time::Time;
use wire::version::Trailing;

/// Start of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Key of the store.
    pub key: StoreKey,
    /// Number that the next event gets.
    pub next: u64,
    /// Number that the next lane gets.
    pub next_lane: u32,
    /// Version of the segment's frames ([`wire::version::DOMAIN_STORE`]). It stays the last field, and the
    /// fields before it stay as they are: version 1 is also written without it.
    pub version: Trailing,
}

/// Record of one sensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub sensor: SensorKey,
    /// Daemon that reports for it.
    pub peer: PeerKey,
    pub host: HostName,
    /// The first of its events that is not stored.
    pub next: u64,
    /// The first of its events that it was requested to send: those before it are not here.
    pub from: u64,
    /// Set if its journal went back once: to this event, when the store was at this number.
    pub rewound: Option<(u64, u64)>,
    /// Watermarks: which of its events earlier stores had.
    pub marks: Vec<Mark>,
    /// Lane of each of its generations: the number under which their events are joined, unique in the store.
    pub lanes: BTreeMap<Generation, u32>,
    /// Number of its events that are known to be lost.
    pub lost: u64,
    /// Number of its events that were refused: they name a host that it may not report for.
    pub refused: u64,
    /// When it was last seen, by the representative's clock.
    pub heard: Time,
}

/// Consecutive events of one sensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Number of its first event in the store.
    pub at: u64,
    pub sensor: SensorKey,
    /// Number of its first event in the sensor's journal.
    pub first: u64,
    /// The first of the sensor's events that is neither stored nor lost nor refused after this batch.
    pub next: u64,
    /// Number of the events before `next` that were lost, beside those counted before.
    pub lost: u64,
    /// Number of the events before `next` that were refused, beside those counted before.
    pub refused: u64,
    /// When it was stored, by the representative's clock.
    pub stored: Time,
    /// The events; their calls are the domain's.
    pub runs: Vec<Run>,
}

impl Batch {
    /// Returns the number of its events.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|run| run.records.len() as u64).sum()
    }

    /// Returns whether it has no events and only moves the sensor's `next` on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Body of a frame, as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    Batch(Batch),
    /// A segment starts.
    Head(Head),
    /// Record of a sensor: part of the head, or changed since.
    Member(Member),
    /// Part of the head: some bytes of the calls.
    Calls(Vec<u8>),
    /// The head is complete.
    HeadEnd,
    /// A sensor is forgotten.
    Forgotten(SensorKey),
}

/// Body of a frame, as it is written: the same bytes without owning them.
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
