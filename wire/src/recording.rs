//! Recording: every process of a host at the full rate around an event, in a file of blocks.
//!
//! ```text
//! "visperf recording 1\n" | header | segment … | serving, events | end      each a frame of `codec`: length, CRC-32, version
//! ```
//!
//! Pure. Rule: damage of a block affects only that block, and a truncated end only the last one; both are
//! reported, and the rest is read. A segment starts with a whole sweep, so each can be read independently.
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

/// First bytes of a file.
pub const MAGIC: &[u8] = b"visperf recording 1\n";

/// Longest file, in bytes: the ring, the longest window and as many events; nothing longer is read.
pub const LEN_MAX_BYTES: u64 = 64 << 20;

/// Most events in one recording: those of the window have priority, and a log with very many lines cannot
/// fill the disk.
pub const EVENTS_MAX: usize = 20_000;

/// Header of a recording: its origin and its window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Name of the recording at its sensor.
    pub id: CompactString,
    /// Domain of the host.
    pub domain: DomainName,
    /// Recorded host.
    pub host: HostName,
    /// Key of the sensor.
    pub sensor: SensorKey,
    /// Cause of the recording.
    pub cause: Cause,
    /// Time of the cause, in nanoseconds since boot.
    pub at_ns: u64,
    /// Start of the requested window, in nanoseconds since boot.
    pub from_ns: u64,
    /// End of the requested window, in nanoseconds since boot.
    pub to_ns: u64,
    /// Boot time of the host, by its calendar at the time of the cause: it converts times since boot to
    /// dates.
    pub booted: Time,
    /// Requested sweeps per second.
    pub hz: f64,
    /// Name of the source of process data.
    pub source: CompactString,
}

impl Header {
    /// Convert a time since boot to a date.
    #[must_use]
    pub fn time(&self, moment_ns: u64) -> Time {
        self.booted.plus(Duration::from_nanos(moment_ns))
    }

    /// Convert a date to a time since boot; a date before boot gives 0.
    #[must_use]
    pub fn moment_ns(&self, time: Time) -> u64 {
        u64::try_from(time.since(self.booted).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Cause of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Name of the trigger; empty for an operator's order.
    pub trigger: CompactString,
    /// Note of the operator, or a short description of the event.
    pub note: CompactString,
    /// Call of the event; empty if none.
    pub call: CompactString,
    /// Id of the event; empty if none.
    pub event: CompactString,
}

impl Cause {
    /// Whether an operator ordered it.
    #[must_use]
    pub fn is_order(&self) -> bool {
        self.trigger.is_empty()
    }
}

/// A process that serves a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// Identity of the process.
    pub key: ProcessKey,
    /// The job it serves, as `PRODUCT:JOB`.
    pub job: CompactString,
    /// How the relation is known.
    pub known_by: CompactString,
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The window was complete.
    Whole,
    /// The sensor was stopped within the window.
    Stopped,
    /// The sensor crashed within the window; the next start wrote this block.
    Crashed,
}

impl End {
    /// The end as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            End::Whole => "whole",
            End::Stopped => "stopped",
            End::Crashed => "crashed",
        }
    }
}

/// Block of a recording file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Block {
    /// The first block.
    Header(Header),
    /// Some seconds of sweeps.
    Segment(Segment),
    /// Events whose lines were read within the window.
    Events(Vec<Event>),
    /// Processes that serve calls.
    Serving(Vec<Serving>),
    /// The last block.
    End(End),
}

/// Error of reading or writing a recording.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is not a recording.
    #[error(
        "it does not begin with \"visperf recording 1\"; expected a file that `visperf recordings fetch` wrote"
    )]
    NotARecording,
    /// The header is damaged, so times cannot be converted to dates.
    #[error("its header is damaged, and without it nothing can be read; fetch it again")]
    Header,
    /// A block is too long to be written.
    #[error(transparent)]
    Codec(#[from] codec::Error),
}

/// A decoded recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Origin and window.
    pub header: Header,
    /// Segments of sweeps, in order.
    pub segments: Vec<Segment>,
    /// Events, in order.
    pub events: Vec<Event>,
    /// Processes that serve calls.
    pub serving: Vec<Serving>,
    /// How it ended; `None` while it is being written, or if the end is missing.
    pub end: Option<End>,
    /// Data that could not be read.
    pub damage: Damage,
}

/// Amount of unreadable data of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of damaged blocks that were skipped.
    pub blocks: u32,
    /// Bytes at the end that are not a whole block.
    pub torn_bytes: u64,
}

/// Append the start of a file.
///
/// # Errors
/// If the header cannot be encoded; `out` is then unchanged.
pub fn begin(header: Header, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    put(&Block::Header(header), out).inspect_err(|_| out.truncate(start))
}

/// Append a block.
///
/// # Errors
/// If it is too long; `out` is then unchanged.
pub fn put(block: &Block, out: &mut Vec<u8>) -> Result<(), Error> {
    Ok(codec::encode(block, out)?)
}

/// Decode the header at the start of a file. Returns it with its end.
///
/// # Errors
/// If it is not a recording, or the header is damaged or incomplete.
pub fn header(bytes: &[u8]) -> Result<(Header, usize), Error> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(Error::NotARecording)?;
    match codec::decode(rest) {
        Ok(Some((Block::Header(header), len))) => Ok((header, MAGIC.len() + len)),
        _ => Err(Error::Header),
    }
}

impl Recording {
    /// An empty recording.
    #[must_use]
    pub fn new(header: Header) -> Recording {
        let (segments, events, serving) = Default::default();
        Recording { header, segments, events, serving, end: None, damage: Damage::default() }
    }

    /// Decode a file.
    ///
    /// # Errors
    /// If it is not a recording, or its header is damaged.
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

    /// Encode as a file.
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

    /// Times of its first and last sweep, in nanoseconds since boot; `None` if it has no sweeps.
    #[must_use]
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        Some((self.segments.first()?.first_ns, self.segments.last()?.last_ns))
    }

    fn add(&mut self, block: Block) {
        match block {
            // A second header has nothing that the first does not have.
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
