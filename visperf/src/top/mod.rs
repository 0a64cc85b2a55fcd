//! The screen of `visperf top`: the processes of a host, a domain or several, as they are now.
//!
//! ```text
//! asker (a thread: asks daemons, gives orders) ── round, lost, given ──▶ state (pure) ──▶ draw (pure)
//!        ▲───────────────── what to show and to signal ─────────────────── keys ◀── terminal (the shell)
//! ```
//!
//! Rule: nothing that is shown is older than the screen says; an answer that does not come is shown as that.
//! Not here: options, and printing without a screen (`command::top`).

pub(crate) mod asker;
mod draw;
pub(crate) mod filter;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod terminal;
mod theme;
