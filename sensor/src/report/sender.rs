//! One member's reporting as a state machine: bytes to be written come out, bytes that were read go in.
//!
//! Pure. The shell opens a stream and calls [`Sender::connect`]; then it writes [`Sender::output`], feeds
//! what it reads to [`Sender::handle_bytes`], reads the journal when [`Sender::wanted`] says so, and hands
//! [`Sender::take_acknowledged`] to the tail. When the stream ends: [`Sender::disconnect`], and again.
//! Rule: events are sent in order, from where the representative asks, and none is skipped; they wait in the
//! journal. Samples wait nowhere: without room the newest sweep is left out, the rate halves, and how many
//! samples were left out since the run began stands in the next sweep.
//! Bounds: [`OUTPUT_LEN_BYTES`] of output and one stretch; the representative's allowance of events.

use super::columns::Columns;
use crate::sample::table::Table;
use compact_str::CompactString;
use std::collections::VecDeque;
use wire::id::{HostName, SensorKey};
use wire::report::marks::MarkList;
use wire::report::{
    self, Allowance, Durable, Events, Frames, FromMember, FromRepresentative, HOSTS_MAX, Hello, HostState,
    Mark, Marks, Resume, VERSION,
};
use wire::time::Time;

/// Output beyond which no events are added: a round trip of a fast line.
pub const OUTPUT_LEN_BYTES: usize = 256 << 10;
/// Output beyond which sweeps are left out: the reader is slower than what it is sent.
const SWEEPS_WAIT_LEN_BYTES: usize = 64 << 10;
/// Sweeps sent without trouble before the rate doubles again.
const CALM_SWEEPS: u32 = 16;
/// Fewest sweeps that are sent: one of so many.
const STRIDE_MAX: u16 = 64;
/// Events of one reading of the journal.
const EVENTS_AT_ONCE: usize = 1024;

/// Who the member is; what a hello says of it.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Of the program, to be shown.
    pub program: CompactString,
    /// Whose journal.
    pub sensor: SensorKey,
    /// Its own host.
    pub host: HostName,
    /// Hosts whose logs it reads beside its own's.
    pub hosts: Vec<HostName>,
    /// This start of the host.
    pub boot: CompactString,
    /// When this run of the sensor began.
    pub started: Time,
}

/// What the journal holds: the oldest event, the number the next durable one gets, what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The oldest event.
    pub oldest: u64,
    /// The number the next durable event gets.
    pub next: u64,
    /// What some representative has had.
    pub acknowledged: Option<u64>,
}

/// Events to be read from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// From this number on.
    pub from: u64,
    /// At most so many.
    pub limit: usize,
}

/// Why the stream is of no use any more; it must be closed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Not what is spoken.
    #[error(transparent)]
    Frame(#[from] report::Error),
    /// A frame that has no place here.
    #[error("the representative sent {found} where {expected} was expected")]
    Unexpected {
        /// As sent.
        found: &'static str,
        /// By the order of things.
        expected: &'static str,
    },
    /// The representative takes nothing more.
    #[error("the representative refuses: {0}")]
    Refused(CompactString),
    /// A representative of an older term than was obeyed before.
    #[error("the representative serves under term {found}; term {expected} was seen before")]
    Term {
        /// As sent.
        found: u64,
        /// Highest so far.
        expected: u64,
    },
}

/// What was done since the run began; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events put on the way, those sent again too.
    pub events_total: u64,
    /// Events put on the way a second time or more.
    pub resent_total: u64,
    /// Events told as lost.
    pub lost_total: u64,
    /// Samples sent.
    pub samples_total: u64,
    /// Samples left out.
    pub thinned_total: u64,
    /// Bytes put on the way.
    pub len_bytes_total: u64,
}

/// The state machine.
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
    /// The next event to be read.
    next: u64,
    /// The highest that was ever sent, by which what is sent again is counted.
    sent: u64,
    acknowledged: Option<u64>,
    /// Events on the way: the number after the last of a frame, and its length.
    under_way: VecDeque<(u64, usize)>,
    under_way_len: usize,
    marks: MarkList,
    fresh_mark: Option<Mark>,
    /// What was told of all members since it was asked for last.
    told: Vec<Marks>,
    term: u64,
    refused_hosts: Vec<HostName>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No stream.
    Away,
    /// The hello is on its way.
    Asking,
    /// Events and samples may go.
    Open(Allowance),
}

