//! How far each sensor's events were stored when a segment started: the events before that are in older
//! segments.
//!
//! Pure.

use super::frame::Body;
use super::ledger::Ledger;
use crate::segments::packed::Codec;
use crate::segments::segment::Legend;
use std::collections::BTreeMap;
use wire::id::SensorKey;

/// Next event of each sensor, as the head of a segment records it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentStart {
    next: BTreeMap<SensorKey, u64>,
    is_past_head: bool,
}

impl SegmentStart {
    /// Creates the record of a segment that starts here.
    #[must_use]
    pub fn at(ledger: &Ledger) -> SegmentStart {
        let next = ledger.members.values().map(|member| (member.sensor, member.next));
        SegmentStart { next: next.collect(), is_past_head: true }
    }

    /// Returns the first of this sensor's events that was not stored, if the sensor was known.
    #[must_use]
    pub fn next(&self, sensor: SensorKey) -> Option<u64> {
        self.next.get(&sensor).copied()
    }
}

impl Legend for SegmentStart {
    type Body = Body;
    const CODEC: Option<&'static dyn Codec> = None;

    fn note(&mut self, body: &Body) {
        match body {
            Body::Member(member) if !self.is_past_head => {
                self.next.insert(member.sensor, member.next);
            }
            Body::HeadEnd => self.is_past_head = true,
            Body::Batch(_) | Body::Head(_) | Body::Member(_) | Body::Calls(_) | Body::Forgotten(_) => {}
        }
    }
}
