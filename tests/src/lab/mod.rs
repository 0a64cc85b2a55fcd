//! The lab: hosts on one machine, as network namespaces of Linux, in which stories run the real program.
//!
//! Rule: nothing that a story does in the lab is seen outside, and everything is gone when it ends, however it
//! ends. What the machine lacks makes a story fail, with a sentence that names it and what to install or set;
//! a story never passes for want of it. It works as root, and as any user where the kernel allows user
//! namespaces.
//! Not here: what is true of a grid (`system/`), a simulated network (the overlay's own tests).
//!
//! ```text
//! test process ── unshare: user, network, mount, process namespaces ──> the same test again, as process 1
//!                                                                        │ bridge `lab`, filter of nft
//!                                            h1 ── eth0 ═══ port h1 ─────┤
//!                                            h2 ── eth0 ═══ port h2 ─────┤
//!              h3 ── eth0 ═══ port w3 ── wire: delays ── x3 ═══ port h3 ─┘
//! ```

mod daemon;
mod delay;
pub mod domains;
mod entry;
mod facility;
mod faults;
mod held;
mod host;
mod measure;
mod network;
pub mod proxies;
mod quota;
mod scenario;
pub mod walls;
mod wire;

pub use daemon::Daemon;
pub use delay::Delay;
pub use entry::{Lab, enter};
pub use host::Host;
pub use measure::{Stopwatch, Trials};
pub use network::{HOSTS_MAX, Network};
pub use scenario::{Condition, Stage, Step, play};

/// Tells the reader of a story's output what is happening in it.
#[allow(clippy::print_stdout)] // A story's output is what is read when it fails.
fn tell(line: &str) {
    println!("{line}");
}
