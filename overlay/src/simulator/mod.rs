//! Deterministic simulator: many cores on one virtual clock, over a faulty network. The same seed gives the
//! same run.
//!
//! Pure. [`World`] runs any [`Core`]: it has the clock, the hosts (each with a clock of its own rate, a disk
//! that may lose what was not synced, and pauses) and the [`Network`] (delay, jitter, loss, reordering,
//! duplication, cuts in one direction or both, partitions, names that do not resolve). [`Domain`] is a world
//! of sensors that checks the invariants of election after every single event, and [`scenario`] is a list of
//! steps with expectations.
//!
//! Modelled on real networks: a connection delivers messages in order, unless reordering is on; it closes at
//! once when a process dies and its host lives, and after two missed pings when a host or path is gone;
//! messages in transit on a closed connection are lost; a suspended process finds all input that arrived
//! meanwhile, and its timers may fire before or after that is read.
//!
//! Not here: throughput, bandwidth, congestion.

mod carriage;
mod connections;
mod domain;
mod host;
mod network;
pub mod scenario;
mod world;

pub use domain::{Domain, Promotion, Sensor};
pub use host::{Core, Effect};
pub use network::Network;
pub use world::{Traffic, World};
