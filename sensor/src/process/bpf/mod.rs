//! Processes read by kernel programs (BPF, `sensor/bpf`), which are loaded when the sensor starts and removed
//! when it ends.
//!
//! [`record`] decodes the records of the programs (pure), [`programs`] loads the programs with the part of
//! the kernel's type information that [`types`] selects (pure). [`all_tasks`] walks every task;
//! [`changed_tasks`] reads only the processes that ran, and every start and end.
//! Needs Linux 5.8 with its type information (BTF) for the walk and 5.18 for the rest, and CAP_BPF with
//! CAP_PERFMON, or root.

pub mod all_tasks;
pub mod changed_tasks;
pub mod programs;
pub mod record;
pub mod types;
