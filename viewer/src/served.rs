//! Events of a call, and the processes that served it with their samples.
//!
//! Pure. Rule: samples of a previous answer stay when sensors have dropped them. Not here: requests
//! (`live::served`, `live::call_events`), what is shown (`app::served`).

use crate::series::Series;
use wire::event::Kind;
use wire::time::Time;

/// Most processes of one call that are stored.
pub(crate) const PROCESSES_MAX: usize = 64;

/// What happened in a call, and the processes that served it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedBy {
    /// Its events by time, if they were requested.
    pub events: Option<Vec<Event>>,
    /// By host and number.
    pub processes: Vec<Process>,
    /// Samples of all processes.
    pub samples: u64,
    /// Processes beyond the limit.
    pub left_out: u64,
    /// Errors: hosts that could not be queried, processes that could not be read.
    pub troubles: Vec<String>,
    /// Whether a host could not be queried, which may succeed later.
    pub is_partial: bool,
    /// Samples of previous answers that no sensor has any more.
    pub forgotten: u64,
}

impl ServedBy {
    /// An answer without data, because of an error.
    #[must_use]
    pub fn troubled(why: &str) -> ServedBy {
        ServedBy { troubles: vec![why.to_owned()], is_partial: true, ..ServedBy::default() }
    }

    /// Add the samples of the previous answer that sensors have dropped since: their memory lasts a minute.
    pub fn keep(&mut self, before: &ServedBy) {
        let samples =
            |processes: &[Process]| processes.iter().map(|it| it.memory.samples().count() as u64).sum();
        let answered: u64 = samples(&self.processes);
        for old in &before.processes {
            match self.processes.iter().position(|new| new.is_same(old)) {
                Some(at) => self.processes[at].keep(old),
                None if self.processes.len() < PROCESSES_MAX => self.processes.push(old.clone()),
                None => self.left_out += 1,
            }
        }
        let key = |process: &Process| (process.host.clone(), process.pid, process.start_micros);
        self.processes.sort_by_cached_key(key);
        self.forgotten = samples(&self.processes).saturating_sub(answered);
        self.samples += self.forgotten;
    }
}

/// A process that served a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    pub host: String,
    pub pid: u64,
    /// Start in microseconds since 1970: with the number it distinguishes processes of a host in one answer.
    /// Sensors compute it again for each answer.
    pub start_micros: i64,
    /// Start in nanoseconds since the host's boot, by which sweeps, orders and later answers name it.
    pub start_ns: Option<u64>,
    /// Name of its program.
    pub name: String,
    /// What shows that it served the call.
    pub known_by: String,
    /// In cores.
    pub cpu: Series,
    /// In bytes.
    pub memory: Series,
}

impl Process {
    /// Whether this is the same process in another answer.
    fn is_same(&self, other: &Process) -> bool {
        let start = |process: &Process| process.start_ns.ok_or(process.start_micros);
        (&self.host, self.pid, start(self)) == (&other.host, other.pid, start(other))
    }

    /// Add the samples of the previous answer, and the name, which a sensor drops once a process has ended.
    fn keep(&mut self, before: &Process) {
        self.cpu.take(before.cpu.samples().collect::<Vec<_>>().into_iter());
        self.memory.take(before.memory.samples().collect::<Vec<_>>().into_iter());
        if self.name.is_empty() {
            self.name.clone_from(&before.name);
        }
    }
}

/// An event of a log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub time: Time,
    pub kind: Kind,
    /// Empty where the line has none.
    pub from: String,
    /// Empty where the line has none.
    pub to: String,
    /// Outcome, where the kind ends something.
    pub outcome: String,
    /// Host and file of the log.
    pub source: String,
    /// Other attributes of the line, a name and a value each.
    pub attributes: Vec<String>,
}
