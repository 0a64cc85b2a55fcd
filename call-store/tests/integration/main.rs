//! The store of calls: what it answers, compared with the truth, and what it does with crashes, later lives of an
//! id, little space and damage.
//!
//! Rule: a real database in a folder of the test's own.

#![allow(clippy::unwrap_used, reason = "tests")]

mod changing;
mod copying;
mod importing;
mod indexing;
mod made_up;
mod querying;
