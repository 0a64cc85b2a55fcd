//! Many cores on one virtual clock, over a network that misbehaves: the same seed tells the same story.
//!
//! Pure. [`World`] is for any [`Core`]: it keeps the clock, the hosts (each with a clock of its own rate, a
//! disk that may lose what was not synced, and pauses) and the [`Network`] (delay, jitter, loss, reordering,
//! duplication, cuts in one direction or both, partitions, names that do not resolve). [`Domain`] is a world
//! of sensors with the invariants of election checked after every single event, and [`scenario`] tells a
//! story as a list of steps with expectations.
//!
//! What it takes from real networks: a connection carries messages in order, unless told to reorder; it ends
//! at once when a process dies and its host lives, and after two missed pings when a host or path is gone;
//! what is under way on an ended connection is lost; a stopped process finds everything that came meanwhile,
//! and its timers may fire before or after it is read.
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
