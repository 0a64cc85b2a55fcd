//! Screen of `visperf top`: the current processes of a host, a domain or several.
//!
//! ```text
//! querier (a thread: asks daemons, gives orders) ── round, lost, given ──▶ state (pure) ──▶ draw (pure)
//!         ▲──────────────── what to show and to signal ───────────────────── keys ◀── terminal (the shell)
//! ```
//!
//! Rule: no data is older than the screen says; a missing answer is shown as such.
//! Not here: options, and output without a screen (`command::top`).

mod draw;
pub(crate) mod filter;
pub(crate) mod querier;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod terminal;
mod theme;
