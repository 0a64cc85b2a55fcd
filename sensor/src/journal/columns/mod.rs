//! Block codec of the journal: consecutive frames, by columns, compressed.
//!
//! Pure. Rule: a block gives back the frames byte for byte, with their checksums; [`pack`] decodes what it
//! encoded, and returns nothing if that differs. So offsets and indexes of a segment stay valid, and frames
//! of another build, or damaged ones, are stored in the general form (`segments::packed`).
//!
//! ```text
//! checksum of the frame before, u32 LE | number of streams | length and compressed length of each | streams
//! ```
//!
//! Not here: the file around the blocks, and which blocks a query reads (`segments::packed`).

mod attributes;
mod frames;
mod keys;
mod numbers;
mod records;
mod texts;
mod times;

use super::frame::{Body, Record};
use crate::segments::chain;
use crate::segments::packed::summary::Collector;
use crate::segments::packed::{Codec, Noted};
use numbers::{Cursor, put};
use std::borrow::Cow;
use texts::Matched;
use wire::codec::decode;
use wire::event::Fields;
use wire::id::Generation;
use wire::text_regex::TextRegex;
use wire::time::Time;
use zstd::bulk::Decompressor;

/// Level of compression: about 20 MB of frames a second of a core; higher levels gain less than one byte in
/// thirty.
const LEVEL: i32 = 9;

/// Streams below this length are not compressed: the frame around them would be longer.
const COMPRESSED_MIN_BYTES: usize = 32;

/// Limit on the streams of a block, and on their length together: memory for a damaged block.
const STREAMS_MAX: usize = 16_384;
const STREAMS_LEN_MAX_BYTES: usize = 64 << 20;

/// The codec, for the segments of a journal.
#[derive(Clone, Copy, Debug)]
pub struct Columns;

impl Codec for Columns {
    fn pack(&self, frames: &[u8]) -> Option<Vec<u8>> {
        pack(frames)
    }

    fn unpack(&self, packed: &[u8]) -> Option<Vec<u8>> {
        unpack(packed)
    }

    fn note(&self, frame: &[u8], events: &mut Collector) -> Option<Noted> {
        match chain::body::<Body>(frame)? {
            Body::Batch(batch) => {
                for record in &batch.records {
                    events.add(&record.found.content, &record.call);
                }
                Some(Noted::Batch { first: batch.first, events: batch.records.len() as u64 })
            }
            Body::Generation(_) | Body::Born(_) => Some(Noted::Legend),
            Body::Head(_)
            | Body::File(_)
            | Body::Memory(..)
            | Body::Calls(_)
            | Body::HeadEnd
            | Body::Acknowledged { .. } => Some(Noted::Other),
        }
    }
}

/// Encodes consecutive whole frames; `None` if they are not what this program writes.
#[must_use]
pub fn pack(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut writer, mut rest, mut before) = (frames::Writer::default(), bytes, None);
    while !rest.is_empty() {
        let ((previous, body), len) = decode::<(u32, Body)>(rest).ok()??;
        before.get_or_insert(previous);
        writer.push(body)?;
        rest = &rest[len..];
    }
    let packed = compress(before?, &writer.finish())?;
    (unpack(&packed)? == bytes).then_some(packed)
}

/// Decodes what [`pack`] encoded; `None` if it is damaged.
#[must_use]
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let block = EncodedBlock::parse(packed)?;
    let streams = block.all(&mut Decompressor::new().ok()?)?;
    let mut reader = frames::Reader::new(&streams)?;
    let mut before = block.before;
    while !reader.is_at_end() {
        before = chain::encode(before, reader.next()?, &mut out).ok()?;
    }
    Some(out)
}

/// An encoded block: its events are looked at by columns, and only those that are requested are made.
#[derive(Debug)]
pub struct EncodedBlock<'a> {
    /// Checksum of the frame before.
    before: u32,
    streams: Vec<Stream<'a>>,
}

/// A stream as it is stored.
#[derive(Debug)]
struct Stream<'a> {
    data: &'a [u8],
    is_compressed: bool,
    len: usize,
}

/// An event of a block, and what is known of it from its batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub number: u64,
    pub generation: Generation,
    pub seen: Time,
    pub record: Record,
}

