//! What a member and its representative say to each other on `/visperf/report/1`: one stream, both ways.
//!
//! ```text
//! member                                    representative
//!   Hello: who, what its journal holds  →
//!                                       ←   Resume: from which event, how much may be under way
//!   Events … (durable at the member)    →
//!                                       ←   Durable: everything before this event is on disk
//!                                       ←   Marks: to standbys, the same of all members
//!   Metrics, Shape, Sweep …, State      →
//!                                       ←   Allow: how much may be under way, how often sweeps
//!   Leave                               →
//! ```
//!
//! Pure. Events are numbered by the member's journal; as only durable ones are sent, a number means one
//! event for ever, and what arrives twice is known by it. Names of metrics travel once for a connection.
//! Sweeps and state carry no host: they are of the member's own. Events name the host whose log it is.
//! Rule: neither side holds more than one frame of [`FRAME_LEN_MAX_BYTES`] of what the other sent.
//! Not here: what either side does with it (`sensor::report`, `sensor::representative`).

mod bits;
pub mod marks;
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

/// Version of what is said; a representative refuses another one and names both.
pub const VERSION: u16 = crate::version::REPORT.written;
/// Longest frame: an event of the longest line there is (1 MiB) fits.
pub const FRAME_LEN_MAX_BYTES: usize = (1 << 20) + (256 << 10);
/// Most hosts a member speaks for beside its own: a host with the logs of others has a handful.
pub const HOSTS_MAX: usize = 64;
/// Most marks of a hello.
pub const MARKS_MAX: usize = 96;
/// Most metrics a connection names before it starts over.
pub const METRICS_MAX: usize = 16_384;
/// Most bytes of names, units and labels of a connection's metrics.
pub const METRICS_LEN_MAX_BYTES: usize = 4 << 20;
/// Longest text in a hello, a metric or a state, in bytes.
pub const TEXT_LEN_MAX_BYTES: usize = 512;
/// Most sentences on a member's health.
pub const HEALTH_MAX: usize = 16;

/// Names one life of one representative's store of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StoreKey(pub u64);

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// How much of a member's events a store had at one of its places: by marks of an earlier store, a new
/// representative knows what a reader of that store has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Which store.
    pub store: StoreKey,
    /// A place in it.
    pub at: u64,
    /// Before that place, it had all of the member's events before this one.
    pub next: u64,
}

/// How much of several members' events a store had at one of its places: sent to the sensor that would represent the domain next,
/// as a member that is gone brings no marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Which store.
    pub store: StoreKey,
    /// A place in it.
    pub at: u64,
    /// Before that place, it had all events of this sensor before this number.
    pub members: Vec<(SensorKey, u64)>,
    /// Whether that is all there is to say of the store, so that what was said before is forgotten.
    pub whole: AtEnd<bool>,
}

impl Marks {
    /// Take over what is reported later of the same store.
    pub fn merge(&mut self, later: Marks) {
        if later.store != self.store {
            *self = later;
            return;
        }
        let members: BTreeMap<SensorKey, u64> = self.members.iter().copied().chain(later.members).collect();
        (self.at, self.members) = (later.at, members.into_iter().collect());
        // A whole one and what came since are a whole one.
        let is_whole = |marks: AtEnd<bool>| marks.0.unwrap_or(false);
        self.whole = AtEnd(Some(is_whole(self.whole) || is_whole(later.whole)));
    }
}

/// The first frame of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u16,
    /// Of the program, to be shown.
    pub program: CompactString,
    /// Whose journal.
    pub sensor: SensorKey,
    /// Its own host.
    pub host: HostName,
    /// Hosts whose logs it reads beside its own's.
    pub hosts: Vec<HostName>,
    /// This start of the host, as its kernel names it.
    pub boot: CompactString,
    /// When this run of the sensor began, by its clock.
    pub started: Time,
    /// Its clock now.
    pub clock: Time,
    /// The oldest event its journal holds.
    pub oldest: u64,
    /// The number its next durable event gets.
    pub next: u64,
    /// What some representative has had; `None` if there never was one.
    pub acknowledged: Option<u64>,
    /// What former representatives had and when.
    pub marks: Vec<Mark>,
}

/// One event as it travels and is stored: its sensor and number follow from where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Where its record begins in the file, in bytes.
    pub offset: u64,
    /// Which of the events of that record.
    pub number: u16,
    /// Its call in the domain's store; empty on the way, as the member's name for it means nothing there.
    pub call: CompactString,
    /// What the log says.
    pub content: Content,
    /// How it is joined with others.
    pub keys: Option<Keys>,
}

