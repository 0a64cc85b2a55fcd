//! Collectors of the host, one subsystem per file: values of Linux's `/proc` under node_exporter's names and
//! units.
//!
//! `/proc` is read directly, with reused open files and reused buffers: a general library opens, allocates
//! and formats again at every sweep, rounds counters, and omits modes, merges and pressure. A library is used
//! for values that are read once ([`facts`]).
//! Rule: parsing is separate from reading. The parsers take bytes, allocate nothing and never panic.

pub mod column;
pub mod cpu;
pub mod diskstats;
pub mod facts;
pub mod fields;
pub mod filesystem;
pub mod loadavg;
pub mod meminfo;
pub mod metric_cache;
pub mod mounts;
pub mod netdev;
pub mod pressure;
pub mod proc_file;
pub mod remote_mounts;
pub mod stat;
pub mod time;
pub mod uname;
pub mod vmstat;

use super::collector::Collector;
use std::path::Path;

/// Mount point of the kernel's proc file system.
pub const PROC: &str = "/proc";

/// Creates all collectors, reading below `proc` ([`PROC`] outside tests).
#[must_use]
pub fn collectors(proc: &Path) -> Vec<Box<dyn Collector>> {
    vec![
        Box::new(stat::Stat::new(proc)),
        Box::new(loadavg::LoadAverage::new(proc)),
        Box::new(meminfo::MemInfo::new(proc)),
        Box::new(vmstat::VmStat::new(proc)),
        Box::new(diskstats::DiskStats::new(proc)),
        Box::new(filesystem::FileSystem::new(proc)),
        Box::new(netdev::NetDev::new(proc)),
        Box::new(pressure::Pressure::new(proc)),
        Box::new(time::Clocks::new(proc)),
        Box::new(uname::Uname::default()),
    ]
}
