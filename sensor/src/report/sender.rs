//! State machine of one member's reporting: takes the bytes that were read, and produces the bytes to write.
//!
//! Pure. The shell opens a stream and calls [`Sender::connect`]. Then it writes [`Sender::output`], passes
//! what it reads to [`Sender::handle_bytes`], reads the journal when [`Sender::next_read`] returns a range,
//! and passes [`Sender::take_acknowledged`] to the tail. When the stream ends it calls [`Sender::disconnect`]
//! and starts again.
//! Rule: events are sent in order from where the representative requests, and none is skipped; they wait in
//! the journal. Samples are not queued: without room the newest sweep is left out and the rate halves. The
//! next sweep carries the number of samples left out since the run started.
//! Bounds: [`OUTPUT_LEN_BYTES`] of output and one stretch of events; the representative's allowance of
//! events.

use super::columns::Columns;
use crate::history::copied::{Answer, Kind, OfKind};
use crate::sample::table::Table;
use compact_str::CompactString;
use std::collections::VecDeque;
use wire::at_end::AtEnd;
use wire::id::{HostName, SensorKey};
use wire::report::calls::Calls;
use wire::report::marks::MarkList;
use wire::report::minutes::Fetch;
use wire::report::{
    self, Allowance, Durable, Events, Frames, FromMember, FromRepresentative, HOSTS_MAX, Hello, HostState,
    Mark, Marks, Offer, Resume, Stores, VERSION,
};
use wire::time::Time;

/// Output beyond which no events are added: the amount in flight on a fast line.
pub const OUTPUT_LEN_BYTES: usize = 256 << 10;
/// Output beyond which sweeps are left out: the reader is slower than the samples.
const SWEEPS_WAIT_LEN_BYTES: usize = 64 << 10;
/// Sweeps sent without a delay before the rate doubles again.
const CALM_SWEEPS: u32 = 16;
/// Lowest rate: one sweep of this many.
const STRIDE_MAX: u16 = 64;
/// Most events of one read of the journal.
const EVENTS_AT_ONCE: usize = 1024;

/// Identity of the member, for its hello.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Version of the program, to be shown.
    pub program: CompactString,
    /// Key of the sensor that owns the journal.
    pub sensor: SensorKey,
    pub host: HostName,
    /// Other hosts whose logs it reads.
    pub hosts: Vec<HostName>,
    /// Id of the current boot of the host.
    pub boot: CompactString,
    /// When this run of the sensor started.
    pub started: Time,
    /// What it stores.
    pub stores: Stores,
}

/// Range of events in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRange {
    /// Number of the oldest event.
    pub oldest: u64,
    /// Number that the next durable event gets.
    pub next: u64,
    /// Number after the events that a representative has acknowledged.
    pub acknowledged: Option<u64>,
}

/// Request to read events from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Number of the first event.
    pub from: u64,
    /// Most events.
    pub limit: usize,
}

/// Reason why the stream must be closed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A frame could not be decoded.
    #[error(transparent)]
    Frame(#[from] report::Error),
    /// A frame that is not allowed at this point.
    #[error("the representative sent {found} where {expected} was expected")]
    Unexpected {
        /// Frame that was sent.
        found: &'static str,
        expected: &'static str,
    },
    /// The representative refused the report.
    #[error("the representative refuses: {0}")]
    Refused(CompactString),
    /// The representative's term is older than one that was seen before.
    #[error("the representative serves under term {found}; term {expected} was seen before")]
    Term {
        found: u64,
        /// Highest term so far.
        expected: u64,
    },
}

/// Counters since the run started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events sent, including those sent again.
    pub events_total: u64,
    /// Events sent again.
    pub resent_total: u64,
    /// Events reported as lost.
    pub lost_total: u64,
    pub samples_total: u64,
    pub thinned_total: u64,
    /// Bytes sent.
    pub len_bytes_total: u64,
}

