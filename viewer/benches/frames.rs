//! CPU time of a frame without a graphics card: state, layout of the window, tessellation; of the drawing
//! thread only, so that other programs on the machine are not measured.
//!
//! Prints median and 99th percentile for 10,000 hosts with about 2,000 moving calls, at three zooms, for
//! small graphs of 64 hosts, now and in the past, while they are zoomed from five years to five seconds, and for a flock of 50,000 moving marks; for the
//! table of 100,000 jobs, while it is scrolled through; the duration of the layout of these
//! hosts, and the memory of all of it.

#![allow(clippy::print_stdout)] // A benchmark prints its results.

use std::time::{Duration, Instant};
use viewer::app::settings::Settings;
use viewer::app::{App, Command};
use viewer::feed::{self, Drawn, Feed, Request, Update, WakeReason};
use viewer::flock::sweep::HostName;
use viewer::graphs::metric::Metric;
use viewer::graphs::tiles::{Lines, Point, TileRequest};
use viewer::jobs::sort::Column;
use viewer::layout::{Moves, layout};
use viewer::model::{GraphsChange, JobsChange, TimeChange};
use viewer::picture::headless::{Headless, Size};
use viewer::synthetic;

const FRAMES: usize = 120;
/// Five years, in seconds.
const YEARS_SECS: f64 = 5.0 * 366.0 * 86_400.0;
/// Hosts of the flock, and processes of each; each process has four marks.
const FLOCK: (u32, u32) = (50, 250);

