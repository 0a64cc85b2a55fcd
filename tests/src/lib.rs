//! What the stories over the whole of visperf share: the program, daemons that run, queries, logs that grow.
//!
//! Rule: a story sees visperf as its users do: the program, its files and its HTTP interface; no part of
//! it is linked in here. Everything waited for is polled with a deadline ([`wait`]).
//! Not here: the stories (`system/`), the clients of other languages (`clients/`).

pub mod account;
pub mod crates;
pub mod grid;
pub mod lab;
pub mod ledger;
pub mod logs;
pub mod program;
pub mod query;
pub mod random;
pub mod wait;