#[derive(Debug)]
pub struct Sender {
    identity: Identity,
    phase: Phase,
    frames: Frames,
    output: Vec<u8>,
    written: usize,
    columns: Columns,
    stride: u16,
    sweeps: u64,
    calm: u32,
    /// Number of the next event to read.
    next: u64,
    /// Number after the highest event sent, to count events that are sent again.
    sent: u64,
    acknowledged: Option<u64>,
    /// Unacknowledged frames of events: the number after the last event of the frame, and the frame's length.
    under_way: VecDeque<(u64, usize)>,
    under_way_len: usize,
    marks: MarkList,
    fresh_mark: Option<Mark>,
    /// Watermarks of all members received since [`Sender::take_told`] was last called.
    watermarks: Vec<Marks>,
    term: u64,
    refused_hosts: Vec<HostName>,
    /// What the representative has for standbys.
    pub(super) offer: Offer,
    /// Requests of the representative for what is stored, and its answers to a standby's.
    pub(super) fetches: OfKind<Option<Fetch>>,
    pub(super) answers: Vec<Answer>,
    pub(super) calls: Vec<Calls>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no stream.
    Away,
    /// The hello is sent and not answered yet.
    Asking,
    /// Events and samples may be sent.
    Open(Allowance),
}

impl Sender {
    /// Creates a sender that has sent nothing yet; `marks` are the watermarks of earlier runs.
    #[must_use]
    pub fn new(identity: Identity, marks: MarkList) -> Sender {
        Sender {
            identity,
            phase: Phase::Away,
            frames: Frames::default(),
            output: Vec::new(),
            written: 0,
            columns: Columns::default(),
            stride: 1,
            sweeps: 0,
            calm: 0,
            next: 0,
            sent: 0,
            acknowledged: None,
            under_way: VecDeque::new(),
            under_way_len: 0,
            marks,
            fresh_mark: None,
            watermarks: Vec::new(),
            term: 0,
            refused_hosts: Vec::new(),
            offer: Offer::default(),
            fetches: OfKind::default(),
            answers: Vec::new(),
            calls: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Starts a new stream with the hello.
    pub fn connect(&mut self, held: JournalRange, clock: Time) {
        self.disconnect();
        self.phase = Phase::Asking;
        let Identity { program, sensor, host, mut hosts, boot, started, stores } = self.identity.clone();
        hosts.truncate(HOSTS_MAX);
        self.put(&FromMember::Hello(Box::new(Hello {
            version: VERSION,
            program,
            sensor,
            host,
            hosts,
            boot,
            started,
            clock,
            oldest: held.oldest,
            next: held.next,
            acknowledged: held.acknowledged.max(self.acknowledged),
            marks: self.marks.iter().collect(),
            stores: AtEnd(Some(stores)),
        })));
    }

    /// Handles the end of the stream; everything unacknowledged counts as not sent.
    pub fn disconnect(&mut self) {
        self.phase = Phase::Away;
        self.frames = Frames::default();
        self.output = Vec::new();
        self.written = 0;
        self.columns = Columns::default();
        (self.stride, self.calm) = (1, 0);
        self.under_way.clear();
        self.under_way_len = 0;
        (self.offer, self.fetches) = (Offer::default(), OfKind::default());
        self.answers.clear();
        self.calls.clear();
    }

    /// Handles bytes that the representative sent.
    ///
    /// # Errors
    /// If the stream must be closed; call [`Sender::disconnect`].
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.frames.push(bytes);
        while let Some((frame, _)) = self.frames.take()? {
            self.handle_frame(frame)?;
        }
        Ok(())
    }

    fn handle_frame(&mut self, frame: FromRepresentative) -> Result<(), Error> {
        match (frame, self.phase) {
            (FromRepresentative::Refused(why), _) => Err(Error::Refused(why)),
            (FromRepresentative::Resume(resume), Phase::Asking) => self.resume(resume),
            (FromRepresentative::Resume(_), _) => {
                Err(Error::Unexpected { found: "a second resume", expected: "an acknowledgement" })
            }
            (FromRepresentative::Durable(durable), Phase::Open(_)) => {
                self.settle(durable);
                Ok(())
            }
            (FromRepresentative::Allow(allowance), Phase::Open(_)) => {
                self.phase = Phase::Open(allowance);
                Ok(())
            }
            (FromRepresentative::Marks(marks), Phase::Open(_)) => {
                self.watermarks.push(marks);
                Ok(())
            }
            (FromRepresentative::Fetch(fetch), Phase::Open(_)) => {
                *self.fetches.of_mut(Kind::Minutes) = Some(fetch);
                Ok(())
            }
            (FromRepresentative::FetchSamples(fetch), Phase::Open(_)) => {
                *self.fetches.of_mut(Kind::Samples) = Some(fetch);
                Ok(())
            }
            (FromRepresentative::Minutes(minutes), Phase::Open(_)) => {
                self.answers.push(Answer::Minutes(minutes));
                Ok(())
            }
            (FromRepresentative::Samples(samples), Phase::Open(_)) => {
                self.answers.push(Answer::Samples(samples));
                Ok(())
            }
            (FromRepresentative::Calls(calls), Phase::Open(_)) => {
                self.calls.push(calls);
                Ok(())
            }
            (
                FromRepresentative::Durable(_)
                | FromRepresentative::Allow(_)
                | FromRepresentative::Marks(_)
                | FromRepresentative::Fetch(_)
                | FromRepresentative::Minutes(_)
                | FromRepresentative::Calls(_)
                | FromRepresentative::FetchSamples(_)
                | FromRepresentative::Samples(_),
                _,
            ) => Err(Error::Unexpected { found: "something else", expected: "a resume" }),
        }
    }

    fn resume(&mut self, resume: Resume) -> Result<(), Error> {
        if resume.term < self.term {
            return Err(Error::Term { found: resume.term, expected: self.term });
        }
        self.term = resume.term;
        self.next = resume.next;
        self.refused_hosts = resume.refused_hosts;
        self.offer = resume.offer.0.unwrap_or_default();
        self.phase = Phase::Open(resume.allowance);
        Ok(())
    }

    fn settle(&mut self, durable: Durable) {
        while let Some(&(next, len)) = self.under_way.front() {
            if next > durable.next {
                break;
            }
            self.under_way.pop_front();
            self.under_way_len -= len;
        }
        // Whatever it reports: it has no more than it was sent.
        let mark = Mark { next: durable.next.min(self.next), ..durable.mark };
        self.acknowledged = self.acknowledged.max(Some(mark.next));
        if self.marks.add(mark) {
            self.fresh_mark = Some(mark);
        }
    }

    /// Returns which events should be read now, if any may be sent.
    #[must_use]
    pub fn next_read(&self) -> Option<ReadRequest> {
        let Phase::Open(allowance) = self.phase else { return None };
        let has_room = self.output().len() < OUTPUT_LEN_BYTES
            && self.under_way_len < usize::try_from(allowance.events_len_bytes).unwrap_or(usize::MAX);
        has_room.then_some(ReadRequest { from: self.next, limit: EVENTS_AT_ONCE })
    }

    /// Handles events from the journal, as requested by [`Sender::next_read`]. Others are ignored: the stream
    /// they were read for is gone.
    pub fn handle_events(&mut self, events: Events) {
        if !matches!(self.phase, Phase::Open(_)) || events.first - events.lost != self.next {
            return;
        }
        self.counts.lost_total += events.lost;
        self.put_events(events);
    }

    /// Encodes events as one frame, or as several where one would be too long.
    fn put_events(&mut self, mut events: Events) {
        let (first, len) = (events.first, events.len());
        let before = self.output.len();
        match report::encode(&FromMember::Events(events.clone()), &mut self.output) {
            Ok(()) => {
                let next = first + len;
                self.counts.events_total += len;
                self.counts.resent_total += self.sent.min(next).saturating_sub(first);
                self.counts.len_bytes_total += (self.output.len() - before) as u64;
                self.sent = self.sent.max(next);
                self.next = next;
                self.under_way.push_back((next, self.output.len() - before));
                self.under_way_len += self.output.len() - before;
            }
            Err(_) if len > 1 => {
                let rest = split_off(&mut events, len / 2);
                self.put_events(events);
                self.put_events(rest);
            }
            Err(error) => {
                tracing::error!(%error, event = first, "event too large to report; sending only its kind and time");
                for record in events.runs.iter_mut().flat_map(|run| &mut run.records) {
                    record.content = wire::event::Content::new(record.content.kind, record.content.time);
                    record.keys = None;
                }
                self.put_events(events);
            }
        }
    }

    /// Handles a new sweep.
    pub fn handle_sweep(&mut self, table: &Table) {
        let samples = table.values().len() as u64;
        self.sweeps += 1;
        let Phase::Open(allowance) = self.phase else {
            self.counts.thinned_total += samples;
            return;
        };
        if self.output().len() > SWEEPS_WAIT_LEN_BYTES {
            (self.stride, self.calm) = ((self.stride * 2).min(STRIDE_MAX), 0);
            self.counts.thinned_total += samples;
            return;
        }
        let stride = self.stride.max(allowance.stride).max(1);
        if !self.sweeps.is_multiple_of(u64::from(stride)) {
            self.counts.thinned_total += samples;
            return;
        }
        let mut frames = Vec::new();
        let left_out = self.columns.frames(table, self.counts.thinned_total, |frame| frames.push(frame));
        for frame in &frames {
            self.put(frame);
        }
        self.counts.samples_total += samples - left_out;
        self.counts.thinned_total += left_out;
        self.calm += 1;
        if self.calm >= CALM_SWEEPS && self.stride > 1 {
            (self.stride, self.calm) = (self.stride / 2, 0);
        }
    }

    /// Sends the host's state. Skipped if there is no room: the next one replaces it.
    pub fn handle_state(&mut self, state: HostState) {
        if matches!(self.phase, Phase::Open(_)) && self.output().len() <= SWEEPS_WAIT_LEN_BYTES {
            self.put(&FromMember::State(Box::new(state)));
        }
    }

    /// Sends the leave message, the last frame.
    pub fn leave(&mut self) {
        if matches!(self.phase, Phase::Open(_)) {
            self.put(&FromMember::Leave);
        }
    }

    pub(super) fn put(&mut self, frame: &FromMember) {
        let before = self.output.len();
        if let Err(error) = report::encode(frame, &mut self.output) {
            // Only names of metrics of absurd length can be that long: the rest of the report continues.
            tracing::warn!(%error, "a frame of the report is left out");
        }
        self.counts.len_bytes_total += (self.output.len() - before) as u64;
    }

    /// Returns the bytes to write.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.written..]
    }

