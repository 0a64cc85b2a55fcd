//! The viewer's window on a virtual screen (Xvfb), operated by keys (xdotool): its settings are stored and
//! restored at the next start; a process that is ended in the flock has ended.
//!
//! Needs Xvfb, xdotool and Mesa; `.ci/run` installs them and enables the feature `desktop`.

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

/// Timeout for a window, drawn without a graphics card on a busy machine, and for the effect of a key.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A key without a stored effect after this time was lost: changes are stored every three seconds.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// A process that is killed at the end of the test.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Start a screen; returns its name too.
fn screen() -> (Running, String) {
    screen_with(&[])
}

/// As [`screen`], with more arguments.
pub(super) fn screen_with(more: &[&OsStr]) -> (Running, String) {
    // Without a reset, which would refuse a client that connects just when the only other one left.
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

/// Start the viewer with a log of Slurm; returns its window too.
fn replaying(display: &str, home: &Path) -> (Running, String) {
    let log = program::workspace().join("log-filters/logs/slurm/22.05.8-alpha/slurmctld.log");
    viewer(display, home, &["--replay", &log.display().to_string()])
}

/// Start the viewer; returns its window too.
pub(super) fn viewer(display: &str, home: &Path, arguments: &[&str]) -> (Running, String) {
    window_of(program::viewer().unwrap(), display, home, arguments)
}

/// Start a program with the viewer's window; returns the window too.
pub(super) fn window_of(program: &Path, display: &str, home: &Path, arguments: &[&str]) -> (Running, String) {
    let child = program::command(program)
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

/// Press a key until the stored settings match: a window handles keys only when it is drawn, so one may be
/// lost. If a key was late and not lost, the second press undoes it, and it is pressed once more: in the end
/// the settings match, whichever keys were lost.
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
    // A first sign of life: the size of the window is stored.
    wait::until(PATIENCE, "kept settings", || {
        Ok(if file.is_file() { Seen::Done(()) } else { Seen::NotYet("there are none".to_owned()) })
    })
    .unwrap();
    press_until(&display, &window, "t", &file, |kept| kept["look"] == json!("light"));
    press_until(&display, &window, "h", &file, |kept| kept["hides_tree"] == json!(true));
    drop(running);
    // The same keys undo the settings only if they were restored.
    let (_running, window) = replaying(&display, home.path());
    press_until(&display, &window, "t", &file, |kept| kept["look"] == json!("dark"));
    press_until(&display, &window, "h", &file, |kept| kept["hides_tree"] == json!(false));
}

/// User whose processes may be ended: root's never are.
const NOBODY: u32 = 65_534;

/// Start a sleeping process of a user other than root; returns its uid too.
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

/// Start a sensor that accepts commands for processes of this user, and reads processes from `/proc`.
fn sensor(folder: &Path, uid: u32) -> (Daemon, std::net::SocketAddr) {
    let config = folder.join("visperf.toml");
    let text = format!("[sensor]\nprocess_source = 'procfs'\n[sensor.control]\nusers = ['{uid}']\n");
    std::fs::write(&config, text).unwrap();
    let arguments: [&OsStr; 3] = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    Daemon::start(&folder.join("state"), &arguments).unwrap()
}

#[test]
fn a_process_of_the_flock_is_ended_by_an_authorized_user() {
    let folder = tempfile::tempdir().unwrap();
    let (mut sleeper, uid) = sleeper();
    let (_sensor, address) = sensor(folder.path(), uid);
    let pid = sleeper.0.id();
    let (_screen, display) = screen();
    let (connect, search) = (address.to_string(), format!("pid:{pid}"));
    let arguments = ["--connect", &connect, "--tab", "flock", "--search", &search];
    let (_viewer, window) = viewer(&display, folder.path(), &arguments);
    xdotool(&display, &["windowfocus", "--sync", &window]);
    // The window asks only once the process is in its flock, and Return has an effect only there.
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
            let attributes = &event["attributes"];
            attributes["pid"] == json!(pid.to_string())
                && attributes["result"] == json!("obeyed")
                && attributes["act"] == json!("TERM")
        };
        let obeyed = answer["events"].as_array().is_some_and(|events| events.iter().any(of_it));
        Ok(if obeyed { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
    })
    .unwrap();
}
