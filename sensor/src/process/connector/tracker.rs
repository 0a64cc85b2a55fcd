//! Tracker of processes by their events: combines forks, execs and exits with what was read of the processes
//! meanwhile.
//!
//! Pure: callers pass the function that reads a process. Invariants: a process is remembered from its first
//! event to its end; later events with its id belong to another process. At most [`PROCESSES_MAX`] are
//! remembered.
//! Not here: receiving events, reading `/proc` (`listener`).

use super::super::stat::{Stat, TICK_NS};
use super::message::Message;
use compact_str::CompactString;
use std::collections::HashMap;
use wire::process::delta::PROCESSES_MAX;
use wire::process::{Life, ProcessKey, Usage};

/// Result of reading a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    pub stat: Stat,
    /// User id.
    pub uid: u32,
    /// Command line; read only at an exec.
    pub command: CompactString,
}

/// An event to add to the lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifeEvent {
    /// A process started, with this parent.
    Fork(ProcessKey, u32),
    /// A process executed a program, with this command line.
    Exec(ProcessKey, CompactString),
    Exit(Life),
}

#[derive(Clone, Debug)]
struct TrackedProcess {
    key: ProcessKey,
    parent: u32,
    uid: u32,
    name: CompactString,
}

/// Processes with at least one event.
#[derive(Debug)]
pub struct Tracker {
    tracked: HashMap<u32, TrackedProcess>,
    /// How far the boot-time clock is ahead of the monotonic clock: the time that the host was suspended.
    suspended_ns: u64,
}

impl Tracker {
    #[must_use]
    pub fn new(suspended_ns: u64) -> Tracker {
        Tracker { tracked: HashMap::new(), suspended_ns }
    }

    /// Takes in a message; `look` reads the process now, if it still exists.
    pub fn handle(
        &mut self,
        message: Message,
        look: impl FnOnce(u32) -> Option<Observed>,
    ) -> Option<LifeEvent> {
        match message {
            Message::Answer(_) => None,
            Message::Fork { pid, parent, at_ns } => {
                let look = look(pid);
                // The name of a new process is that of its parent, if it cannot be read.
                let of_parent = self.tracked.get(&parent);
                let tracked = TrackedProcess {
                    key: ProcessKey { pid, start_ns: self.start_ns(at_ns, look.as_ref()) },
                    parent,
                    uid: look.as_ref().map_or(of_parent.map_or(0, |parent| parent.uid), |look| look.uid),
                    name: look.map_or_else(
                        || of_parent.map(|parent| parent.name.clone()).unwrap_or_default(),
                        |look| look.stat.name,
                    ),
                };
                let key = tracked.key;
                self.keep(tracked);
                Some(LifeEvent::Fork(key, parent))
            }
            Message::Exec { pid } => {
                let look = look(pid)?;
                let tracked = TrackedProcess::of(pid, &look);
                let key = tracked.key;
                self.keep(tracked);
                Some(LifeEvent::Exec(key, look.command))
            }
            Message::Exit { pid, code, at_ns } => {
                let look = look(pid);
                let event = self.tracked.remove(&pid);
                let tracked = look.as_ref().map(|look| TrackedProcess::of(pid, look)).or(event)?;
                Some(LifeEvent::Exit(Life {
                    key: tracked.key,
                    parent: tracked.parent,
                    uid: tracked.uid,
                    cgroup: None,
                    name: tracked.name,
                    command: CompactString::default(),
                    end_ns: at_ns + self.suspended_ns,
                    code,
                    usage: look.map(|look| usage(&look.stat)),
                }))
            }
        }
    }

    /// Start time with the precision of `/proc`, so that every source gives a process the same key.
    fn start_ns(&self, at_ns: u64, look: Option<&Observed>) -> u64 {
        look.map_or((at_ns + self.suspended_ns) / TICK_NS * TICK_NS, |look| look.stat.start_ns)
    }

