//! A window or a picture of a synthetic grid, for the pictures of `docs/viewer.md` and for system tests.
//!
//! ```text
//! synthetic-grid DOMAINSxHOSTS TAB light|dark SECONDS [PICTURE]
//! ```
//!
//! Seconds are those of the synthetic hour; a picture has the size of a new window.

use anyhow::{Context as _, Result, bail};
use std::path::Path;
use viewer::app::App;
use viewer::app::settings::{Look, Settings};
use viewer::feed::{Status, Update};
use viewer::model::TimeChange;
use viewer::picture::headless::{Headless, Size};
use viewer::{picture, synthetic, window};

/// Calls of a host.
const CALLS: u32 = 20;
const SIZE: Size = Size { width: 1280, height: 800, scale: 1.0 };

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [grid, tab, look, secs, picture @ ..] = &words[..] else {
        bail!("expected DOMAINSxHOSTS TAB light|dark SECONDS [PICTURE]");
    };
    let (domains, hosts) = grid.split_once('x').context("expected DOMAINSxHOSTS")?;
    let (domains, hosts): (u32, u32) = (domains.parse()?, hosts.parse()?);
    let look = if look == "light" { Look::Light } else { Look::Dark };
    let now = synthetic::time_f(secs.parse()?);
    let settings = Settings { look, ..Settings::default() };
    let source = synthetic::window::log();
    let mut app = App::new(source, None, settings, jiff::tz::TimeZone::UTC, now);
    let calls = domains * hosts * CALLS;
    app.take(now, Update::grid(synthetic::grid(domains, hosts, calls, 1)));
    app.take(now, Update::Status(Status::Reading { lines: calls.into() }));
    synthetic::window::show_processes(&mut app);
    app.apply(TimeChange::StopAt(now));
    app.open_tab(tab);
    match picture {
        [] => window::run(app, None, Settings::default())?,
        [file, ..] => picture::draw(&mut Headless::new(SIZE, now), &mut app, Path::new(file))?,
    }
    Ok(())
}
