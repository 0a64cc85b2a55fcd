//! Processes by programs in the kernel (`sensor/bpf`), loaded when the sensor starts and gone when it ends.
//!
//! [`record`] reads what the programs tell (pure), [`loaded`] loads them by what [`types`]
//! leaves of the kernel's type description (pure), [`all_tasks`] walks every task, [`changed`] is
//! told only of what ran, and of lives however short.
//! Needs Linux 5.8 with its type description (BTF) for the walk and 5.18 for the rest, and CAP_BPF with CAP_PERFMON, or
//! root.

pub mod all_tasks;
pub mod changed;
pub mod loaded;
pub mod record;
pub mod types;