    /// Removes bytes that were written from the output.
    pub fn consume(&mut self, len: usize) {
        self.written = (self.written + len).min(self.output.len());
        if self.written == self.output.len() {
            self.output.clear();
            self.output.shrink_to(SWEEPS_WAIT_LEN_BYTES);
            self.written = 0;
        } else if self.written >= OUTPUT_LEN_BYTES {
            self.output.drain(..self.written);
            self.written = 0;
        }
    }

    /// Takes the newest watermark of the representative's store, if it is new: the journal may delete the
    /// events before it, and records the watermark.
    pub fn take_acknowledged(&mut self) -> Option<Mark> {
        self.fresh_mark.take()
    }

    /// Takes the watermarks of all members that the representative sent to a standby; call it after each
    /// [`Sender::handle_bytes`].
    pub fn take_watermarks(&mut self) -> Vec<Marks> {
        std::mem::take(&mut self.watermarks)
    }

    /// Returns whether the representative has accepted the hello.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Returns the hosts that it may not report for, as the representative answered.
    #[must_use]
    pub fn refused_hosts(&self) -> &[HostName] {
        &self.refused_hosts
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Splits off everything after the first `keep` events.
fn split_off(events: &mut Events, keep: u64) -> Events {
    let mut rest = Events { first: events.first + keep, lost: 0, runs: Vec::new() };
    let mut left = usize::try_from(keep).unwrap_or(usize::MAX);
    let mut first = Vec::new();
    for mut run in std::mem::take(&mut events.runs) {
        let after = run.records.split_off(left.min(run.records.len()));
        left -= run.records.len();
        if !after.is_empty() {
            rest.runs.push(report::Run { records: after, source: run.source.clone(), ..run });
        }
        if !run.records.is_empty() {
            first.push(run);
        }
    }
    events.runs = first;
    rest
}
