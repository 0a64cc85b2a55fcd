//! The flock: every process of the hosts that are watched, as marks that move by what it uses (Wallmon, section 5).
//!
//! Pure. Rules: where a mark is at a time follows from the sweeps before and after it alone (`motion`); everything that
//! comes is a stranger's: hosts, processes, names and knots are bounded, and what is not taken is counted. Not here: what
//! asks sensors (`live::flock`), what it looks like (`app::flock`).

pub mod chosen;
pub mod groups;
pub mod herd;
pub mod lasso;
pub mod measure;
pub mod motion;
pub mod names;
pub mod past;
pub mod spread;
pub mod sweep;

use herd::Herd;
use measure::{Capacity, Spots};
use names::{NameId, Names};
use std::collections::BTreeMap;
use std::time::Duration;
use sweep::{HostName, Sweep};
use wire::time::Time;

/// Hosts in one chart: beyond them no one tells marks apart, and each is asked ten times a second.
pub const HOSTS_MAX: usize = 64;
/// Processes kept over all hosts, those that ended a while ago among them: 200,000 marks.
pub const PROCESSES_MAX: usize = 50_000;
/// Knots kept over all processes, about 80 MB: beyond them each new one takes the place of its process's oldest.
pub const KNOTS_MAX: usize = 2_000_000;
/// Processes that ended are seen for so long when one goes back.
pub const KEPT: Duration = Duration::from_secs(60);
/// A clock that is farther than this from the viewer's is not believed, and is moved to it.
const APART_MAX: Duration = Duration::from_secs(5);

/// A process in the flock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The number of its host in the flock.
    pub host: u16,
    /// Its number.
    pub pid: u32,
    /// When it began, in nanoseconds since the host's boot.
    pub start_ns: u64,
}

/// What was not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Hosts beyond [`HOSTS_MAX`].
    pub hosts: u64,
    /// Processes beyond [`PROCESSES_MAX`], or for which a sweep had no room.
    pub processes: u64,
    /// Names that share one colour, beyond [`names::NAMES_MAX`].
    pub names: u64,
    /// Sweeps that are not after the one before.
    pub times: u64,
}

impl Refused {
    /// A line for each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = [
            (self.hosts, "hosts beyond 64 left out of the flock"),
            (self.processes, "processes left out of the flock: more than have room"),
            (self.names, "names of programs beyond 4,096 drawn as one"),
            (self.times, "sweeps left out: not after the one before"),
        ];
        lines
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("{count} {words}"))
            .collect()
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Flock {
    herds: Vec<Herd>,
    /// Of each, what its sensor kept.
    past: Vec<Option<past::Stretch>>,
    by_name: BTreeMap<HostName, u16>,
    names: Names,
    refused: Refused,
    processes: usize,
    knots: usize,
}

impl Flock {
    /// What a host has; nothing is taken of a host before this is told.
    pub fn host(&mut self, name: &HostName, capacity: Capacity) {
        if let Some(&known) = self.by_name.get(name) {
            self.herds[usize::from(known)].capacity = capacity;
            return;
        }
        let id = self.herds.len();
        if id >= HOSTS_MAX {
            self.refused.hosts += 1;
            return;
        }
        self.by_name.insert(name.clone(), u16::try_from(id).unwrap_or(u16::MAX));
        self.herds.push(Herd::new(name.clone(), capacity));
        self.past.push(None);
    }

    /// Take a sweep that came at `came`, by the viewer's clock. One of a host that was not told is not taken.
    pub fn take(&mut self, sweep: &Sweep, came: Time) {
        let Some(&id) = self.by_name.get(&sweep.host) else { return };
        let herd = &mut self.herds[usize::from(id)];
        let time = herd.clock.seen(sweep.time, came);
        let room = herd::Room {
            processes: PROCESSES_MAX.saturating_sub(self.processes),
            is_short_of_knots: self.knots >= KNOTS_MAX,
        };
        let Some(taken) = herd.take(sweep, time, room, &mut self.names) else {
            self.refused.times += 1;
            return;
        };
        self.processes = self.processes.saturating_add_signed(taken.processes);
        self.knots = self.knots.saturating_add_signed(taken.knots);
        self.refused.processes += taken.refused + sweep.left_out;
        self.refused.names = self.names.refused();
    }

    /// Forget the hosts that are not among these, with their processes; whether there were any. Members that were told
    /// before mean nothing any more then.
    pub fn keep(&mut self, hosts: &[HostName]) -> bool {
        if self.herds.iter().all(|herd| hosts.contains(&herd.name)) {
            return false;
        }
        let kept: Vec<Herd> =
            std::mem::take(&mut self.herds).into_iter().filter(|herd| hosts.contains(&herd.name)).collect();
        self.by_name = (0..).zip(&kept).map(|(id, herd)| (herd.name.clone(), id)).collect();
        self.processes = kept.iter().map(Herd::processes).sum();
        self.knots = kept.iter().map(Herd::knots).sum();
        self.past = vec![None; kept.len()];
        self.herds = kept;
        true
    }

    /// Its hosts, each with when it was last heard of.
    pub fn hosts(&self) -> impl Iterator<Item = (&HostName, Option<Time>)> {
        self.herds.iter().map(|herd| (&herd.name, herd.last()))
    }

    /// The process of this number and start on a host, if the host is one of them.
    #[must_use]
    pub fn member(&self, host: &HostName, pid: u32, start_ns: u64) -> Option<Member> {
        self.by_name.get(host).map(|&host| Member { host, pid, start_ns })
    }

    /// The host of a member.
    #[must_use]
    pub fn host_of(&self, member: Member) -> Option<&HostName> {
        self.herds.get(usize::from(member.host)).map(|herd| &herd.name)
    }

    /// What the host of a member has.
    #[must_use]
    pub fn capacity_of(&self, member: Member) -> Option<Capacity> {
        self.herds.get(usize::from(member.host)).map(|herd| herd.capacity)
    }

    /// The name of this number.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.text(id)
    }

    /// All names, by their numbers.
    pub fn program_names(&self) -> impl Iterator<Item = &str> {
        self.names.all()
    }

    /// What was not taken.
    #[must_use]
    pub fn refused(&self) -> Refused {
        self.refused
    }

    /// Processes that are kept.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Whether nothing came yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes == 0
    }

    /// Each process that is there at `time`, with its places.
    pub fn each(&self, time: Time, mut tell: impl FnMut(Member, &herd::Track, &Spots)) {
        for (host, id) in (0_u16..).zip(0..self.herds.len()) {
            for track in self.herd_at(id, time).tracks() {
                if let Some(spots) = track.way.at(time) {
                    tell(Member { host, pid: track.pid, start_ns: track.start_ns }, track, &spots);
                }
            }
        }
    }

    /// The process of this member, as it was seen last.
    #[must_use]
    pub fn track(&self, member: Member) -> Option<&herd::Track> {
        let id = usize::from(member.host);
        let seen = self.herds.get(id)?.track(member.pid, member.start_ns);
        seen.or_else(|| self.past[id].as_ref()?.track(member))
    }

    /// The process of this member, as it was at a time.
    #[must_use]
    pub fn track_at(&self, member: Member, time: Time) -> Option<&herd::Track> {
        let id = usize::from(member.host);
        self.herds.get(id)?;
        self.herd_at(id, time).track(member.pid, member.start_ns)
    }
}

#[cfg(test)]
mod tests;
