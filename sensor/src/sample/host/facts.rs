//! Static facts of the host, read once at the start of the sensor.
//!
//! They come from the sysinfo crate: it knows how distributions name themselves, and the cost of one call is
//! low.

use compact_str::CompactString;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// Static facts of a host. A fact that the host does not report is empty or 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Host name.
    pub host_name: CompactString,
    /// The operating system with its version, such as `Linux 13 Debian GNU/Linux`.
    pub os: CompactString,
    /// Version of the kernel.
    pub kernel: CompactString,
    /// Processor architecture.
    pub machine: CompactString,
    /// Boot time, in seconds since 1970.
    pub boot_secs: u64,
    /// Logical CPUs.
    pub cpus: usize,
    /// Total memory, in bytes.
    pub memory_bytes: u64,
}

impl Facts {
    /// Reads the facts of this host.
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

/// Converts a fact; an unknown one becomes the empty text.
fn text<E>(result: Result<String, E>) -> CompactString {
    result.unwrap_or_default().into()
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
