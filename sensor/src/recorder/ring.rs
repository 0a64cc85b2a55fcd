//! Ring buffer of the last seconds of all processes: compact segments of sweeps; the oldest segments are
//! dropped.
//!
//! Pure: a tap passes it the table of each sweep. Invariants: it stays within its bytes and its seconds,
//! except for the segment at the limit; the first sweep of each segment is whole, so any segment can be the
//! first; each sweep and each ended process is in exactly one segment, wherever segments are cut; segments
//! are numbered in order; memory is allocated as sweeps need it, and freed with the segment.
//! If its bytes do not suffice, it reaches back less far, and [`Ring::reach`] says how far.
//! Not here: what is done with it (`worker`), the thread that fills it (`tap`).

use crate::process::table::Table;
use std::collections::VecDeque;
use std::sync::Arc;
use wire::process::Life;
use wire::process::delta::Encoder;
use wire::recording::segment::Segment;

/// Most memory of the ring, in bytes: a minute of 300 processes at 64 Hz, all of them busy.
pub const BYTES_MAX: usize = 16 << 20;

/// Longest span of a segment, in nanoseconds: the ring drops data in steps of it, and stores a whole sweep
/// this often.
pub const SEGMENT_SPAN_NS: u64 = 5_000_000_000;

/// Most bytes of changes in a segment: the ring drops a sixteenth of its size at once.
pub const SEGMENT_LEN_MAX_BYTES: usize = BYTES_MAX / 16;

/// Limits of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How far back it reaches, in nanoseconds.
    pub reach_ns: u64,
    /// Most memory, in bytes.
    pub bytes_max: usize,
}

#[derive(Debug)]
pub struct Ring {
    limits: Limits,
    encoder: Encoder,
    sealed: VecDeque<StoredSegment>,
    /// Number of the first of `sealed`.
    sealed_from: u64,
    sealed_bytes: usize,
    open: Option<Open>,
    /// Number of the last sweep.
    number: u64,
    /// Start of the last sweep, in nanoseconds since boot.
    swept_ns: u64,
    samples_total: u64,
    bytes_total: u64,
    /// Segments dropped for lack of bytes, not because of their age.
    squeezed_total: u64,
}

/// A segment with its place in the journal.
#[derive(Clone, Debug)]
pub struct StoredSegment {
    pub segment: Arc<Segment>,
    /// Number that the next event had when the segment was started: the first event that may belong to it.
    pub events_from: u64,
}

#[derive(Debug)]
struct Open {
    segment: Segment,
    events_from: u64,
    /// Bytes of the whole sweep at its start, and of the ended processes before that.
    whole_len: usize,
}

/// Coverage and size of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCoverage {
    /// First moment, in nanoseconds since boot; 0 while it is empty.
    pub from_ns: u64,
    /// Last moment, in nanoseconds since boot; 0 while it is empty.
    pub to_ns: u64,
    /// Memory, in bytes.
    pub bytes: usize,
    /// Sweeps in the ring.
    pub sweeps: u64,
    /// Processes in all sweeps since the start; each counts in each sweep.
    pub samples_total: u64,
    /// Bytes of all sweeps since the start.
    pub bytes_total: u64,
    /// Segments dropped because the bytes did not suffice for the seconds.
    pub squeezed_total: u64,
}

impl Ring {
    /// Creates an empty ring; it allocates memory with the first sweep.
    #[must_use]
    pub fn new(limits: Limits) -> Ring {
        Ring {
            limits,
            encoder: Encoder::default(),
            sealed: VecDeque::new(),
            sealed_from: 0,
            sealed_bytes: 0,
            open: None,
            number: 0,
            swept_ns: 0,
            samples_total: 0,
            bytes_total: 0,
            squeezed_total: 0,
        }
    }

    /// Number of the last sweep; 0 before the first.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Start of the last sweep, in nanoseconds since boot: processes that ended before it are in the ring. 0
    /// before the first.
    #[must_use]
    pub fn swept_ns(&self) -> u64 {
        self.swept_ns
    }

