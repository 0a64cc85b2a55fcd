//! The demo grid in the viewer: `visperf up --demo`, the viewer's window on a virtual screen, keys and
//! clicks; what the window shows and writes into files is what the daemon answers.
//!
//! Needs Xvfb, xdotool and Mesa; `.ci/run` installs them and enables the feature `desktop`. Not here: ending
//! a process (`viewer_window`), which a demo started by root allows to no user.

use super::viewer_picture::{picture, screen_of};
use super::viewer_window::{PATIENCE, screen_with, viewer, xdotool};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use system_tests::grid::Daemon;
use system_tests::wait::{self, Seen};
use system_tests::{program, query};

/// Position of the states in the list of hosts, and the height of the window's rows, in pixels.
const STATES_X: usize = 32;
const ROWS_FROM: usize = 62;
const ROWS_UNTIL: usize = 680;
const ROW: usize = 22;
/// Position of the map on the screen: left, top, right, bottom.
const MAP: [usize; 4] = [222, 70, 1_276, 716];
/// Share of the map that may differ: borders are rounded by two different methods, and a host's colour
/// depends on its load.
const DIFFERS_MAX: f64 = 0.004;

/// Start the demo, played to its end; returns its daemon and address.
fn demo(folder: &Path) -> (Daemon, SocketAddr) {
    let arguments = ["up", "--demo", "--speed", "10000"].map(OsStr::new);
    let (daemon, address) = Daemon::start(&folder.join("state"), &arguments).unwrap();
    let mut before = Value::Null;
    let settled = || {
        let summary = query::result(address, "sensor.calls", &json!({ "limit": 10_000 }))?["calls"].clone();
        let all = summary.as_array().map_or(0, Vec::len);
        let is_same = all > 100 && before == summary;
        before = summary;
        std::thread::sleep(std::time::Duration::from_secs(2));
        Ok(if is_same { Seen::Done(()) } else { Seen::NotYet(format!("{all} calls")) })
    };
    wait::until(PATIENCE, "the demo to be over", settled).unwrap();
    (daemon, address)
}

fn all(address: SocketAddr, method: &str, list: &str, name: &str) -> BTreeSet<String> {
    let answer = query::result(address, method, &json!({ "limit": 10_000 })).unwrap();
    let items = answer[list].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
    items.iter().filter_map(|item| item[name].as_str().map(str::to_owned)).collect()
}

/// Hosts that report, and those that calls name too: the map has one of each name, whatever domain name
/// follows it.
fn hosts(address: SocketAddr) -> (BTreeSet<String>, BTreeSet<String>) {
    let answer = query::result(address, "domain.hosts", &json!({})).unwrap();
    let monitored: BTreeSet<String> = answer["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["host"].as_str().unwrap().to_owned())
        .collect();
    let answer = query::result(address, "sensor.calls", &json!({ "limit": 10_000 })).unwrap();
    let of_call = |call: &Value| call["hosts"].as_array().cloned().unwrap_or_default();
    let named = answer["calls"].as_array().unwrap().iter().flat_map(of_call);
    let named = named.filter_map(|host| host.as_str().map(str::to_owned));
    let first_label = |name: String| name.split('.').next().unwrap_or_default().to_owned();
    let known = monitored.iter().cloned().chain(named).map(first_label).collect();
    (monitored, known)
}

/// Press a key until it has written a file of this kind; returns the file.
fn written(display: &str, window: &str, folder: &Path, key: &str, ending: &str) -> PathBuf {
    let files = || {
        let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        entries.filter(|path| path.extension() == Some(OsStr::new(ending))).collect::<BTreeSet<_>>()
    };
    let before = files();
    wait::until(PATIENCE, &format!("a file of {key}"), || {
        xdotool(display, &["windowfocus", "--sync", window]);
        xdotool(display, &["key", key]);
        std::thread::sleep(std::time::Duration::from_secs(1));
        Ok(match files().difference(&before).next() {
            Some(file) if file.metadata().is_ok_and(|about| about.len() > 0) => Seen::Done(file.clone()),
            Some(_) | None => Seen::NotYet("there is none".to_owned()),
        })
    })
    .unwrap()
}

/// Rows of a CSV file, by the names of its columns.
fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    lines.map(|line| columns.iter().cloned().zip(line).collect()).collect()
}

/// Vertical positions of the state marks in the list of hosts.
fn states_seen(folder: &Path) -> Vec<usize> {
    let screen = screen_of(folder);
    let ground = screen.at(STATES_X, ROWS_UNTIL);
    let is_mark =
        |y: &usize| screen.at(STATES_X, *y).iter().zip(ground).any(|(one, two)| one.abs_diff(two) > 40);
    let lit: Vec<usize> = (ROWS_FROM..ROWS_UNTIL).filter(is_mark).collect();
    lit.chunk_by(|one, next| next - one < ROW / 2).map(|mark| mark[mark.len() / 2]).collect()
}

