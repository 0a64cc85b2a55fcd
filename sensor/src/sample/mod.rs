//! What the host is doing: sampled at a set rate, kept as the newest table and a short history.
//!
//! [`collector`] is what each source of figures implements and how they are run together, [`host`] are
//! the sources, one subsystem a file; [`table`], [`history`] and [`schedule`] are the pure parts;
//! [`beat`] is the clock by which a thread sweeps, [`prompt`] how soon it is woken, [`sampler`] the shell around them.
//! Not here: processes (`process`), and how tables reach other programs (`channel`, `query`).

pub mod beat;
pub mod collector;
pub mod figures;
pub mod glob;
pub mod history;
pub mod host;
pub mod prompt;
pub mod sampler;
pub mod schedule;
pub mod table;
