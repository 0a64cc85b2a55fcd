//! The client of the query interface: calls whose parameters and answers have types.
//!
//! Pure: no runtime, no file, no socket, no clock.
//! Not here: the types (`wire::api`), the connections (the programs).

pub mod typed;
