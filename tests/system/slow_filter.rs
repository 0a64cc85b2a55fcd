//! A filter that is too slow for its log is quarantined, and the other logs are still read.
//!
//! The filter here is accepted (it is small and regular) but makes the engine follow thousands of states for
//! each byte. Not here: filters that are refused (`hostile_filters`), the threshold for slowness (`sensor`).

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::wait::{self, Seen};
use system_tests::{logs, query};

/// Timeout for the sensor to detect the filter: it reads a part of the log first.
const FOUND_OUT: Duration = Duration::from_secs(60);
/// Lines of its log: enough for the part by which a filter is judged, few enough to be read in seconds.
const LINES: usize = 20;
/// Rules of the slow filter, and states that each of them follows.
const RULES: usize = 16;
const STATES: usize = 900;

fn slow_filter() -> String {
    let rule =
        |n: usize| format!("[[rule]]\nmatch = '(?:a|b)*a(?:a|b){{{STATES}}}c{n}'\nevent = \"message\"\n");
    let rules: String = (0..RULES).map(rule).collect();
    format!("[filter]\nname = \"slow\"\nproduct = \"Trial\"\n{rules}")
}

/// Lines where no prefix determines whether a rule will match.
fn slow_lines() -> Vec<u8> {
    let mut random = system_tests::random::Random::new(3);
    let mut text = Vec::new();
    for _ in 0..LINES {
        text.extend((0..2000).map(|_| if random.below(2) == 0 { b'a' } else { b'b' }));
        text.push(b'\n');
    }
    text
}

fn start(folder: &Path) -> (Daemon, SocketAddr) {
    let shown = |name: &str| folder.join(name).display().to_string();
    std::fs::create_dir(folder.join("filters")).unwrap();
    std::fs::write(folder.join("filters/slow.toml"), slow_filter()).unwrap();
    std::fs::write(folder.join("slow.log"), slow_lines()).unwrap();
    std::fs::write(folder.join("slurmctld.log"), logs::line(1)).unwrap();
    let tail = |name: &str, filter: &str| {
        format!("[[sensor.tail]]\npath = {:?}\nfilter = {filter:?}\nstart = \"beginning\"\n", shown(name))
    };
    let text = format!(
        "[sensor]\nfilters = [{:?}]\n{}{}",
        shown("filters"),
        tail("slow.log", "slow"),
        tail("slurmctld.log", "slurmctld")
    );
    let config = folder.join("visperf.toml");
    std::fs::write(&config, text).unwrap();
    let arguments: [&OsStr; 3] = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    Daemon::start(&folder.join("state"), &arguments).unwrap()
}

/// Health of a log according to `sensor.files`, empty if there is no problem.
fn health(address: SocketAddr, name: &str) -> anyhow::Result<String> {
    let files = query::result(address, "sensor.files", &json!({}))?;
    let files = files["files"].as_array().cloned().unwrap_or_default();
    let is_it = |file: &Value| file["path"].as_str().is_some_and(|path| path.ends_with(name));
    let file = files.iter().find(|file| is_it(file));
    Ok(file.and_then(|file| file["health"].as_str()).unwrap_or_default().to_owned())
}

fn submissions(address: SocketAddr) -> anyhow::Result<usize> {
    let events = query::result(address, "sensor.events", &json!({ "kind": "job_submit" }))?;
    Ok(events["events"].as_array().map_or(0, Vec::len))
}

#[test]
fn a_slow_filter_is_put_into_quarantine_and_other_logs_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (_daemon, address) = start(folder.path());
    let health_now = wait::until(FOUND_OUT, "a quarantine in sensor.files", || {
        let health_now = health(address, "slow.log")?;
        Ok(if health_now.contains("quarantine") { Seen::Done(health_now) } else { Seen::NotYet(health_now) })
    });
    assert!(health_now.unwrap().contains("slow"), "it names the filter");
    let notices = query::result(address, "sensor.events", &json!({ "kind": "message" })).unwrap();
    assert!(notices["events"].to_string().contains("quarantine"), "no event reports it: {notices}");
    let info = query::result(address, "daemon.info", &json!({})).unwrap();
    assert_eq!(info["healthy"], json!(false), "{info}");

    let mut other =
        std::fs::OpenOptions::new().append(true).open(folder.path().join("slurmctld.log")).unwrap();
    other.write_all(logs::line(2).as_bytes()).unwrap();
    wait::until(FOUND_OUT, "the events of the other log", || {
        let count = submissions(address)?;
        Ok(if count >= 2 { Seen::Done(()) } else { Seen::NotYet(format!("found {count}")) })
    })
    .unwrap();
    // The control: a filter of normal speed, in the same sensor, is not quarantined.
    assert_eq!(health(address, "slurmctld.log").unwrap(), "");
}
