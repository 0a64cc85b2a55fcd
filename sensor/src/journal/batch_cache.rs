//! Cache of recently decoded batches: clients that follow the events read the same batches.
//!
//! Rule: a fixed budget of events and of bytes on disk, whatever is read. The cache has two halves: a used
//! entry moves to the younger half; when that is full, the older half is dropped and the younger takes its
//! place.
//! Not here: reading and decoding ([`super::reader`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use wire::event::Event;

/// Limit on events in one half: with the events of the shipped log formats, both halves hold about 5 MB.
const HALF_EVENTS_MAX: usize = 4096;

/// Limit on the bytes on disk of the frames in one half: of events with long attributes fewer fit.
const HALF_FRAMES_MAX_BYTES: u64 = 768 << 10;

/// The decoded events of one frame or block.
#[derive(Debug)]
pub(super) struct DecodedBatch {
    /// Sequence number of the first event of the frame, and the one after its last event.
    pub(super) first: u64,
    pub(super) next: u64,
    /// The events, with their sequence numbers: all of them, or those that a reader requested.
    pub(super) events: Vec<(u64, Event)>,
    /// Whether these are all.
    pub(super) is_whole: bool,
    /// End of the frame in the segment, in bytes.
    pub(super) end: u64,
}

/// Decoded frames by segment and position.
#[derive(Debug, Default)]
pub(super) struct BatchCache(Mutex<Halves>);

/// Sequence number of the segment's first event, and start of the frame, in bytes. No two frames with events
/// have the same place: a segment is replaced by another one of its name only while it has no events.
type Place = (u64, u64);

#[derive(Debug, Default)]
struct Halves {
    younger: BTreeMap<Place, Arc<DecodedBatch>>,
    older: BTreeMap<Place, Arc<DecodedBatch>>,
    events: usize,
    frames_bytes: u64,
}

impl BatchCache {
    /// Returns the frame at this place if it is cached.
    pub(super) fn get(&self, place: Place) -> Option<Arc<DecodedBatch>> {
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = halves.younger.get(&place) {
            return Some(Arc::clone(batch));
        }
        let batch = halves.older.remove(&place)?;
        halves.put(place, &batch);
        Some(batch)
    }

    /// Caches a frame with all its events. A frame without events is not cached: another frame may later have its
    /// place.
    pub(super) fn put(&self, place: Place, batch: &Arc<DecodedBatch>) {
        if batch.is_whole && !batch.events.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).put(place, batch);
        }
    }
}

impl Halves {
    fn put(&mut self, place: Place, batch: &Arc<DecodedBatch>) {
        let (events, bytes) = (batch.events.len(), batch.end.saturating_sub(place.1));
        if events > HALF_EVENTS_MAX || bytes > HALF_FRAMES_MAX_BYTES {
            return;
        }
        if self.events + events > HALF_EVENTS_MAX || self.frames_bytes + bytes > HALF_FRAMES_MAX_BYTES {
            self.older = std::mem::take(&mut self.younger);
            (self.events, self.frames_bytes) = (0, 0);
        }
        if self.younger.insert(place, Arc::clone(batch)).is_none() {
            self.events += events;
            self.frames_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::event::{Content, Id, Kind, Source};
    use wire::id::{Generation, SensorKey};
    use wire::time::Time;

    fn frame(first: u64, events: usize, place: u64, len: u64) -> Arc<DecodedBatch> {
        let event = Event {
            id: Id { sensor: SensorKey(1), generation: Generation(1), offset: first, number: 0 },
            seen: Time::default(),
            call: "".into(),
            content: Content::new(Kind::Message, Time::default()),
            source: Source { host: "".into(), file: "".into(), filter: "".into() },
        };
        let next = first + events as u64;
        let events = (first..next).map(|number| (number, event.clone())).collect();
        Arc::new(DecodedBatch { first, next, events, is_whole: true, end: place + len })
    }

    fn held(cache: &BatchCache) -> (usize, u64) {
        let halves = cache.0.lock().unwrap();
        let all = || halves.younger.iter().chain(&halves.older);
        (
            all().map(|(_, frame)| frame.events.len()).sum(),
            all().map(|(place, frame)| frame.end - place.1).sum(),
        )
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes_within_the_budget() {
        let cache = BatchCache::default();
        for number in 0..10_000 {
            cache.put((0, number * 100), &frame(number * 8, 8, number * 100, 100));
            assert_eq!(cache.get((0, 0)).expect("it is used all the time").first, 0);
            assert!(held(&cache).0 <= 2 * HALF_EVENTS_MAX);
        }
        assert!(cache.get((0, 999_900)).is_some());
        assert!(cache.get((0, 100)).is_none() && cache.get((1, 0)).is_none());
    }

    #[test]
    fn few_large_events_are_bounded_too_and_huge_frames_are_not_held() {
        let cache = BatchCache::default();
        for number in 0..100 {
            cache.put((0, number << 18), &frame(number, 1, number << 18, 1 << 18));
            assert!(held(&cache).1 <= 2 * HALF_FRAMES_MAX_BYTES);
        }
        cache.put((1, 0), &frame(0, 1, 0, HALF_FRAMES_MAX_BYTES + 1));
        cache.put((1, 1), &frame(0, HALF_EVENTS_MAX + 1, 1, 1));
        cache.put((1, 2), &frame(0, 0, 2, 50));
        assert!((0..3).all(|place| cache.get((1, place)).is_none()));
    }
}
