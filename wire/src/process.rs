//! Processes: what one is at a moment, and the life of one that ended.
//!
//! Pure. A process is named by its number and the time at which it began, so that a recycled number is another process.
//! CPU time is the scheduler's run time in nanoseconds; user and system time are counted by ticks (1 to 10 ms each) and
//! only show how the time was shared over longer spans. A field that the source could not read is `None`.
//! Not here: how sweeps of them travel ([`delta`]), where the figures come from (`sensor::process`).

pub mod delta;

use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest name, in bytes: kernel threads have up to 63, programs 15.
pub const NAME_LEN_MAX_BYTES: usize = 64;

/// Which process of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Its number, as the host's first pid namespace has it.
    pub pid: u32,
    /// When it began, in nanoseconds since the host's boot, suspension included; as exact as the source (`/proc`
    /// has hundredths of a second).
    pub start_ns: u64,
}

impl fmt::Display for ProcessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.start_ns)
    }
}

/// What a process does, by the letters of `/proc/PID/stat` (proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[schemars(rename = "ProcessState")]
pub enum State {
    /// Runs, or could.
    Running,
    /// Waits, and a signal ends the waiting.
    #[default]
    Sleeping,
    /// Waits for a device or a lock of the kernel.
    Disk,
    /// Stopped by a signal.
    Stopped,
    /// Stopped by a debugger.
    Traced,
    /// Ended, and its parent has not asked how.
    Zombie,
    /// Is being removed.
    Dead,
    /// A kernel thread that is parked.
    Parked,
    /// A kernel thread with nothing to do.
    Idle,
}

impl State {
    /// All of them, by their numbers.
    pub const ALL: [State; 9] = [
        State::Running,
        State::Sleeping,
        State::Disk,
        State::Stopped,
        State::Traced,
        State::Zombie,
        State::Dead,
        State::Parked,
        State::Idle,
    ];

    /// The letter of proc(5).
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            State::Running => 'R',
            State::Sleeping => 'S',
            State::Disk => 'D',
            State::Stopped => 'T',
            State::Traced => 't',
            State::Zombie => 'Z',
            State::Dead => 'X',
            State::Parked => 'P',
            State::Idle => 'I',
        }
    }

    /// By the letter of proc(5); letters that kernels no longer use mean what took their place.
    #[must_use]
    pub const fn from_letter(letter: u8) -> Option<State> {
        Some(match letter {
            b'R' | b'W' => State::Running,
            b'S' => State::Sleeping,
            b'D' | b'K' => State::Disk,
            b'T' => State::Stopped,
            b't' => State::Traced,
            b'Z' => State::Zombie,
            b'X' | b'x' => State::Dead,
            b'P' => State::Parked,
            b'I' => State::Idle,
            _ => return None,
        })
    }

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Sleeping => "sleeping",
            State::Disk => "disk",
            State::Stopped => "stopped",
            State::Traced => "traced",
            State::Zombie => "zombie",
            State::Dead => "dead",
            State::Parked => "parked",
            State::Idle => "idle",
        }
    }
}

/// How often a process was taken off a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// By waiting.
    pub voluntary: u64,
    /// By the scheduler.
    pub involuntary: u64,
}

/// What a process has read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes that came from storage.
    pub read_bytes: u64,
    /// Bytes that go to storage.
    pub written_bytes: u64,
    /// Bytes given by system calls that read, from wherever.
    pub read_chars: u64,
    /// Bytes taken by system calls that write, to wherever.
    pub written_chars: u64,
}

/// What a process has used since it began; all only grow. Threads that have ended are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Of it, about so much in the program, in nanoseconds by ticks.
    pub user_ns: u64,
    /// Of it, about so much in the kernel, in nanoseconds by ticks.
    pub system_ns: u64,
    /// Pages that were given without a device.
    pub minor_faults: u64,
    /// Pages that had to be read.
    pub major_faults: u64,
    /// Unknown where `/proc` is read, which has them in a file apart.
    pub switches: Option<Switches>,
    /// Unknown where the sensor may not read it.
    pub io: Option<Io>,
}

