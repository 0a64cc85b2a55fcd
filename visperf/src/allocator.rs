//! Memory that was freed goes back to the system while a daemon runs.
//!
//! The C library keeps what was freed for the next request, in an arena for each of some threads. A daemon has few arenas,
//! and a thread that hands back what is free in them; long blocks are in none and go back at once. The figures are in `docs/decisions/0024-allocator.md`.

use std::io;
use std::thread;
use std::time::Duration;

/// How often freed pages are handed back: a burst of answers reuses them, and a look at an idle daemon's takes some 50 µs.
const PERIOD: Duration = Duration::from_secs(5);

/// Hand freed pages back every [`PERIOD`] from now on; call it before the runtime's threads start.
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

/// The C library of GNU, which has to be asked; see malloc_trim(3) and mallopt(3).
#[cfg(target_env = "gnu")]
mod c_library {
    /// Two threads of the runtime allocate much, and each further arena would keep pages of its own.
    const ARENAS: libc::c_int = 2;

    /// Longer blocks are mapped for themselves. By default the limit rises to the longest that was freed, up to 32 MiB: then
    /// queues and answers lie in the arenas, and small blocks between them hold the pages around.
    const MAPPED_FROM_BYTES: libc::c_int = 1 << 20;

    #[allow(unsafe_code)] // No library has this call.
    pub(super) fn keep_little() {
        for (option, value) in [(libc::M_ARENA_MAX, ARENAS), (libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)] {
            // SAFETY: it takes two numbers, and may be called at any time; it returns 0 where it does not know the option.
            unsafe { libc::mallopt(option, value) };
        }
    }

    #[allow(unsafe_code)] // No library has this call.
    pub(super) fn trim() {
        // SAFETY: it takes the arenas' own locks, and touches free memory only.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Other C libraries, such as musl, hand back what is free by themselves.
#[cfg(not(target_env = "gnu"))]
mod c_library {
    pub(super) const fn keep_little() {}

    pub(super) const fn trim() {}
}
