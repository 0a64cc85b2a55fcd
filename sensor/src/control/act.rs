//! Execution of a command on a process that a pidfd refers to, so that no other process can take its place.
//!
//! Shell. A pidfd (pidfd_open(2), Linux 5.3) refers to one process for ever: a signal sent through it reaches
//! that process or none. There is no such call for niceness; it is set by pid while the pidfd shows that the
//! process still exists.
//! Not here: which process may be controlled (`decision`).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{self, Pid, PidfdFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use wire::control::{Nice, Signal};

/// A process with an open pidfd.
#[derive(Debug)]
pub struct ProcessHandle {
    pid: Pid,
    descriptor: OwnedFd,
}

impl ProcessHandle {
    /// Opens the process that has this pid now; `None` if there is none.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(pid: u32) -> io::Result<Option<ProcessHandle>> {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Some(ProcessHandle { pid, descriptor })),
            Err(Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// The error of the system: the process has ended (ESRCH), or the sensor lacks permission (EPERM).
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(process::pidfd_send_signal(&self.descriptor, number(signal))?)
    }

    /// Sets the niceness of all its threads.
    ///
    /// # Errors
    /// The error of the system; some of its threads may have been changed.
    pub fn renice(&self, proc: &Path, nice: Nice) -> io::Result<()> {
        // A thread started meanwhile inherits the niceness of the thread that started it. So two passes reach
        // all threads except those started in the second pass by a thread not yet reached.
        for _ in 0..2 {
            for thread in threads(proc, self.pid)? {
                // The id of a thread that ended in this very moment may belong to another thread: unlike a
                // signal, niceness can be reset.
                if self.has_ended(Duration::ZERO) {
                    return Err(Errno::SRCH.into());
                }
                match process::setpriority_process(Some(thread), nice.value().into()) {
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Returns whether it has ended, or ends within `wait`.
    #[must_use]
    pub fn has_ended(&self, wait: Duration) -> bool {
        let wait = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        let mut polled = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(poll(&mut polled, Some(&wait)), Ok(ready) if ready > 0)
    }
}

/// Returns the ids of its threads.
fn threads(proc: &Path, pid: Pid) -> io::Result<Vec<Pid>> {
    let folder = proc.join(pid.as_raw_nonzero().to_string()).join("task");
    let mut threads = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw));
    }
    Ok(threads)
}

const fn number(signal: Signal) -> process::Signal {
    match signal {
        Signal::Hup => process::Signal::HUP,
        Signal::Int => process::Signal::INT,
        Signal::Quit => process::Signal::QUIT,
        Signal::Kill => process::Signal::KILL,
        Signal::Usr1 => process::Signal::USR1,
        Signal::Usr2 => process::Signal::USR2,
        Signal::Term => process::Signal::TERM,
        Signal::Cont => process::Signal::CONT,
        Signal::Stop => process::Signal::STOP,
        Signal::Tstp => process::Signal::TSTP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_has_the_number_of_the_system() {
        for signal in Signal::ALL {
            let raw = number(signal).as_raw();
            // On most architectures the conventional numbers are the system's; these tests run on no others.
            assert_eq!(raw.to_string().parse(), Ok(signal), "{signal:?}");
        }
    }

    #[test]
    fn no_process_is_held_where_there_is_none() {
        assert!(ProcessHandle::open(0).expect("no error").is_none());
        assert!(ProcessHandle::open(u32::MAX).expect("no error").is_none());
        assert!(ProcessHandle::open(1 << 30).expect("no error").is_none());
        let own = ProcessHandle::open(std::process::id()).expect("no error").expect("this process");
        assert!(!own.has_ended(Duration::ZERO));
    }
}
