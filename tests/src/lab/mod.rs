//! Lab: hosts on one machine, as Linux network namespaces, in which tests run the real program.
//!
//! Rule: nothing that a test does in the lab is visible outside, and everything is removed when it ends,
//! however it ends. If the machine lacks a requirement, the test fails with a message that names it and what
//! to install or set; a test never passes without it. The lab works as root, and as any user if the kernel
//! allows user namespaces.
//! Not here: the assertions on a grid (`system/`), a simulated network (the overlay's own tests).
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

/// Print what happens in a test to its output.
#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn report(line: &str) {
    println!("{line}");
}
