//! Every process of this host, up to a thousand times a second.
//!
//! [`source`] says what reads the kernel and chooses the best that the kernel and the sensor's rights allow: [`bpf`] tells
//! only of what ran, or of all in one pass; [`procfs`] works everywhere. [`table`] and [`lives`] are the pure parts: the
//! processes there are, and those that ended, however short they lived; [`recent`] is what they used of late, [`details`]
//! what is read only when somebody asks. [`sampler`] is the shell with the clock and the
//! thread, [`tap`] what sees every sweep on it.
//! Not here: how sweeps travel (`wire::process`), what a user asks (`query`).

mod births;
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
pub mod sight;
pub mod source;
pub mod stat;
pub mod table;
pub mod tap;
