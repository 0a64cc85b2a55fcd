//! Usage of the jobs on this host: measured at each sweep, written as lines into a log that the sensor follows.
//!
//! [`meter`] and [`measurement`] are the pure parts: which processes a job has, and what they used. [`control_group`]
//! reads the control groups of jobs, [`worker`] writes the lines and the state that survives a restart.
//! Not here: which process serves which job (`serving`), which call a usage is of (`log_filters`).

pub mod control_group;
pub mod measurement;
pub mod meter;
pub mod usage_log;
pub mod worker;
