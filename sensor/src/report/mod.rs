//! The member's side of reporting: what goes to the representative, and in which order.
//!
//! [`sender`] is the pure core of one member: bytes in, bytes out; [`columns`] turns tables into sweeps;
//! [`outbox`] reads durable events from the journal for it; [`record`] is their form on the way.
//! Not here: the stream (the overlay), the other side ([`crate::representative`]).

pub mod columns;
pub mod outbox;
pub mod record;
pub mod sender;
