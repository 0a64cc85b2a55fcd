//! The flock: every process of the watched hosts, as marks that move by resource use (Wallmon, section 5).
//!
//! Pure. Rules: the position of a mark at a time depends only on the sweeps before and after that time
//! (`motion`); all input is untrusted: hosts, processes, names and keyframes are bounded, and what is refused
//! is counted. Not here: subscriptions to sensors (`live::flock`), drawing (`app::flock`).

pub mod chosen;
pub mod groups;
pub mod host_processes;
pub mod lasso;
pub mod measure;
pub mod motion;
pub mod names;
pub mod past;
pub mod spread;
pub mod sweep;

use host_processes::HostProcesses;
use measure::{Capacity, Spots};
use names::{NameId, Names};
use std::collections::BTreeMap;
use std::time::Duration;
use sweep::{HostName, Sweep};
use wire::time::Time;

/// Hosts in one chart: with more, marks could not be distinguished, and each is polled ten times a second.
pub const HOSTS_MAX: usize = 64;
/// Processes stored over all hosts, including recently ended ones: 200,000 marks.
pub const PROCESSES_MAX: usize = 50_000;
/// Keyframes stored over all processes, about 80 MB: beyond the limit, a new one replaces the oldest of its
/// process.
pub const KEYFRAMES_MAX: usize = 2_000_000;
/// How long ended processes are retained for a look back.
pub const KEPT: Duration = Duration::from_secs(60);
/// A clock offset beyond this is corrected.
const APART_MAX: Duration = Duration::from_secs(5);

/// Id of a process in the flock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Index of its host in the flock.
    pub host: u16,
    pub pid: u32,
    /// Start time, in nanoseconds since the host's boot.
    pub start_ns: u64,
}

/// Counts of what was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Hosts beyond [`HOSTS_MAX`].
    pub hosts: u64,
    /// Processes beyond [`PROCESSES_MAX`], or left out of a sweep for lack of space.
    pub processes: u64,
    /// Names that share one colour, beyond [`names::NAMES_MAX`].
    pub names: u64,
    /// Sweeps that are not later than the previous one.
    pub times: u64,
}

impl Refused {
    /// One line of text for each count above zero.
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

/// The flock.
#[derive(Clone, Debug, Default)]
pub struct Flock {
    live: Vec<HostProcesses>,
    /// Process history of each host, from its sensor.
    past: Vec<Option<past::Stretch>>,
    by_name: BTreeMap<HostName, u16>,
    names: Names,
    refused: Refused,
    processes: usize,
    keyframes: usize,
}

impl Flock {
    /// Add a host, or update its capacity; sweeps of a host are ignored before.
    pub fn host(&mut self, name: &HostName, capacity: Capacity) {
        if let Some(&known) = self.by_name.get(name) {
            self.live[usize::from(known)].capacity = capacity;
            return;
        }
        let id = self.live.len();
        if id >= HOSTS_MAX {
            self.refused.hosts += 1;
            return;
        }
        self.by_name.insert(name.clone(), u16::try_from(id).unwrap_or(u16::MAX));
        self.live.push(HostProcesses::new(name.clone(), capacity));
        self.past.push(None);
    }

    /// Apply a sweep received at `came`, by the viewer's clock. Sweeps of unknown hosts are ignored.
    pub fn take(&mut self, sweep: &Sweep, came: Time) {
        let Some(&id) = self.by_name.get(&sweep.host) else { return };
        let host = &mut self.live[usize::from(id)];
        let time = host.clock.observe(sweep.time, came);
        let room = host_processes::Room {
            processes: PROCESSES_MAX.saturating_sub(self.processes),
            is_short_of_keyframes: self.keyframes >= KEYFRAMES_MAX,
        };
        let Some(taken) = host.take(sweep, time, room, &mut self.names) else {
            self.refused.times += 1;
            return;
        };
        self.processes = self.processes.saturating_add_signed(taken.processes);
        self.keyframes = self.keyframes.saturating_add_signed(taken.keyframes);
        self.refused.processes += taken.refused + sweep.left_out;
        self.refused.names = self.names.refused();
    }

    /// Drop the hosts that are not among these, with their processes. Returns whether there were any; earlier
    /// [`Member`] ids are invalid then.
    pub fn keep(&mut self, hosts: &[HostName]) -> bool {
        if self.live.iter().all(|host| hosts.contains(&host.name)) {
            return false;
        }
        let kept: Vec<HostProcesses> =
            std::mem::take(&mut self.live).into_iter().filter(|host| hosts.contains(&host.name)).collect();
        self.by_name = (0..).zip(&kept).map(|(id, host)| (host.name.clone(), id)).collect();
        self.processes = kept.iter().map(HostProcesses::processes).sum();
        self.keyframes = kept.iter().map(HostProcesses::keyframes).sum();
        self.past = vec![None; kept.len()];
        self.live = kept;
        true
    }

    /// Its hosts, each with the time of its last sweep.
    pub fn hosts(&self) -> impl Iterator<Item = (&HostName, Option<Time>)> {
        self.live.iter().map(|host| (&host.name, host.last()))
    }

    /// The id of a process, if its host is in the flock.
    #[must_use]
    pub fn member(&self, host: &HostName, pid: u32, start_ns: u64) -> Option<Member> {
        self.by_name.get(host).map(|&host| Member { host, pid, start_ns })
    }

    /// The host of a process.
    #[must_use]
    pub fn host_of(&self, member: Member) -> Option<&HostName> {
        self.live.get(usize::from(member.host)).map(|host| &host.name)
    }

    /// The capacity of the host of a process.
    #[must_use]
    pub fn capacity_of(&self, member: Member) -> Option<Capacity> {
        self.live.get(usize::from(member.host)).map(|host| host.capacity)
    }

    /// The text of a name.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.text(id)
    }

    /// All names, in the order of their ids.
    pub fn program_names(&self) -> impl Iterator<Item = &str> {
        self.names.all()
    }

    /// Counts of what was refused.
    #[must_use]
    pub fn refused(&self) -> Refused {
        self.refused
    }

    /// Number of stored processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Whether no process is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes == 0
    }

    /// Call a function for each process that exists at `time`, with its positions.
    pub fn each(&self, time: Time, mut visit: impl FnMut(Member, &host_processes::Track, &Spots)) {
        for (host, id) in (0_u16..).zip(0..self.live.len()) {
            for track in self.host_at(id, time).tracks() {
                if let Some(spots) = track.trajectory.at(time) {
                    visit(Member { host, pid: track.pid, start_ns: track.start_ns }, track, &spots);
                }
            }
        }
    }

    /// The process as it was seen last.
    #[must_use]
    pub fn track(&self, member: Member) -> Option<&host_processes::Track> {
        let id = usize::from(member.host);
        let seen = self.live.get(id)?.track(member.pid, member.start_ns);
        seen.or_else(|| self.past[id].as_ref()?.track(member))
    }

    /// The process as it was at a time.
    #[must_use]
    pub fn track_at(&self, member: Member, time: Time) -> Option<&host_processes::Track> {
        let id = usize::from(member.host);
        self.live.get(id)?;
        self.host_at(id, time).track(member.pid, member.start_ns)
    }
}

#[cfg(test)]
mod tests;
