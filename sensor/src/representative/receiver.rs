//! What one connection of a member says, checked: everything of a frame that could harm anybody else is
//! refused here.
//!
//! Pure. Rule: events arrive in order and each once: those before [`Receiver::open`]'s number or the last
//! frame's end are dropped and counted, a gap is counted if it is told and refused if it is not.
//! Bounds: one frame, [`METRICS_MAX`] metrics of [`METRICS_LEN_MAX_BYTES`] together, [`EVENTS_MAX`] events a frame.
//! Not here: who may speak for which host ([`super::claims`]), what is done with it ([`super::domain`]).

use compact_str::CompactString;
use std::collections::HashSet;
use std::sync::Arc;
use wire::report::{
    self, Events, Frames, FromMember, HEALTH_MAX, HOSTS_MAX, Hello, HostState, MARKS_MAX,
    METRICS_LEN_MAX_BYTES, METRICS_MAX, Metrics, Run, Shape, Sweep, TEXT_LEN_MAX_BYTES,
};
use wire::sample::Metric;
use wire::version::REPORT;

/// Most events of a frame: what they take unpacked is bounded by it.
pub const EVENTS_MAX: u64 = 16_384;
/// Most labels of a metric.
const LABELS_MAX: usize = 32;

/// The metrics of a host, in the order of its columns.
pub type Shaped = Arc<[Arc<Metric>]>;

/// Why a connection is closed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Not a frame.
    #[error(transparent)]
    Frame(#[from] report::Error),
    /// Another version is spoken.
    #[error(
        "version {found} of the report protocol is spoken; this program knows {expected}; update the older one",
        expected = REPORT.expected()
    )]
    Version {
        /// As said.
        found: u16,
    },
    /// A frame that has no place here.
    #[error("{found} came where {expected} was expected")]
    Unexpected {
        /// As sent.
        found: &'static str,
        /// By the order of things.
        expected: &'static str,
    },
    /// More of something than allowed.
    #[error("{found} {what}; at most {most} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// As sent.
        found: usize,
        /// The limit.
        most: usize,
    },
    /// Events that do not follow.
    #[error("event {found} came where {expected} was expected, and what is between was not told as lost")]
    Order {
        /// As sent.
        found: u64,
        /// By what came before.
        expected: u64,
    },
    /// A number beyond what was named, or numbers that overflow.
    #[error("{what} {found} is out of range")]
    Range {
        /// Of what.
        what: &'static str,
        /// As sent.
        found: u64,
    },
}

/// Events that are new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The number of the first.
    pub first: u64,
    /// The number after the last.
    pub next: u64,
    /// So many before the first are lost.
    pub lost: u64,
    /// The events.
    pub runs: Vec<Run>,
}

/// What a connection says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// First, and once.
    Hello(Box<Hello>),
    /// New events.
    Events(Arrived),
    /// Events that were here before.
    Nothing,
    /// A sweep of columns of this shape, not yet unpacked.
    Sweep(Shaped, Sweep),
    /// How the member is.
    State(Box<HostState>),
    /// It goes for good.
    Leave,
}

/// Metrics of all members, each kept once.
#[derive(Debug, Default)]
pub struct Names {
    known: HashSet<Arc<Metric>>,
    clean_at: usize,
}

impl Names {
    fn shared(&mut self, metric: Metric) -> Arc<Metric> {
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

/// One connection.
#[derive(Debug, Default)]
pub struct Receiver {
    frames: Frames,
    is_greeted: bool,
    /// The next event; `None` before it is open.
    next: Option<u64>,
    metrics: Vec<Arc<Metric>>,
    metrics_len: usize,
    shape: Option<Shaped>,
    duplicates: u64,
}

impl Receiver {
    /// Bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
    }

    /// From this event on, all are new.
    pub fn open(&mut self, next: u64) {
        self.next = Some(next);
    }

    /// Events that came again.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// What the next frame says, if a whole one is there.
    ///
    /// # Errors
    /// If the connection must be closed.
    pub fn take(&mut self, names: &mut Names) -> Result<Option<Said>, Error> {
        while let Some((frame, _)) = self.frames.take::<FromMember>()? {
            let said = match frame {
                FromMember::Hello(_) if self.is_greeted => {
                    return Err(Error::Unexpected { found: "a second hello", expected: "a report" });
                }
                FromMember::Hello(hello) => {
                    check_hello(&hello)?;
                    self.is_greeted = true;
                    Said::Hello(hello)
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
                    Said::Sweep(self.shape.clone().ok_or(unexpected)?, sweep)
                }
                FromMember::State(mut state) => {
                    tidy(&mut state);
                    Said::State(state)
                }
                FromMember::Leave => Said::Leave,
            };
            return Ok(Some(said));
        }
        Ok(None)
    }

    fn events(&mut self, events: Events) -> Result<Said, Error> {
        let len = events.len();
        limit("events of a frame", usize::try_from(len).unwrap_or(usize::MAX), EVENTS_MAX as usize)?;
        let range = |found| Error::Range { what: "event", found };
        let next = events.first.checked_add(len).ok_or(range(events.first))?;
        let told = events.first.checked_sub(events.lost).ok_or(range(events.lost))?;
        let expected = self.next.expect("asked before");
        if told > expected {
            return Err(Error::Order { found: told, expected });
        }
        if next <= expected {
            self.duplicates += len;
            return Ok(Said::Nothing);
        }
        let here_before = expected.saturating_sub(events.first);
        self.duplicates += here_before;
        let mut runs = events.runs;
        drop_first(&mut runs, usize::try_from(here_before).unwrap_or(usize::MAX));
        self.next = Some(next);
        let first = events.first.max(expected);
        Ok(Said::Events(Arrived { first, next, lost: first - expected, runs }))
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

/// Cut what is shown to people, and drop what is no figure.
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
