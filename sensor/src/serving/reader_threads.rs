//! State of the threads that read processes: which one is active, and which are stuck in a read.
//!
//! Pure: callers pass the time, and start the thread that is due. Rules: only the active thread takes work. A
//! read that takes too long makes its thread stuck, and another thread is due; if too many are stuck, it is due
//! once one of them returns.
//! Not here: the threads (`job_reader`), what they read (`read`).

use std::collections::BTreeMap;
use std::time::Duration;

/// Time after which a read counts as stuck: files of `/proc` can take long on a host in trouble.
const STUCK_AFTER: Duration = Duration::from_secs(3);
/// Most threads that are stuck at a time. While there are so many, no process is read.
pub(super) const THREADS_MAX: u64 = 16;

#[derive(Debug, Default)]
pub(super) struct ReaderThreads {
    active: Option<Active>,
    /// Threads that were due so far.
    due_total: u64,
    /// By thread, the user of the process that it is stuck in, as far as it is known.
    stuck: BTreeMap<u64, Option<u32>>,
}

#[derive(Debug)]
struct Active {
    thread: u64,
    /// Start of the current read, and the user of the process as far as it is known.
    read: Option<(Duration, Option<u32>)>,
}

impl ReaderThreads {
    /// Returns the number of a thread to start now, if one is due; it is then the active one.
    pub(super) fn due(&mut self) -> Option<u64> {
        if self.active.is_some() || self.stuck_count() >= THREADS_MAX {
            return None;
        }
        let thread = self.due_total;
        self.due_total += 1;
        self.active = Some(Active { thread, read: None });
        Some(thread)
    }

    /// Records that the thread that was due could not be started: another one is due.
    pub(super) fn start_failed(&mut self) {
        self.active = None;
    }

    /// Returns whether the active thread has become stuck by `now`.
    pub(super) fn check(&mut self, now: Duration) -> bool {
        let is_late = |(since, _): &(Duration, _)| now.saturating_sub(*since) >= STUCK_AFTER;
        let Some(active) = self.active.take_if(|active| active.read.as_ref().is_some_and(is_late)) else {
            return false;
        };
        self.stuck.insert(active.thread, active.read.and_then(|(_, user)| user));
        true
    }

    pub(super) fn is_active(&self, thread: u64) -> bool {
        self.active.as_ref().is_some_and(|active| active.thread == thread)
    }

    /// Records that the active thread starts to read a process.
    pub(super) fn read_started(&mut self, now: Duration) {
        if let Some(active) = &mut self.active {
            active.read = Some((now, None));
        }
    }

    /// Records the user of the process that a thread reads; returns whether a process of that user blocks a
    /// thread.
    pub(super) fn set_user(&mut self, thread: u64, user: Option<u32>) -> bool {
        if let Some(Active { read: Some((_, known)), .. }) =
            self.active.as_mut().filter(|active| active.thread == thread)
        {
            *known = user;
        }
        user.is_some() && self.stuck.iter().any(|(_, known)| *known == user)
    }

    /// Records that the read of a thread has ended; returns whether the thread is still active. One that is
    /// not must end.
    pub(super) fn read_ended(&mut self, thread: u64) -> bool {
        self.stuck.remove(&thread);
        match self.active.as_mut().filter(|active| active.thread == thread) {
            Some(active) => {
                active.read = None;
                true
            }
            None => false,
        }
    }

    pub(super) fn stuck_count(&self) -> u64 {
        self.stuck.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Makes the active thread stuck in a process of this user, at `now`.
    fn stick(threads: &mut ReaderThreads, thread: u64, user: Option<u32>, now: Duration) {
        threads.read_started(now.saturating_sub(STUCK_AFTER));
        threads.set_user(thread, user);
        assert!(threads.check(now) && !threads.is_active(thread));
    }

    #[test]
    fn a_thread_that_returns_frees_its_place_for_another_one() {
        let mut threads = ReaderThreads::default();
        for number in 0..THREADS_MAX {
            assert_eq!(threads.due(), Some(number), "one at a time");
            assert_eq!(threads.due(), None, "it is active");
            stick(&mut threads, number, None, SECOND * 10);
        }
        assert_eq!((threads.stuck_count(), threads.due()), (THREADS_MAX, None));
        assert!(!threads.read_ended(3), "another thread has taken its work");
        assert_eq!(threads.stuck_count(), THREADS_MAX - 1);
        assert_eq!((threads.due(), threads.due()), (Some(THREADS_MAX), None));
        assert!(threads.is_active(THREADS_MAX));
    }

    #[test]
    fn a_read_is_stuck_after_a_while_and_an_idle_thread_never() {
        let mut threads = ReaderThreads::default();
        let thread = threads.due().expect("the first");
        assert!(!threads.check(SECOND * 1000));
        threads.read_started(SECOND);
        assert!(!threads.check(STUCK_AFTER));
        assert!(threads.read_ended(thread) && !threads.check(SECOND * 1000));
        threads.read_started(SECOND);
        assert!(threads.check(SECOND + STUCK_AFTER) && !threads.check(SECOND * 1000));
    }

    #[test]
    fn a_user_is_read_again_once_none_of_its_processes_blocks_a_thread() {
        let mut threads = ReaderThreads::default();
        let user = Some(1000);
        for thread in 0..3 {
            assert_eq!(threads.due(), Some(thread));
            // The first one is stuck before it knows the user.
            stick(&mut threads, thread, user.filter(|_| thread > 0), SECOND * 10);
        }
        let thread = threads.due().expect("few are stuck");
        assert!(threads.set_user(0, user), "it knows the user now");
        assert!(!threads.read_ended(0) && threads.set_user(thread, user));
        assert!(!threads.read_ended(1) && threads.set_user(thread, user));
        assert!(!threads.read_ended(2) && !threads.set_user(thread, user));
        assert!(!threads.set_user(thread, None));
    }

    #[test]
    fn a_thread_that_could_not_be_started_is_due_again() {
        let mut threads = ReaderThreads::default();
        let thread = threads.due().expect("the first");
        threads.start_failed();
        assert!(threads.due().is_some_and(|next| next != thread));
    }
}
