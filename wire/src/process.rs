//! Processes: the state of one at a moment, and the summary of one that ended.
//!
//! Pure. A process is identified by its pid and its start time, so that a reused pid is another process. CPU
//! time is the scheduler's run time in nanoseconds; user and system time are counted by ticks (1 to 10 ms
//! each) and only show how the time was divided over longer spans. A field that the source could not read is
//! `None`.
//! Not here: the encoding of sweeps ([`delta`]), reading processes (`sensor::process`).

pub mod delta;

use compact_str::CompactString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest name, in bytes: kernel threads have up to 63, programs 15.
pub const NAME_LEN_MAX_BYTES: usize = 64;

/// Identity of a process on its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Process id in the host's first pid namespace.
    pub pid: u32,
    /// Start time in nanoseconds since the host's boot, including suspension; as exact as the source (`/proc`
    /// has hundredths of a second).
    pub start_ns: u64,
}

impl fmt::Display for ProcessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.pid, self.start_ns)
    }
}

/// Scheduling state of a process, by the letters of `/proc/PID/stat` (proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[schemars(rename = "ProcessState")]
pub enum State {
    /// Running or runnable (R).
    Running,
    /// Interruptible sleep (S).
    #[default]
    Sleeping,
    /// Uninterruptible sleep: waits for a device or a kernel lock (D).
    Disk,
    /// Stopped by a signal (T).
    Stopped,
    /// Stopped by a debugger (t).
    Traced,
    /// Ended, not yet waited for by its parent (Z).
    Zombie,
    /// Being removed (X).
    Dead,
    /// Parked kernel thread (P).
    Parked,
    /// Idle kernel thread (I).
    Idle,
}

impl State {
    /// All states, by their numbers.
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

    /// Parse the letter of proc(5); letters that kernels no longer use map to their replacements.
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

    /// The state as text.
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

/// Context switches of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// Because it waited.
    pub voluntary: u64,
    /// By the scheduler.
    pub involuntary: u64,
}

/// Input and output of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes read from storage.
    pub read_bytes: u64,
    /// Bytes written to storage.
    pub written_bytes: u64,
    /// Bytes returned by system calls that read, from any source.
    pub read_chars: u64,
    /// Bytes passed to system calls that write, to any destination.
    pub written_chars: u64,
}

/// Resource usage of a process since its start; all counters only grow. Ended threads are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// User part of it in nanoseconds, counted by ticks.
    pub user_ns: u64,
    /// Kernel part of it in nanoseconds, counted by ticks.
    pub system_ns: u64,
    /// Page faults without a read from a device.
    pub minor_faults: u64,
    /// Page faults with a read from a device.
    pub major_faults: u64,
    /// Context switches; unknown where `/proc` is read, which has them in another file.
    pub switches: Option<Switches>,
    /// Input and output; unknown where the sensor may not read it.
    pub io: Option<Io>,
}

impl Usage {
    /// User and kernel CPU time in nanoseconds: the scheduler's time, divided in proportion to the ticks.
    /// Ticks alone miss what runs for less than one; `/proc` divides the time likewise (cputime_adjust in
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

/// State of a process at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Identity of the process.
    pub key: ProcessKey,
    /// Process id of its parent.
    pub parent: u32,
    /// User id.
    pub uid: u32,
    /// Number of live threads.
    pub threads: u32,
    /// Scheduling state.
    pub state: State,
    /// Number of its control group in the unified hierarchy; unknown where `/proc` is read.
    pub cgroup: Option<u64>,
    /// Resident memory in KiB: exact except for per-CPU counts that are not yet merged.
    pub rss_kib: u64,
    /// Resource usage since its start.
    pub usage: Usage,
    /// Name in the kernel (`comm`).
    pub name: CompactString,
}

/// A process that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// Identity of the process.
    pub key: ProcessKey,
    /// Process id of its parent at the end.
    pub parent: u32,
    /// User id.
    pub uid: u32,
    /// Number of its control group.
    pub cgroup: Option<u64>,
    /// Name in the kernel at its end.
    pub name: CompactString,
    /// Arguments of its last exec, joined by spaces and truncated; empty if it had none while watched.
    pub command: CompactString,
    /// Time of its end, in nanoseconds since boot.
    pub end_ns: u64,
    /// Exit code, as wait(2) reports it.
    pub code: u32,
    /// Resource usage, if the source reports it.
    pub usage: Option<Usage>,
}

impl Life {
    /// Exit status, if it ended by itself.
    #[must_use]
    pub const fn exit_status(&self) -> Option<u8> {
        exit_status(self.code)
    }

    /// The signal that ended it, if one did.
    #[must_use]
    pub const fn signal(&self) -> Option<u8> {
        signal(self.code)
    }
}

/// Exit status in an exit code as wait(2) reports it, if the process ended by itself.
#[must_use]
pub const fn exit_status(code: u32) -> Option<u8> {
    if code & 0x7f == 0 { Some((code >> 8 & 0xff) as u8) } else { None }
}

/// The signal in an exit code as wait(2) reports it, if one ended the process.
#[must_use]
pub const fn signal(code: u32) -> Option<u8> {
    match code & 0x7f {
        0 => None,
        signal => Some(signal as u8),
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
    fn how_a_life_ended_is_reported_as_wait_does() {
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
