//! Latency from an event to its picture: a real `visperf sensor` follows a log, the viewer's threads query
//! it, and frames are drawn as the window would draw them, on each update.
//!
//! Prints the median and the 99th percentile of the time from the moment a line is written to the end of the
//! first frame in which its call is drawn; and from the start of the program to its first picture on disk.
//! The graphics card is not measured: it adds one frame.

#![allow(clippy::print_stdout)] // A benchmark prints its results.

use serde_json::json;
use std::ffi::OsStr;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};
use system_tests::grid::Daemon;
use system_tests::{program, query};
use viewer::app::settings::Settings;
use viewer::app::{App, Source};
use viewer::feed;
use viewer::live::{self, Plan};
use viewer::picture::headless::{Headless, Size};
use wire::time::Time;

/// Number of measured events.
const EVENTS: u32 = 200;
/// Longest wait for one of them.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two events, so that they do not overlap.
const PAUSE: Duration = Duration::from_millis(60);

fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("slurmctld.log");
    std::fs::write(&log, line(0))?;
    let config = folder.path().join("visperf.toml");
    std::fs::write(&config, format!("[[sensor.tail]]\npath = {log:?}\nstart = \"beginning\"\n"))?;
    let arguments: [&OsStr; 3] = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let (_daemon, address) = Daemon::start(&folder.path().join("state"), &arguments)?;
    first_pictures(address, folder.path())?;
    events(address, &log)
}

/// Time from the start of the program to its first picture.
fn first_pictures(address: SocketAddr, folder: &Path) -> anyhow::Result<()> {
    let file = folder.join("first.png");
    let mut times = Vec::new();
    for _ in 0..9 {
        let started = clock();
        let connect = address.to_string();
        let ended = program::command(program::viewer()?)
            .args(["--connect", &connect, "--screenshot"])
            .arg(&file)
            .status()?;
        anyhow::ensure!(ended.success(), "the viewer ended with {ended}");
        times.push(started.elapsed());
    }
    print("start to the first picture on disk", &mut times);
    Ok(())
}

fn events(address: SocketAddr, log: &Path) -> anyhow::Result<()> {
    let (feed, inbox) = feed::feed();
    live::follow(Plan { address: address.into(), domains: Vec::new(), is_directory: false }, feed)?;
    let mut app = App::new(
        Source::Daemon(address.to_string()),
        Some(inbox),
        Settings::default(),
        jiff::tz::TimeZone::UTC,
        now(),
    );
    // One pending wake-up is enough.
    let (wake, woken) = sync_channel(1);
    app.wake_by(move || {
        let _ = wake.try_send(());
    });
    let mut window = Headless::new(Size { width: 1280, height: 800, scale: 1.0 }, now());
    draw_until(&mut app, &mut window, &woken, "slurm:1000")?;
    let mut file = std::fs::OpenOptions::new().append(true).open(log)?;
    let (mut drawn, mut answered) = (Vec::new(), Vec::new());
    for number in 1..=EVENTS {
        std::thread::sleep(PAUSE);
        let started = clock();
        file.write_all(line(number).as_bytes())?;
        draw_until(&mut app, &mut window, &woken, &format!("slurm:{}", 1_000 + number))?;
        drawn.push(started.elapsed());
    }
    for number in EVENTS + 1..=EVENTS + 20 {
        // The sensor's share: until a query to it returns the event.
        let started = clock();
        file.write_all(line(number).as_bytes())?;
        let wanted = json!({ "call": format!("slurm:{}", 1_000 + number) });
        while query::result(address, "domain.calls", &wanted)?["calls"].as_array().is_none_or(Vec::is_empty) {
            anyhow::ensure!(started.elapsed() < PATIENCE, "the sensor does not report {wanted}");
        }
        answered.push(started.elapsed());
    }
    print("a line written to its call in a frame", &mut drawn);
    print("of it until the sensor answers with it", &mut answered);
    Ok(())
}

/// Draw a frame on each update, until this call is drawn.
fn draw_until(app: &mut App, window: &mut Headless, woken: &Receiver<()>, id: &str) -> anyhow::Result<()> {
    let started = clock();
    loop {
        let _ = woken.recv_timeout(Duration::from_millis(250));
        app.update(now(), 0.0);
        window.frames(app, 1);
        if app.model().grid().call_named(id).is_some() {
            return Ok(());
        }
        anyhow::ensure!(started.elapsed() < PATIENCE, "{id} was not drawn: {}", app.to_json());
    }
}

/// A line of Slurm's controller for a submitted job.
fn line(number: u32) -> String {
    let stamp = jiff::Timestamp::from_microsecond(now().micros())
        .map(|stamp| stamp.to_zoned(jiff::tz::TimeZone::system()));
    let stamp =
        stamp.map_or_else(|_| String::new(), |zoned| zoned.strftime("%Y-%m-%dT%H:%M:%S.000").to_string());
    format!("[{stamp}] _slurm_rpc_submit_batch_job: JobId={} InitPrio=4294901759 usec=300\n", 1_000 + number)
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let ms = |at: usize| times[at.min(times.len() - 1)].as_secs_f64() * 1e3;
    let (count, last) = (times.len(), times.len() - 1);
    println!(
        "{what}: {count} times, median {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        ms(count / 2),
        ms(count * 99 / 100),
        ms(last)
    );
}

#[allow(clippy::disallowed_methods)] // A measurement.
fn clock() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods)] // A measurement.
fn now() -> Time {
    Time::from(std::time::SystemTime::now())
}
