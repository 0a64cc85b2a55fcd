//! Batches of one segment, from a position on: decoded from frames, or from the blocks of a compressed segment.
//!
//! Shell. Not here: the segments of a journal, and which events are requested ([`super::reader`]).

use super::batch_cache::DecodedBatch;
use super::columns::{EncodedBlock, Taken};
use super::frame::{Batch, Body, Record};
use super::reader::{Choose, Shared};
use super::sources::Sources;
use crate::segments::packed::directory::{Directory, Entry, Extent, Form};
use crate::segments::segment::Segment;
use crate::segments::window::Window;
use crate::segments::{Error, chain};
use std::sync::Arc;
use wire::event::{Event, Id, Source};
use zstd::bulk::Decompressor;

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
    /// Which events are requested; all if it is `None`.
    choose: Option<&'a dyn Choose>,
    decompressor: Decompressor<'static>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        segment: &'a Segment<Sources>,
        cursor: u64,
        choose: Option<&'a dyn Choose>,
    ) -> Result<Reading<'a>, Error> {
        let table = segment.table()?;
        let at = table.place(cursor);
        let window = Window::new(segment.file().clone(), at, table.len);
        let directory = match segment.file().packed() {
            Some(packed) => Some(packed.directory().map_err(Error::disk("read a segment"))?),
            None => None,
        };
        let sources = Arc::clone(table.legend());
        let decompressor = Decompressor::new().map_err(Error::disk("decompress"))?;
        Ok(Reading { shared, segment, window, at, sources, directory, chosen: None, choose, decompressor })
    }

    /// Skips the blocks from that of the cursor on that have no requested event. Returns the number of the
    /// first event after them; `None` if there are none, and `u64::MAX` if they are the rest of the segment.
    pub(super) fn skip(&mut self, cursor: u64) -> Option<u64> {
        let (directory, choose) = (self.directory.as_deref()?, self.choose?);
        let from = directory.index_of(cursor)?;
        if self.chosen == Some(from) {
            return None;
        }
        let has_none = |entry: &Entry| entry.summary.as_ref().is_some_and(|summary| !choose.chooses(summary));
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
            if batch.next > cursor {
                return Ok(Some(batch));
            }
        }
    }

    /// Decodes the block that starts at the read position as one batch: its events are consecutive. `None` if
    /// no block of columns starts there; a damaged block gives no events.
    fn decode_block(&mut self) -> Result<Option<DecodedBatch>, Error> {
        let Some(directory) = self.directory.as_deref() else { return Ok(None) };
        let starts = |entry: &&Entry| entry.extent.at == self.at && entry.extent.form == Form::Own;
        let (Some(entry), Some(packed)) =
            (directory.block_at(self.at).filter(starts), self.segment.file().packed())
        else {
            return Ok(None);
        };
        let Extent { at, len, first, events: count, .. } = entry.extent;
        let encoded = packed.encoded(entry).map_err(Error::disk("read a segment"))?;
        let (end, is_whole) = (at + u64::from(len), self.choose.is_none());
        let mut batch = DecodedBatch { first, next: first, events: Vec::new(), is_whole, end };
        let taken = encoded.and_then(|encoded| self.take(&EncodedBlock::parse(&encoded)?, u64::from(count)));
        let events = taken.and_then(|taken| taken.into_iter().map(|taken| self.event(taken)).collect());
        if let Some(events) = events {
            batch.next += u64::from(count);
            batch.events = events;
        }
        Ok(Some(batch))
    }

    /// Decodes the requested events of a block of so many events; `None` if it is damaged.
    fn take(&mut self, block: &EncodedBlock<'_>, count: u64) -> Option<Vec<Taken>> {
        let decompressor = &mut self.decompressor;
        let Some(choose) = self.choose else { return block.take(decompressor, &|_| true, count) };
        if let Some(regex) = choose.regex()
            && block.may_have_text(decompressor, regex) == Some(false)
        {
            return Some(Vec::new());
        }
        block.take(decompressor, &|event| choose.fits(event), count)
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
        let nothing = DecodedBatch { first: 0, next: 0, events: Vec::new(), is_whole: true, end };
        match chain::batch_first(frame) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Some(nothing)),
            Err(_) if self.window.goes_on_after_damage() => return Ok(Some(nothing)),
            Err(_) => return Ok(None),
        }
        let Some(Body::Batch(batch)) = chain::body(frame) else { return Ok(None) };
        let Batch { first, generation, seen, records, .. } = batch;
        if self.sources.get(generation).is_none() {
            // A batch without events needs no source.
            return Ok(records.is_empty().then_some(nothing));
        }
        let next = first + records.len() as u64;
        let taken = (first..).zip(records).map(|(number, record)| Taken { number, generation, seen, record });
        let events = taken.filter_map(|taken| self.event(taken)).collect();
        Ok(Some(DecodedBatch { first, next, events, is_whole: true, end }))
    }

    /// Returns an event with its number; `None` if its source is not known.
    fn event(&self, taken: Taken) -> Option<(u64, Event)> {
        let Taken { number, generation, seen, record: Record { found, call } } = taken;
        let source = Source::clone(self.sources.get(generation)?);
        let id = Id { sensor: self.shared.sensor, generation, offset: found.offset, number: found.number };
        Some((number, Event { id, seen, call, content: found.content, source }))
    }
}
