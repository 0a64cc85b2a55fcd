//! A daemon with hostile answers: a million hosts, names with control characters, invalid values and times of
//! the year 9999. The window continues to draw while it is queried, and reports what it refused.
//!
//! Rule: the whole path is tested, from the socket to the frame. Frame times are printed but not judged,
//! because the machine may be busy.

#![allow(clippy::print_stdout)] // Frame times are printed.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use viewer::app::settings::Settings;
use viewer::app::{App, Source};
use viewer::feed;
use viewer::live::{self, Plan};
use viewer::picture::headless::{Headless, Size};
use wire::time::Time;

/// Hosts that the daemon claims to have.
const HOSTS: u32 = 1_000_000;
/// Timeout for everything.
const PATIENCE: Duration = Duration::from_secs(120);
/// Timeout of the daemon for a frame: shorter than the viewer's timeout for the daemon.
const HELD_BACK: Duration = Duration::from_secs(8);
const YEAR_9999: f64 = 253_402_300_799.0;

#[allow(clippy::disallowed_methods)] // A real daemon is awaited by the real clock.
fn clock() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods)]
fn now() -> Time {
    Time::from(std::time::SystemTime::now())
}

/// Holds an answer back in its middle until a frame was drawn.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().expect("no thread panics with it") = true;
        self.opened.notify_all();
    }

    /// Wait until it is opened. Returns false after the timeout.
    fn wait(&self) -> bool {
        let is_open = self.is_open.lock().expect("no thread panics with it");
        let waited = self.opened.wait_timeout_while(is_open, HELD_BACK, |is_open| !*is_open);
        !waited.expect("no thread panics with it").1.timed_out()
    }
}

/// Start a daemon with these answers, which sends half of each before the gate is opened; returns its
/// address.
fn daemon(answers: fn(&str, u64) -> String, gate: &Arc<Gate>) -> SocketAddr {
    let gate = Arc::clone(gate);
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || serve(stream, answers, &gate));
        }
    });
    address
}

/// Answer each request of a connection; they are counted.
fn serve(stream: TcpStream, answers: fn(&str, u64) -> String, gate: &Gate) {
    let mut reader = BufReader::new(stream);
    for count in 0.. {
        let (mut first, mut len) = (String::new(), 0);
        if !reader.read_line(&mut first).is_ok_and(|read| read > 0) {
            return;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
                break;
            }
            if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                len = text.trim().parse().unwrap_or(0);
            }
        }
        if std::io::copy(&mut reader.by_ref().take(len), &mut std::io::sink()).is_err() {
            return;
        }
        let method = first.split('/').nth(3).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let body = answers(method, count);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let (half, rest) = body.as_bytes().split_at(body.len() / 2);
        let to = reader.get_mut();
        if to.write_all(head.as_bytes()).and_then(|()| to.write_all(half)).is_err() {
            return;
        }
        // If the drawing thread itself waits for the answer, the gate times out.
        if !gate.wait() || to.write_all(rest).is_err() {
            return;
        }
    }
}

fn hosts() -> String {
    let mut text = String::from("{\"domain\": \"\u{202e}evil\\u0007\", \"hosts\": [");
    for number in 0..HOSTS {
        let comma = if number == 0 { "" } else { "," };
        text.push_str(&match number % 1_000 {
            0 => format!("{comma}{{\"host\":\"\u{202e}\\u0000x{number}\",\"state\":\"live\",\"cpu_used\":-1e308,\"age\":1e300}}"),
            1 => format!("{comma}{{\"host\":\"{number}{}\",\"state\":\"live\"}}", "n".repeat(300)),
            _ => format!("{comma}{{\"host\":\"{number}\"}}"),
        });
    }
    text + "]}"
}

fn grid_answers(method: &str, _: u64) -> String {
    let calls = || -> Vec<Value> {
        let times = [YEAR_9999, -1e18, 1e300, 1.7e9];
        let call = |number: usize| {
            json!({"id": format!("x:{number}"), "user": "\u{202e}\u{1b}[2J", "state": "ended", "outcome": "failed",
                "submitted": times[number % 4], "ended": times[(number + 1) % 4], "hosts": vec!["5"; 400]})
        };
        (0..1_000).map(call).collect()
    };
    match method {
        "domain.hosts" => hosts(),
        "domain.calls" => json!({ "calls": calls() }).to_string(),
        "domain.events" => json!({ "events": [{}], "cursor": "x" }).to_string(),
        _ => "{}".to_owned(),
    }
}

/// Draw frames until `fits`; returns their durations, sorted.
fn frames(app: &mut App, fits: impl Fn(&App) -> bool) -> Vec<Duration> {
    let mut window = Headless::new(Size { width: 1280, height: 800, scale: 1.0 }, now());
    let (started, mut times) = (clock(), Vec::new());
    while !fits(app) {
        assert!(started.elapsed() < PATIENCE, "nothing of what was sent is drawn: {}", app.to_json());
        let frame = clock();
        // One clock for updates and frames: outdated marks are not drawn.
        let time = now();
        app.update(time, 0.016);
        window.set_time(time);
        window.frames(app, 1);
        times.push(frame.elapsed());
        std::thread::yield_now();
    }
    times.sort_unstable();
    times
}

