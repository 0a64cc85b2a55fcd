//! Processes of one host: turns sweeps into motion paths.
//!
//! Pure. A sweep that names only changes implies that all other processes used nothing: a process that only
//! the previous sweep named comes to rest. Invariant: at most one living process has a given PID.

use super::measure::{Capacity, Usage, first_spots, spots};
use super::motion::Trajectory;
use super::names::{NameId, Names};
use super::sweep::{HostName, Reported, Sweep};
use super::{APART_MAX, KEPT};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::time::Time;

/// A process with its motion path.
#[derive(Clone, Debug)]
pub struct Track {
    pub pid: u32,
    /// Start time, in nanoseconds since the host's boot.
    pub start_ns: u64,
    /// PID of its parent.
    pub parent: u32,
    pub uid: u32,
    /// Name of its program.
    pub name: NameId,
    /// Number of threads.
    pub threads: u32,
    /// Its resource use, as of the last sweep that named it.
    pub usage: Usage,
    /// Its motion path.
    pub trajectory: Trajectory,
    /// Number of the last sweep that named it.
    named: u64,
}

/// A gap between two sweeps that is longer than this, and than this many periods, means that data is missing.
const HOLE_MIN: Duration = Duration::from_secs(3);
const HOLE_PERIODS: u32 = 3;

/// Clock offset of a host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock(Option<i64>);

impl Clock {
    /// Offset to add to the host's timestamps to get the viewer's time, in microseconds.
    #[must_use]
    pub fn moved(&self) -> i64 {
        self.0.unwrap_or(0)
    }

    /// Convert `time` of the host, received at `came`, to the viewer's clock. A clock that is about right is
    /// trusted; otherwise the offset measured first is used for as long as it fits.
    pub fn observe(&mut self, time: Time, came: Time) -> Time {
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

/// Remaining capacity.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Number of further processes.
    pub processes: usize,
    /// Whether a new keyframe must replace an older one.
    pub is_short_of_keyframes: bool,
}

/// Changes made by a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepEffect {
    /// Net number of processes added.
    pub processes: isize,
    /// Net number of keyframes added.
    pub keyframes: isize,
    /// Processes refused for lack of capacity.
    pub refused: u64,
}

/// The processes of a host.
#[derive(Clone, Debug)]
pub struct HostProcesses {
    pub name: HostName,
    pub capacity: Capacity,
    pub clock: Clock,
    tracks: Vec<Track>,
    /// Index of each living process in `tracks`, by PID.
    living: BTreeMap<u32, usize>,
    /// Indexes of the processes that the last sweep named.
    named: Vec<usize>,
    sweeps: u64,
    first: Option<Time>,
    last: Option<Time>,
    swept: Option<Time>,
    /// History before this time is incomplete: something was dropped, or sweeps were missing.
    cut: Option<Time>,
    /// How long processes are retained after their end, and whether the data marks gaps itself.
    kept: Duration,
    marks_holes: bool,
    /// Time between the last two sweeps.
    period: Duration,
}

impl HostProcesses {
    /// A host without any sweep.
    #[must_use]
    pub fn new(name: HostName, capacity: Capacity) -> HostProcesses {
        HostProcesses {
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
            marks_holes: false,
            period: Duration::ZERO,
        }
    }

    /// The history of a host, from its sensor: ended processes are retained for `kept`, and an empty sweep
    /// marks the start of a gap.
    #[must_use]
    pub fn of_past(name: HostName, capacity: Capacity, kept: Duration) -> HostProcesses {
        HostProcesses { kept, marks_holes: true, ..HostProcesses::new(name, capacity) }
    }

    /// Apply a sweep at `time`; `None` if it is not after the previous one.
    pub fn take(&mut self, sweep: &Sweep, time: Time, room: Room, names: &mut Names) -> Option<SweepEffect> {
        let previous = match self.last {
            Some(last) if last >= time => return None,
            Some(last) => last,
            None => time.minus(Duration::from_secs(1)),
        };
        self.sweeps += 1;
        let mut taken = SweepEffect::default();
        let mut named = Vec::with_capacity(sweep.processes.len());
        // A PID that was freed may be reused within the same sweep.
        sweep.gone.iter().for_each(|pid| self.end(*pid, time));
        for reported in &sweep.processes {
            match self.living.get(&reported.pid).copied() {
                // A process that executed another program becomes a new mark.
                Some(at) if self.is_same(at, reported, names) => {
                    taken.keyframes += self.go_on(at, reported, time, previous, room.is_short_of_keyframes);
                    named.push(at);
                }
                other => {
                    other.into_iter().for_each(|at| self.tracks[at].trajectory.end(time));
                    if taken.processes.unsigned_abs() >= room.processes {
                        self.living.remove(&reported.pid);
                        taken.refused += 1;
                        continue;
                    }
                    named.push(self.begin(reported, time, names));
                    (taken.processes, taken.keyframes) = (taken.processes + 1, taken.keyframes + 1);
                }
            }
        }
        taken.keyframes += self.rest(time, sweep.is_whole);
        self.see_hole(time, previous);
        (self.named, self.last) = (named, Some(time));
        self.first.get_or_insert(time);
        self.forget(time, &mut taken);
        Some(taken)
    }

