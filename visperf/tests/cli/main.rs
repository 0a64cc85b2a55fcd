//! The program as its users run it: arguments in; output, notes and exit code out.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "these tests start programs, and may panic"
)]

mod check;
mod clocks;
mod contract;
mod control;
mod filters;
mod followed;
mod membership;
mod modules;
mod page;
mod program;
mod queries;
mod reference;
mod sampled;
mod server;
mod started;
mod state;
mod terminal;
mod tokens;
mod top;
mod users;
