//! Sampling of every process of this host, up to a thousand times per second.
//!
//! [`source`] chooses how to read the kernel, the best that the kernel and the sensor's rights allow: [`bpf`]
//! reads only the processes that ran, or all in one pass; [`procfs`] works everywhere, and [`connector`] adds
//! short-lived processes. [`table`] and [`lives`] are the pure parts: the living processes, and the ended
//! ones, however short they lived; [`recent`] is their recent CPU usage, [`details`] what is read only for a
//! query. [`sampler`] is the shell with the clock and the thread, and [`tap`] the interface of what receives
//! every sweep on that thread. [`visibility`] restricts what a viewer may see.
//! Not here: the encoding of sweeps (`wire::process`), queries (`query`).

mod births;
pub(crate) mod boot_time;
#[cfg(feature = "bpf")]
pub mod bpf;
pub mod connector;
pub mod details;
#[cfg(feature = "bpf")]
mod hidden;
pub mod lives;
pub mod procfs;
pub mod recent;
pub mod sampler;
pub mod source;
pub mod stat;
pub mod table;
pub mod tap;
pub mod visibility;
