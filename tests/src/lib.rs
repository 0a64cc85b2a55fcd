//! Shared code of the system tests: the program, running daemons, queries, growing logs.
//!
//! Rule: a test sees visperf as its users do: the program, its files and its HTTP interface; no part of it is
//! linked into the tests. Everything is waited for by polling with a deadline ([`wait`]).
//! Not here: the tests (`system/`), the clients in other languages (`clients/`).

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
