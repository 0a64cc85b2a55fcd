//! Kernel programs (BPF): loads, attaches and runs them.
//!
//! Shell over the loader. Rule: an error of the kernel is reported with what would help, and nothing stays in
//! the kernel when this is dropped.
//! Left out: the meaning of the records (`record`).

use super::super::source::Error;
use super::types;
use aya::maps::{MapData, RingBuf};
use aya::programs::{BtfTracePoint, Iter, ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun};
use aya::{Btf, Ebpf, EbpfLoader};
use std::fs::File;
use std::io::{self, Read};

/// The compiled programs; the source is `sensor/bpf/processes.bpf.c`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/processes.bpf.o"));

/// Allowed sizes of the ring buffer, in bytes: the smallest holds some hundred short lives, the largest a
/// sweep of every process of a large host. It counts twice in the sensor's memory, because it is mapped
/// twice.
const RING_LEN_BYTES: std::ops::RangeInclusive<u32> = (256 << 10)..=(8 << 20);
/// Bytes of the ring buffer for each process of the host: two of its records.
const RING_SHARE_BYTES: usize = 2 * 168;

/// The kernel's type information (BTF).
const DESCRIPTION: &str = "/sys/kernel/btf/vmlinux";

/// Types whose fields the programs read (`sensor/bpf/kernel.h`), and the function of the walk.
const NAMED: [&str; 16] = [
    "bpf_iter_task",
    "bpf_iter__task",
    "bpf_iter_meta",
    "seq_file",
    "task_struct",
    "signal_struct",
    "sched_entity",
    "task_io_accounting",
    "mm_struct",
    "mm_rss_stat",
    "percpu_counter",
    "list_head",
    "cred",
    "css_set",
    "cgroup",
    "kernfs_node",
];

/// Bytes per read of an iterator: the kernel returns at most eight pages.
const READ_LEN_BYTES: usize = 64 << 10;

/// Programs with the kernel's tracepoint that each is attached to.
const LISTENERS: [(&str, &str); 5] = [
    ("on_switch", "sched_switch"),
    ("on_fork", "sched_process_fork"),
    ("on_exec", "sched_process_exec"),
    ("on_exit", "sched_process_exit"),
    ("on_free", "sched_process_free"),
];

/// The loaded programs.
pub struct Programs {
    ebpf: Ebpf,
}

/// Part of the kernel's type information that the programs need.
pub struct Types(Btf);

impl Types {
    /// Reads and cuts down the type information of this kernel.
    ///
    /// # Errors
    /// If this kernel has none, or its format is unknown.
    pub fn read() -> Result<Types, Error> {
        let wrong = |reason: &dyn std::fmt::Display| {
            Error::Bpf(format!("the kernel's types cannot be read from {DESCRIPTION} ({reason})"))
        };
        let whole = std::fs::read(DESCRIPTION)
            .map_err(|error| wrong(&format!("{error}; it needs CONFIG_DEBUG_INFO_BTF")))?;
        let events = LISTENERS.map(|(_, event)| format!("btf_trace_{event}"));
        let names: Vec<_> = NAMED.into_iter().chain(events.iter().map(String::as_str)).collect();
        let cut =
            types::cut_down(&whole, &names).ok_or_else(|| wrong(&"it is not of a form that is known"))?;
        Btf::parse(&cut, Default::default()).map(Types).map_err(|error| wrong(&chain(&error)))
    }
}

impl Programs {
    /// Loads the object and creates its maps, with a ring buffer for a host with so many processes; no
    /// program runs yet. Returns the type information too, which is needed to load the programs.
    ///
    /// # Errors
    /// If this kernel has no type information, or refuses.
    pub fn new(processes: usize) -> Result<(Programs, Types), Error> {
        let mut loader = EbpfLoader::new();
        // The loader always starts with the whole type information of the kernel; dropped here, before ours
        // is read.
        loader.btf(None);
        let types = Types::read()?;
        let processors = processors();
        let ebpf = loader
            .btf(Some(&types.0))
            // The loader has no type for task storage, which only the programs use.
            .allow_unsupported_maps()
            .override_global("processors_count", &processors, true)
            .map_max_entries("ring", ring_len_bytes(processes))
            .load(OBJECT)
            .map_err(|error| refused("the programs cannot be loaded", &error))?;
        drop(loader);
        Ok((Programs { ebpf }, types))
    }

