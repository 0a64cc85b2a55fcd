//! Log of ended processes with their command lines, and cache of the command lines of living ones, from the
//! kernel's forks, execs and exits.
//!
//! Pure. Invariants: the newest lives are stored, numbered without gaps, so that a reader knows how many it
//! missed; a command line is cached until its process ends, for at most [`PROCESSES_MAX`] processes.
//! Not here: where the events come from (`bpf`, `connector`), the living processes (`table`).

use compact_str::CompactString;
use std::collections::{HashMap, VecDeque};
use wire::process::delta::PROCESSES_MAX;
use wire::process::{Life, ProcessKey, Usage};

/// Most lives stored: at a thousand per second, a quarter of a minute.
pub const LIVES_MAX: usize = 16_384;

/// A process that ended and is gone, with what the kernel knows at the very end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    pub key: ProcessKey,
    /// All that it used: more than at its exit, as it gave back its memory since.
    pub usage: Usage,
    /// Most resident memory at a moment, in KiB.
    pub peak_rss_kib: u64,
}

/// Ended processes, and the command lines of living ones.
#[derive(Debug, Default)]
pub struct Lives {
    ended: VecDeque<Life>,
    /// Number of the first of `ended`.
    first: u64,
    commands: HashMap<u32, (ProcessKey, CompactString)>,
    /// Freed processes, the newest.
    freed: VecDeque<Freed>,
    /// Number of the first of `freed`.
    first_freed: u64,
}

impl Lives {
    /// A process executed a program, with this command line.
    pub fn exec(&mut self, key: ProcessKey, command: CompactString) {
        if self.commands.len() < PROCESSES_MAX || self.commands.contains_key(&key.pid) {
            self.commands.insert(key.pid, (key, command));
        }
    }

    /// A process started; it has the command line of its parent until it executes a program.
    pub fn fork(&mut self, key: ProcessKey, parent: u32) {
        if let Some((_, command)) = self.commands.get(&parent) {
            let command = command.clone();
            self.exec(key, command);
        }
    }

    /// A process ended; its command line is added to its record.
    pub fn exit(&mut self, life: Life) {
        let command = self.command(life.key).cloned().unwrap_or_default();
        if self.ended.len() >= LIVES_MAX {
            self.ended.pop_front();
            self.first += 1;
        }
        self.ended.push_back(Life { command, ..life });
    }

    /// A process is gone, and its id is free.
    pub fn freed(&mut self, freed: Freed) {
        self.forget(freed.key);
        if self.freed.len() >= LIVES_MAX {
            self.freed.pop_front();
            self.first_freed += 1;
        }
        self.freed.push_back(freed);
    }

    /// Number of the next freed process.
    #[must_use]
    pub fn next_freed(&self) -> u64 {
        self.first_freed + self.freed.len() as u64
    }

    /// Freed processes from number `from` on, as far as they are stored.
    pub fn freed_since(&self, from: u64) -> impl Iterator<Item = &Freed> {
        let skipped = usize::try_from(from.saturating_sub(self.first_freed)).unwrap_or(usize::MAX);
        self.freed.iter().skip(skipped)
    }

    /// A process is gone, and its id is free; nothing more is known of it.
    pub fn forget(&mut self, key: ProcessKey) {
        if self.command(key).is_some() {
            self.commands.remove(&key.pid);
        }
    }

    /// Command line of a process, if its exec was seen.
    #[must_use]
    pub fn command(&self, key: ProcessKey) -> Option<&CompactString> {
        let (known, command) = self.commands.get(&key.pid)?;
        (*known == key).then_some(command)
    }

    /// Number of the next life.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.first + self.ended.len() as u64
    }

    /// The lives from number `from` on, and how many of them are no longer stored.
    pub fn since(&self, from: u64) -> (impl Iterator<Item = &Life>, u64) {
        let missed = self.first.saturating_sub(from);
        let skipped = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        (self.ended.iter().skip(skipped), missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(pid: u32, start_ns: u64) -> Life {
        Life {
            key: ProcessKey { pid, start_ns },
            parent: 1,
            uid: 0,
            cgroup: None,
            name: "work".into(),
            command: CompactString::default(),
            end_ns: start_ns + 1,
            code: 0,
            usage: None,
        }
    }

    #[test]
    fn a_life_is_reported_with_its_own_command() {
        let mut lives = Lives::default();
        let (shell, child) = (ProcessKey { pid: 5, start_ns: 1 }, ProcessKey { pid: 6, start_ns: 2 });
        lives.exec(shell, "sh -c x".into());
        lives.fork(child, 5);
        lives.exit(life(6, 2));
        lives.forget(child);
        lives.fork(ProcessKey { pid: 6, start_ns: 3 }, 5);
        lives.exec(ProcessKey { pid: 6, start_ns: 3 }, "true".into());
        lives.exit(life(6, 3));
        // An id that was reused while nothing was read.
        lives.exit(life(5, 9));
        let commands: Vec<_> = lives.since(0).0.map(|life| life.command.as_str()).collect();
        assert_eq!(commands, ["sh -c x", "true", ""]);
    }

    #[test]
    fn a_late_reader_knows_how_many_it_missed() {
        let mut lives = Lives::default();
        for pid in 0..u32::try_from(LIVES_MAX).expect("small") + 10 {
            lives.exit(life(pid, 0));
        }
        let (kept, missed) = lives.since(4);
        assert_eq!((kept.count(), missed), (LIVES_MAX, 6));
        let next = lives.next();
        let (kept, missed) = lives.since(next - 2);
        assert_eq!((kept.count(), missed, lives.since(next + 5).0.count()), (2, 0, 0));
    }
}
