//! Series of jobs: what each job on this host used, second by second, for its whole life.
//!
//! Rule: a point has counters since the start of the measurement, so what was used between any two points is known exactly,
//! and a lost point loses nothing but its moment. Not here: the measurement (`job_usage`), the query (`query::job_series`).

pub mod curve;
pub mod log;
pub mod piece;
