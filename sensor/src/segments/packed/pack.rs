//! Writer of compressed segments: reads a closed segment block by block, and writes it compressed.
//!
//! Shell. Rule: the new file is whole and durable under another name before it replaces the segment; a crash
//! leaves one of the two under the name, and recovery removes the rest of an unfinished one. A segment that
//! is not a whole chain of undamaged frames stays as it is.
//! Not here: which segment is next, and the replacement (`journal::packer`).

use super::directory::{Block, Directory, Entry, Extent, Form, MAGIC};
use super::summary::{Collector, Summary};
use super::{Codec, Noted};
use crate::segments::disk::{Disk, Stored};
use crate::segments::segment::name;
use crate::segments::window::Window;
use crate::segments::{Error, chain};
use std::sync::Arc;
use wire::codec::{BODY_LEN_MAX_BYTES, HEADER_LEN_BYTES, decode};

/// Events in a block: more make the file a little smaller, and reading of a few events slower. Readers cache
/// a block of this many events.
const BLOCK_EVENTS: u64 = 2048;

/// Length of the frames of a block, in bytes, above which no more are added: memory, not speed.
const BLOCK_LEN_BYTES: usize = 1 << 20;

/// Level of compression of frames that the codec of the log does not encode.
const LEVEL: i32 = 9;

/// Outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The compressed segment is durable under [`unfinished`].
    Whole,
    /// The segment is damaged, or would not be shorter; nothing was left.
    Unfit,
    /// It was interrupted; nothing was left.
    Interrupted,
}

/// Name of the file while it is written; recovery removes it.
#[must_use]
pub fn unfinished(first: u64) -> String {
    format!("{}.new", name(first))
}

/// Compresses the segment of this first event, whose frames are in `file`, into [`unfinished`], while
/// `goes_on`.
///
/// # Errors
/// If the disk refuses; nothing is left then.
pub fn pack(
    disk: &dyn Disk,
    first: u64,
    file: Arc<dyn Stored>,
    codec: &dyn Codec,
    goes_on: &dyn Fn() -> bool,
) -> Result<Written, Error> {
    let written = write(disk, first, file, codec, goes_on);
    if !matches!(written, Ok(Written::Whole)) {
        // A leftover does no harm: recovery removes it.
        let _nothing_there = disk.remove(&unfinished(first));
    }
    written
}

fn write(
    disk: &dyn Disk,
    first: u64,
    file: Arc<dyn Stored>,
    codec: &dyn Codec,
    goes_on: &dyn Fn() -> bool,
) -> Result<Written, Error> {
    let refused = || Error::disk(format!("compress {}", name(first)));
    let len = file.size().map_err(refused())?;
    let mut window = Window::new(file, 0, len);
    let new = disk.create(&unfinished(first)).map_err(refused())?;
    new.write_at(&MAGIC, 0).map_err(refused())?;
    let mut out = Out { file: &*new, at: MAGIC.len() as u64, codec, directory: Directory::default() };
    let (mut draft, mut legend, mut chain) = (Draft::new(first), Vec::new(), 0);
    while let Some((_, frame)) = window.frame()? {
        if draft.is_full(frame.len()) {
            out.push(&mut draft)?;
            if !goes_on() {
                return Ok(Written::Interrupted);
            }
        }
        let follows = matches!(decode::<(u32, u8)>(frame), Ok(Some(((before, _), _))) if before == chain);
        match codec.note(frame, &mut draft.collector) {
            Some(Noted::Batch { first, events }) if follows && draft.next() == first => {
                draft.events += events
            }
            Some(Noted::Legend) if follows => legend.extend_from_slice(frame),
            Some(Noted::Other) if follows => {}
            Some(_) | None => return Ok(Written::Unfit),
        }
        draft.frames.extend_from_slice(frame);
        chain = chain::checksum(frame);
    }
    out.push(&mut draft)?;
    if out.directory.len_bytes() != len || out.finish(&legend)? >= len {
        return Ok(Written::Unfit);
    }
    new.sync().map_err(refused())?;
    Ok(Written::Whole)
}

