//! Receiver of one member's connection: decodes its frames and rejects everything in them that could harm
//! others.
//!
//! Pure. Rule: events arrive in order and each once. Events before the number of [`Receiver::open`] or before
//! the end of the last frame are dropped and counted. A gap is counted if the member reports it as lost, and
//! is an error otherwise.
//! Bounds: one frame, [`METRICS_MAX`] metrics of [`METRICS_LEN_MAX_BYTES`] together, [`EVENTS_MAX`] events a
//! frame.
//! Not here: which member may report for which host ([`super::claims`]), how frames change the domain
//! ([`super::domain`]).

use crate::history::copied::{Answer, Kind};
use compact_str::CompactString;
use std::collections::HashSet;
use std::sync::Arc;
use wire::report::calls::{FetchCalls, POSITIONS_MAX};
use wire::report::minutes::{Fetch, HELD_MAX};
use wire::report::{
    self, Events, Frames, FromMember, HEALTH_MAX, HOSTS_MAX, Hello, HostState, MARKS_MAX,
    METRICS_LEN_MAX_BYTES, METRICS_MAX, Metrics, Run, Shape, Sweep, TEXT_LEN_MAX_BYTES,
};
use wire::sample::Metric;
use wire::version::REPORT;

/// Most events of a frame: this bounds what they take when decoded.
pub const EVENTS_MAX: u64 = 16_384;
/// Most labels of a metric.
const LABELS_MAX: usize = 32;

/// The metrics of a host, in the order of its columns.
pub type ColumnMetrics = Arc<[Arc<Metric>]>;

/// Reason why a connection is closed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A frame could not be decoded.
    #[error(transparent)]
    Frame(#[from] report::Error),
    /// The member speaks another version.
    #[error(
        "version {found} of the report protocol is spoken; this program knows {expected}; update the older one",
        expected = REPORT.expected()
    )]
    Version {
        /// Version in the hello.
        found: u16,
    },
    /// A frame that is not allowed at this point.
    #[error("{found} came where {expected} was expected")]
    Unexpected {
        /// Frame that was sent.
        found: &'static str,
        expected: &'static str,
    },
    #[error("{found} {what}; at most {most} are allowed")]
    TooMany {
        what: &'static str,
        found: usize,
        /// Largest number allowed.
        most: usize,
    },
    /// Events that do not follow the previous ones.
    #[error(
        "event {found} came where {expected} was expected, and the records between were not reported as lost"
    )]
    Order {
        /// First event that the frame covers, including lost ones.
        found: u64,
        expected: u64,
    },
    /// A number out of range of what was sent before, or numbers that overflow.
    #[error("{what} {found} is out of range")]
    Range {
        /// Name of the number.
        what: &'static str,
        found: u64,
    },
}

/// New events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvents {
    /// Number of the first.
    pub first: u64,
    /// Number after the last.
    pub next: u64,
    /// Number of events before the first that are lost.
    pub lost: u64,
    pub runs: Vec<Run>,
}

/// A decoded frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The first frame; sent once.
    Hello(Box<Hello>),
    /// New events.
    Events(NewEvents),
    /// Events that were received before.
    Nothing,
    /// A sweep with columns of this shape, not yet decoded.
    Sweep(ColumnMetrics, Sweep),
    /// State of the host.
    State(Box<HostState>),
    /// The member leaves for good.
    Leave,
    /// What is stored of the member's host.
    Answer(Answer),
    /// Request of a standby for what is copied of all hosts.
    Fetch(Kind, Fetch),
    /// Request of a standby for the domain's stored calls.
    FetchCalls(FetchCalls),
}

/// Metrics of all members, each stored once.
#[derive(Debug, Default)]
pub struct Names {
    known: HashSet<Arc<Metric>>,
    clean_at: usize,
}

impl Names {
    /// Returns the one that is known, or takes this one.
    pub(super) fn shared(&mut self, metric: Metric) -> Arc<Metric> {
        if let Some(known) = self.known.get(&metric) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.clean_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.clean_at = (self.known.len() * 2).max(METRICS_MAX);
        }
        let metric = Arc::new(metric);
        self.known.insert(Arc::clone(&metric));
        metric
    }
}

#[derive(Debug, Default)]
pub struct Receiver {
    frames: Frames,
    is_greeted: bool,
    /// Number of the next event; `None` before it is open.
    next: Option<u64>,
    metrics: Vec<Arc<Metric>>,
    metrics_len: usize,
    shape: Option<ColumnMetrics>,
    duplicates: u64,
}

impl Receiver {
    /// Adds bytes that were received.
    pub fn push(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
    }

    /// Sets the first event that is new.
    pub fn open(&mut self, next: u64) {
        self.next = Some(next);
    }

