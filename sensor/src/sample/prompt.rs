//! How soon after its moment a thread that sweeps is woken.
//!
//! Shell. Two wishes to the kernel, neither of which needs a right or takes time from anybody: timers of this thread are not
//! put together with later ones (`PR_SET_TIMERSLACK`, 50 µs otherwise), and its turns are short, so that it need not wait until
//! a working process has had all of its own (`sched_setattr(2)`, since Linux 6.12; before, the kernel pays no heed).
//! Not here: real-time priorities, by which a mistake of the sensor's would stop the host.

use std::num::NonZeroU64;

/// The shortest turn that the kernel grants, in nanoseconds: longer than most sweeps.
const TURN_NS: u64 = 100_000;

/// Have this thread woken promptly from now on. What the kernel refuses is left as it is: sweeps slip more often then, and
/// are counted.
pub fn be_woken_promptly() {
    if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        tracing::debug!("timers of the sampling thread stay as they are: {error}");
    }
    if let Err(error) = take_short_turns() {
        tracing::debug!("turns of the sampling thread stay as they are: {error}");
    }
}

/// `struct sched_attr` of Linux's `uapi/linux/sched/types.h`, in its first form, of 48 bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const _: () = assert!(size_of::<Attributes>() == 48);

fn take_short_turns() -> std::io::Result<()> {
    let mut attributes = attributes()?;
    if attributes.policy != libc::SCHED_OTHER.unsigned_abs() {
        // Somebody who started the sensor wants it run in another way.
        return Ok(());
    }
    attributes.runtime_ns = TURN_NS;
    #[allow(unsafe_code)] // No library has this call.
    // SAFETY: 0 is this thread, and the structure is whole, of the size that it states, and only read (sched_setattr(2)).
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Of this thread, as they are.
fn attributes() -> std::io::Result<Attributes> {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    #[allow(unsafe_code)] // No library has this call.
    // SAFETY: 0 is this thread, and at most `size` bytes, as many as there are, are written (sched_getattr(2)).
    let outcome = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if outcome == 0 { Ok(attributes) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_woken_promptly_and_keeps_its_priority() {
        std::thread::spawn(|| {
            let before = attributes().expect("the kernel tells");
            be_woken_promptly();
            assert_eq!(rustix::thread::current_timer_slack().expect("the kernel tells"), 1);
            let after = attributes().expect("the kernel tells");
            assert_eq!((after.policy, after.nice), (before.policy, before.nice));
            // A kernel that knows turns of one's own tells them; an older one tells none, before as after.
            assert!(after.runtime_ns == TURN_NS || after.runtime_ns == before.runtime_ns, "{after:?}");
        })
        .join()
        .expect("it does not panic");
    }
}