/// The block that is collected.
struct Draft {
    at: u64,
    first: u64,
    events: u64,
    frames: Vec<u8>,
    collector: Collector,
}

impl Draft {
    fn new(first: u64) -> Draft {
        Draft { at: 0, first, events: 0, frames: Vec::new(), collector: Collector::default() }
    }

    fn next(&self) -> u64 {
        self.first + self.events
    }

    fn is_full(&self, more: usize) -> bool {
        !self.frames.is_empty() && (self.events >= BLOCK_EVENTS || self.frames.len() + more > BLOCK_LEN_BYTES)
    }

    /// Starts the next block; returns the extent of this one, with its summary.
    fn next_block(&mut self, form: Form) -> (Extent, Summary) {
        let len = u32::try_from(self.frames.len()).expect("at most a megabyte, or one frame");
        let events = u32::try_from(self.events).expect("an event has a byte at least");
        let extent = Extent { at: self.at, len, first: self.first, events, form };
        self.at += u64::from(len);
        self.first += self.events;
        self.events = 0;
        self.frames.clear();
        (extent, self.collector.finish())
    }
}

/// The file that is written.
struct Out<'a> {
    file: &'a dyn Stored,
    at: u64,
    codec: &'a dyn Codec,
    directory: Directory,
}

impl Out<'_> {
    fn push(&mut self, draft: &mut Draft) -> Result<(), Error> {
        if draft.frames.is_empty() {
            return Ok(());
        }
        let (form, data) = match self.codec.pack(&draft.frames) {
            Some(data) => (Form::Own, data),
            None => (Form::General, compressed(&draft.frames)?),
        };
        let (extent, summary) = draft.next_block(form);
        let (place, before) = (self.at, self.at);
        self.append(&Block { extent, data: data.as_slice() })?;
        let stored = u32::try_from(self.at - before).expect("a frame is shorter");
        self.directory.entries.push(Entry { extent, place, stored, summary: Some(summary) });
        Ok(())
    }

    /// Writes the directory and the end; returns the length of the file.
    fn finish(&mut self, legend: &[u8]) -> Result<u64, Error> {
        let len = u32::try_from(legend.len()).unwrap_or(u32::MAX);
        self.directory.legend = Some((compressed(legend)?, len));
        let mut end = self.at.to_le_bytes().to_vec();
        let directory = std::mem::take(&mut self.directory);
        self.append(&directory)?;
        end.extend(MAGIC);
        self.write(&end)?;
        Ok(self.at)
    }

    fn append(&mut self, body: &impl serde::Serialize) -> Result<(), Error> {
        let mut frame = Vec::new();
        wire::codec::encode(body, &mut frame)?;
        self.write(&frame)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_at(bytes, self.at).map_err(Error::disk("write a compressed segment"))?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    zstd::bulk::compress(bytes, LEVEL).map_err(Error::disk("compress"))
}

/// Writes a compressed segment as frames again, under its name: recovery goes on in it.
///
/// # Errors
/// If the disk refuses, or a block is damaged: the segment is as it was then.
pub fn expand(disk: &dyn Disk, first: u64, file: &Arc<dyn Stored>) -> Result<(), Error> {
    let what = || Error::disk(format!("expand {}", name(first)));
    let len = file.size().map_err(what())?;
    let new = disk.create(&unfinished(first)).map_err(what())?;
    let mut window = Window::new(Arc::clone(file), 0, len);
    let mut at = 0;
    while let Some((_, frame)) = window.frame()? {
        new.write_at(frame, at).map_err(what())?;
        at += frame.len() as u64;
    }
    let named = new.sync().and_then(|()| disk.rename(&unfinished(first), &name(first)));
    named.and_then(|()| disk.sync_names()).map_err(what())
}

const _: () = assert!(BLOCK_LEN_BYTES < BODY_LEN_MAX_BYTES - HEADER_LEN_BYTES);
