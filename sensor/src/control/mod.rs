//! Orders to processes of this host: a signal or another niceness, from an operator.
//!
//! ```text
//! text of an order ─ authority: signed for here, by an operator, for the first time? (given by whoever composes)
//!                  ─ desk ─ verdict (pure): whose process is it, is it the one that was meant? ─ act: pidfd
//!                       └── trail: a line before anything is done ─▶ tail ─▶ events
//! ```
//!
//! Rules: nothing is done without a line in the trail that is on disk; a number that was taken by another process is never
//! signalled; what is of root, of the kernel or of the sensor itself just before the signal is not, whoever orders it.
//! Not here: signatures (`overlay::identity::order`), how an order arrives (`query::control`).

pub mod act;
pub mod authority;
pub mod config;
pub mod desk;
mod pace;
pub mod refusal;
pub mod target;
pub mod trail;
pub mod verdict;
