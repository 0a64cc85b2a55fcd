//! Process history of the flock's hosts, from the memory and recordings of their sensors, for times that the
//! live data does not cover.
//!
//! Pure. Rules: one contiguous period is stored per host, and extended while it continues without a gap; live
//! data takes precedence wherever it is complete. Requested times are in the host's clock, all others in the
//! viewer's. Not here: the requests (`live::past`), drawing (`app::flock`).

use super::host_processes::{HostProcesses, Room, Track};
use super::names::Names;
use super::sweep::{HostName, Sweep};
use super::{Flock, KEYFRAMES_MAX, Member, PROCESSES_MAX};
use std::time::Duration;
use wire::time::Time;

/// How long before the shown time a period starts, at most, and the same in sweeps: a moving mark needs the
/// keyframe before, and has a trail.
const BEFORE: Duration = Duration::from_secs(4);
const BEFORE_SWEEPS: u32 = 100;
/// Maximum length of one request, at normal speed, and the same in sweeps.
const SPAN: Duration = Duration::from_secs(20);
const SPAN_SWEEPS: u32 = 300;
/// The next request is sent when the shown time is this close to the end of the period.
const AHEAD: Duration = Duration::from_secs(8);
const AHEAD_SWEEPS: u32 = 100;
/// Maximum length of one request at any speed; ended processes are retained for longer than one request
/// covers.
const SPAN_MAX: Duration = Duration::from_secs(600);
const KEPT_OF_PAST: Duration = Duration::from_secs(1_800);
/// At a higher speed of the replay no processes are requested.
pub const SPEED_MAX: f64 = 600.0;
/// A shorter remainder is not requested separately.
const PART_MIN: Duration = Duration::from_secs(2);

/// Speed of the replay and its resolution.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Factor relative to real time.
    pub speed: f64,
    /// One sweep per this interval.
    pub every: Duration,
}

/// Process history from a sensor, by the host's clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredSweeps {
    /// Start of the period.
    pub from: Time,
    /// End of the period.
    pub to: Time,
    /// The sweeps, the oldest first; one without processes marks the start of a gap.
    pub sweeps: Vec<Sweep>,
    /// Whether they are of minutes, each with the processes that used most in it.
    pub is_by_minute: bool,
}

impl StoredSweeps {
    /// Sweeps of a period.
    #[must_use]
    pub fn new(from: Time, to: Time, sweeps: Vec<Sweep>) -> StoredSweeps {
        StoredSweeps { from, to, sweeps, is_by_minute: false }
    }
}

/// Start and end of a time for which a sensor has sweeps, by the host's clock.
pub type Span = (Time, Time);

/// A missing period of a host's history, by the host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSpan {
    pub host: HostName,
    pub from: Time,
    pub to: Time,
}

/// A stored period of one host's history.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    host: HostProcesses,
    from: Time,
    to: Time,
    /// Where it is of minutes.
    minutes: Vec<Span>,
}

impl Stretch {
    /// The processes, if the period covers a time.
    pub(super) fn at(&self, time: Time) -> Option<&HostProcesses> {
        (self.from <= time && time < self.to).then_some(&self.host)
    }

    fn is_by_minute(&self, time: Time) -> bool {
        self.at(time).is_some() && self.minutes.iter().any(|(from, to)| (*from..*to).contains(&time))
    }

    pub(super) fn track(&self, member: Member) -> Option<&Track> {
        self.host.track(member.pid, member.start_ns)
    }

    fn take(&mut self, sweeps: &[Sweep], moved: i64, mut room: Room, names: &mut Names) -> u64 {
        let mut refused = 0;
        for sweep in sweeps {
            let time = shifted(sweep.time, moved);
            if self.host.last().is_some_and(|last| time <= last) {
                continue;
            }
            if let Some(taken) = self.host.take(sweep, time, room, names) {
                room.processes = room.processes.saturating_sub(taken.processes.max(0).unsigned_abs());
                refused += taken.refused;
            }
        }
        refused
    }
}

/// A time plus a clock offset.
#[must_use]
pub fn shifted(time: Time, micros: i64) -> Time {
    Time::from_micros(time.micros().saturating_add(micros))
}

