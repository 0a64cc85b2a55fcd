//! The representative: the table of its domain's hosts, their recent samples, and the store of the domain's
//! events.
//!
//! [`domain`] is the core that members report to ([`receiver`], [`admit`], [`claims`]). It holds the table of
//! [`hosts`] with their [`recent`] samples, the [`store`] of events and the joined calls. [`view`],
//! [`overview`] and [`summary`] compute query results from it. [`cursor`] lets readers of events continue
//! after a change of the representative; for this, standbys receive watermarks of what is stored
//! ([`watermarks`]). `copying` fetches the minutes that members have stored, for the past of the whole domain, and `calls` passes on which
//! calls have changed, for their history.
//! [`service`] runs the core while its sensor represents the domain.
//! Not here: how members' streams arrive and how a representative is elected (both in the overlay).

pub mod admit;
mod batches;
mod calls;
pub mod claims;
mod connection;
mod copying;
pub mod cursor;
pub mod domain;
pub mod hosts;
pub mod overview;
pub mod receiver;
pub mod recent;
mod record;
pub mod replay;
pub mod service;
pub mod session;
mod standbys;
pub mod store;
pub mod summary;
pub mod view;
pub mod watermarks;
mod worker;
