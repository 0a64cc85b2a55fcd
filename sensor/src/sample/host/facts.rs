//! What does not change while the sensor runs, asked once at its start.
//!
//! sysinfo answers here: it knows how distributions name themselves, and once is cheap.

use compact_str::CompactString;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// What kind of host this is. What it does not tell is empty or 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its own name.
    pub host_name: CompactString,
    /// The operating system with its version, such as `Linux 13 Debian GNU/Linux`.
    pub os: CompactString,
    /// The kernel's version.
    pub kernel: CompactString,
    /// The architecture.
    pub machine: CompactString,
    /// When it started, in seconds since 1970.
    pub boot_secs: u64,
    /// Logical CPUs.
    pub cpus: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

impl Facts {
    /// Of this host.
    #[must_use]
    pub fn read() -> Facts {
        let wanted = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(wanted);
        Facts {
            host_name: text(System::host_name()),
            os: text(System::long_os_version()),
            kernel: text(System::kernel_version()),
            machine: System::cpu_arch().into(),
            boot_secs: System::boot_time().unwrap_or_default(),
            cpus: system.as_ref().map_or(0, |system| system.cpus().len()),
            memory_bytes: system.as_ref().map_or(0, System::total_memory),
        }
    }
}

/// What this host does not tell is empty.
fn text<E>(told: Result<String, E>) -> CompactString {
    told.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_known() {
        let facts = Facts::read();
        assert!(facts.cpus >= 1 && facts.memory_bytes > 1 << 20 && facts.boot_secs > 0, "{facts:?}");
        assert!(!facts.kernel.is_empty() && !facts.machine.is_empty(), "{facts:?}");
    }
}
