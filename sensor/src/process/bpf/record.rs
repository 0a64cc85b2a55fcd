//! Decoder of the records that the kernel programs write; `sensor/bpf/record.h` defines their layout.
//!
//! Pure. Rule: bytes that are not a valid record are ignored, and never become a wrong process.

use super::super::lives::Freed;
use compact_str::CompactString;
use wire::process::{Io, Life, Process, ProcessKey, State, Switches, Usage};

/// A record, as far as the sensor uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A process, without the usage of its live threads where [`Record::Thread`] records follow; and the CPU
    /// time of one of its threads that is not accounted yet, in nanoseconds.
    Process(Process, u64),
    /// Usage of a thread, to be added to the process with this id.
    Thread(u32, Usage),
    /// A process started, with this parent.
    Fork(ProcessKey, u32),
    /// A process executed a program, with this command line.
    Exec(ProcessKey, CompactString),
    Exit(Life),
    /// The kernel freed a process: its id may be reused.
    Freed(Freed),
    Sweep(Sweep),
}

/// End of a sweep over the changed processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Processes that had run since the previous sweep.
    pub marked: u32,
    /// When it started, in nanoseconds since boot.
    pub begin_ns: u64,
    /// When it ended, in nanoseconds since boot.
    pub end_ns: u64,
    /// Processes that ran but could not be marked, since loading.
    pub lost_marks: u64,
    /// Records for which the ring buffer had no room, since loading.
    pub lost_records: u64,
}

const PROCESS_LEN: usize = 160;
const THREAD_LEN: usize = 96;
const LIFE_LEN: usize = 160;
const EXEC_LEN: usize = LIFE_LEN + 8 + ARGUMENTS_LEN;
const ARGUMENTS_LEN: usize = 256;
const SWEEP_LEN: usize = 40;
const NAME_LEN: usize = 16;

/// Decodes the first record of `bytes`; returns it with its length.
#[must_use]
pub fn read(bytes: &[u8], page_kib: u64) -> Option<(Record, usize)> {
    let kind = u32::from_ne_bytes(*bytes.first_chunk()?);
    let of = |len: usize| bytes.get(..len).map(Bytes);
    Some(match kind {
        1 => (process(&of(PROCESS_LEN)?, page_kib)?, PROCESS_LEN),
        2 => {
            let bytes = of(THREAD_LEN)?;
            (Record::Thread(bytes.u32(4), bytes.usage(8)), THREAD_LEN)
        }
        3 => {
            let bytes = of(LIFE_LEN)?;
            (Record::Fork(bytes.key(), bytes.u32(24)), LIFE_LEN)
        }
        4 => {
            let bytes = of(EXEC_LEN)?;
            (Record::Exec(bytes.key(), command(&bytes)), EXEC_LEN)
        }
        5 => (Record::Exit(life(&of(LIFE_LEN)?)), LIFE_LEN),
        6 => {
            let bytes = of(LIFE_LEN)?;
            let peak_rss_kib = bytes.u64(152).wrapping_mul(page_kib);
            (Record::Freed(Freed { key: bytes.key(), usage: bytes.usage(64), peak_rss_kib }), LIFE_LEN)
        }
        7 => (Record::Sweep(sweep(&of(SWEEP_LEN)?)), SWEEP_LEN),
        _ => return None,
    })
}

/// Whether the kernel is about to free the process: its parent has reaped it.
#[must_use]
pub fn is_removed(process: &Process) -> bool {
    process.state == State::Dead
}

fn process(bytes: &Bytes<'_>, page_kib: u64) -> Option<Record> {
    let process = Process {
        key: bytes.key(),
        parent: bytes.u32(16),
        uid: bytes.u32(28),
        threads: bytes.u32(20),
        state: state(bytes.u32(24))?,
        cgroup: Some(bytes.u64(32)),
        rss_kib: bytes.u64(40).wrapping_mul(page_kib),
        usage: bytes.usage(72),
        name: bytes.name(56),
    };
    Some(Record::Process(process, bytes.u64(48)))
}

fn life(bytes: &Bytes<'_>) -> Life {
    Life {
        key: bytes.key(),
        parent: bytes.u32(24),
        uid: bytes.u32(32),
        cgroup: Some(bytes.u64(40)),
        name: bytes.name(48),
        command: CompactString::default(),
        end_ns: bytes.u64(16),
        code: bytes.u32(28),
        usage: Some(bytes.usage(64)),
    }
}

/// Command line, joined by spaces; ends with an ellipsis if it was cut.
fn command(bytes: &Bytes<'_>) -> CompactString {
    let len = usize::try_from(bytes.u32(LIFE_LEN)).unwrap_or(usize::MAX);
    let kept = &bytes.0[LIFE_LEN + 8..][..len.min(ARGUMENTS_LEN)];
    let end = kept.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let joined: Vec<u8> = kept[..end].iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    let mut command = CompactString::from_utf8_lossy(&joined);
    if len > ARGUMENTS_LEN {
        command.push('…');
    }
    command
}

