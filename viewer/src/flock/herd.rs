//! The processes of one host: sweeps in, ways out.
//!
//! Pure. A sweep that names only what changed says of all others that they used nothing: who was named in the sweep before
//! comes to rest. Invariant: of one number at most one process lives.

use super::measure::{Capacity, Usage, first_spots, spots};
use super::motion::Way;
use super::names::{NameId, Names};
use super::sweep::{HostName, Reported, Sweep};
use super::{APART_MAX, KEPT};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Time;

/// A process with its way.
#[derive(Clone, Debug)]
pub struct Track {
    /// Its number.
    pub pid: u32,
    /// When it began, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// The number of its parent.
    pub parent: u32,
    /// The number of its user.
    pub uid: u32,
    /// Its program's name.
    pub name: NameId,
    /// Its threads.
    pub threads: u32,
    /// What it had used when it was last named.
    pub usage: Usage,
    /// How it moves.
    pub way: Way,
    /// The sweep that named it last.
    named: u64,
}

/// Sweeps that are farther apart than this, and than so many periods, have something unseen between them.
const HOLE_MIN: Duration = Duration::from_secs(3);
const HOLE_PERIODS: u32 = 3;

/// How the clock of a host differs from the viewer's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock(Option<i64>);

impl Clock {
    /// By how many microseconds its times are moved to the viewer's.
    #[must_use]
    pub fn moved(&self) -> i64 {
        self.0.unwrap_or(0)
    }

    /// When something of `time` was, by the viewer's clock, if it came at `came`: as the host says, where its clock is about
    /// right; else moved by what it was wrong the first time.
    pub fn seen(&mut self, time: Time, came: Time) -> Time {
        let apart = came.micros().saturating_sub(time.micros());
        let most = i64::try_from(APART_MAX.as_micros()).unwrap_or(i64::MAX);
        let is_right = |apart: i64| apart.saturating_abs() <= most;
        if is_right(apart) {
            self.0 = None;
            return time;
        }
        let moved = self.0.filter(|moved| is_right(apart.saturating_sub(*moved))).unwrap_or(apart);
        self.0 = Some(moved);
        Time::from_micros(time.micros().saturating_add(moved))
    }
}

/// For how much there is room yet.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Processes.
    pub processes: usize,
    /// Whether a new knot must take the place of an older one.
    pub is_short_of_knots: bool,
}

/// What a sweep changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Processes more than before.
    pub processes: isize,
    /// Knots more than before.
    pub knots: isize,
    /// Processes for which there was no room.
    pub refused: u64,
}

/// The processes of a host.
#[derive(Clone, Debug)]
pub struct Herd {
    /// Which host.
    pub name: HostName,
    /// What it has.
    pub capacity: Capacity,
    /// Its clock.
    pub clock: Clock,
    tracks: Vec<Track>,
    /// Those that live, by number.
    living: BTreeMap<u32, usize>,
    /// Those that the last sweep named.
    named: Vec<usize>,
    sweeps: u64,
    first: Option<Time>,
    last: Option<Time>,
    swept: Option<Time>,
    /// Before this, something that was seen was let go, or nothing was seen.
    cut: Option<Time>,
    /// How long after their end processes are kept, and whether times without sweeps are told by themselves.
    kept: Duration,
    tells_holes: bool,
    /// How far its last two sweeps were apart.
    period: Duration,
}

impl Herd {
    /// A host of which nothing came yet.
    #[must_use]
    pub fn new(name: HostName, capacity: Capacity) -> Herd {
        Herd {
            name,
            capacity,
            clock: Clock::default(),
            tracks: Vec::new(),
            living: BTreeMap::new(),
            named: Vec::new(),
            sweeps: 0,
            first: None,
            last: None,
            swept: None,
            cut: None,
            kept: KEPT,
            tells_holes: false,
            period: Duration::ZERO,
        }
    }

    /// The past of a host, whose processes are kept so long, and in which an empty sweep says from when on nothing is known.
    #[must_use]
    pub fn of_past(name: HostName, capacity: Capacity, kept: Duration) -> Herd {
        Herd { kept, tells_holes: true, ..Herd::new(name, capacity) }
    }

    /// Take a sweep that was at `time`; nothing where it is not after the one before.
    pub fn take(&mut self, sweep: &Sweep, time: Time, room: Room, names: &mut Names) -> Option<Taken> {
        let previous = match self.last {
            Some(last) if last >= time => return None,
            Some(last) => last,
            None => time.minus(Duration::from_secs(1)),
        };
        self.sweeps += 1;
        let mut taken = Taken::default();
        let mut named = Vec::with_capacity(sweep.processes.len());
        // A number that ended may be given out again in the same sweep.
        sweep.gone.iter().for_each(|pid| self.end(*pid, time));
        for reported in &sweep.processes {
            match self.living.get(&reported.pid).copied() {
                // A process that became another program is another mark.
                Some(at) if self.is_same(at, reported, names) => {
                    taken.knots += self.go_on(at, reported, time, previous, room.is_short_of_knots);
                    named.push(at);
                }
                other => {
                    other.into_iter().for_each(|at| self.tracks[at].way.end(time));
                    if taken.processes.unsigned_abs() >= room.processes {
                        self.living.remove(&reported.pid);
                        taken.refused += 1;
                        continue;
                    }
                    named.push(self.begin(reported, time, names));
                    (taken.processes, taken.knots) = (taken.processes + 1, taken.knots + 1);
                }
            }
        }
        taken.knots += self.rest(time, sweep.is_whole);
        self.see_hole(time, previous);
        (self.named, self.last) = (named, Some(time));
        self.first.get_or_insert(time);
        self.forget(time, &mut taken);
        Some(taken)
    }

