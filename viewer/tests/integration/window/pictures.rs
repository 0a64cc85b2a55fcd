//! Tabs compared with reference pictures that were checked by eye (`tests/pictures`).
//!
//! Rule: pictures are the same on every machine; a pixel may differ slightly and few may differ by more,
//! because compilers round differently. A picture that differs is written beside the tests' own files, and
//! its path is printed. After an intended change, `VISPERF_PICTURES=keep cargo test -p viewer --test
//! integration pictures` stores the new pictures; check them by eye. Not here: operation by pointer and keys
//! (the other files).

use std::path::{Path, PathBuf};
use viewer::app::settings::{Look, Settings};
use viewer::app::{App, Source};
use viewer::feed::{Status, Update};
use viewer::flock::sweep::HostName;
use viewer::model::{Change, TimeChange};
use viewer::picture::headless::{Headless, Size};
use viewer::{picture, synthetic};

const SIZE: Size = Size { width: 960, height: 600, scale: 1.0 };
const AT_SECS: f64 = 1_800.0;
/// Colour channels that differ by more than this count as different.
const SEEN: u8 = 24;
/// One pixel in this many may be different.
const ONE_IN: usize = 20_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures")
}

/// Width and bytes of a PNG file, three for each pixel.
fn read(path: &Path) -> Option<(u32, Vec<u8>)> {
    let file = std::io::BufReader::new(std::fs::File::open(path).ok()?);
    let mut reader = png::Decoder::new(file).read_info().expect("a picture");
    let mut bytes = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut bytes).expect("pixels");
    Some((info.width, bytes))
}

/// Compare what is drawn with the picture of this name.
fn check(name: &str, mut app: App) {
    let mut window = Headless::new(SIZE, synthetic::time_f(AT_SECS));
    let kept = folder().join(format!("{name}.png"));
    let drawn = match std::env::var_os("VISPERF_PICTURES").is_some_and(|word| word == "keep") {
        true => kept.clone(),
        false => Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png")),
    };
    picture::draw(&mut window, &mut app, &drawn).expect("a file can be written");
    let (width, expected) = read(&kept).unwrap_or_else(|| panic!("there is no picture {}", kept.display()));
    let (found_width, found) = read(&drawn).expect("it was written");
    assert_eq!((found_width, found.len()), (width, expected.len()), "another size: {}", drawn.display());
    let is_other = |(one, other): &(&[u8], &[u8])| one.iter().zip(*other).any(|(a, b)| a.abs_diff(*b) > SEEN);
    let pixels = expected.len() / 3;
    let differ = expected.chunks_exact(3).zip(found.chunks_exact(3)).filter(is_other).count();
    assert!(
        differ <= pixels / ONE_IN,
        "{differ} of {pixels} pixels differ; compare {} with {}",
        drawn.display(),
        kept.display()
    );
}

/// A synthetic grid with a tab in front, as of a log.
fn app(tab: &str, look: Look) -> App {
    let mut app = app_of(synthetic::window::log(), Status::Reading { lines: 300 }, tab, look);
    synthetic::window::show_processes(&mut app);
    app
}

/// The same with graphs, as of a daemon.
fn graphs(tab: &str, look: Look) -> App {
    let status = Status::Connected { address: String::new(), took_secs: 0.0, troubles: Vec::new() };
    let mut app = app_of(synthetic::window::daemon(), status, tab, look);
    let hosts: Vec<HostName> = app.model().placed().server_names().map(|(_, name)| name).collect();
    synthetic::window::show_figures(&mut app, &hosts, synthetic::time_f(AT_SECS));
    app
}

fn app_of(source: Source, status: Status, tab: &str, look: Look) -> App {
    let now = synthetic::time_f(AT_SECS);
    let settings = Settings { look, ..Settings::default() };
    let mut app = App::new(source, None, settings, jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::grid(synthetic::grid(2, 12, 300, 5)));
    app.take(now, Update::Status(status));
    app.apply(TimeChange::StopAt(now));
    app.open_tab(tab);
    app
}

#[test]
fn the_map() {
    check("map-dark", app("map", Look::Dark));
    let mut chosen = app("map", Look::Light);
    let domain = chosen.model().grid().domains[0].name.clone();
    chosen.select_named(&format!("{domain}/wn003"));
    check("map-light-chosen", chosen);
}

#[test]
fn the_calls() {
    let mut chosen = app("calls", Look::Light);
    let call = chosen.model().grid().calls[40].id.clone();
    chosen.select_named(&call);
    chosen.apply(Change::Search("outcome:failed".into()));
    check("calls-light-chosen", chosen);
}

#[test]
fn the_graphs() {
    check("graphs-dark", graphs("graphs", Look::Dark));
    check("multiples-light", graphs("multiples", Look::Light));
}

#[test]
fn the_flock() {
    check("flock-dark", app("flock", Look::Dark));
}

#[test]
fn the_jobs() {
    let now = synthetic::time_f(AT_SECS);
    let jobs = |look: Look| {
        let status = Status::Connected { address: String::new(), took_secs: 0.0, troubles: Vec::new() };
        let mut app = app_of(synthetic::window::daemon(), status, "jobs", look);
        let feed = synthetic::window::show_jobs(&mut app, 400, now);
        Headless::new(SIZE, now).frames(&mut app, 3);
        synthetic::window::show_job_curves(&mut app, &feed, now);
        app
    };
    check("jobs-dark", jobs(Look::Dark));
    let mut opened = jobs(Look::Light);
    synthetic::window::open_job(&mut opened, 390, now);
    check("job-light", opened);
}

#[test]
fn the_sensors_and_no_connection() {
    check("sensors-light", app("sensors", Look::Light));
    let now = synthetic::time_f(AT_SECS);
    let settings = Settings { look: Look::Dark, ..Settings::default() };
    let mut lost = App::new(synthetic::window::daemon(), None, settings, jiff::tz::TimeZone::UTC, now);
    lost.take(now, Update::Status(Status::Lost { what: "no daemon answers".into() }));
    check("lost-dark", lost);
}
