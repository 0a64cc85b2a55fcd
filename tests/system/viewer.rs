//! The viewer next to a sensor: the map has the calls that `visperf calls` prints, from the log as from the
//! daemon.
//!
//! Rule: both are the real programs, over a real log of Slurm; their printed output is compared. Not here:
//! the window's look (`viewer/tests`), a map through a proxy (`lab_map`).

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::wait::{self, Seen};
use system_tests::{program, query};

/// Timeout for a sensor to read two logs of some hundred lines.
const READ: Duration = Duration::from_secs(60);
const LOGS: [&str; 2] = ["slurmctld.log", "jobcomp.log"];

/// Calls as both programs print them: state, outcome, user and hosts.
type Calls = BTreeMap<String, [String; 4]>;

fn logs() -> Vec<PathBuf> {
    let folder = program::workspace().join("log-filters/logs/slurm/22.05.8-alpha");
    LOGS.map(|name| folder.join(name)).into()
}

/// Start a sensor that reads the logs from their start.
fn sensor(folder: &Path) -> (Daemon, SocketAddr) {
    let tails = logs()
        .iter()
        .map(|log| format!("[[sensor.tail]]\npath = {log:?}\nstart = \"beginning\"\n"))
        .collect::<String>();
    let config = folder.join("visperf.toml");
    std::fs::write(&config, tails).unwrap();
    let arguments: [&OsStr; 3] = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let (daemon, address) = Daemon::start(&folder.join("state"), &arguments).unwrap();
    wait::until(READ, "a sensor that has read both logs", || {
        let files = query::result(address, "sensor.files", &json!({}))?;
        let files = files["files"].as_array().cloned().unwrap_or_default();
        let read = files
            .iter()
            .filter(|file| file["lag_bytes"] == json!(0) && file["lines"].as_u64() > Some(0))
            .count();
        Ok(if read == LOGS.len() { Seen::Done(()) } else { Seen::NotYet(format!("{files:?}")) })
    })
    .unwrap();
    (daemon, address)
}

/// Standard output of a program.
fn printed(program: &Path, arguments: &[&str]) -> String {
    let output = program::command(program).args(arguments).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?} {arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

fn calls<'a>(calls_shown: impl Iterator<Item = &'a Value>) -> Calls {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = |call: &Value| {
        let mut hosts: Vec<String> = call["hosts"].as_array().unwrap().iter().map(text).collect();
        hosts.sort();
        let facts = [text(&call["state"]), text(&call["outcome"]), text(&call["user"]), hosts.join(",")];
        (text(&call["id"]), facts)
    };
    calls_shown.map(call).collect()
}

/// The calls that `visperf calls` prints.
fn listed(address: SocketAddr, method: &[&str]) -> Calls {
    let address = address.to_string();
    let arguments = [&["calls", "--connect", &address, "--json", "--limit", "10000"], method].concat();
    let printed = printed(program::visperf().unwrap(), &arguments);
    let values: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    calls(values.iter())
}

/// What the viewer would draw at the end.
fn drawn(arguments: &[&str]) -> Value {
    let printed = printed(program::viewer().unwrap(), &[arguments, &["--tell"]].concat());
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn the_map_has_exactly_the_calls_that_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (_daemon, address) = sensor(folder.path());
    let listed_here = listed(address, &["--local"]);
    assert!(listed_here.len() > 200, "found only {} calls", listed_here.len());

    let paths: Vec<String> = logs().iter().map(|log| log.display().to_string()).collect();
    let replay: Vec<&str> = std::iter::once("--replay").chain(paths.iter().map(String::as_str)).collect();
    let from_logs = drawn(&replay);
    assert_eq!(calls(from_logs["calls"].as_array().unwrap().iter()), listed_here);
    assert_eq!(from_logs["hosts"], json!(4));

    // The domain knows a call once it is on the representative's disk.
    let connect = address.to_string();
    wait::until(READ, "a map of the daemon with the calls that it lists", || {
        let live = drawn(&["--connect", &connect]);
        let same = calls(live["calls"].as_array().unwrap().iter()) == listed(address, &[]);
        let whole = live["calls"].as_array().map_or(0, Vec::len) == listed_here.len();
        Ok(if same && whole { Seen::Done(()) } else { Seen::NotYet("they differ".to_owned()) })
    })
    .unwrap();
}
