//! The last seconds of all processes, in little memory: segments of sweeps, of which the oldest are let go.
//!
//! Pure: a tap gives it each sweep's table. Invariants: it holds no more than its bytes and reaches back no further than its
//! seconds, but for the segment that both cut through; the first sweep of every segment is a whole one, so any can be the first;
//! each sweep and each life that ended is in one segment, wherever segments are cut; segments have numbers, in order;
//! memory is taken as sweeps need it and given back with the segment.
//! Where the bytes do not do, it reaches back less far, and [`Ring::reach`] tells.
//! Not here: what is done with it (`desk`), on which thread it is filled (`tap`).

use crate::process::table::Table;
use std::collections::VecDeque;
use std::sync::Arc;
use wire::process::Life;
use wire::process::delta::Encoder;
use wire::recording::segment::Segment;

/// Most memory of the ring, in bytes: a minute of 300 processes at 64 Hz, all of them busy.
pub const BYTES_MAX: usize = 16 << 20;

/// Longest span of a segment, in nanoseconds: the ring is let go in steps of it, and a whole sweep stands so often.
pub const SEGMENT_SPAN_NS: u64 = 5_000_000_000;

/// Longest that the changes in a segment become, in bytes: a sixteenth of the ring is let go at once.
pub const SEGMENT_LEN_MAX_BYTES: usize = BYTES_MAX / 16;

/// How long and how large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How far back it reaches, in nanoseconds.
    pub reach_ns: u64,
    /// Its memory, in bytes.
    pub bytes_max: usize,
}

/// The ring.
#[derive(Debug)]
pub struct Ring {
    limits: Limits,
    encoder: Encoder,
    sealed: VecDeque<Kept>,
    /// The number of the first of `sealed`.
    sealed_from: u64,
    sealed_bytes: usize,
    open: Option<Open>,
    /// Of the sweep taken last.
    number: u64,
    /// When that began.
    swept_ns: u64,
    samples_total: u64,
    bytes_total: u64,
    /// What was let go for want of bytes, not of age.
    squeezed_total: u64,
}

/// A segment, and the number that the next event had when it began.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The segment.
    pub segment: Arc<Segment>,
    /// The number of the first event that can be of its time.
    pub events_from: u64,
}

#[derive(Debug)]
struct Open {
    segment: Segment,
    events_from: u64,
    /// How long the whole sweep is with which it begins, and the lives before that, in bytes.
    whole_len: usize,
}

/// How far it reaches and what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The first moment it holds, in nanoseconds since boot; 0 while it is empty.
    pub from_ns: u64,
    /// The last one.
    pub to_ns: u64,
    /// Memory, in bytes.
    pub bytes: usize,
    /// Sweeps held.
    pub sweeps: u64,
    /// Processes in all sweeps ever taken, each counted in each sweep.
    pub samples_total: u64,
    /// Bytes of all sweeps ever taken.
    pub bytes_total: u64,
    /// Segments let go because the bytes did not do for the seconds.
    pub squeezed_total: u64,
}

impl Ring {
    /// An empty one; it takes memory once there is something to hold.
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

    /// The number of the sweep taken last; 0 before any.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// When the sweep taken last began, in nanoseconds since boot: what ended before it is held. 0 before any.
    #[must_use]
    pub fn swept_ns(&self) -> u64 {
        self.swept_ns
    }

    /// Take what ended since the sweep before, and a sweep. `events_next` is the number that the next event gets now.
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
                // What ended after the sweep before, where the segment of that was sealed meanwhile.
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
        self.let_go(sweep.begin_ns);
    }

    /// End the segment under way, so that the next sweep begins another: what is held until now is then complete in
    /// itself, and what follows goes on from it.
    pub fn seal(&mut self) {
        if let Some(Open { mut segment, events_from, .. }) = self.open.take() {
            segment.shrink();
            self.sealed_bytes += segment.memory_bytes();
            self.sealed.push_back(Kept { segment: Arc::new(segment), events_from });
        }
    }

    /// Of the segments from number `first` on that are ended, those that have something between these moments; and the number
    /// of the next that will end.
    #[must_use]
    pub fn sealed(&self, first: u64, from_ns: u64, to_ns: u64) -> (Vec<Kept>, u64) {
        let skipped = usize::try_from(first.saturating_sub(self.sealed_from)).unwrap_or(usize::MAX);
        let new = self.sealed.iter().skip(skipped);
        let held = new.filter(|kept| kept.segment.overlaps(from_ns, to_ns)).cloned().collect();
        (held, self.sealed_from + self.sealed.len() as u64)
    }

    /// The segments that have something between these moments, the one under way as far as it is.
    #[must_use]
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Vec<Kept> {
        let fits = |segment: &Segment| segment.overlaps(from_ns, to_ns);
        let sealed = self.sealed.iter().filter(|kept| fits(&kept.segment)).cloned();
        let open = self.open.iter().filter(|open| fits(&open.segment));
        let open =
            open.map(|open| Kept { segment: Arc::new(open.segment.clone()), events_from: open.events_from });
        sealed.chain(open).collect()
    }

    /// How far it reaches and what it takes.
    #[must_use]
    pub fn reach(&self) -> Reach {
        let open = self.open.as_ref().map(|open| &open.segment);
        let all = || self.sealed.iter().map(|kept| &*kept.segment).chain(open);
        Reach {
            from_ns: all().next().map_or(0, |segment| segment.first_ns),
            to_ns: all().last().map_or(0, |segment| segment.last_ns),
            bytes: self.sealed_bytes + open.map_or(0, Segment::memory_bytes),
            sweeps: all().map(|segment| u64::from(segment.sweeps)).sum(),
            samples_total: self.samples_total,
            bytes_total: self.bytes_total,
            squeezed_total: self.squeezed_total,
        }
    }

    /// Let go what is too old, and the oldest while there is too much.
    fn let_go(&mut self, now_ns: u64) {
        let open_bytes = self.open.as_ref().map_or(0, |open| open.segment.memory_bytes());
        if open_bytes > self.limits.bytes_max {
            // A single sweep that is larger than all: nothing can be kept.
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
