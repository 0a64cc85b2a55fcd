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

use super::frame::Body;
use crate::segments::chain;
use crate::segments::packed::summary::Collector;
use crate::segments::packed::{Codec, Noted};
use numbers::{Cursor, put};
use wire::codec::decode;

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
    let (mut before, bodies) = bodies(packed)?;
    for body in bodies {
        before = chain::encode(before, body, &mut out).ok()?;
    }
    Some(out)
}

/// Returns the frames, and the checksum of the frame before them; `None` if they are damaged.
#[must_use]
pub fn bodies(packed: &[u8]) -> Option<(u32, Vec<Body>)> {
    let (before, streams) = decompress(packed)?;
    let mut reader = frames::Reader::new(&streams)?;
    let mut bodies = Vec::new();
    while !reader.is_at_end() {
        bodies.push(reader.next()?);
    }
    Some((before, bodies))
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

fn decompress(packed: &[u8]) -> Option<(u32, Vec<Vec<u8>>)> {
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
    let mut decompressor = zstd::bulk::Decompressor::new().ok()?;
    let mut streams = Vec::with_capacity(count);
    for (len, packed_len) in lens {
        let stream = match packed_len {
            0 => cursor.take(len)?.to_vec(),
            packed_len => decompressor.decompress(cursor.take(packed_len)?, len).ok()?,
        };
        if stream.len() != len {
            return None;
        }
        streams.push(stream);
    }
    cursor.0.is_empty().then_some((before, streams))
}

#[cfg(test)]
mod tests;
