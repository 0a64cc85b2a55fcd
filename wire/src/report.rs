//! Report stream between a member and its representative on `/visperf/report/1`: one stream, both directions.
//!
//! ```text
//! member                                    representative
//!   Hello: identity, state of its journal →
//!                                       ←   Resume: from which event, limit of unacknowledged bytes
//!   Events … (durable at the member)    →
//!                                       ←   Durable: all events before this one are on disk
//!                                       ←   Marks: to standbys, the same for all members
//!   Metrics, Shape, Sweep …, State      →
//!                                       ←   Allow: limit of unacknowledged bytes, rate of sweeps
//!                                       ←   Fetch: how many of its minutes are copied
//!   Minutes: those that follow, and copies of hosts that are down →
//!   Fetch: of a standby, all hosts      →
//!                                       ←   Minutes
//!                                       ←   FetchSamples: how many of its newest samples are copied
//!   Samples: those that follow          →
//!   FetchSamples: of a standby          →
//!                                       ←   Samples
//!   FetchCalls: of a standby or archive →
//!                                       ←   Calls: those that were stored since
//!   Leave                               →
//! ```
//!
//! Pure. Events are numbered by the member's journal; only durable ones are sent, so a number always refers
//! to the same event, and duplicates are detected by it. Names of metrics are sent once per connection.
//! Sweeps and state contain no host name: they are of the member's own host. Events name the host of their
//! log.
//! Rule: neither side buffers more than one frame of [`FRAME_LEN_MAX_BYTES`] from the other.
//! Not here: the processing at either side (`sensor::report`, `sensor::representative`).

mod bits;
pub mod calls;
pub mod marks;
pub mod minutes;
pub mod samples;
pub mod sweep;

use crate::at_end::AtEnd;
use crate::call::Keys;
use crate::codec;
use crate::event::{Content, Source};
use crate::id::{Generation, HostName, SensorKey};
use crate::sample::Metric;
use crate::time::Time;
use compact_str::CompactString;
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Version of the protocol; a representative refuses another one and names both.
pub const VERSION: u16 = crate::version::REPORT.written;
/// Longest frame: an event of the longest line (1 MiB) fits.
pub const FRAME_LEN_MAX_BYTES: usize = (1 << 20) + (256 << 10);
/// Most hosts that a member reports for besides its own: a host with the logs of others has a handful.
pub const HOSTS_MAX: usize = 64;
/// Most marks in a hello.
pub const MARKS_MAX: usize = 96;
/// Most metrics of a connection, before the numbering starts over.
pub const METRICS_MAX: usize = 16_384;
/// Most bytes of names, units and labels of a connection's metrics.
pub const METRICS_LEN_MAX_BYTES: usize = 4 << 20;
/// Longest text in a hello, a metric or a state, in bytes.
pub const TEXT_LEN_MAX_BYTES: usize = 512;
/// Most sentences about a member's health.
pub const HEALTH_MAX: usize = 16;

/// Identifier of one instance of a representative's event store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoreKey(pub u64);

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Watermark: how many of a member's events a store had at one of its positions. From the marks of an earlier
/// store, a new representative knows what a reader of that store has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Identifier of the store.
    pub store: StoreKey,
    /// Position in the store.
    pub at: u64,
    /// Before that position, it had all of the member's events before this number.
    pub next: u64,
}

/// Watermarks of several members at one position of a store: sent to the standbys, because a member that is
/// gone cannot bring its marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Identifier of the store.
    pub store: StoreKey,
    /// Position in the store.
    pub at: u64,
    /// Before that position, it had all events of each sensor before this number.
    pub members: Vec<(SensorKey, u64)>,
    /// Whether these are all marks of the store, so that earlier ones are replaced.
    pub whole: AtEnd<bool>,
}

impl Marks {
    /// Merge later marks of the same store.
    pub fn merge(&mut self, later: Marks) {
        if later.store != self.store {
            *self = later;
            return;
        }
        let members: BTreeMap<SensorKey, u64> = self.members.iter().copied().chain(later.members).collect();
        (self.at, self.members) = (later.at, members.into_iter().collect());
        // A complete list with later changes is complete.
        let is_whole = |marks: AtEnd<bool>| marks.0.unwrap_or(false);
        self.whole = AtEnd(Some(is_whole(self.whole) || is_whole(later.whole)));
    }
}

