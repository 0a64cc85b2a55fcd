//! A recording: every process of a host at the full rate around something that happened, in a file of blocks.
//!
//! ```text
//! "visperf recording 1\n" | header | segment … | serving, events | end      each a frame of `codec`: length, CRC-32, version
//! ```
//!
//! Pure. Rule: a block that is damaged costs itself, an end that is torn off costs the last block; both are reported, and the
//! rest is read. A segment begins with a whole sweep, so each can be read alone.
//! Not here: what is recorded and when, and the files (`sensor::recorder`).

mod cut;
pub mod segment;

use crate::codec;
use crate::event::Event;
use crate::id::{DomainName, HostName, SensorKey};
use crate::process::ProcessKey;
use crate::time::Time;
use compact_str::CompactString;
use segment::Segment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a file of this form begins.
pub const MAGIC: &[u8] = b"visperf recording 1\n";

/// Longest file, in bytes: the ring, the longest window and as many events; nothing longer is read.
pub const LEN_MAX_BYTES: u64 = 64 << 20;

/// Most events that one recording keeps: those of the window come first, and a log that storms fills no disk.
pub const EVENTS_MAX: usize = 20_000;

/// Whose and of what a recording is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Its name among the recordings of its sensor.
    pub id: CompactString,
    /// The domain of the host.
    pub domain: DomainName,
    /// The host.
    pub host: HostName,
    /// The sensor.
    pub sensor: SensorKey,
    /// What caused it.
    pub cause: Cause,
    /// When that was, in nanoseconds since boot.
    pub at_ns: u64,
    /// The window that was wanted: from this moment, in nanoseconds since boot.
    pub from_ns: u64,
    /// To this moment, in nanoseconds since boot.
    pub to_ns: u64,
    /// When the host was booted, by its calendar at the time of the cause: by it moments since boot become dates.
    pub booted: Time,
    /// Sweeps a second that were asked for.
    pub hz: f64,
    /// What read the processes.
    pub source: CompactString,
}

impl Header {
    /// The date of a moment since boot.
    #[must_use]
    pub fn time(&self, moment_ns: u64) -> Time {
        self.booted.plus(Duration::from_nanos(moment_ns))
    }

    /// The moment since boot of a date; what was before boot is 0.
    #[must_use]
    pub fn moment_ns(&self, time: Time) -> u64 {
        u64::try_from(time.since(self.booted).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// What caused a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The name of the trigger; empty for an operator's order.
    pub trigger: CompactString,
    /// What an operator wrote, or the event in a few words.
    pub note: CompactString,
    /// The call of the event, empty if none.
    pub call: CompactString,
    /// The event's name, empty if none.
    pub event: CompactString,
}

impl Cause {
    /// Whether it is an operator's order.
    #[must_use]
    pub fn is_order(&self) -> bool {
        self.trigger.is_empty()
    }
}

/// A process that serves a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// Which process.
    pub key: ProcessKey,
    /// The job it serves, as `PRODUCT:JOB`.
    pub job: CompactString,
    /// How that is known.
    pub known_by: CompactString,
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The window was over.
    Whole,
    /// The sensor was stopped within the window.
    Stopped,
    /// The sensor ended by a crash within the window; the end was written by the next start.
    Crashed,
}

impl End {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            End::Whole => "whole",
            End::Stopped => "stopped",
            End::Crashed => "crashed",
        }
    }
}

/// A block of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Block {
    /// The first.
    Header(Header),
    /// Some seconds of sweeps.
    Segment(Segment),
    /// Events whose lines were read within the window.
    Events(Vec<Event>),
    /// Which of the processes serve calls.
    Serving(Vec<Serving>),
    /// The last.
    End(End),
}

