//! The viewer's window on a screen that is nowhere (Xvfb), worked by keys (xdotool): what is chosen there is kept, and
//! there again at the next start; a process of the flock that is ended there has ended.
//!
//! Needs Xvfb, xdotool and Mesa; `.ci/run` installs them and asks for the feature `desktop`.

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::lab::Stopwatch;
use system_tests::wait::{self, Seen};
use system_tests::{program, query};

/// Longest wait for a window, drawn without a graphics card on a busy machine, and for what a key does.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A key of which nothing is kept after so long was lost: changes are kept each three seconds.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// A process that is gone when the story is over.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A screen, and its name.
fn screen() -> (Running, String) {
    screen_with(&[])
}

/// The same, with more arguments.
pub(super) fn screen_with(more: &[&OsStr]) -> (Running, String) {
    // Without a reset: it would turn away who comes just when the only other one left.
    let arguments = ["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset"];
    let mut child = program::command("Xvfb")
        .args(arguments)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut number = String::new();
    let out = child.stdout.take().unwrap();
    let running = Running(child);
    BufReader::new(out).read_line(&mut number).unwrap();
    (running, format!(":{}", number.trim()))
}

/// The viewer with a log of Slurm, and its window.
fn replaying(display: &str, home: &Path) -> (Running, String) {
    let log = program::workspace().join("log-filters/logs/slurm/22.05.8-alpha/slurmctld.log");
    viewer(display, home, &["--replay", &log.display().to_string()])
}

/// The viewer, and its window.
pub(super) fn viewer(display: &str, home: &Path, arguments: &[&str]) -> (Running, String) {
    let child = program::command(program::viewer().unwrap())
        .args(arguments)
        .env("DISPLAY", display)
        .env_remove("WAYLAND_DISPLAY")
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .current_dir(home)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let window = wait::until(PATIENCE, "a window", || {
        if let Some(ended) = running.0.try_wait()? {
            anyhow::bail!("the viewer ended with {ended}");
        }
        let found = xdotool(display, &["search", "--onlyvisible", "--name", "^visperf$"]);
        Ok(match found.split_whitespace().last() {
            Some(window) => Seen::Done(window.to_owned()),
            None => Seen::NotYet("there is none".to_owned()),
        })
    });
    (running, window.unwrap())
}

pub(super) fn xdotool(display: &str, arguments: &[&str]) -> String {
    let output = program::command("xdotool").args(arguments).env("DISPLAY", display).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Press a key until the settings that are kept are as wished: a window takes keys only when it is drawn, so one may be
/// lost. Pressed again it does the contrary where it was not lost, but late, and is then pressed once more: in the end one
/// fits, whatever was lost.
fn press_until(display: &str, window: &str, key: &str, file: &Path, fits: impl Fn(&Value) -> bool) {
    let kept = || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or(Value::Null)
    };
    let mut pressed: Option<Stopwatch> = None;
    let settled = || {
        let value: Value = kept();
        if fits(&value) {
            return Ok(Seen::Done(()));
        }
        if pressed.as_ref().is_none_or(|pressed| pressed.elapsed() > LOST_AFTER) {
            xdotool(display, &["windowfocus", "--sync", window]);
            xdotool(display, &["key", key]);
            pressed = Some(Stopwatch::start());
        }
        Ok(Seen::NotYet(format!("kept is {value}")))
    };
    wait::until(PATIENCE, &format!("what {key} does to be kept"), settled).unwrap();
}

#[test]
fn what_keys_choose_is_there_at_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let (_screen, display) = screen();
    let file = home.path().join("visperf/viewer.json");
    let (running, window) = replaying(&display, home.path());
    // A first sign of life: the size of the window is kept.
    wait::until(PATIENCE, "kept settings", || {
        Ok(if file.is_file() { Seen::Done(()) } else { Seen::NotYet("there are none".to_owned()) })
    })
    .unwrap();
    press_until(&display, &window, "t", &file, |kept| kept["look"] == json!("light"));
    press_until(&display, &window, "h", &file, |kept| kept["hides_tree"] == json!(true));
    drop(running);
    // The same keys undo it only if it was there.
    let (_running, window) = replaying(&display, home.path());
    press_until(&display, &window, "t", &file, |kept| kept["look"] == json!("dark"));
    press_until(&display, &window, "h", &file, |kept| kept["hides_tree"] == json!(false));
}

/// Whose processes may be ended: root's never are.
const NOBODY: u32 = 65_534;

/// A sleeping process of somebody who is not root, and whose it is.
fn sleeper() -> (Running, u32) {
    let own = rustix::process::geteuid();
    let mut command = program::command(if own.is_root() { "setpriv" } else { "sleep" });
    if own.is_root() {
        let number = NOBODY.to_string();
        command.args(["--reuid", &number, "--regid", &number, "--clear-groups", "sleep"]);
    }
    let child = command.arg("86400").current_dir("/").stdin(Stdio::null()).spawn().unwrap();
    (Running(child), if own.is_root() { NOBODY } else { own.as_raw() })
}

/// A sensor that obeys orders to processes of this user, swept by `/proc`.
fn sensor(folder: &Path, uid: u32) -> (Daemon, std::net::SocketAddr) {
    let config = folder.join("visperf.toml");
    let text = format!("[sensor]\nprocess_source = 'procfs'\n[sensor.control]\nusers = ['{uid}']\n");
    std::fs::write(&config, text).unwrap();
    let arguments: [&OsStr; 3] = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    Daemon::start(&folder.join("state"), &arguments).unwrap()
}

#[test]
fn a_process_of_the_flock_is_ended_by_who_may() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, uid) = sleeper();
    let (_sensor, address) = sensor(folder.path(), uid);
    let pid = sleeper.0.id();
    let (_screen, display) = screen();
    let (connect, search) = (address.to_string(), format!("pid:{pid}"));
    let arguments = ["--connect", &connect, "--tab", "flock", "--search", &search];
    let (_viewer, window) = viewer(&display, folder.path(), &arguments);
    xdotool(&display, &["windowfocus", "--sync", &window]);
    // The window asks only once the process is in its flock, and obeys Return only where it asks.
    wait::until(PATIENCE, "the process to end", || {
        xdotool(&display, &["key", "k"]);
        xdotool(&display, &["key", "Return"]);
        Ok(match sleeper.0.try_wait()? {
            Some(ended) => Seen::Done(ended),
            None => Seen::NotYet(format!("process {pid} is there still")),
        })
    })
    .unwrap();
    wait::until(PATIENCE, "the order in the trail", || {
        let answer = query::result(address, "sensor.events", &json!({ "kind": "message" }))?;
        let of_it = |event: &Value| {
            let told = &event["attributes"];
            told["pid"] == json!(pid.to_string())
                && told["result"] == json!("obeyed")
                && told["act"] == json!("TERM")
        };
        let obeyed = answer["events"].as_array().is_some_and(|events| events.iter().any(of_it));
        Ok(if obeyed { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
    })
    .unwrap();
}