impl<'a> EncodedBlock<'a> {
    /// Parses what [`pack`] encoded; `None` if it is damaged.
    #[must_use]
    pub fn parse(packed: &'a [u8]) -> Option<EncodedBlock<'a>> {
        let mut cursor = Cursor(packed);
        let before = u32::from_le_bytes(cursor.take(4)?.try_into().ok()?);
        let count = cursor.length().filter(|count| *count <= STREAMS_MAX)?;
        let mut lens = Vec::with_capacity(count);
        for _ in 0..count {
            lens.push((cursor.length()?, cursor.length()?));
        }
        let total = lens.iter().try_fold(0_usize, |total, (len, _)| total.checked_add(*len))?;
        if total > STREAMS_LEN_MAX_BYTES {
            return None;
        }
        let mut streams = Vec::with_capacity(count);
        for (len, packed_len) in lens {
            let is_compressed = packed_len > 0;
            let data = cursor.take(if is_compressed { packed_len } else { len })?;
            streams.push(Stream { data, is_compressed, len });
        }
        cursor.0.is_empty().then_some(EncodedBlock { before, streams })
    }

    /// Whether an event may have a text that matches ([`Fields::has_text`]): only the distinct texts of the block
    /// are decoded, and numbers in them only where they decide. `None` if the block is damaged.
    #[must_use]
    pub fn may_have_text(&self, decompressor: &mut Decompressor<'_>, regex: &TextRegex) -> Option<bool> {
        // An empty field is in no column.
        if regex.is_match(b"") {
            return Some(true);
        }
        let streams = self.streams.get(frames::STREAMS..)?;
        for at in records::patterns(streams.len()) {
            let patterns = streams.get(at)?.decode(decompressor)?;
            let is_there = match texts::match_patterns(&patterns, regex)? {
                Matched::Known(is_there) => is_there,
                Matched::ByNumbers(undecided) => {
                    let numbers = streams.get(at + 1)?.decode(decompressor)?;
                    texts::has_match(&patterns, &numbers, &undecided, regex)?
                }
            };
            if is_there {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Returns the events that are accepted; `None` if the block is damaged, or has not `events` events.
    #[must_use]
    pub fn take(
        &self,
        decompressor: &mut Decompressor<'_>,
        accepts: &dyn Fn(&dyn Fields) -> bool,
        events: u64,
    ) -> Option<Vec<Taken>> {
        let streams = self.all(decompressor)?;
        let (mut taken, mut count) = (Vec::new(), 0);
        frames::Reader::new(&streams)?.look(|head, number, row| {
            count += 1;
            if accepts(row) {
                let (generation, seen) = (head.generation, head.seen);
                taken.push(Taken { number, generation, seen, record: row.record() });
            }
        })?;
        (count == events).then_some(taken)
    }

    fn all(&self, decompressor: &mut Decompressor<'_>) -> Option<Vec<Vec<u8>>> {
        let streams = self.streams.iter().map(|stream| stream.decode(decompressor));
        streams.map(|stream| stream.map(Cow::into_owned)).collect()
    }
}

impl<'a> Stream<'a> {
    fn decode(&self, decompressor: &mut Decompressor<'_>) -> Option<Cow<'a, [u8]>> {
        if !self.is_compressed {
            return Some(Cow::Borrowed(self.data));
        }
        let decoded = decompressor.decompress(self.data, self.len).ok()?;
        (decoded.len() == self.len).then_some(Cow::Owned(decoded))
    }
}

fn compress(before: u32, streams: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL).ok()?;
    let (mut out, mut data) = (before.to_le_bytes().to_vec(), Vec::new());
    put(&mut out, streams.len() as u64);
    for stream in streams {
        put(&mut out, stream.len() as u64);
        let packed = if stream.len() < COMPRESSED_MIN_BYTES {
            None
        } else {
            compressor.compress(stream).ok().filter(|packed| packed.len() < stream.len())
        };
        put(&mut out, packed.as_ref().map_or(0, |packed| packed.len() as u64));
        data.extend_from_slice(packed.as_ref().unwrap_or(stream));
    }
    out.append(&mut data);
    Some(out)
}

#[cfg(test)]
mod tests;
