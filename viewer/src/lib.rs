//! The desktop viewer of visperf: shows a grid live, and its past.
//!
//! Pure inside, thin outside: `grid` (the data), `layout` (positions), `scene` (what moves at a time),
//! `timeline` (which time is shown) and `flock` (resource use of processes) know no window; `replay` and
//! `live` are threads that supply data; `app` draws. Not here: queries to daemons of other machines, other
//! than through a proxy.

pub mod app;
mod atomic_file;
mod clock;
pub mod export;
pub mod feed;
pub mod flock;
pub mod graphs;
pub mod grid;
pub mod jobs;
pub mod layout;
pub mod live;
pub mod model;
pub mod options;
pub mod picture;
pub mod replay;
mod run;
pub mod scene;
pub mod sensors;
pub mod series;
pub mod served;
#[cfg(feature = "synthetic")]
pub mod synthetic;
pub mod timeline;
pub mod window;

pub use run::{Error, run};

use wire::harmless::replaced;

/// Print a message on standard error. It may quote logs and daemons: terminal control characters are
/// replaced.
#[expect(clippy::print_stderr, reason = "the program's own words, beside its window")]
pub fn report(text: &str) {
    let lines = text.split('\n').map(|line| replaced(line, char::REPLACEMENT_CHARACTER));
    eprintln!("visperf-viewer: {}", lines.collect::<Vec<_>>().join("\n"));
}

/// Print the requested output on standard output.
fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    match writeln!(std::io::stdout().lock(), "{text}") {
        // The reader closed the pipe, as `head` does; this is no error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
