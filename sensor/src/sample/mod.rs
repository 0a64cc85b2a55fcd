//! Sampling of the host: sweeps at a configured rate, and the newest table.
//!
//! [`collector`] is the trait of each source of metrics, and runs the sources together; [`host`] has the
//! sources, one subsystem per file; [`table`], [`series`] and [`schedule`] are the pure parts. [`ticker`] is
//! the ticker of a sampling thread, [`wakeup_latency`] lowers its wakeup latency, [`sampler`] is the shell
//! around them.
//! Not here: processes (`process`), and how tables reach other programs (`channel`, `query`).

pub mod collector;
pub mod figures;
pub mod glob;
pub mod host;
pub mod sampler;
pub mod schedule;
pub mod series;
pub mod table;
pub mod ticker;
pub mod wakeup_latency;