fn sweep(bytes: &Bytes<'_>) -> Sweep {
    Sweep {
        marked: bytes.u32(4),
        begin_ns: bytes.u64(8),
        end_ns: bytes.u64(16),
        lost_marks: bytes.u64(24),
        lost_records: bytes.u64(32),
    }
}

/// State from the kernel's bits, like its get_task_state (fs/proc/array.c, include/linux/sched.h).
fn state(bits: u32) -> Option<State> {
    const REPORTED: u32 = 0x7f;
    const NO_LOAD: u32 = 0x400;
    const UNINTERRUPTIBLE: u32 = 0x2;
    const LOCK_WAIT: u32 = 0x1000;
    const FROZEN: u32 = 0x8000;
    if bits == UNINTERRUPTIBLE | NO_LOAD {
        return Some(State::Idle);
    }
    if bits & (LOCK_WAIT | FROZEN) != 0 && bits & REPORTED == 0 {
        return Some(State::Disk);
    }
    Some(match (bits & REPORTED).checked_ilog2() {
        None => State::Running,
        Some(0) => State::Sleeping,
        Some(1) => State::Disk,
        Some(2) => State::Stopped,
        Some(3) => State::Traced,
        Some(4) => State::Dead,
        Some(5) => State::Zombie,
        Some(6) => State::Parked,
        Some(_) => return None,
    })
}

/// Bytes of a record, as long as its fields require.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(*self.0[at..].first_chunk().expect("a record has its length"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(*self.0[at..].first_chunk().expect("a record has its length"))
    }

    fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.u32(4), start_ns: self.u64(8) }
    }

    fn name(&self, at: usize) -> CompactString {
        let name = &self.0[at..at + NAME_LEN];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_LEN);
        CompactString::from_utf8_lossy(&name[..end])
    }

    fn usage(&self, at: usize) -> Usage {
        let number = |place: usize| self.u64(at + 8 * place);
        Usage {
            cpu_ns: number(0),
            user_ns: number(1),
            system_ns: number(2),
            minor_faults: number(3),
            major_faults: number(4),
            switches: Some(Switches { voluntary: number(5), involuntary: number(6) }),
            io: Some(Io {
                read_bytes: number(7),
                written_bytes: number(8),
                read_chars: number(9),
                written_chars: number(10),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_that_proc_shows() {
        for (bits, expected) in [
            (0, State::Running),
            (1, State::Sleeping),
            (2, State::Disk),
            (0x402, State::Idle),
            (4, State::Stopped),
            (8, State::Traced),
            (0x10, State::Dead),
            (0x20, State::Zombie),
            (0x40, State::Parked),
            (0x8001, State::Sleeping),
            (0x8000, State::Disk),
            // A sleeping process that a fatal signal wakes, and a new one that is not runnable yet.
            (0x102, State::Disk),
            (0x800, State::Running),
        ] {
            assert_eq!(state(bits), Some(expected), "{bits:#x}");
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_no_record() {
        for kind in 0..9_u32 {
            let mut bytes = vec![0; EXEC_LEN];
            bytes[..4].copy_from_slice(&kind.to_ne_bytes());
            let read_whole = read(&bytes, 4);
            assert_eq!(read_whole.is_some(), (1..=7).contains(&kind), "kind {kind}");
            if let Some((_, len)) = read_whole {
                assert_eq!(read(&bytes[..len - 1], 4), None, "kind {kind}");
            }
        }
        assert_eq!(read(&[1, 0], 4), None);
    }

    #[test]
    fn arguments_are_joined_and_a_cut_is_shown() {
        let mut bytes = vec![0; EXEC_LEN];
        bytes[0] = 4;
        let arguments = b"sh\0-c\0echo \xff\0";
        bytes[LIFE_LEN + 8..][..arguments.len()].copy_from_slice(arguments);
        let command_of = |bytes: &[u8]| match read(bytes, 4) {
            Some((Record::Exec(_, command), _)) => command,
            other => panic!("{other:?}"),
        };
        bytes[LIFE_LEN..][..4].copy_from_slice(&(arguments.len() as u32).to_ne_bytes());
        assert_eq!(command_of(&bytes), "sh -c echo \u{fffd}");
        bytes[LIFE_LEN..][..4].copy_from_slice(&1000_u32.to_ne_bytes());
        bytes[LIFE_LEN + 8..].fill(b'x');
        assert_eq!(command_of(&bytes).chars().count(), ARGUMENTS_LEN + 1);
    }
}
