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
use viewer::feed::{Feed, Status, Update};
use viewer::model::TimeChange;
use viewer::picture::headless::{Headless, Size};
use viewer::{picture, synthetic, window};
use wire::time::Time;

/// Calls of a host.
const CALLS: u32 = 20;
/// Jobs in their table.
const JOBS: u32 = 2_000;
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
    let shows_jobs = ["jobs", "job"].contains(&tab.as_str());
    let source = if shows_jobs { synthetic::window::daemon() } else { synthetic::window::log() };
    let mut app = App::new(source, None, settings, jiff::tz::TimeZone::UTC, now);
    let calls = domains * hosts * CALLS;
    app.take(now, Update::grid(synthetic::grid(domains, hosts, calls, 1)));
    let connected = Status::Connected { address: String::new(), took_secs: 0.0, troubles: Vec::new() };
    let status = if shows_jobs { connected } else { Status::Reading { lines: calls.into() } };
    app.take(now, Update::Status(status));
    synthetic::window::show_processes(&mut app);
    app.apply(TimeChange::StopAt(now));
    app.open_tab(tab);
    let _feed = shows_jobs.then(|| show_jobs(&mut app, tab == "job", now));
    match picture {
        [] => window::run(app, None, Settings::default())?,
        [file, ..] => picture::draw(&mut Headless::new(SIZE, now), &mut app, Path::new(file))?,
    }
    Ok(())
}

/// Show jobs with their curves, or the page of one; returns the feed of further requests.
fn show_jobs(app: &mut App, is_page: bool, now: Time) -> Feed {
    let feed = synthetic::window::show_jobs(app, JOBS, now);
    // What is visible is known once it was drawn.
    Headless::new(SIZE, now).frames(app, 3);
    synthetic::window::show_job_curves(app, &feed, now);
    if is_page {
        synthetic::window::open_job(app, JOBS - 10, now);
    }
    feed
}