/// First frame of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol, [`VERSION`].
    pub version: u16,
    /// Version of the program, for display.
    pub program: CompactString,
    /// Key of the sensor.
    pub sensor: SensorKey,
    /// Its own host.
    pub host: HostName,
    /// Hosts whose logs it reads, besides its own.
    pub hosts: Vec<HostName>,
    /// Boot identifier of the host, from its kernel.
    pub boot: CompactString,
    /// Start of this run of the sensor, by its clock.
    pub started: Time,
    /// Its clock now.
    pub clock: Time,
    /// The oldest event in its journal.
    pub oldest: u64,
    /// Number of its next durable event.
    pub next: u64,
    /// Events acknowledged by some representative; `None` if there never was one.
    pub acknowledged: Option<u64>,
    /// Watermarks from earlier representatives.
    pub marks: Vec<Mark>,
    /// What it has stored.
    pub stores: AtEnd<Stores>,
}

/// What a member has stored, for its representative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stores {
    /// Whether it has stored minutes and answers [`FromRepresentative::Fetch`].
    pub minutes: bool,
    /// Whether it answers [`FromRepresentative::FetchSamples`].
    pub samples: AtEnd<bool>,
    /// Whether it is an archive.
    pub archive: AtEnd<bool>,
}

/// One event as it is sent and stored: its sensor and number follow from its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Offset of its record in the file, in bytes.
    pub offset: u64,
    /// Number of the event within the record.
    pub number: u16,
    /// Id of its call in the domain's store; empty when sent, because the member's id has no meaning there.
    pub call: CompactString,
    /// Content from the log.
    pub content: Content,
    /// Keys that join it with other events.
    pub keys: Option<Keys>,
}

/// Consecutive events of one generation, read at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Generation of the log file.
    pub generation: Generation,
    /// Host, file and filter of the log.
    pub source: Source,
    /// Time of reading.
    pub seen: Time,
    /// The events, in order.
    pub records: Vec<Record>,
}

/// Events with consecutive numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Number of the first.
    pub first: u64,
    /// Number of events just before the first that are lost: deleted beyond the disk budget, or damaged.
    pub lost: u64,
    /// The events, in order.
    pub runs: Vec<Run>,
}

impl Events {
    /// Number of events.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|run| run.records.len() as u64).sum()
    }

    /// Whether there are none: only the loss is reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.iter().all(|run| run.records.is_empty())
    }
}

/// Assigns numbers to metrics, consecutive from `first`; `first` = 0 drops all previous numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Number of the first metric.
    pub first: u32,
    /// The metrics in order.
    pub metrics: Vec<Metric>,
}

/// Metrics of the columns of the following sweeps: runs of consecutive numbers, each by its first number and
/// its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The runs, in the order of the columns.
    pub runs: Vec<(u32, u32)>,
}

/// One sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Samples of this run that were taken and not sent: because of a limit, or without a connection.
    pub thinned: u64,
    /// The values, as [`sweep::Encoder`] writes them.
    pub packed: Packed,
}

/// Bytes, encoded in one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(pub Vec<u8>);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Packed, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Packed;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Packed, E> {
                if bytes.len() > FRAME_LEN_MAX_BYTES {
                    return Err(E::custom("more bytes than a frame"));
                }
                Ok(Packed(bytes.to_vec()))
            }
        }
        from.deserialize_bytes(Bytes).map_err(D::Error::custom)
    }
}

/// State of the member and its host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostState {
    /// Time of the state, by its clock.
    pub time: Time,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Number of logical CPUs.
    pub cpus: u64,
    /// Used share of all CPUs' time, 0 to 1.
    pub cpu_used: Option<f64>,
    /// Memory, in bytes.
    pub memory_total: Option<u64>,
    /// Memory that is not available without swapping, in bytes.
    pub memory_used: Option<u64>,
    /// Seconds since the host started.
    pub uptime: Option<f64>,
    /// Bytes of logs not yet read.
    pub lag_bytes: u64,
    /// Number of its next event, durable or not: the difference is not sent yet.
    pub events_next: u64,
    /// Problems, as sentences.
    pub health: Vec<CompactString>,
}

/// Length of a metric's name, unit and labels, in bytes.
#[must_use]
pub fn metric_len_bytes(metric: &Metric) -> usize {
    let labels: usize = metric.labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    metric.name.len() + metric.unit.len() + labels
}

