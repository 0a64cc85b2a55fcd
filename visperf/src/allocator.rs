//! Allocator settings: returns freed memory to the system while a daemon runs.
//!
//! The C library caches freed memory for later requests, in one arena for each of several threads. A daemon
//! limits the number of arenas, and a thread returns their free pages; long blocks are mapped outside the
//! arenas and are returned at once. The measurements are in `docs/decisions/0024-allocator.md`.

use std::io;
use std::thread;
use std::time::Duration;

/// How often freed pages are returned: a burst of answers reuses them, and one pass over an idle daemon's
/// arenas takes some 50 µs.
const PERIOD: Duration = Duration::from_secs(5);

/// Start the thread that returns freed pages every [`PERIOD`]; call it before the runtime's threads start.
///
/// # Errors
/// The thread could not be started.
pub(crate) fn hand_back_freed() -> io::Result<()> {
    c_library::keep_little();
    thread::Builder::new().name("freed-memory".to_owned()).spawn(|| {
        loop {
            thread::sleep(PERIOD);
            c_library::trim();
        }
    })?;
    Ok(())
}

/// GNU C library, which returns memory only on request; see malloc_trim(3) and mallopt(3).
#[cfg(target_env = "gnu")]
mod c_library {
    /// Two threads of the runtime allocate much, and each further arena would hold pages of its own.
    const ARENAS: libc::c_int = 2;

    /// Longer blocks are mapped individually. By default this limit rises to the longest block that was
    /// freed, up to 32 MiB: then queues and answers lie in the arenas, and small blocks between them hold the
    /// pages around.
    const MAPPED_FROM_BYTES: libc::c_int = 1 << 20;

    #[allow(unsafe_code)] // No library has this call.
    pub(super) fn keep_little() {
        for (option, value) in [(libc::M_ARENA_MAX, ARENAS), (libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)] {
            // SAFETY: takes two numbers and may be called at any time; it returns 0 for unknown options.
            unsafe { libc::mallopt(option, value) };
        }
    }

    #[allow(unsafe_code)] // No library has this call.
    pub(super) fn trim() {
        // SAFETY: it takes the arenas' own locks, and touches free memory only.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Other C libraries, such as musl, return free memory by themselves.
#[cfg(not(target_env = "gnu"))]
mod c_library {
    pub(super) const fn keep_little() {}

    pub(super) const fn trim() {}
}
