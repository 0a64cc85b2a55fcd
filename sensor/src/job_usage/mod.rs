//! Usage of the jobs on this host: measured at each sweep, written as lines into a log that the sensor follows.
//!
//! [`meter`], [`measurement`] and [`failures`] are the pure parts: which processes a job has, what they used, and which of
//! them failed. [`control_group`] reads the control groups of jobs, [`worker`] writes the lines and the state that survives a restart.
//! Not here: which process serves which job (`serving`), which call a usage is of (`log_filters`).

pub mod control_group;
pub mod failures;
pub mod measurement;
pub mod meter;
pub mod usage_log;
pub mod worker;