impl Sender {
    /// Nothing was sent yet in this run; `marks` are remembered of the ones before.
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
            told: Vec::new(),
            term: 0,
            refused_hosts: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// A new stream is open: begin with the hello.
    pub fn connect(&mut self, held: Held, clock: Time) {
        self.disconnect();
        self.phase = Phase::Asking;
        let Identity { program, sensor, host, mut hosts, boot, started } = self.identity.clone();
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
        })));
    }

    /// The stream has ended; what was on it counts as not sent.
    pub fn disconnect(&mut self) {
        self.phase = Phase::Away;
        self.frames = Frames::default();
        self.output = Vec::new();
        self.written = 0;
        self.columns = Columns::default();
        (self.stride, self.calm) = (1, 0);
        self.under_way.clear();
        self.under_way_len = 0;
    }

    /// What the representative sent.
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
                self.told.push(marks);
                Ok(())
            }
            (
                FromRepresentative::Durable(_) | FromRepresentative::Allow(_) | FromRepresentative::Marks(_),
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
        // Whatever it says: it has no more than it was sent.
        let mark = Mark { next: durable.next.min(self.next), ..durable.mark };
        self.acknowledged = self.acknowledged.max(Some(mark.next));
        if self.marks.add(mark) {
            self.fresh_mark = Some(mark);
        }
    }

    /// Which events should be read now, if any may go.
    #[must_use]
    pub fn wanted(&self) -> Option<Wanted> {
        let Phase::Open(allowance) = self.phase else { return None };
        let has_room = self.output().len() < OUTPUT_LEN_BYTES
            && self.under_way_len < usize::try_from(allowance.events_len_bytes).unwrap_or(usize::MAX);
        has_room.then_some(Wanted { from: self.next, limit: EVENTS_AT_ONCE })
    }

    /// Events from the journal, as [`Sender::wanted`] asked. Others are left alone: the stream they were
    /// read for is gone.
    pub fn handle_events(&mut self, events: Events) {
        if !matches!(self.phase, Phase::Open(_)) || events.first - events.lost != self.next {
            return;
        }
        self.counts.lost_total += events.lost;
        self.put_events(events);
    }

    /// Put them into a frame, or into several where one is too long for a frame.
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

    /// A new sweep.
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

    /// How the member is now; left out if there is no room, as the next one says it again.
    pub fn handle_state(&mut self, state: HostState) {
        if matches!(self.phase, Phase::Open(_)) && self.output().len() <= SWEEPS_WAIT_LEN_BYTES {
            self.put(&FromMember::State(Box::new(state)));
        }
    }

    /// The member goes for good: the last frame.
    pub fn leave(&mut self) {
        if matches!(self.phase, Phase::Open(_)) {
            self.put(&FromMember::Leave);
        }
    }

    fn put(&mut self, frame: &FromMember) {
        let before = self.output.len();
        if let Err(error) = report::encode(frame, &mut self.output) {
            // Only names of metrics of absurd length can be that long: the rest of the report goes on.
            tracing::warn!(%error, "a frame of the report is left out");
        }
        self.counts.len_bytes_total += (self.output.len() - before) as u64;
    }

    /// Bytes to be written.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.written..]
    }

    /// So many of them were written.
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

    /// What the representative has on disk, if that is news: the journal may forget what is before it, and keeps the mark.
    pub fn take_acknowledged(&mut self) -> Option<Mark> {
        self.fresh_mark.take()
    }

    /// What the representative told of all members' events, to a standby; take it after each [`Sender::handle_bytes`].
    pub fn take_told(&mut self) -> Vec<Marks> {
        std::mem::take(&mut self.told)
    }

    /// Whether the representative has taken the hello.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open(_))
    }

    /// Hosts it may not speak for, as the representative says.
    #[must_use]
    pub fn refused_hosts(&self) -> &[HostName] {
        &self.refused_hosts
    }

    /// What was done.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// Take everything after the first `keep` events off.
fn split_off(events: &mut Events, keep: u64) -> Events {
    let mut rest = Events { first: events.first + keep, lost: 0, runs: Vec::new() };
    let mut left = usize::try_from(keep).unwrap_or(usize::MAX);
    let mut kept = Vec::new();
    for mut run in std::mem::take(&mut events.runs) {
        let after = run.records.split_off(left.min(run.records.len()));
        left -= run.records.len();
        if !after.is_empty() {
            rest.runs.push(report::Run { records: after, source: run.source.clone(), ..run });
        }
        if !run.records.is_empty() {
            kept.push(run);
        }
    }
    events.runs = kept;
    rest
}
