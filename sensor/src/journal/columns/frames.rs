//! Columns of frames: batches by their fields, other frames as they are.
//!
//! Pure. What follows from the batches before is not stored: the number of the first event, and the offset
//! from which a generation is read on. This is a format on disk: the order of streams is part of it.
//! Not here: records (`records`), checksums and compression (the module above).

use super::numbers::{Cursor, put, put_signed};
use super::records;
use crate::journal::frame::{Batch, Body, Print};
use std::collections::BTreeMap;
use wire::id::Generation;
use wire::time::Time;

/// Number of streams before those of the records.
pub(super) const STREAMS: usize = 9;

/// Frames that are written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// For each frame: 0 for no batch, else one more than the number of its records.
    counts: Vec<u8>,
    firsts: Vec<u8>,
    generations: Vec<u8>,
    seen: Vec<u8>,
    offsets: Vec<u8>,
    counted: Vec<u8>,
    before: Vec<u8>,
    hashes: Vec<u8>,
    rest: Vec<u8>,
    records: records::Writer,
    state: State,
}

/// What follows from the frames before.
#[derive(Debug, Default)]
struct State {
    first: u64,
    seen: i64,
    offsets: BTreeMap<Generation, u64>,
}

impl Writer {
    /// Adds a frame. `None` if it cannot be encoded.
    pub(super) fn push(&mut self, body: Body) -> Option<()> {
        let Body::Batch(mut batch) = body else {
            put(&mut self.counts, 0);
            self.rest.extend(postcard::to_stdvec(&body).ok()?);
            return Some(());
        };
        put(&mut self.counts, 1 + batch.records.len() as u64);
        let State { first, seen, offsets } = &mut self.state;
        put_signed(&mut self.firsts, batch.first.wrapping_sub(*first).cast_signed());
        *first = batch.first.wrapping_add(batch.records.len() as u64);
        put(&mut self.generations, u64::from(batch.generation.0));
        put_signed(&mut self.seen, batch.seen.micros().wrapping_sub(*seen));
        *seen = batch.seen.micros();
        let last = offsets.entry(batch.generation).or_default();
        put_signed(&mut self.offsets, batch.offset.wrapping_sub(*last).cast_signed());
        put_signed(&mut self.counted, batch.counted_to.wrapping_sub(batch.offset).cast_signed());
        put(&mut self.before, u64::from(batch.before.len));
        self.hashes.extend(batch.before.hash.to_le_bytes());
        self.records.start_at(*last);
        *last = batch.offset;
        for record in batch.records.drain(..) {
            self.records.push(&record);
        }
        let Batch { prefix, incomplete, copy, status, counts, changes, generation, .. } = batch;
        let rest = Batch { prefix, incomplete, copy, status, counts, changes, ..Batch::empty(generation) };
        self.rest.extend(postcard::to_stdvec(&Body::Batch(rest)).ok()?);
        Some(())
    }

    pub(super) fn finish(self) -> Vec<Vec<u8>> {
        let mut streams = vec![
            self.counts,
            self.firsts,
            self.generations,
            self.seen,
            self.offsets,
            self.counted,
            self.before,
            self.hashes,
            self.rest,
        ];
        streams.extend(self.records.finish());
        streams
    }
}

/// Fields of a batch that are columns.
#[derive(Debug)]
pub(super) struct Head {
    first: u64,
    pub(super) generation: Generation,
    pub(super) seen: Time,
    offset: u64,
    counted_to: u64,
    before: Print,
    records: u64,
}

/// Frames that are read.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    counts: Cursor<'a>,
    firsts: Cursor<'a>,
    generations: Cursor<'a>,
    seen: Cursor<'a>,
    offsets: Cursor<'a>,
    counted: Cursor<'a>,
    before: Cursor<'a>,
    hashes: Cursor<'a>,
    rest: &'a [u8],
    records: records::Reader<'a>,
    state: State,
}

impl<'a> Reader<'a> {
    pub(super) fn new(streams: &'a [Vec<u8>]) -> Option<Reader<'a>> {
        let (own, records) = streams.split_at_checked(STREAMS)?;
        let [counts, firsts, generations, seen, offsets, counted, before, hashes, rest] = own else {
            return None;
        };
        Some(Reader {
            counts: Cursor(counts),
            firsts: Cursor(firsts),
            generations: Cursor(generations),
            seen: Cursor(seen),
            offsets: Cursor(offsets),
            counted: Cursor(counted),
            before: Cursor(before),
            hashes: Cursor(hashes),
            rest,
            records: records::Reader::new(records)?,
            state: State::default(),
        })
    }

    /// Whether all frames were read.
    pub(super) fn is_at_end(&self) -> bool {
        self.counts.0.is_empty()
    }

    /// Reads the next frame; `None` if it is damaged.
    pub(super) fn next(&mut self) -> Option<Body> {
        let count = self.counts.length()?;
        let (body, rest): (Body, _) = postcard::take_from_bytes(self.rest).ok()?;
        self.rest = rest;
        let mut batch = match (count, body) {
            (1.., Body::Batch(batch)) => batch,
            (0, body) => return Some(body),
            (1.., _) => return None,
        };
        let head = self.head(count as u64 - 1)?;
        (batch.first, batch.generation, batch.seen) = (head.first, head.generation, head.seen);
        (batch.offset, batch.counted_to, batch.before) = (head.offset, head.counted_to, head.before);
        for _ in 0..head.records {
            batch.records.push(self.records.next()?.record());
        }
        Some(Body::Batch(batch))
    }

    /// Reads all frames, and calls `look` with each record and the batch that it is in; `None` if they are
    /// damaged.
    pub(super) fn look(mut self, mut look: impl FnMut(&Head, u64, &records::Row<'_, '_>)) -> Option<()> {
        while !self.is_at_end() {
            let Some(records) = self.counts.number()?.checked_sub(1) else { continue };
            let head = self.head(records)?;
            for nth in 0..records {
                look(&head, head.first.wrapping_add(nth), &self.records.next()?);
            }
        }
        Some(())
    }

    /// Reads the own fields of a batch of so many records; the records follow.
    fn head(&mut self, records: u64) -> Option<Head> {
        let State { first: next, seen, offsets } = &mut self.state;
        let first = next.wrapping_add(self.firsts.signed()?.cast_unsigned());
        *next = first.wrapping_add(records);
        let generation = Generation(u32::try_from(self.generations.number()?).ok()?);
        *seen = seen.wrapping_add(self.seen.signed()?);
        let last = offsets.entry(generation).or_default();
        let offset = last.wrapping_add(self.offsets.signed()?.cast_unsigned());
        let counted_to = offset.wrapping_add(self.counted.signed()?.cast_unsigned());
        let len = u16::try_from(self.before.number()?).ok()?;
        let hash = u64::from_le_bytes(self.hashes.take(8)?.try_into().ok()?);
        self.records.start_at(*last);
        *last = offset;
        let (seen, before) = (Time::from_micros(*seen), Print { len, hash });
        Some(Head { first, generation, seen, offset, counted_to, before, records })
    }
}