fn main() {
    let grid = synthetic::busy(20, 500, 2_000);
    let now = synthetic::latest();
    let started = clock();
    let places = layout(&grid, &Moves::default()).places.len();
    println!("layout of {places} places: {:.1} ms", ms(started.elapsed()));
    for (name, zoom) in
        [("whole grid, domains as cards", 1.0), ("one domain of 500 hosts", 5.0), ("a few hosts", 30.0)]
    {
        let mut app =
            App::new(synthetic::window::log(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
        app.take(now, Update::Grid(std::sync::Arc::new(Drawn::new(grid.clone()))));
        app.apply(TimeChange::StopAt(synthetic::time_f(100.2)));
        let mut window = Headless::new(Size { width: 1280, height: 800, scale: 1.0 }, now);
        window.frames(&mut app, 3);
        app.apply(Command::ZoomMap(zoom));
        window.frames(&mut app, 3);
        let (triangles, times) = measured(&mut app, &mut window, 100.2);
        println!("{name}: {} calls moving, {triangles} triangles, {times}", app.model().scene().marks.len());
    }
    graphs(&grid, now);
    past_graphs(&grid, now);
    flock(&grid, now);
    jobs(&grid, now);
    println!("memory: {} MiB at the most", memory_mib());
}

/// Half a second of frames from a time of the synthetic hour on: the number of triangles of the last, and
/// durations.
fn measured(app: &mut App, window: &mut Headless, from: f64) -> (usize, String) {
    let mut times: Vec<Duration> = Vec::with_capacity(FRAMES);
    let mut triangles = 0;
    for frame in 0..FRAMES {
        app.apply(TimeChange::StopAt(synthetic::time_f(from + frame as f64 / 200.0)));
        let started = cpu_time();
        let primitives = window.frames(app, 1);
        times.push(cpu_time().saturating_sub(started));
        triangles = count(&primitives);
    }
    (triangles, summary(times))
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| ms(times[times.len() * share / 100]);
    format!("median {:.2} ms, p99 {:.2} ms", at(50), at(99))
}

/// The same grid with the graphs tab in front: small graphs of the maximum number of hosts, for each metric.
fn graphs(grid: &viewer::grid::Grid, now: wire::time::Time) {
    let mut app =
        App::new(synthetic::window::daemon(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::Grid(std::sync::Arc::new(Drawn::new(grid.clone()))));
    let hosts: Vec<HostName> =
        (1..=64).map(|number| HostName::new("UT-ICL", &format!("wn{number:03}"))).collect();
    synthetic::window::show_figures(&mut app, &hosts, now);
    app.apply(GraphsChange::SetHosts(Some(hosts)));
    app.open_tab("multiples");
    for (size, secs) in [((1280, 800), 300.0), ((3840, 2160), 300.0), ((3840, 2160), 3_600.0)] {
        app.apply(GraphsChange::SetSpan(secs));
        let mut window = Headless::new(Size { width: size.0, height: size.1, scale: 1.0 }, now);
        app.apply(TimeChange::StopAt(synthetic::time_f(2_000.0)));
        window.frames(&mut app, 3);
        let (triangles, times) = measured(&mut app, &mut window, 2_000.0);
        println!("320 small graphs over {secs} s at {}x{}: {triangles} triangles, {times}", size.0, size.1);
    }
}

/// The same graphs of times that were stored, all of it received; then zoomed, with each tile answered as it is requested.
fn past_graphs(grid: &viewer::grid::Grid, now: wire::time::Time) {
    let (source, inbox) = feed::feed();
    let settings = Settings::default();
    let mut app = App::new(synthetic::window::daemon(), Some(inbox), settings, jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::Grid(std::sync::Arc::new(Drawn::new(grid.clone()))));
    app.take(now, Update::Oldest(now.minus(Duration::from_secs_f64(2.0 * YEARS_SECS))));
    let hosts = (1..=64).map(|number| HostName::new("UT-ICL", &format!("wn{number:03}"))).collect();
    app.apply(GraphsChange::SetHosts(Some(hosts)));
    app.open_tab("multiples");
    let mut window = Headless::new(Size { width: 3840, height: 2160, scale: 1.0 }, now);
    for secs in [5.0, 86_400.0, 30.0 * 86_400.0, YEARS_SECS] {
        app.apply(GraphsChange::SetSpan(secs));
        app.apply(TimeChange::StopAt(synthetic::time_f(-86_400.0)));
        while answered(&mut app, &source, now) > 0 {}
        window.frames(&mut app, 3);
        let (triangles, times) = measured(&mut app, &mut window, -86_400.0);
        println!("320 small graphs of {secs} s of the past at 3840x2160: {triangles} triangles, {times}");
    }
    let (mut times, mut tiles) = (Vec::new(), 0);
    while app.model().graphs().choice().span.secs() > 5.0 {
        app.apply(GraphsChange::Zoom(1.05, 0.5));
        tiles += answered(&mut app, &source, now);
        let started = cpu_time();
        window.frames(&mut app, 1);
        times.push(cpu_time().saturating_sub(started));
    }
    println!(
        "zoomed from five years to five seconds: {} frames, {tiles} tiles, {}",
        times.len(),
        summary(times)
    );
}

/// Answers the tiles that are requested; their number.
fn answered(app: &mut App, source: &Feed, now: wire::time::Time) -> usize {
    app.watch_graphs();
    app.update(now, 0.0);
    let mut requested = Vec::new();
    while let WakeReason::Requested(request) = source.rest(Duration::ZERO) {
        if let Request::Tiles(tiles) = request {
            requested = tiles;
        }
    }
    let count = requested.len();
    for tile in requested {
        let lines = tile.metrics.iter().map(|metric| (metric.clone(), lines(metric, &tile)));
        let lines = Ok(lines.collect());
        app.take(now, Update::Tile { tile, lines, oldest: None, ages: None, marks: Vec::new() });
    }
    count
}

fn lines(metric: &Metric, tile: &TileRequest) -> Lines {
    let (from, to) = tile.range();
    let times = std::iter::successors(Some(from), |time| Some(time.plus(tile.level.step())));
    let point = |time: wire::time::Time| {
        let value = (time.micros() / 1_000 % 977) as f64;
        Point { time, mean: value, least: value / 2.0, greatest: value * 1.5 }
    };
    let points: Vec<Point> = times.take_while(|time| *time < to).map(point).collect();
    metric.usual_lines().iter().map(|name| ((*name).to_owned(), points.clone())).collect()
}

/// The same grid with its flock in front.
fn flock(grid: &viewer::grid::Grid, now: wire::time::Time) {
    let mut app = App::new(synthetic::window::log(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::Grid(std::sync::Arc::new(Drawn::new(grid.clone()))));
    let hosts: Vec<HostName> =
        (1..=FLOCK.0).map(|number| HostName::new("UT-ICL", &format!("wn{number:03}"))).collect();
    let started = clock();
    let step = Duration::from_millis(500);
    let flock = synthetic::flock::flock(&hosts, FLOCK.1, synthetic::time_f(90.0), 64, step);
    let took = started.elapsed();
    let marks = flock.processes() * 4;
    app.show_flock(flock);
    app.open_tab("flock");
    println!("64 sweeps of {marks} marks taken in {:.0} ms", ms(took));
    let mut window = Headless::new(Size { width: 1280, height: 800, scale: 1.0 }, now);
    app.apply(TimeChange::StopAt(synthetic::time_f(100.2)));
    window.frames(&mut app, 3);
    for (name, has_trails, is_drawn_by_card) in
        [("flock as meshes", true, false), ("flock", true, true), ("flock without trails", false, true)]
    {
        app.show_trails(has_trails);
        if is_drawn_by_card {
            app.make_instances();
        }
        let (triangles, times) = measured(&mut app, &mut window, 100.2);
        println!("{name}: {marks} marks moving, {triangles} triangles of egui's, {times}");
    }
}

/// The table of the most jobs that are loaded, scrolled through from the newest to the oldest, and sorted.
fn jobs(grid: &viewer::grid::Grid, now: wire::time::Time) {
    let count = u32::try_from(viewer::jobs::ROWS_MAX).unwrap_or(u32::MAX);
    let mut app =
        App::new(synthetic::window::daemon(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::Grid(std::sync::Arc::new(Drawn::new(grid.clone()))));
    let started = clock();
    let feed = synthetic::window::show_jobs(&mut app, count, now);
    println!("{count} jobs taken in {:.0} ms", ms(started.elapsed()));
    let mut window = Headless::new(Size { width: 1280, height: 800, scale: 1.0 }, now);
    window.point(egui::pos2(700.0, 400.0));
    window.frames(&mut app, 3);
    let (mut times, mut triangles) = (Vec::with_capacity(FRAMES), 0);
    for frame in 0..FRAMES {
        synthetic::window::show_job_curves(&mut app, &feed, now);
        // Row by row at first, then faster and faster.
        window.event(egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: egui::vec2(0.0, -(10.0 + (frame * frame) as f32)),
            modifiers: egui::Modifiers::NONE,
            phase: egui::TouchPhase::Move,
        });
        let started = cpu_time();
        let primitives = window.frames(&mut app, 1);
        times.push(cpu_time().saturating_sub(started));
        triangles = self::count(&primitives);
    }
    println!("table of {count} jobs, scrolled: {triangles} triangles, {}", summary(times));
    let started = cpu_time();
    app.apply(JobsChange::Sort(Column::Name));
    println!("{count} jobs sorted by name in {:.0} ms", ms(cpu_time().saturating_sub(started)));
}

/// CPU time used by this thread.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Peak memory of this process.
fn memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1_024
}

fn count(primitives: &[egui::ClippedPrimitive]) -> usize {
    let mesh = |primitive: &egui::ClippedPrimitive| match &primitive.primitive {
        egui::epaint::Primitive::Mesh(mesh) => mesh.indices.len() / 3,
        egui::epaint::Primitive::Callback(_) => 0,
    };
    primitives.iter().map(mesh).sum()
}

#[allow(clippy::disallowed_methods)] // A measurement.
fn clock() -> Instant {
    Instant::now()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