#[test]
fn the_demo_is_seen_as_its_daemon_answers() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, address) = demo(folder.path());
    let (monitored, known) = hosts(address);
    let into: [&OsStr; 2] = ["-fbdir".as_ref(), folder.path().as_os_str()];
    let (_screen, display) = screen_with(&into);
    let connect = address.to_string();
    let (_viewer, window) = viewer(&display, folder.path(), &["--connect", &connect, "--dark"]);

    // The number of hosts, counted on the screen.
    let marks = wait::until(PATIENCE, "the hosts on the screen", || {
        let seen = states_seen(folder.path());
        Ok(if seen.len() == known.len() {
            Seen::Done(seen)
        } else {
            Seen::NotYet(format!("{} of {}", seen.len(), known.len()))
        })
    })
    .unwrap();

    // The map, compared with a picture that is drawn without a screen.
    let file = folder.path().join("map.png");
    wait::until(PATIENCE, "the same map on the screen", || {
        let drawn = program::command(program::viewer().unwrap())
            .args(["--connect", &connect, "--dark", "--size", "1280x800", "--screenshot"])
            .arg(&file)
            .output()?;
        assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
        let (wanted, seen) = (picture(&file).part(MAP), screen_of(folder.path()).part(MAP));
        assert!(wanted.colored() > 200, "something is drawn: {}", wanted.colored());
        let differs = seen.differs(&wanted);
        Ok(if differs <= DIFFERS_MAX {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("{:.2} % differ", differs * 100.0))
        })
    })
    .unwrap();

    // Every call, as the window exports it.
    let exported = rows(&written(&display, &window, folder.path(), "e", "csv"));
    let ids: BTreeSet<String> = exported.iter().map(|row| row["call"].clone()).collect();
    assert_eq!((ids.len(), ids), (exported.len(), all(address, "sensor.calls", "calls", "id")));

    // A double click on the host that reports: its graphs, and the values from which they are drawn.
    let host = monitored.first().unwrap();
    let row = known.iter().position(|known| host.starts_with(known.as_str())).unwrap();
    let y = marks[row].to_string();
    xdotool(&display, &["mousemove", "60", &y, "click", "--repeat", "2", "--delay", "60", "1"]);
    let figures = wait::until(PATIENCE, "figures of the host", || {
        let file = written(&display, &window, folder.path(), "e", "csv");
        let rows = rows(&file);
        let is_so = rows.iter().any(|row| row.get("series").is_some_and(|name| name == "memory"));
        Ok(if is_so { Seen::Done(rows) } else { Seen::NotYet(format!("{} has none", file.display())) })
    })
    .unwrap();
    assert!(figures.iter().all(|row| row["host"] == *host), "of the chosen host alone");
    let asked = json!({ "name": "node_load1", "history": true });
    let answer = query::result(address, "sensor.metrics", &asked).unwrap();
    let samples = answer["metrics"][0]["samples"].as_array().unwrap().clone();
    let loads = figures.iter().filter(|row| row["series"] == "load of 1 minute");
    let drawn: Vec<(f64, f64)> =
        loads.map(|row| (row["time"].parse().unwrap(), row["value"].parse().unwrap())).collect();
    let is_sampled = |&(time, value): &(f64, f64)| {
        // Before the first received sample there are steps of the store: whole seconds, with the sample of that second.
        let is_step = time.fract() == 0.0;
        let is_of = |sample: &&Value| {
            let later = sample["time"].as_f64().unwrap() - time;
            later.abs() < 1e-3 || (is_step && (0.0..1.0).contains(&later))
        };
        samples.iter().filter(is_of).any(|sample| sample["value"].as_f64() == Some(value))
    };
    assert!(drawn.len() > 3 && drawn.iter().all(is_sampled), "{drawn:?}");
    a_past_flock_is_written_without_a_window(&connect, address, daemon.pid(), folder.path());
}

/// This flock was never displayed: the export of a past time is what the sensor recorded.
fn a_past_flock_is_written_without_a_window(connect: &str, address: SocketAddr, daemon: u32, folder: &Path) {
    let asked = json!({ "from": 0, "to": 0, "limit": 0 });
    let answer = query::result(address, "sensor.past_processes", &asked).unwrap();
    let span = |name: &str| answer["spans"][0][name].as_f64().unwrap();
    let (from, to) = (span("from"), span("to"));
    // The memory window moves on: a time in its newest half is still there when it is requested.
    let at = format!("{:.1}", to - (to - from) / 4.0);
    let file = folder.join("past.csv");
    let arguments = ["--connect", connect, "--tab", "flock", "--at", &at, "--export"];
    let written = program::command(program::viewer().unwrap()).args(arguments).arg(&file).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let rows = rows(&file);
    let own: Vec<_> = rows.iter().filter(|row| row["pid"] == daemon.to_string()).collect();
    assert_eq!(own.len(), 1, "{} processes; {}", rows.len(), String::from_utf8_lossy(&written.stderr));
    assert_eq!((own[0]["time"].as_str(), own[0]["program"].as_str()), (at.as_str(), "visperf"));
}