fn print(what: &str, times: &[Duration]) {
    let ms = |at: usize| times.get(at.min(times.len() - 1)).map_or(0.0, Duration::as_secs_f64) * 1e3;
    println!(
        "{what}: {} frames, median {:.1} ms, p99 {:.1} ms, slowest {:.1} ms",
        times.len(),
        ms(times.len() / 2),
        ms(times.len() * 99 / 100),
        ms(times.len() - 1)
    );
}

#[test]
fn a_million_hosts_leave_the_window_responsive_and_what_was_refused_is_reported() {
    let gate = Arc::new(Gate::default());
    let address = daemon(grid_answers, &gate);
    let (feed, inbox) = feed::feed();
    live::follow(Plan { address: address.into(), domains: Vec::new(), is_directory: false }, feed).unwrap();
    let source = Source::Daemon(address.to_string());
    let mut app = App::new(source, Some(inbox), Settings::default(), jiff::tz::TimeZone::UTC, now());
    let drawn = std::cell::Cell::new(0_u32);
    let times = frames(&mut app, |app| {
        // No answer is complete before the third frame.
        if drawn.replace(drawn.get() + 1) == 3 {
            assert!(app.model().grid().places.is_empty());
            gate.open();
        }
        !app.model().grid().places.is_empty()
    });
    print("while a million hosts come", &times);
    assert!(times.len() > 3, "the grid came after {} frames", times.len());
    let refused = app.model().grid().refused.lines().join("; ");
    for part in [
        "980000 hosts beyond",
        "times before 1980 or in the future",
        "hosts of calls beyond",
        "names shown changed",
    ] {
        assert!(refused.contains(part), "{part:?} in {refused}");
    }
    assert!(refused.contains("figures that are no numbers"), "{refused}");
    assert_eq!(app.model().grid().hosts(), 20_000);
    assert!(
        app.model()
            .grid()
            .places
            .iter()
            .all(|place| place.name.chars().count() <= 256 && !place.name.contains('\u{202e}'))
    );
    let count = std::cell::Cell::new(0);
    print(
        "after they came",
        &frames(&mut app, |_| {
            count.set(count.get() + 1);
            count.get() > 60
        }),
    );
}

fn flock_answers(method: &str, count: u64) -> String {
    let sample = |number: u64| {
        let process = |pid: u64| {
            json!({"pid": pid, "start_ns": u64::MAX - number % 3, "name": format!("\u{202e}{pid}"), "threads": u32::MAX,
                "cpu_seconds": -1e300, "user_seconds": 1e308, "system_seconds": 1e308, "rss_bytes": u64::MAX,
                "minor_faults": u64::MAX, "read_bytes": u64::MAX, "written_bytes": u64::MAX})
        };
        // Far in the future, far in the past, and twice the same time; each fifth has an invalid field and is
        // refused.
        let time = [YEAR_9999, 1e300, -1e300, 1.7e9, 1.7e9][(number % 5) as usize];
        let processes: Vec<Value> = (0..9_000).map(process).collect();
        let left_out = if number % 5 == 4 { json!(-7) } else { json!(7) };
        json!({"number": number, "what": "sample", "time": time, "processes": processes, "left_out": left_out})
    };
    match method {
        "domain.hosts" => json!({"domain": "d", "hosts": [{"host": "a", "state": "live", "cpus": -1, "memory_total": 1e-300}]}).to_string(),
        "domain.calls" => json!({ "calls": [] }).to_string(),
        "sensor.subscribe" => json!({ "subscription": "s" }).to_string(),
        "sensor.take" => json!({ "entries": [sample(count)] }).to_string(),
        _ => "{}".to_owned(),
    }
}

#[test]
fn hostile_sweeps_stay_on_the_chart_and_within_bounds() {
    let gate = Arc::new(Gate::default());
    gate.open();
    let address = daemon(flock_answers, &gate);
    let (feed, inbox) = feed::feed();
    let (flock_feed, flock) = feed::feed();
    live::follow(Plan { address: address.into(), domains: Vec::new(), is_directory: false }, feed).unwrap();
    live::flock::follow(address.into(), flock_feed).unwrap();
    let source = Source::Daemon(address.to_string());
    let mut app = App::new(source, Some(inbox), Settings::default(), jiff::tz::TimeZone::UTC, now());
    app.feed_flock(flock);
    app.open_tab("flock");
    let times = frames(&mut app, |app| {
        app.model().flock().flock().refused().times > 1 && app.model().flock().flock().processes() >= 9_000
    });
    print("a hostile flock", &times);
    assert!(app.model().flock().flock().processes() <= viewer::flock::PROCESSES_MAX);
    assert!(
        app.model().flock().flock().refused().names > 0
            && app.model().flock().flock().refused().processes > 0
    );
    let mut seen = 0;
    for back in 0..100 {
        app.model().flock().flock().each(now().minus(Duration::from_millis(100) * back), |_, _, spots| {
            seen += 1;
            assert!(spots.iter().all(|spot| (0.0..=1.0).contains(&spot.x) && (0.0..=1.0).contains(&spot.y)));
        });
    }
    assert!(seen > 0);
}