    /// Returns the number of events that were received again.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns the next frame that changes something outside, if a whole frame was received.
    ///
    /// # Errors
    /// If the connection must be closed.
    pub fn take(&mut self, names: &mut Names) -> Result<Option<Message>, Error> {
        while let Some((frame, _)) = self.frames.take::<FromMember>()? {
            let message = match frame {
                FromMember::Hello(_) if self.is_greeted => {
                    return Err(Error::Unexpected { found: "a second hello", expected: "a report" });
                }
                FromMember::Hello(hello) => {
                    check_hello(&hello)?;
                    self.is_greeted = true;
                    Message::Hello(hello)
                }
                _ if self.next.is_none() => {
                    return Err(Error::Unexpected { found: "a report", expected: "a hello" });
                }
                FromMember::Events(events) => self.events(events)?,
                FromMember::Metrics(metrics) => {
                    self.name(metrics, names)?;
                    continue;
                }
                FromMember::Shape(shape) => {
                    self.reshape(&shape)?;
                    continue;
                }
                FromMember::Sweep(sweep) => {
                    let unexpected = Error::Unexpected { found: "a sweep", expected: "its shape" };
                    Message::Sweep(self.shape.clone().ok_or(unexpected)?, sweep)
                }
                FromMember::State(mut state) => {
                    tidy(&mut state);
                    Message::State(state)
                }
                FromMember::Leave => Message::Leave,
                FromMember::Minutes(minutes) => Message::Answer(Answer::Minutes(minutes)),
                FromMember::Samples(samples) => Message::Answer(Answer::Samples(samples)),
                FromMember::Fetch(fetch) => fetch_of(Kind::Minutes, fetch)?,
                FromMember::FetchSamples(fetch) => fetch_of(Kind::Samples, fetch)?,
                FromMember::FetchCalls(fetch) => {
                    limit("stores of a fetch", fetch.held.len(), POSITIONS_MAX)?;
                    Message::FetchCalls(fetch)
                }
            };
            return Ok(Some(message));
        }
        Ok(None)
    }

    fn events(&mut self, events: Events) -> Result<Message, Error> {
        let len = events.len();
        limit("events of a frame", usize::try_from(len).unwrap_or(usize::MAX), EVENTS_MAX as usize)?;
        let range = |found| Error::Range { what: "event", found };
        let next = events.first.checked_add(len).ok_or(range(events.first))?;
        let start = events.first.checked_sub(events.lost).ok_or(range(events.lost))?;
        let expected = self.next.expect("asked before");
        if start > expected {
            return Err(Error::Order { found: start, expected });
        }
        if next <= expected {
            self.duplicates += len;
            return Ok(Message::Nothing);
        }
        let here_before = expected.saturating_sub(events.first);
        self.duplicates += here_before;
        let mut runs = events.runs;
        drop_first(&mut runs, usize::try_from(here_before).unwrap_or(usize::MAX));
        self.next = Some(next);
        let first = events.first.max(expected);
        Ok(Message::Events(NewEvents { first, next, lost: first - expected, runs }))
    }

    fn name(&mut self, named: Metrics, names: &mut Names) -> Result<(), Error> {
        if named.first == 0 {
            self.metrics.clear();
            self.metrics_len = 0;
            self.shape = None;
        }
        if named.first as usize != self.metrics.len() {
            return Err(Error::Range { what: "number of a metric", found: named.first.into() });
        }
        limit("metrics", self.metrics.len() + named.metrics.len(), METRICS_MAX)?;
        for metric in named.metrics {
            limit("labels of a metric", metric.labels.len(), LABELS_MAX)?;
            self.metrics_len += report::metric_len_bytes(&metric);
            limit("bytes of metrics' names", self.metrics_len, METRICS_LEN_MAX_BYTES)?;
            self.metrics.push(names.shared(metric));
        }
        Ok(())
    }

    fn reshape(&mut self, shape: &Shape) -> Result<(), Error> {
        let mut columns = Vec::new();
        for &(first, len) in &shape.runs {
            let range = Error::Range { what: "number of a metric", found: u64::from(first) + u64::from(len) };
            let end = first.checked_add(len).map(|end| end as usize);
            let some = end.and_then(|end| self.metrics.get(first as usize..end)).ok_or(range)?;
            limit("columns", columns.len() + some.len(), METRICS_MAX)?;
            columns.extend_from_slice(some);
        }
        self.shape = Some(columns.into());
        Ok(())
    }
}

fn fetch_of(kind: Kind, fetch: Fetch) -> Result<Message, Error> {
    limit("hosts of a fetch", fetch.held.len(), HELD_MAX)?;
    Ok(Message::Fetch(kind, fetch))
}

fn limit(what: &'static str, found: usize, most: usize) -> Result<(), Error> {
    if found > most { Err(Error::TooMany { what, found, most }) } else { Ok(()) }
}

fn check_hello(hello: &Hello) -> Result<(), Error> {
    if !REPORT.reads(hello.version) {
        return Err(Error::Version { found: hello.version });
    }
    limit("hosts", hello.hosts.len(), HOSTS_MAX)?;
    limit("marks", hello.marks.len(), MARKS_MAX)?;
    limit("bytes of the program's version", hello.program.len(), TEXT_LEN_MAX_BYTES)?;
    limit("bytes of the name of a start", hello.boot.len(), TEXT_LEN_MAX_BYTES)?;
    if hello.oldest > hello.next {
        return Err(Error::Range { what: "oldest event", found: hello.oldest });
    }
    Ok(())
}

/// Truncates text that is shown to people, and drops values that are not plausible numbers.
fn tidy(state: &mut HostState) {
    state.health.truncate(HEALTH_MAX);
    for sentence in &mut state.health {
        if sentence.len() > TEXT_LEN_MAX_BYTES {
            *sentence = sentence.chars().take(TEXT_LEN_MAX_BYTES / 4).collect::<CompactString>();
        }
    }
    let fits = |value: &f64| value.is_finite() && value.abs() < super::overview::ABSURD;
    state.load = state.load.filter(|load| load.iter().all(fits));
    state.cpu_used = state.cpu_used.filter(|used| (0.0..=1.0).contains(used));
    state.uptime = state.uptime.filter(fits);
}

fn drop_first(runs: &mut Vec<Run>, mut count: usize) {
    runs.retain_mut(|run| {
        let some = count.min(run.records.len());
        run.records.drain(..some);
        count -= some;
        !run.records.is_empty()
    });
}
