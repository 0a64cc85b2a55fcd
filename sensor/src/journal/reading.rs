//! Batches of one segment, from a position on: decoded from frames, or from the blocks of a compressed segment.
//!
//! Shell. Not here: the segments of a journal, and which events are requested ([`super::reader`]).

use super::batch_cache::DecodedBatch;
use super::columns;
use super::frame::{Body, Record};
use super::reader::{Choose, Shared};
use super::sources::Sources;
use crate::segments::packed::directory::{Directory, Entry, Form};
use crate::segments::segment::Segment;
use crate::segments::window::Window;
use crate::segments::{Error, chain};
use std::sync::Arc;
use wire::event::{Event, Id, Source};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// Iterates over the batches of a segment.
pub(super) struct Reading<'a> {
    shared: &'a Shared,
    segment: &'a Segment<Sources>,
    window: Window,
    /// Position of the next frame, in bytes.
    at: u64,
    sources: Arc<Sources>,
    /// The blocks of a compressed segment, and the last one that was chosen.
    directory: Option<Arc<Directory>>,
    chosen: Option<usize>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        segment: &'a Segment<Sources>,
        cursor: u64,
    ) -> Result<Reading<'a>, Error> {
        let table = segment.table()?;
        let at = table.place(cursor);
        let window = Window::new(segment.file().clone(), at, table.len);
        let directory = match segment.file().packed() {
            Some(packed) => Some(packed.directory().map_err(Error::disk("read a segment"))?),
            None => None,
        };
        let sources = Arc::clone(table.legend());
        Ok(Reading { shared, segment, window, at, sources, directory, chosen: None })
    }

    /// Skips the blocks from that of the cursor on that have no requested event. Returns the number of the
    /// first event after them; `None` if there are none, and `u64::MAX` if they are the rest of the segment.
    pub(super) fn skip(&mut self, cursor: u64, choose: &Choose) -> Option<u64> {
        let directory = self.directory.as_deref()?;
        let from = directory.index_of(cursor)?;
        if self.chosen == Some(from) {
            return None;
        }
        let has_none = |entry: &Entry| entry.summary.as_ref().is_some_and(|summary| !choose(summary));
        let skipped = directory.entries[from..].iter().take_while(|entry| has_none(entry)).count();
        self.chosen = Some(from + skipped);
        if skipped == 0 {
            return None;
        }
        let next = directory.entries.get(from + skipped);
        self.at = next.map_or(directory.len_bytes(), |next| next.extent.at);
        Some(next.map_or(u64::MAX, |next| next.extent.first))
    }

    /// Returns the next batch that has an event at or after the cursor.
    pub(super) fn next(&mut self, cursor: u64) -> Result<Option<Arc<DecodedBatch>>, Error> {
        loop {
            let place = (self.segment.first, self.at);
            let batch = match self.shared.batches.get(place) {
                Some(batch) => batch,
                None => {
                    let Some(batch) = self.decode()? else { return Ok(None) };
                    let batch = Arc::new(batch);
                    self.shared.batches.put(place, &batch);
                    batch
                }
            };
            self.at = batch.end;
            if batch.next() > cursor {
                return Ok(Some(batch));
            }
        }
    }

    /// Decodes the block that starts at the read position as one batch: its events are consecutive. `None` if
    /// no block of columns starts there; a damaged block gives no events.
    fn decode_block(&self) -> Result<Option<DecodedBatch>, Error> {
        let Some(directory) = self.directory.as_deref() else { return Ok(None) };
        let starts = |entry: &&Entry| entry.extent.at == self.at && entry.extent.form == Form::Own;
        let (Some(entry), Some(packed)) =
            (directory.block_at(self.at).filter(starts), self.segment.file().packed())
        else {
            return Ok(None);
        };
        let extent = entry.extent;
        let encoded = packed.encoded(entry).map_err(Error::disk("read a segment"))?;
        let bodies = encoded.and_then(|encoded| columns::bodies(&encoded)).map(|(_, bodies)| bodies);
        let mut events = Vec::with_capacity(extent.events as usize);
        for body in bodies.unwrap_or_default() {
            let Body::Batch(batch) = body else { continue };
            let Some(source) = self.sources.get(batch.generation) else { continue };
            let event = |record| event(self.shared.sensor, batch.generation, batch.seen, source, record);
            events.extend(batch.records.into_iter().map(event));
        }
        if events.len() != extent.events as usize {
            events.clear();
        }
        Ok(Some(DecodedBatch { first: extent.first, events, end: extent.at + u64::from(extent.len) }))
    }

    /// Decodes the frame at the read position; a frame that is no batch gives no events. `None` if there is
    /// no frame, or none that can be read.
    fn decode(&mut self) -> Result<Option<DecodedBatch>, Error> {
        if let Some(block) = self.decode_block()? {
            return Ok(Some(block));
        }
        self.window.seek(self.at);
        let Some((at, frame)) = self.window.frame()? else { return Ok(None) };
        let end = at + frame.len() as u64;
        match chain::batch_first(frame) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Some(DecodedBatch { first: 0, events: Vec::new(), end })),
            Err(_) if self.window.goes_on_after_damage() => {
                return Ok(Some(DecodedBatch { first: 0, events: Vec::new(), end }));
            }
            Err(_) => return Ok(None),
        }
        let Some(Body::Batch(batch)) = chain::body(frame) else { return Ok(None) };
        let Some(source) = self.sources.get(batch.generation) else {
            // A batch without events needs no source.
            return Ok(batch.records.is_empty().then(|| DecodedBatch { first: 0, events: Vec::new(), end }));
        };
        let event = |record| event(self.shared.sensor, batch.generation, batch.seen, source, record);
        let events = batch.records.into_iter().map(event).collect();
        Ok(Some(DecodedBatch { first: batch.first, events, end }))
    }
}

fn event(sensor: SensorKey, generation: Generation, seen: Time, source: &Source, record: Record) -> Event {
    Event {
        id: Id { sensor, generation, offset: record.found.offset, number: record.found.number },
        seen,
        call: record.call,
        content: record.found.content,
        source: source.clone(),
    }
}