    fn keep(&mut self, tracked: TrackedProcess) {
        if self.tracked.len() < PROCESSES_MAX || self.tracked.contains_key(&tracked.key.pid) {
            self.tracked.insert(tracked.key.pid, tracked);
        }
    }
}

impl TrackedProcess {
    fn of(pid: u32, look: &Observed) -> TrackedProcess {
        let key = ProcessKey { pid, start_ns: look.stat.start_ns };
        TrackedProcess { key, parent: look.stat.parent, uid: look.uid, name: look.stat.name.clone() }
    }
}

fn usage(stat: &Stat) -> Usage {
    Usage {
        cpu_ns: stat.user_ns + stat.system_ns,
        user_ns: stat.user_ns,
        system_ns: stat.system_ns,
        minor_faults: stat.minor_faults,
        major_faults: stat.major_faults,
        switches: None,
        io: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(name: &str, start_ns: u64, parent: u32) -> Observed {
        let stat = Stat { name: name.into(), start_ns, parent, user_ns: TICK_NS, ..Stat::default() };
        Observed { stat, uid: 7, command: format!("/bin/{name} -x").into() }
    }

    fn ended(event: Option<LifeEvent>) -> Life {
        match event {
            Some(LifeEvent::Exit(life)) => life,
            other => panic!("{other:?} is no end"),
        }
    }

    #[test]
    fn a_life_that_was_looked_at_is_reported_whole() {
        let mut stories = Tracker::new(0);
        let key = ProcessKey { pid: 9, start_ns: 3 * TICK_NS };
        let fork = Message::Fork { pid: 9, parent: 5, at_ns: 3 * TICK_NS + 17 };
        assert_eq!(stories.handle(fork, |_| Some(look("sh", 3 * TICK_NS, 5))), Some(LifeEvent::Fork(key, 5)));
        let exec = stories.handle(Message::Exec { pid: 9 }, |_| Some(look("true", 3 * TICK_NS, 5)));
        assert_eq!(exec, Some(LifeEvent::Exec(key, "/bin/true -x".into())));
        let exit = Message::Exit { pid: 9, code: 0x100, at_ns: 4 * TICK_NS };
        let life = ended(stories.handle(exit, |_| Some(look("true", 3 * TICK_NS, 5))));
        assert_eq!((life.key, life.name.as_str(), life.uid, life.parent), (key, "true", 7, 5));
        assert_eq!((life.exit_status(), life.end_ns), (Some(1), 4 * TICK_NS));
        assert_eq!(life.usage.expect("it was seen").cpu_ns, TICK_NS);
    }

    #[test]
    fn a_life_that_was_too_short_to_look_at_is_reported_by_its_numbers() {
        let mut stories = Tracker::new(100 * TICK_NS);
        let key = ProcessKey { pid: 9, start_ns: 103 * TICK_NS };
        let fork = Message::Fork { pid: 9, parent: 5, at_ns: 3 * TICK_NS + 17 };
        assert_eq!(stories.handle(fork, |_| None), Some(LifeEvent::Fork(key, 5)));
        assert_eq!(stories.handle(Message::Exec { pid: 9 }, |_| None), None);
        let life = ended(stories.handle(Message::Exit { pid: 9, code: 9, at_ns: 4 * TICK_NS }, |_| None));
        assert_eq!((life.key, life.signal(), life.end_ns), (key, Some(9), 104 * TICK_NS));
        assert_eq!((life.name.as_str(), life.usage), ("", None));
        let again = Message::Exit { pid: 9, code: 9, at_ns: 5 * TICK_NS };
        assert_eq!(stories.handle(again, |_| None), None, "nothing is known of another of its number");
    }

    #[test]
    fn one_that_started_before_is_reported_once_it_was_seen() {
        let mut stories = Tracker::new(0);
        let exit = Message::Exit { pid: 4, code: 0, at_ns: 9 };
        let life = ended(stories.handle(exit, |_| Some(look("cron", 2, 1))));
        assert_eq!((life.name.as_str(), life.parent, life.key.start_ns), ("cron", 1, 2));
    }
}
