//! The member's side of reporting: what goes to the representative, and in which order.
//!
//! [`sender`] is the pure core of one member: bytes in, bytes out; [`columns`] turns tables into sweeps;
//! [`outbox`] reads durable events from the journal for it; [`record`] is their form on the way; [`link`] runs it.
//! Not here: the network (the overlay), the other side ([`crate::representative`]).

pub mod columns;
pub mod link;
pub mod outbox;
pub(crate) mod own;
pub mod own_way;
pub mod record;
pub mod sender;
