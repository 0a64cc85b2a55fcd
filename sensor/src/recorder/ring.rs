//! The last seconds of all processes, in little memory: segments of sweeps, of which the oldest are let go.
//!
//! Pure: a tap gives it each sweep's table. Invariants: it holds no more than its bytes and reaches back no further than its
//! seconds, but for the segment that both cut through; every segment begins with a whole sweep, so any can be the first;
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
    sealed_bytes: usize,
    open: Option<Open>,
    /// Of the sweep taken last.
    number: u64,
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
    /// How long the whole sweep is with which it begins, in bytes.
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
            sealed_bytes: 0,
            open: None,
            number: 0,
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

    /// Take what ended since the sweep before, and a sweep. `events_next` is the number that the next event gets now.
    pub fn take<'a>(
        &mut self,
        table: &Table,
        ended: impl Iterator<Item = &'a Life>,
        events_next: impl FnOnce() -> u64,
    ) {
        let sweep = table.sweep();
        if let Some(open) = &mut self.open {
            ended.for_each(|life| open.segment.push_life(life));
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
                segment.push_sweep(sweep.begin_ns, processes, |out| encoder.whole(sweep, rows, out));
                let whole_len = segment.len_bytes();
                self.open = Some(Open { segment, events_from: events_next(), whole_len });
                0
            }
        };
        self.number = sweep.number;
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;
    use compact_str::CompactString;
    use wire::process::{Process, ProcessKey};
    use wire::recording::segment::{Item, Player};

    const SECOND: u64 = 1_000_000_000;

    fn life(pid: u32, end_ns: u64) -> Life {
        Life {
            key: ProcessKey { pid, start_ns: 0 },
            parent: 1,
            uid: 0,
            cgroup: None,
            name: "true".into(),
            command: CompactString::default(),
            end_ns,
            code: 0,
            usage: None,
        }
    }

    /// A host of so many processes, of which so many use a little between two sweeps.
    struct Host {
        table: Table,
        ring: Ring,
        processes: u32,
        busy: u32,
        hz: u64,
    }

    impl Host {
        fn new(processes: u32, busy: u32, hz: u64, limits: Limits) -> Host {
            Host { table: Table::default(), ring: Ring::new(limits), processes, busy, hz }
        }

        fn sweep(&mut self, number: u64) {
            let at_ns = SECOND + number * SECOND / self.hz;
            self.table.begin(number, at_ns, Coverage::All);
            for pid in 1..=self.processes {
                let mut process = Process {
                    key: ProcessKey { pid, start_ns: 5 },
                    name: "work".into(),
                    ..Process::default()
                };
                process.rss_kib = 4000;
                if pid <= self.busy {
                    // Times that do not follow from those before, as in life.
                    process.usage.cpu_ns = number * 2_000_000 + (number * u64::from(pid) * 7919) % 100_000;
                    process.usage.minor_faults = number * u64::from(pid) % 977;
                }
                self.table.set(process);
            }
            self.table.end(100);
            let ended = [life(9, at_ns)];
            let ended = ended.iter().filter(|_| number.is_multiple_of(self.hz));
            self.ring.take(&self.table, ended, || number * 10);
        }
    }

    fn minute() -> Limits {
        Limits { reach_ns: 60 * SECOND, bytes_max: BYTES_MAX }
    }

    #[test]
    fn it_reaches_back_its_seconds_and_any_window_can_be_read() {
        let mut host = Host::new(5, 2, 4, Limits { reach_ns: 20 * SECOND, bytes_max: BYTES_MAX });
        (1..=400).for_each(|number| host.sweep(number));
        let reach = host.ring.reach();
        let held_ns = reach.to_ns - reach.from_ns;
        assert!((20 * SECOND..=25 * SECOND).contains(&held_ns), "{held_ns}");
        assert_eq!((reach.squeezed_total, reach.samples_total), (0, 2000));
        let (from_ns, to_ns) = (90 * SECOND, 95 * SECOND);
        let window = host.ring.window(from_ns, to_ns);
        assert!((1..=3).contains(&window.len()));
        assert!(window[0].segment.first_ns <= from_ns, "from before its beginning");
        assert_eq!(window[0].events_from % 10, 0);
        let (mut sweeps, mut ended) = (Vec::new(), Vec::new());
        for kept in &window {
            let read = Player::default().play(&kept.segment, |item| {
                match item {
                    Item::Swept(swept) => {
                        assert_eq!(swept.rows.iter().flatten().count(), 5);
                        assert_eq!(swept.sweep.begin_ns, SECOND + swept.sweep.number * SECOND / 4);
                        sweeps.push(swept.sweep.number);
                    }
                    Item::Ended(life) => ended.push(life.end_ns),
                }
                true
            });
            read.expect("each segment can be read alone");
        }
        assert!(sweeps.windows(2).all(|pair| pair[1] == pair[0] + 1), "{sweeps:?}");
        let lives = ended.iter().filter(|end_ns| (from_ns..=to_ns).contains(end_ns)).count();
        assert_eq!(lives, 6, "one each second");
    }

    #[test]
    fn what_does_not_fit_shortens_the_reach_and_is_told() {
        let limits = Limits { reach_ns: 60 * SECOND, bytes_max: 64 << 10 };
        let mut host = Host::new(100, 100, 64, limits);
        for number in 1..64 * 30 {
            host.sweep(number);
            let bytes = host.ring.reach().bytes;
            assert!(bytes <= 64 << 10, "{bytes} bytes");
        }
        let reach = host.ring.reach();
        let held_ns = reach.to_ns - reach.from_ns;
        assert!(held_ns < 10 * SECOND && held_ns > SECOND / 10, "{held_ns}");
        assert!(reach.squeezed_total > 10);
    }

    #[test]
    fn a_sweep_that_is_larger_than_all_is_not_kept() {
        let mut host = Host::new(1000, 0, 1, Limits { reach_ns: 60 * SECOND, bytes_max: 4096 });
        (1..9).for_each(|number| host.sweep(number));
        assert_eq!((host.ring.reach().bytes, host.ring.window(0, u64::MAX).len()), (0, 0));
    }

    #[test]
    fn a_minute_of_300_processes_at_64_hz_fits_even_if_all_are_busy() {
        for (busy, bytes_max) in [(0, 400 << 10), (30, 2 << 20), (300, BYTES_MAX)] {
            let mut host = Host::new(300, busy, 64, minute());
            (1..=64 * 62).for_each(|number| host.sweep(number));
            let reach = host.ring.reach();
            assert!(reach.bytes <= bytes_max, "{busy} busy: {} bytes", reach.bytes);
            assert!(reach.to_ns - reach.from_ns >= 60 * SECOND, "{busy} busy reach back less far");
        }
    }

    #[test]
    fn what_is_sealed_is_not_told_again() {
        let mut host = Host::new(3, 1, 4, minute());
        (1..=6).for_each(|number| host.sweep(number));
        host.ring.seal();
        let before = host.ring.window(0, u64::MAX);
        (7..=9).for_each(|number| host.sweep(number));
        let all = host.ring.window(0, u64::MAX);
        assert_eq!((before.len(), before[0].segment.sweeps, all.len(), all[1].segment.sweeps), (1, 6, 2, 3));
    }
}
