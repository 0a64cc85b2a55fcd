//! The member's side of reporting: what is sent to the representative, and in which order.
//!
//! [`sender`] is the pure core of one member: bytes in, bytes out. [`columns`] encodes tables as sweeps;
//! [`outbox`] reads durable events from the journal, in the wire format; [`copying`] answers with stored minutes;
//! [`link`] runs the sender on a stream.
//! Not here: the network (the overlay), the other side ([`crate::representative`]).

mod call_copying;
pub mod columns;
pub mod copying;
pub mod link;
pub mod outbox;
pub mod own_route;
pub mod sender;