    /// When it was last heard of.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        self.last
    }

    /// From when on all of it is known; nothing before the first sweep.
    #[must_use]
    pub fn since(&self) -> Option<Time> {
        self.first.max(self.cut)
    }

    /// Before this, something that was seen was let go.
    #[must_use]
    pub fn cut(&self) -> Option<Time> {
        self.cut
    }

    /// Its processes, those that ended among them.
    #[must_use]
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The process of this number and start.
    #[must_use]
    pub fn track(&self, pid: u32, start_ns: u64) -> Option<&Track> {
        let is_it = |track: &&Track| (track.pid, track.start_ns) == (pid, start_ns);
        let living = self.living.get(&pid).map(|&at| &self.tracks[at]).filter(is_it);
        living.or_else(|| self.tracks.iter().rev().find(is_it))
    }

    /// How many processes it has.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.tracks.len()
    }

    /// How many knots its processes have.
    #[must_use]
    pub fn knots(&self) -> usize {
        self.tracks.iter().map(|track| track.way.knots()).sum()
    }

    fn is_same(&self, at: usize, reported: &Reported, names: &mut Names) -> bool {
        let track = &self.tracks[at];
        track.start_ns == reported.start_ns && track.name == names.id(&reported.name)
    }

    fn begin(&mut self, reported: &Reported, time: Time, names: &mut Names) -> usize {
        let at = self.tracks.len();
        self.tracks.push(Track {
            pid: reported.pid,
            start_ns: reported.start_ns,
            parent: reported.parent,
            uid: reported.uid,
            name: names.id(&reported.name),
            threads: reported.threads,
            usage: reported.usage,
            way: Way::new(time, first_spots(&reported.usage, self.capacity)),
            named: self.sweeps,
        });
        self.living.insert(reported.pid, at);
        at
    }

    fn go_on(&mut self, at: usize, reported: &Reported, time: Time, previous: Time, is_short: bool) -> isize {
        let capacity = self.capacity;
        let track = &mut self.tracks[at];
        let secs = time.since(previous).as_secs_f64();
        let stood = track.way.last();
        let spots = spots(&track.usage, &reported.usage, secs, capacity, &stood);
        (track.usage, track.threads, track.parent) = (reported.usage, reported.threads, reported.parent);
        track.named = self.sweeps;
        let mut more = track.way.stood(time, previous, spots);
        if is_short {
            let wanted = track.way.knots().saturating_add_signed(-more.max(0));
            more -= track.way.shorten(wanted).cast_signed();
        }
        if is_short || track.way.is_full() {
            self.cut = self.cut.max(track.way.first());
        }
        more
    }

    /// Those that the sweep before named and this one does not: they used nothing, or ended where this one names all.
    fn rest(&mut self, time: Time, is_whole: bool) -> isize {
        let now = self.sweeps;
        if is_whole {
            let gone: Vec<u32> = self
                .living
                .iter()
                .filter(|(_, at)| self.tracks[**at].named != now)
                .map(|(pid, _)| *pid)
                .collect();
            gone.into_iter().for_each(|pid| self.end(pid, time));
        }
        let mut more = 0;
        for at in std::mem::take(&mut self.named) {
            let track = &mut self.tracks[at];
            if track.named != now && track.way.ended().is_none() {
                more += track.way.rested(time);
                if track.way.is_full() {
                    self.cut = self.cut.max(track.way.first());
                }
            }
        }
        more
    }

    fn end(&mut self, pid: u32, time: Time) {
        if let Some(at) = self.living.remove(&pid) {
            self.tracks[at].way.end(time);
        }
    }

    /// Of a time in which no sweep came, though some were due, nothing is known.
    fn see_hole(&mut self, time: Time, previous: Time) {
        let apart = time.since(previous);
        if !self.tells_holes && self.last.is_some() && apart > HOLE_MIN.max(self.period * HOLE_PERIODS) {
            self.cut = Some(time);
        }
        self.period = apart;
    }

    /// Let go who ended a while ago, once in a while.
    fn forget(&mut self, time: Time, taken: &mut Taken) {
        let due = self.swept.is_none_or(|swept| time.since(swept) > self.kept / 6);
        if !due {
            return;
        }
        self.swept = Some(time);
        let long_ago = time.minus(self.kept);
        let is_gone = |track: &Track| track.way.ended().is_some_and(|ended| ended < long_ago);
        if !self.tracks.iter().any(is_gone) {
            return;
        }
        let (processes, knots) = (self.processes(), self.knots());
        let forgotten = self.tracks.iter().filter(|track| is_gone(track));
        self.cut = self.cut.max(forgotten.filter_map(|track| track.way.ended()).max());
        self.tracks.retain(|track| !is_gone(track));
        taken.processes -= processes.cast_signed() - self.processes().cast_signed();
        taken.knots -= knots.cast_signed() - self.knots().cast_signed();
        let (tracks, now) = (&self.tracks, self.sweeps);
        let living = tracks.iter().enumerate().filter(|(_, track)| track.way.ended().is_none());
        self.living = living.map(|(at, track)| (track.pid, at)).collect();
        self.named = self.living.values().copied().filter(|&at| tracks[at].named == now).collect();
    }
}