    /// Loads the walk over all tasks.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn load_walk(&mut self, types: &Types) -> Result<(), Error> {
        let walk: &mut Iter = program(&mut self.ebpf, "all_tasks")?;
        walk.load("task", &types.0).map_err(|error| refused("the walk over all tasks is refused", &error))
    }

    /// Walks over all tasks; replaces the content of `records`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn walk(&mut self, records: &mut Vec<u8>) -> Result<(), Error> {
        let walk: &mut Iter = program(&mut self.ebpf, "all_tasks")?;
        let wrong = |error: &dyn std::error::Error| refused("the tasks cannot be walked", error);
        let link = walk.attach().map_err(|error| wrong(&error))?;
        let link = walk.take_link(link).map_err(|error| wrong(&error))?;
        let file = link.into_file().map_err(|error| wrong(&error))?;
        read_all(file, records).map_err(|error| wrong(&error))
    }

    /// Attaches the programs that record which processes run, start and end; returns the ring buffer of their
    /// records.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn listen(&mut self, types: &Types) -> Result<RingBuf<MapData>, Error> {
        let ebpf = &mut self.ebpf;
        let sweep: &mut RawTracePoint = program(ebpf, "changed")?;
        sweep.load().map_err(|error| refused("the sweep of what changed is refused", &error))?;
        for (name, event) in LISTENERS {
            let listener: &mut BtfTracePoint = program(ebpf, name)?;
            listener
                .load(event, &types.0)
                .and_then(|()| listener.attach().map(|_| ()))
                .map_err(|error| refused(&format!("listening to {event} is refused"), &error))?;
        }
        let ring = ebpf.take_map("ring").ok_or_else(|| missing("ring"))?;
        RingBuf::try_from(ring).map_err(|error| refused("the ring cannot be mapped", &error))
    }

    /// Runs the program that writes the changed processes to the ring buffer.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn sweep_changed(&mut self) -> Result<(), Error> {
        let sweep: &mut RawTracePoint = program(&mut self.ebpf, "changed")?;
        let result = sweep.test_run(RawTracePointRunOptions::new());
        result.map(|_| ()).map_err(|error| refused("the sweep of what changed cannot be run", &error))
    }
}

fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Error>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    let program = ebpf.program_mut(name).ok_or_else(|| missing(name))?;
    program.try_into().map_err(|error| refused(name, &error))
}

/// Size of the ring buffer, a power of two as the kernel requires.
fn ring_len_bytes(processes: usize) -> u32 {
    let wanted = u32::try_from(processes * RING_SHARE_BYTES).unwrap_or(u32::MAX);
    wanted.clamp(*RING_LEN_BYTES.start(), *RING_LEN_BYTES.end()).next_power_of_two()
}

fn missing(name: &str) -> Error {
    Error::Bpf(format!("{name} is missing from the programs this sensor was built with"))
}

/// Builds an error with the reason in one line, and what would help.
fn refused(what: &str, error: &dyn std::error::Error) -> Error {
    let reason = chain(error);
    let denied = ["Operation not permitted", "Permission denied"].iter().any(|word| reason.contains(word));
    let help = if denied { "; run as root, or with CAP_BPF and CAP_PERFMON" } else { "" };
    Error::Bpf(format!("{what} ({reason}){help}"))
}

/// Joins the messages of an error and its causes; only the first line of a verifier's report.
fn chain(error: &dyn std::error::Error) -> String {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !reason.contains(&text) {
            reason = format!("{reason}: {text}");
        }
        cause = next.source();
    }
    reason.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

/// Number of possible processors, as the kernel numbers them.
fn processors() -> u32 {
    aya::util::nr_cpus().ok().and_then(|count| u32::try_from(count).ok()).unwrap_or(1)
}

fn read_all(mut file: File, records: &mut Vec<u8>) -> io::Result<()> {
    let mut len = 0;
    loop {
        records.resize(len + READ_LEN_BYTES, 0);
        match file.read(&mut records[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    records.truncate(len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_as_large_as_the_host_needs() {
        for (processes, kib) in [(0, 256), (700, 256), (1000, 512), (3000, 1024), (1 << 20, 8192)] {
            assert_eq!(ring_len_bytes(processes), kib << 10, "{processes} processes");
        }
    }
}
