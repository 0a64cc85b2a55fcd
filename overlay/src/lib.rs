//! The peer-to-peer layer of visperf: who a daemon is, who is there, who represents a domain, and how
//! daemons reach each other.
//!
//! Decisions are made in pure cores ([`membership`], [`election`]), tried by the thousand in the
//! [`simulator`]; libp2p is a thin shell around them, and appears in no other crate.
//!
//! Not here: what travels (`wire`), the directory's table (`directory`), what members report (`sensor`).

pub mod clock;
pub mod config;
pub mod contacts;
pub mod deny_spread;
pub mod deny_sync;
pub mod dice;
pub mod directories;
pub mod domain;
pub mod election;
pub mod finder;
pub mod gatekeeper;
pub mod hub;
pub mod identity;
pub mod joining;
pub mod membership;
pub mod net;
pub mod registrar;
pub mod resolve;
pub mod simulator;
pub mod visit;
pub mod whole_file;