/// Frame from a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromMember {
    /// The first frame.
    Hello(Box<Hello>),
    /// Events.
    Events(Events),
    /// Numbers of metrics.
    Metrics(Metrics),
    /// Columns of sweeps.
    Shape(Shape),
    /// Samples.
    Sweep(Sweep),
    /// State of the member and its host.
    State(Box<HostState>),
    /// The member leaves.
    Leave,
    /// Stored minutes of the member's host.
    Minutes(minutes::Minutes),
    /// From a standby: request for the minutes of all hosts.
    Fetch(minutes::Fetch),
    /// From a standby or an archive: request for the stored calls of the domain.
    FetchCalls(calls::FetchCalls),
    /// Newest samples of the member's host.
    Samples(samples::Samples),
    /// From a standby: request for the newest samples of all hosts.
    FetchSamples(minutes::Fetch),
}

/// Limits of what a member may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Bytes of unacknowledged events.
    pub events_len_bytes: u32,
    /// Send one of this many sweeps; 1 is every one.
    pub stride: u16,
}

/// The representative's answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// Identifier of the store for the events.
    pub store: StoreKey,
    /// Fencing term of the representative.
    pub term: u64,
    /// Number of the first event to send.
    pub next: u64,
    /// Limits of what may be sent.
    pub allowance: Allowance,
    /// Hosts in the hello for which the member may not report: they have sensors of their own.
    pub refused_hosts: Vec<HostName>,
    /// What standbys may fetch.
    pub offer: AtEnd<Offer>,
}

/// What a representative has stored for its standbys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Whether it has copies of all members' minutes and answers [`FromMember::Fetch`].
    pub has_minutes: bool,
    /// What else it has.
    pub more: AtEnd<OfferMore>,
}

/// What a representative has stored besides minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferMore {
    /// Whether it has stored calls and answers [`FromMember::FetchCalls`].
    pub has_calls: bool,
    /// Whether it has copies of all members' newest samples and answers [`FromMember::FetchSamples`].
    pub has_samples: AtEnd<bool>,
}

/// Acknowledgement: all events before `next` are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durable {
    /// The first event that is not on disk.
    pub next: u64,
    /// The store's watermark after it.
    pub mark: Mark,
}

/// Frame from a representative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromRepresentative {
    /// The first frame.
    Resume(Resume),
    /// Acknowledgement of events.
    Durable(Durable),
    /// New limits from now on.
    Allow(Allowance),
    /// The last frame: why the stream is refused.
    Refused(CompactString),
    /// To a standby: watermarks of all members.
    Marks(Marks),
    /// Request for stored minutes of the member's host.
    Fetch(minutes::Fetch),
    /// To a standby: minutes of all hosts.
    Minutes(minutes::Minutes),
    /// To a standby: stored calls of the domain.
    Calls(calls::Calls),
    /// Request for the newest samples of the member's host.
    FetchSamples(minutes::Fetch),
    /// To a standby: newest samples of all hosts.
    Samples(samples::Samples),
}

/// Error of frames from the other side.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The frame exceeds its limit.
    #[error("report frame of {len_bytes} bytes; at most {FRAME_LEN_MAX_BYTES} are allowed")]
    TooLong {
        /// Length of the frame.
        len_bytes: usize,
    },
    /// The bytes are not a frame of this version.
    #[error(transparent)]
    Frame(#[from] codec::Error),
}

/// Encode a frame and append it to `out`.
///
/// # Errors
/// If it is too long; `out` is then unchanged.
pub fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    let before = out.len();
    codec::encode(value, out)?;
    let len_bytes = out.len() - before;
    if len_bytes > FRAME_LEN_MAX_BYTES {
        out.truncate(before);
        return Err(Error::TooLong { len_bytes });
    }
    Ok(())
}

/// Splits the bytes of a stream into frames.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    used: usize,
}

/// Size of the buffer between frames: the memory of an idle connection.
const KEPT_LEN_BYTES: usize = 4 << 10;

impl Frames {
    /// Append received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.used == self.bytes.len() {
            self.bytes.clear();
            self.used = 0;
            self.bytes.shrink_to(KEPT_LEN_BYTES);
        } else if self.used > self.bytes.len() / 2 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete frame: its value and length in bytes.
    ///
    /// # Errors
    /// If the bytes are not a frame; the stream is then unusable.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<(T, usize)>, Error> {
        let rest = &self.bytes[self.used..];
        if let Some(len) = rest.first_chunk::<4>() {
            let len_bytes = u32::from_le_bytes(*len) as usize;
            if len_bytes > FRAME_LEN_MAX_BYTES {
                return Err(Error::TooLong { len_bytes });
            }
        }
        let Some((value, len)) = codec::decode(rest)? else { return Ok(None) };
        self.used += len;
        Ok(Some((value, len)))
    }

    /// Number of buffered bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len() - self.used
    }
}
