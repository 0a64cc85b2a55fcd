//! The peer-to-peer layer of visperf: identity of daemons, membership, election of a domain's representative,
//! and connections between daemons.
//!
//! Decisions are made in pure cores ([`membership`], [`election`]), which the [`simulator`] tests by the
//! thousand; libp2p is a thin layer around them, and no other crate uses it.
//!
//! Not here: the types that are sent (`wire`), the directory's table (`directory`), the data of members
//! (`sensor`).

pub mod authenticator;
pub mod clock;
pub mod config;
pub mod contacts;
pub mod dice;
pub mod directories;
pub mod domain;
pub mod election;
pub mod finder;
pub mod guest;
pub mod hub;
pub mod identity;
pub mod joining;
pub mod membership;
pub mod net;
pub mod registrar;
pub mod resolve;
pub mod revocation_gossip;
pub mod revocation_sync;
pub mod simulator;
pub mod whole_file;
