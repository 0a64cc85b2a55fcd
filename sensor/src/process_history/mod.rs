//! History of the processes: of each minute those that used most CPU time, memory and storage.
//!
//! Rule: the sampling thread compares the counters of a minute with those of the minute before, once a minute;
//! command lines and jobs are read, and files written, on a thread of its own. Not here: every process of every sweep
//! (`recorder`), the query (`query::process_history`).

pub mod collector;
pub mod minute;
pub mod worker;