    /// Time of its last sweep.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        self.last
    }

    /// Start of the complete history; `None` before the first sweep.
    #[must_use]
    pub fn since(&self) -> Option<Time> {
        self.first.max(self.cut)
    }

    /// Before this time history is incomplete.
    #[must_use]
    pub fn cut(&self) -> Option<Time> {
        self.cut
    }

    /// Its processes, including ended ones.
    #[must_use]
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The process with this PID and start time.
    #[must_use]
    pub fn track(&self, pid: u32, start_ns: u64) -> Option<&Track> {
        let is_it = |track: &&Track| (track.pid, track.start_ns) == (pid, start_ns);
        let living = self.living.get(&pid).map(|&at| &self.tracks[at]).filter(is_it);
        living.or_else(|| self.tracks.iter().rev().find(is_it))
    }

    /// Number of processes, including ended ones.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.tracks.len()
    }

    /// Number of keyframes of its processes.
    #[must_use]
    pub fn keyframes(&self) -> usize {
        self.tracks.iter().map(|track| track.trajectory.keyframes()).sum()
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
            trajectory: Trajectory::new(time, first_spots(&reported.usage, self.capacity)),
            named: self.sweeps,
        });
        self.living.insert(reported.pid, at);
        at
    }

    fn go_on(&mut self, at: usize, reported: &Reported, time: Time, previous: Time, is_short: bool) -> isize {
        let capacity = self.capacity;
        let track = &mut self.tracks[at];
        let secs = time.since(previous).as_secs_f64();
        let stood = track.trajectory.last();
        let spots = spots(&track.usage, &reported.usage, secs, capacity, &stood);
        (track.usage, track.threads, track.parent) = (reported.usage, reported.threads, reported.parent);
        track.named = self.sweeps;
        let mut more = track.trajectory.stood(time, previous, spots);
        if is_short {
            let wanted = track.trajectory.keyframes().saturating_add_signed(-more.max(0));
            more -= track.trajectory.shorten(wanted).cast_signed();
        }
        if is_short || track.trajectory.is_full() {
            self.cut = self.cut.max(track.trajectory.first());
        }
        more
    }

    /// Handle processes that the previous sweep named and this one does not: they used nothing, or they ended
    /// if this sweep is a whole one.
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
            if track.named != now && track.trajectory.ended().is_none() {
                more += track.trajectory.rested(time);
                if track.trajectory.is_full() {
                    self.cut = self.cut.max(track.trajectory.first());
                }
            }
        }
        more
    }

    fn end(&mut self, pid: u32, time: Time) {
        if let Some(at) = self.living.remove(&pid) {
            self.tracks[at].trajectory.end(time);
        }
    }

    /// Detect missing sweeps: nothing is known about the time between.
    fn see_hole(&mut self, time: Time, previous: Time) {
        let apart = time.since(previous);
        if !self.marks_holes && self.last.is_some() && apart > HOLE_MIN.max(self.period * HOLE_PERIODS) {
            self.cut = Some(time);
        }
        self.period = apart;
    }

    /// Drop processes that ended longer ago than the retention time; checked from time to time.
    fn forget(&mut self, time: Time, taken: &mut SweepEffect) {
        let due = self.swept.is_none_or(|swept| time.since(swept) > self.kept / 6);
        if !due {
            return;
        }
        self.swept = Some(time);
        let long_ago = time.minus(self.kept);
        let is_gone = |track: &Track| track.trajectory.ended().is_some_and(|ended| ended < long_ago);
        if !self.tracks.iter().any(is_gone) {
            return;
        }
        let (processes, keyframes) = (self.processes(), self.keyframes());
        let forgotten = self.tracks.iter().filter(|track| is_gone(track));
        self.cut = self.cut.max(forgotten.filter_map(|track| track.trajectory.ended()).max());
        self.tracks.retain(|track| !is_gone(track));
        taken.processes -= processes.cast_signed() - self.processes().cast_signed();
        taken.keyframes -= keyframes.cast_signed() - self.keyframes().cast_signed();
        let (tracks, now) = (&self.tracks, self.sweeps);
        let living = tracks.iter().enumerate().filter(|(_, track)| track.trajectory.ended().is_none());
        self.living = living.map(|(at, track)| (track.pid, at)).collect();
        self.named = self.living.values().copied().filter(|&at| tracks[at].named == now).collect();
    }
}