impl Usage {
    /// The CPU time in the program and in the kernel, in nanoseconds: the scheduler's time, shared out as the ticks say.
    /// Ticks alone miss what runs for less than one; `/proc` shares out likewise (cputime_adjust in
    /// kernel/sched/cputime.c).
    #[must_use]
    pub fn shared_out(&self) -> (u64, u64) {
        let ticks = u128::from(self.user_ns) + u128::from(self.system_ns);
        if self.system_ns == 0 || ticks == 0 {
            return (self.cpu_ns, 0);
        }
        let system_ns = u128::from(self.cpu_ns) * u128::from(self.system_ns) / ticks;
        let system_ns = u64::try_from(system_ns).unwrap_or(self.cpu_ns);
        (self.cpu_ns - system_ns, system_ns)
    }
}

/// A process at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Which.
    pub key: ProcessKey,
    /// The number of its parent.
    pub parent: u32,
    /// The number of the user it belongs to.
    pub uid: u32,
    /// Live threads.
    pub threads: u32,
    /// What it does.
    pub state: State,
    /// Its control group of the unified hierarchy, by number; unknown where `/proc` is read.
    pub cgroup: Option<u64>,
    /// Resident memory, in KiB: exact but for what the processors have not handed in.
    pub rss_kib: u64,
    /// What it has used.
    pub usage: Usage,
    /// As the kernel calls it.
    pub name: CompactString,
}

/// A process that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// Which.
    pub key: ProcessKey,
    /// The number of its parent when it ended.
    pub parent: u32,
    /// The number of its user.
    pub uid: u32,
    /// Its control group.
    pub cgroup: Option<u64>,
    /// As the kernel called it at its end.
    pub name: CompactString,
    /// Its arguments when it last became another program, joined by spaces and cut; empty if it never did while watched.
    pub command: CompactString,
    /// When it ended, in nanoseconds since boot.
    pub end_ns: u64,
    /// How, as wait(2) reports it.
    pub code: u32,
    /// What it had used, if the source reports it.
    pub usage: Option<Usage>,
}

impl Life {
    /// What it returned, if it ended by itself.
    #[must_use]
    pub const fn exit_status(&self) -> Option<u8> {
        if self.code & 0x7f == 0 { Some((self.code >> 8 & 0xff) as u8) } else { None }
    }

    /// The signal that ended it, if one did.
    #[must_use]
    pub const fn signal(&self) -> Option<u8> {
        match self.code & 0x7f {
            0 => None,
            signal => Some(signal as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_known_by_their_letters_and_numbers() {
        for (number, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
            let letter = u8::try_from(state.letter()).expect("a letter is one byte");
            assert_eq!(State::from_letter(letter), Some(state));
        }
        assert_eq!(State::from_letter(b'?'), None);
    }

    #[test]
    fn time_is_shared_out_as_the_ticks_say() {
        let usage = |cpu_ns, user_ns, system_ns| Usage { cpu_ns, user_ns, system_ns, ..Usage::default() };
        assert_eq!(usage(900, 20, 10).shared_out(), (600, 300));
        assert_eq!(usage(900, 0, 0).shared_out(), (900, 0));
        assert_eq!(usage(900, 0, 10).shared_out(), (0, 900));
        assert_eq!(usage(u64::MAX, u64::MAX, u64::MAX).shared_out(), (1 + u64::MAX / 2, u64::MAX / 2));
    }

    #[test]
    fn how_a_life_ended_is_told_as_wait_does() {
        let life = |code| Life {
            key: ProcessKey::default(),
            parent: 1,
            uid: 0,
            cgroup: None,
            name: "sh".into(),
            command: CompactString::default(),
            end_ns: 0,
            code,
            usage: None,
        };
        assert_eq!((life(0).exit_status(), life(0).signal()), (Some(0), None));
        assert_eq!((life(3 << 8).exit_status(), life(3 << 8).signal()), (Some(3), None));
        assert_eq!((life(9).exit_status(), life(9).signal()), (None, Some(9)));
        assert_eq!((life(0x80 | 11).exit_status(), life(0x80 | 11).signal()), (None, Some(11)));
    }
}