    /// Adds the processes that ended since the previous sweep, and a sweep. `events_next` returns the number
    /// that the next event gets.
    pub fn take<'a>(
        &mut self,
        table: &Table,
        ended: impl Iterator<Item = &'a Life>,
        events_next: impl FnOnce() -> u64,
    ) {
        let sweep = table.sweep();
        let mut ended = ended.fuse();
        if let Some(open) = &mut self.open {
            ended.by_ref().for_each(|life| open.segment.push_life(life));
            let len = open.segment.len_bytes() - open.whole_len;
            let span_ns = sweep.begin_ns.saturating_sub(open.segment.first_ns);
            if span_ns >= SEGMENT_SPAN_NS || len >= SEGMENT_LEN_MAX_BYTES.min(self.limits.bytes_max / 4) {
                self.seal();
            }
        }
        let (encoder, processes) = (&mut self.encoder, table.len());
        let before = match &mut self.open {
            Some(open) => {
                let before = open.segment.len_bytes();
                let changed = table.changed_since(self.number);
                open.segment.push_sweep(sweep.begin_ns, processes, |out| {
                    encoder.changes(sweep, table.rows(), changed, out);
                });
                before
            }
            None => {
                let mut segment = Segment::default();
                let rows = table.rows();
                // Processes that ended after the previous sweep, if its segment was sealed meanwhile.
                ended.for_each(|life| segment.push_life(life));
                let before = segment.len_bytes();
                segment.push_sweep(sweep.begin_ns, processes, |out| encoder.whole(sweep, rows, out));
                let whole_len = segment.len_bytes();
                self.open = Some(Open { segment, events_from: events_next(), whole_len });
                before
            }
        };
        (self.number, self.swept_ns) = (sweep.number, sweep.begin_ns);
        self.samples_total += processes as u64;
        let len = self.open.as_ref().map_or(0, |open| open.segment.len_bytes() - before);
        self.bytes_total += len as u64;
        self.drop_oldest(sweep.begin_ns);
    }

    /// Ends the segment under way; the next sweep starts another one. The sealed segments are then complete.
    pub fn seal(&mut self) {
        if let Some(Open { mut segment, events_from, .. }) = self.open.take() {
            segment.shrink();
            self.sealed_bytes += segment.memory_bytes();
            self.sealed.push_back(StoredSegment { segment: Arc::new(segment), events_from });
        }
    }

    /// Sealed segments from number `first` on that overlap these moments; and the number that the next sealed
    /// segment gets.
    #[must_use]
    pub fn sealed(&self, first: u64, from_ns: u64, to_ns: u64) -> (Vec<StoredSegment>, u64) {
        let skipped = usize::try_from(first.saturating_sub(self.sealed_from)).unwrap_or(usize::MAX);
        let new = self.sealed.iter().skip(skipped);
        let held = new.filter(|stored| stored.segment.overlaps(from_ns, to_ns)).cloned().collect();
        (held, self.sealed_from + self.sealed.len() as u64)
    }

    /// Segments that overlap these moments, including the one under way.
    #[must_use]
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Vec<StoredSegment> {
        let fits = |segment: &Segment| segment.overlaps(from_ns, to_ns);
        let sealed = self.sealed.iter().filter(|stored| fits(&stored.segment)).cloned();
        let open = self.open.iter().filter(|open| fits(&open.segment));
        let open = open.map(|open| StoredSegment {
            segment: Arc::new(open.segment.clone()),
            events_from: open.events_from,
        });
        sealed.chain(open).collect()
    }

    /// Coverage and size of the ring.
    #[must_use]
    pub fn reach(&self) -> RingCoverage {
        let open = self.open.as_ref().map(|open| &open.segment);
        let all = || self.sealed.iter().map(|stored| &*stored.segment).chain(open);
        RingCoverage {
            from_ns: all().next().map_or(0, |segment| segment.first_ns),
            to_ns: all().last().map_or(0, |segment| segment.last_ns),
            bytes: self.sealed_bytes + open.map_or(0, Segment::memory_bytes),
            sweeps: all().map(|segment| u64::from(segment.sweeps)).sum(),
            samples_total: self.samples_total,
            bytes_total: self.bytes_total,
            squeezed_total: self.squeezed_total,
        }
    }

    /// Drops segments that are too old, and the oldest ones while there are too many bytes.
    fn drop_oldest(&mut self, now_ns: u64) {
        let open_bytes = self.open.as_ref().map_or(0, |open| open.segment.memory_bytes());
        if open_bytes > self.limits.bytes_max {
            // A single whole sweep exceeds the limit: nothing can be stored.
            self.open = None;
            self.squeezed_total += 1;
        }
        let oldest_ns = now_ns.saturating_sub(self.limits.reach_ns);
        while let Some(oldest) = self.sealed.front() {
            let is_old = oldest.segment.last_ns < oldest_ns;
            if !is_old && self.sealed_bytes + open_bytes <= self.limits.bytes_max {
                return;
            }
            self.squeezed_total += u64::from(!is_old);
            self.sealed_bytes -= oldest.segment.memory_bytes();
            self.sealed.pop_front();
            self.sealed_from += 1;
        }
    }
}

#[cfg(test)]
mod tests;
