//! The desktop viewer of visperf: what a grid does, seen.
//!
//! Pure inside, thin outside: `grid` (what there is), `layout` (where it stands), `scene` (what moves at a time) and
//! `timeline` (which time), `flock` (what processes use) know no window; `replay` and `live` are threads that feed it;
//! `app` draws. Not here: asking daemons of other machines but through a proxy.

pub mod app;
mod clock;
pub mod export;
pub mod feed;
pub mod flock;
pub mod graphs;
pub mod grid;
pub mod invented;
pub mod invented_figures;
pub mod invented_flock;
pub mod layout;
pub mod live;
pub mod options;
pub mod picture;
pub mod replay;
mod run;
pub mod scene;
pub mod sensors;
pub mod series;
pub mod timeline;

pub use run::{Error, run};

use wire::harmless::replaced;

/// Print a message on standard error, for who began the program. It may quote logs and daemons: characters that steer a terminal
/// are replaced.
#[expect(clippy::print_stderr, reason = "the program's own words, beside its window")]
pub fn report(text: &str) {
    let lines = text.split('\n').map(|line| replaced(line, char::REPLACEMENT_CHARACTER));
    eprintln!("visperf-viewer: {}", lines.collect::<Vec<_>>().join("\n"));
}

/// Print what was asked for.
fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    match writeln!(std::io::stdout().lock(), "{text}") {
        // Who listens has heard enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
