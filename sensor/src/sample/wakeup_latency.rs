//! Wakeup latency of a sampling thread: how soon after its deadline the kernel wakes it.
//!
//! Shell. Two requests to the kernel; they need no privilege and take no CPU time from other programs. First,
//! the kernel does not defer timers of this thread to coalesce them with later ones (`PR_SET_TIMERSLACK`; the
//! default slack is 50 µs). Second, the thread gets short time slices, so it need not wait until a running
//! process has used up its own slice (`sched_setattr(2)`, since Linux 6.12; older kernels ignore it).
//! Not here: real-time priorities, with which a bug of the sensor could stop the host.

use std::num::NonZeroU64;

/// The shortest time slice that the kernel grants, in nanoseconds: longer than most sweeps.
const SLICE_NS: u64 = 100_000;

/// Requests prompt wakeups for this thread from now on. A setting that the kernel refuses stays unchanged:
/// more sweeps slip then, and are counted.
pub fn reduce() {
    if let Err(error) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        tracing::debug!("timers of the sampling thread stay as they are: {error}");
    }
    if let Err(error) = set_short_slice() {
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

fn set_short_slice() -> std::io::Result<()> {
    let mut attributes = attributes()?;
    if attributes.policy != libc::SCHED_OTHER.unsigned_abs() {
        // The scheduling policy was set on purpose when the sensor was started: leave it.
        return Ok(());
    }
    attributes.runtime_ns = SLICE_NS;
    #[allow(unsafe_code)] // No library provides this call.
    // SAFETY: 0 is this thread; the structure is complete, has the size in its `size` field, and is only read
    // (sched_setattr(2)).
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Reads the current attributes of this thread.
fn attributes() -> std::io::Result<Attributes> {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    #[allow(unsafe_code)] // No library provides this call.
    // SAFETY: 0 is this thread; at most `size` bytes are written, the size of the structure
    // (sched_getattr(2)).
    let outcome = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if outcome == 0 { Ok(attributes) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_woken_promptly_and_keeps_its_priority() {
        std::thread::spawn(|| {
            let before = attributes().expect("the kernel answers");
            reduce();
            assert_eq!(rustix::thread::current_timer_slack().expect("the kernel answers"), 1);
            let after = attributes().expect("the kernel answers");
            assert_eq!((after.policy, after.nice), (before.policy, before.nice));
            // A kernel with time slices per thread reports ours; an older one reports none, before and after.
            assert!(after.runtime_ns == SLICE_NS || after.runtime_ns == before.runtime_ns, "{after:?}");
        })
        .join()
        .expect("it does not panic");
    }
}