impl Flock {
    /// Store history from a sensor: it extends the stored period, or replaces it.
    pub fn take_stored(&mut self, host: &HostName, stored: &StoredSweeps) {
        let Some(id) = self.by_name.get(host).map(|id| usize::from(*id)) else { return };
        if stored.from >= stored.to {
            return;
        }
        let live = &self.live[id];
        let moved = live.clock.moved();
        let (from, to) = (shifted(stored.from, moved), shifted(stored.to, moved));
        let known = self.past[id].take().filter(|known| known.to == from);
        let mut stretch = known.unwrap_or_else(|| Stretch {
            host: HostProcesses::of_past(host.clone(), live.capacity, KEPT_OF_PAST),
            from,
            to,
            minutes: Vec::new(),
        });
        if stored.is_by_minute {
            stretch.minutes.push((from, to));
        }
        let (processes, keyframes) = self.of_past();
        let room = Room {
            processes: PROCESSES_MAX.saturating_sub(self.processes + processes + stretch.host.processes()),
            is_short_of_keyframes: self.keyframes + keyframes >= KEYFRAMES_MAX,
        };
        stretch.to = to;
        self.refused.processes += stretch.take(&stored.sweeps, moved, room, &mut self.names);
        self.refused.names = self.names.refused();
        stretch.from = stretch.host.cut().map_or(stretch.from, |cut| cut.max(stretch.from));
        self.past[id] = Some(stretch);
    }

    /// Number of processes and keyframes in the history.
    pub(super) fn of_past(&self) -> (usize, usize) {
        let hosts = || self.past.iter().flatten().map(|stretch| &stretch.host);
        (hosts().map(HostProcesses::processes).sum(), hosts().map(HostProcesses::keyframes).sum())
    }

    /// The periods to request so that each host can be shown at `time` and onward at this pace.
    #[must_use]
    pub fn missing_spans(&self, time: Time, pace: Pace, now: Time) -> Vec<MissingSpan> {
        // What one request brings is over before the next one is answered.
        if pace.speed > SPEED_MAX {
            return Vec::new();
        }
        let times = pace.speed.clamp(1.0, 100.0);
        // A motion path holds a limited number of keyframes.
        let bounded =
            |usual: Duration, sweeps: u32| usual.mul_f64(times).min(SPAN_MAX).min(pace.every * sweeps);
        let (before, span) = (BEFORE.min(pace.every * BEFORE_SWEEPS), bounded(SPAN, SPAN_SWEEPS));
        let ahead = bounded(AHEAD, AHEAD_SWEEPS);
        let missing = |(host, past): (&HostProcesses, &Option<Stretch>)| {
            let until = host.since().unwrap_or(now).min(now);
            if time >= until {
                return None;
            }
            let known = past.as_ref().filter(|past| past.at(time).is_some());
            let (from, to) = match known {
                Some(known) if known.to.plus(PART_MIN) > until || time.plus(ahead) < known.to => return None,
                Some(known) => (known.to, known.to.plus(span)),
                None => (time.minus(before), time.plus(span)),
            };
            let moved = host.clock.moved();
            let (from, to) = (shifted(from, -moved), shifted(to.min(until), -moved));
            (from < to).then(|| MissingSpan { host: host.name.clone(), from, to })
        };
        self.live.iter().zip(&self.past).filter_map(missing).collect()
    }

    /// Clock offset of a host, in microseconds.
    #[must_use]
    pub fn moved(&self, host: &HostName) -> i64 {
        self.by_name.get(host).map_or(0, |id| self.live[usize::from(*id)].clock.moved())
    }

    /// Whether of a time only minutes are known of a host.
    #[must_use]
    pub fn is_by_minute(&self, time: Time) -> bool {
        let is_live = |host: &HostProcesses| host.since().is_some_and(|since| time >= since);
        let mut hosts = self.live.iter().zip(&self.past).filter(|(host, _)| !is_live(host));
        hosts.any(|(_, past)| past.as_ref().is_some_and(|past| past.is_by_minute(time)))
    }

    /// Number of hosts with a known process at a time.
    #[must_use]
    pub fn hosts_at(&self, time: Time) -> usize {
        let has = |id: &usize| {
            self.host_at(*id, time).tracks().iter().any(|track| track.trajectory.at(time).is_some())
        };
        (0..self.live.len()).filter(has).count()
    }

    /// The processes of a host for a time: from live data, else from the sensor's history.
    pub(super) fn host_at(&self, id: usize, time: Time) -> &HostProcesses {
        let live = &self.live[id];
        let past = || self.past[id].as_ref().and_then(|past| past.at(time));
        match live.since() {
            Some(since) if time >= since => live,
            Some(_) | None => past().unwrap_or(live),
        }
    }
}