/// Consecutive events of one generation, read at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Which life of which file.
    pub generation: Generation,
    /// Whose log it is.
    pub source: Source,
    /// When it was read.
    pub seen: Time,
    /// The events, in order.
    pub records: Vec<Record>,
}

/// Some events, consecutive by number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// The number of the first.
    pub first: u64,
    /// So many just before the first are gone: deleted beyond the disk budget, or damaged.
    pub lost: u64,
    /// The events, in order.
    pub runs: Vec<Run>,
}

impl Events {
    /// How many events there are.
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

/// Metrics get numbers, consecutive from `first`; from 0: all former numbers are forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// The number of the first.
    pub first: u32,
    /// The metrics.
    pub metrics: Vec<Metric>,
}

/// Which metrics the columns of the following sweeps are: runs of numbers, each by its first and how many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The runs, in the order of the columns.
    pub runs: Vec<(u32, u32)>,
}

/// One sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Samples that were taken and not sent, since the run began: for want of room or while away.
    pub thinned: u64,
    /// The values, as [`sweep::Encoder`] writes them.
    pub packed: Packed,
}

/// Bytes, written and read at once.
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

/// How the member and its host are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostState {
    /// When, by its clock.
    pub time: Time,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Logical CPUs.
    pub cpus: u64,
    /// Share of all CPUs' time that is used, 0 to 1.
    pub cpu_used: Option<f64>,
    /// Memory, in bytes.
    pub memory_total: Option<u64>,
    /// Memory that could not be had without swapping, in bytes.
    pub memory_used: Option<u64>,
    /// Seconds since the host started.
    pub uptime: Option<f64>,
    /// Bytes of logs not yet read.
    pub lag_bytes: u64,
    /// The number its next event gets, durable or not: what is not yet here is the difference.
    pub events_next: u64,
    /// What is wrong with it, in sentences.
    pub health: Vec<CompactString>,
}

/// How long a metric's name, unit and labels are, in bytes.
#[must_use]
pub fn metric_len_bytes(metric: &Metric) -> usize {
    let labels: usize = metric.labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    metric.name.len() + metric.unit.len() + labels
}

/// What a member says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromMember {
    /// First, and once.
    Hello(Box<Hello>),
    /// Events.
    Events(Events),
    /// Names of metrics.
    Metrics(Metrics),
    /// What the columns of sweeps are.
    Shape(Shape),
    /// Samples.
    Sweep(Sweep),
    /// How it is.
    State(Box<HostState>),
    /// It goes for good, until it comes again.
    Leave,
}

/// How much a member may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Bytes of events that may be under way unacknowledged.
    pub events_len_bytes: u32,
    /// One of so many sweeps is wanted; 1 is every one.
    pub stride: u16,
}

/// The representative's answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The store that events go to.
    pub store: StoreKey,
    /// Fencing term under which the representative serves.
    pub term: u64,
    /// Begin with this event.
    pub next: u64,
    /// How much may be sent.
    pub allowance: Allowance,
    /// Hosts the member named that it may not speak for: they have a sensor of their own.
    pub refused_hosts: Vec<HostName>,
}

/// Everything before `next` is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durable {
    /// The first event that is not.
    pub next: u64,
    /// The store's place after it.
    pub mark: Mark,
}

/// What a representative says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromRepresentative {
    /// First.
    Resume(Resume),
    /// Acknowledgement.
    Durable(Durable),
    /// From now on so much.
    Allow(Allowance),
    /// The last frame: why nothing more is taken.
    Refused(CompactString),
    /// To a standby: how much of all members' events is on disk.
    Marks(Marks),
}

/// Why bytes of the other side are not taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The frame would be longer than allowed.
    #[error("report frame of {len_bytes} bytes; at most {FRAME_LEN_MAX_BYTES} are allowed")]
    TooLong {
        /// Its length.
        len_bytes: usize,
    },
    /// Not a frame of this version.
    #[error(transparent)]
    Frame(#[from] codec::Error),
}

/// Append a frame to `out`.
///
/// # Errors
/// If it is longer than allowed; `out` is then as before.
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

/// Makes frames of a stream's bytes, however they are cut.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    used: usize,
}

/// Bytes kept ready between frames: what an idle connection costs.
const KEPT_LEN_BYTES: usize = 4 << 10;

impl Frames {
    /// Add what came.
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

    /// The next whole frame: its value and length in bytes.
    ///
    /// # Errors
    /// If the bytes are no frame; the stream is of no use then.
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

    /// Bytes held.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len() - self.used
    }
}
