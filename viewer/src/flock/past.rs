//! The past of the flock's hosts, of what their sensors kept in memory and recordings, where what was seen live does not reach.
//!
//! Pure. Rules: of each host one stretch of time is kept, as long as it is gone on from without a break; what was seen live
//! comes first wherever it is whole. Times that are asked for are the host's, all others the viewer's. Not here: asking
//! (`live::kept`), where marks are drawn (`app::flock`).

use super::herd::{Herd, Room, Track};
use super::names::Names;
use super::sweep::{HostName, Sweep};
use super::{Flock, KNOTS_MAX, Member, PROCESSES_MAX};
use std::time::Duration;
use wire::time::Time;

/// So long before a moment its stretch begins, at most: what moves then began to before, and has a trail. So many sweeps do.
const BEFORE: Duration = Duration::from_secs(4);
const BEFORE_SWEEPS: u32 = 100;
/// How long a stretch is at most, at the speed of time, and in sweeps.
const SPAN: Duration = Duration::from_secs(20);
const SPAN_SWEEPS: u32 = 300;
/// A stretch is gone on from so early before its end is drawn.
const AHEAD: Duration = Duration::from_secs(8);
const AHEAD_SWEEPS: u32 = 100;
/// Whatever the speed, a stretch is no longer than this; processes that ended are kept for longer than what is asked together.
const SPAN_MAX: Duration = Duration::from_secs(600);
const KEPT_OF_PAST: Duration = Duration::from_secs(1_800);
/// What is shorter is not asked for by itself.
const PART_MIN: Duration = Duration::from_secs(2);

/// How fast what is seen goes on, and how close its sweeps are.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// So many times as fast as time.
    pub speed: f64,
    /// One sweep in so long.
    pub every: Duration,
}

/// What a sensor kept of a stretch of time, by the host's clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// From when on it tells.
    pub from: Time,
    /// Until when it tells.
    pub to: Time,
    /// The sweeps, the oldest first; one without processes says that nothing is known from there on.
    pub sweeps: Vec<Sweep>,
}

/// A stretch of a host's past to be asked for, by the host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Of which host.
    pub host: HostName,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub to: Time,
}

/// A stretch of one host's past.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    herd: Herd,
    from: Time,
    to: Time,
}

impl Stretch {
    /// Its processes, if it tells of a time.
    pub(super) fn at(&self, time: Time) -> Option<&Herd> {
        (self.from <= time && time < self.to).then_some(&self.herd)
    }

    /// The process of this member.
    pub(super) fn track(&self, member: Member) -> Option<&Track> {
        self.herd.track(member.pid, member.start_ns)
    }

    fn take(&mut self, sweeps: &[Sweep], moved: i64, mut room: Room, names: &mut Names) -> u64 {
        let mut refused = 0;
        for sweep in sweeps {
            let time = shifted(sweep.time, moved);
            if self.herd.last().is_some_and(|last| time <= last) {
                continue;
            }
            if let Some(taken) = self.herd.take(sweep, time, room, names) {
                room.processes = room.processes.saturating_sub(taken.processes.max(0).unsigned_abs());
                refused += taken.refused;
            }
        }
        refused
    }
}

/// A time by another clock, which shows so much more.
#[must_use]
pub fn shifted(time: Time, micros: i64) -> Time {
    Time::from_micros(time.micros().saturating_add(micros))
}

impl Flock {
    /// Take what a sensor kept of a host: it goes on from what is known of its past, or takes its place.
    pub fn take_kept(&mut self, host: &HostName, kept: &Kept) {
        let Some(id) = self.by_name.get(host).map(|id| usize::from(*id)) else { return };
        if kept.from >= kept.to {
            return;
        }
        let live = &self.herds[id];
        let moved = live.clock.moved();
        let (from, to) = (shifted(kept.from, moved), shifted(kept.to, moved));
        let known = self.past[id].take().filter(|known| known.to == from);
        let mut stretch = known.unwrap_or_else(|| Stretch {
            herd: Herd::of_past(host.clone(), live.capacity, KEPT_OF_PAST),
            from,
            to,
        });
        let (processes, knots) = self.of_past();
        let room = Room {
            processes: PROCESSES_MAX.saturating_sub(self.processes + processes + stretch.herd.processes()),
            is_short_of_knots: self.knots + knots >= KNOTS_MAX,
        };
        stretch.to = to;
        self.refused.processes += stretch.take(&kept.sweeps, moved, room, &mut self.names);
        self.refused.names = self.names.refused();
        stretch.from = stretch.herd.cut().map_or(stretch.from, |cut| cut.max(stretch.from));
        self.past[id] = Some(stretch);
    }

    /// Processes and knots of the past.
    pub(super) fn of_past(&self) -> (usize, usize) {
        let herds = || self.past.iter().flatten().map(|stretch| &stretch.herd);
        (herds().map(Herd::processes).sum(), herds().map(Herd::knots).sum())
    }

    /// What is to be asked for so that at `time`, which goes on at this pace, each host is seen.
    #[must_use]
    pub fn lacks(&self, time: Time, pace: Pace, now: Time) -> Vec<Lack> {
        let times = pace.speed.clamp(1.0, 100.0);
        // A way has only so many knots.
        let bounded =
            |usual: Duration, sweeps: u32| usual.mul_f64(times).min(SPAN_MAX).min(pace.every * sweeps);
        let (before, span) = (BEFORE.min(pace.every * BEFORE_SWEEPS), bounded(SPAN, SPAN_SWEEPS));
        let ahead = bounded(AHEAD, AHEAD_SWEEPS);
        let lack = |(herd, past): (&Herd, &Option<Stretch>)| {
            let until = herd.since().unwrap_or(now).min(now);
            if time >= until {
                return None;
            }
            let known = past.as_ref().filter(|past| past.at(time).is_some());
            let (from, to) = match known {
                Some(known) if known.to.plus(PART_MIN) > until || time.plus(ahead) < known.to => return None,
                Some(known) => (known.to, known.to.plus(span)),
                None => (time.minus(before), time.plus(span)),
            };
            let moved = herd.clock.moved();
            let (from, to) = (shifted(from, -moved), shifted(to.min(until), -moved));
            (from < to).then(|| Lack { host: herd.name.clone(), from, to })
        };
        self.herds.iter().zip(&self.past).filter_map(lack).collect()
    }

    /// By how many microseconds the times of a host are moved to the viewer's.
    #[must_use]
    pub fn moved(&self, host: &HostName) -> i64 {
        self.by_name.get(host).map_or(0, |id| self.herds[usize::from(*id)].clock.moved())
    }

    /// How many hosts had a process at a time, as far as is known.
    #[must_use]
    pub fn hosts_at(&self, time: Time) -> usize {
        let has =
            |id: &usize| self.herd_at(*id, time).tracks().iter().any(|track| track.way.at(time).is_some());
        (0..self.herds.len()).filter(has).count()
    }

    /// The processes of a host for a time: as they were seen live, or else as the sensor kept them.
    pub(super) fn herd_at(&self, id: usize, time: Time) -> &Herd {
        let live = &self.herds[id];
        let past = || self.past[id].as_ref().and_then(|past| past.at(time));
        match live.since() {
            Some(since) if time >= since => live,
            Some(_) | None => past().unwrap_or(live),
        }
    }
}
