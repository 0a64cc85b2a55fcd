//! What the representative knows of its domain: its hosts, and what they come to together.
//!
//! [`domain`] is the core that members report to ([`receiver`], [`admit`], [`claims`]); it keeps the table
//! of [`hosts`] with their [`recent`] samples, the [`store`] of events and the joined calls. [`view`],
//! [`overview`] and [`summary`] say what they come to; [`cursor`] leads readers through the events across
//! a change of the representative, for which standbys are [`told`] what is stored.
//! [`office`] runs it while its sensor represents the domain.
//! Not here: how members' streams come (the overlay), how a representative is elected (the overlay).

pub mod admit;
pub mod claims;
mod connection;
pub mod cursor;
mod desk;
pub mod domain;
pub mod hosts;
pub mod office;
pub mod overview;
pub mod receiver;
pub mod recent;
pub mod replay;
mod standbys;
pub mod store;
pub mod summary;
pub mod told;
pub mod view;
pub mod visit;
