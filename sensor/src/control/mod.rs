//! Commands to processes of this host: a signal or a new niceness, signed by an operator.
//!
//! ```text
//! text of a command ─ authority: signed by an operator, for this host, for the first time?
//!                   ─ worker ─ decision (pure): the requested process, and permitted? ─ act: pidfd
//!                        └── trail: a line before the execution ─▶ tail ─▶ events
//! ```
//!
//! Rules: no command is executed without a line in the trail that is on disk. A pid that another process has
//! taken is never signalled. A process of root, of the kernel or of the sensor itself, as checked just before
//! the signal, is never signalled, whatever operator sends the command.
//! Not here: signatures (`overlay::identity::signed_command`), how a command arrives (`query::control`).

pub mod act;
pub mod authority;
pub mod config;
pub mod decision;
mod rate_limiter;
pub mod refusal;
pub mod target;
pub mod trail;
pub mod worker;