/// Why bytes are no recording.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another file.
    #[error(
        "it does not begin with \"visperf recording 1\"; expected a file that `visperf recordings fetch` wrote"
    )]
    NotARecording,
    /// The header is damaged, and without it no moment has a date.
    #[error("its header is damaged, and without it nothing can be read; fetch it again")]
    Header,
    /// A block is too long to be written.
    #[error(transparent)]
    Codec(#[from] codec::Error),
}

/// A recording as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Whose.
    pub header: Header,
    /// The sweeps, in order.
    pub segments: Vec<Segment>,
    /// The events, in order.
    pub events: Vec<Event>,
    /// Which of the processes serve calls.
    pub serving: Vec<Serving>,
    /// How it ended; none while it is written, and where the end is torn off.
    pub end: Option<End>,
    /// What could not be read.
    pub damage: Damage,
}

/// What of a file could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Blocks within that were left out.
    pub blocks: u32,
    /// Bytes at the end that are no whole block.
    pub torn_bytes: u64,
}

/// Append the beginning of a file.
///
/// # Errors
/// If the header cannot be written; `out` is then as before.
pub fn begin(header: Header, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    put(&Block::Header(header), out).inspect_err(|_| out.truncate(start))
}

/// Append a block.
///
/// # Errors
/// If it is too long; `out` is then as before.
pub fn put(block: &Block, out: &mut Vec<u8>) -> Result<(), Error> {
    Ok(codec::encode(block, out)?)
}

/// The header of a file, of which `bytes` are the beginning, and where it ends.
///
/// # Errors
/// If it is no recording, or the header is damaged or not all there.
pub fn header(bytes: &[u8]) -> Result<(Header, usize), Error> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Error::NotARecording)?;
    match codec::decode(rest) {
        Ok(Some((Block::Header(header), len))) => Ok((header, MAGIC.len() + len)),
        _ => Err(Error::Header),
    }
}

impl Recording {
    /// Nothing of this yet.
    #[must_use]
    pub fn new(header: Header) -> Recording {
        let (segments, events, serving) = Default::default();
        Recording { header, segments, events, serving, end: None, damage: Damage::default() }
    }

    /// Read a file.
    ///
    /// # Errors
    /// If it is no recording, or its header is damaged.
    pub fn read(bytes: &[u8]) -> Result<Recording, Error> {
        let (header, begin) = header(bytes)?;
        let mut recording = Recording::new(header);
        let mut rest = &bytes[begin..];
        while !rest.is_empty() {
            match codec::decode::<Block>(rest) {
                Ok(Some((block, len))) => {
                    recording.add(block);
                    rest = &rest[len..];
                }
                Ok(None) => break,
                Err(_) => match codec::frame_len(rest).and_then(|len| rest.get(len..)) {
                    Some(after) => {
                        recording.damage.blocks += 1;
                        rest = after;
                    }
                    None => break,
                },
            }
        }
        recording.damage.torn_bytes = rest.len() as u64;
        Ok(recording)
    }

    /// As a file.
    ///
    /// # Errors
    /// If a block is too long.
    pub fn write(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        begin(self.header.clone(), &mut out)?;
        for segment in &self.segments {
            put(&Block::Segment(segment.clone()), &mut out)?;
        }
        put(&Block::Serving(self.serving.clone()), &mut out)?;
        put(&Block::Events(self.events.clone()), &mut out)?;
        if let Some(end) = self.end {
            put(&Block::End(end), &mut out)?;
        }
        Ok(out)
    }

    /// The moments of its first and last sweep, in nanoseconds since boot; none if it holds none.
    #[must_use]
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        Some((self.segments.first()?.first_ns, self.segments.last()?.last_ns))
    }

    fn add(&mut self, block: Block) {
        match block {
            // A second header has nothing that the first does not.
            Block::Header(_) => {}
            Block::Segment(segment) => self.segments.push(segment),
            Block::Events(events) => self.events.extend(events),
            Block::Serving(serving) => self.serving.extend(serving),
            Block::End(end) => self.end = Some(end),
        }
    }
}

#[cfg(test)]
mod tests;
