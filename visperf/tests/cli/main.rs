//! The program as its users run it: arguments in; output, notes and exit code out.
#![allow(
    clippy::disallowed_methods,
    missing_docs,
    reason = "these tests start the program and read the clock"
)]

mod filters;
mod followed;
mod program;
mod queries;
mod server;
