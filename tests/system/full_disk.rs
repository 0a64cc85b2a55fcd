//! A sensor started on a full disk answers, samples and reports the problem; it reads its logs once there is
//! space, from the right position.
//!
//! Needs root, to mount a disk of its own. Not here: a disk that fills up later (the sensor's own tests).

use anyhow::Result;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::wait::{self, Seen};
use system_tests::{logs, query};

/// Timeout for the sensor to answer, and to continue once there is space.
const PATIENCE: Duration = Duration::from_secs(60);

/// A small disk without free space; unmounted when it is dropped.
struct Full(PathBuf);

impl Full {
    fn mount(place: &Path) -> Full {
        std::fs::create_dir(place).unwrap();
        mount("tmpfs", place, "tmpfs", MountFlags::empty(), Some(c"size=512k,mode=0700")).unwrap();
        let disk = Full(place.to_owned());
        let mut filler = std::fs::File::create(disk.filler()).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
        disk
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}

/// An address that was free a moment ago: the sensor cannot write the port it chose to its state folder.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn info(address: SocketAddr, is_as_wanted: impl Fn(&Value) -> bool) -> Result<Seen<Value>> {
    Ok(match query::result(address, "daemon.info", &json!({})) {
        Ok(info) if is_as_wanted(&info) => Seen::Done(info),
        Ok(info) => Seen::NotYet(info.to_string()),
        Err(error) => Seen::NotYet(error.to_string()),
    })
}

/// Submitted jobs, according to the sensor's events.
fn jobs(address: SocketAddr) -> Result<Vec<String>> {
    let answer = query::result(address, "sensor.events", &json!({ "kind": "job_submit" }))?;
    let events = answer["events"].as_array().cloned().unwrap_or_default();
    Ok(events.iter().map(|event| event["job"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Waits for the host's load, which exists once it was sampled.
fn samples(address: SocketAddr) -> Result<Seen<()>> {
    Ok(match query::result(address, "sensor.metrics", &json!({ "name": "node_load1" })) {
        Ok(answer) if answer["metrics"].as_array().is_some_and(|all| !all.is_empty()) => Seen::Done(()),
        Ok(answer) => Seen::NotYet(answer.to_string()),
        Err(error) => Seen::NotYet(error.to_string()),
    })
}

#[test]
fn a_sensor_starts_on_a_full_disk_and_reads_once_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("slurmctld.log");
    std::fs::write(&log, logs::line(1)).unwrap();
    let config = folder.path().join("visperf.toml");
    let text = format!(
        "[[sensor.tail]]\npath = {:?}\nfilter = \"slurmctld\"\nstart = \"beginning\"\n",
        log.display().to_string()
    );
    std::fs::write(&config, text).unwrap();
    let disk = Full::mount(&folder.path().join("state"));
    let (address, listen) = (free_address(), OsStr::new("--listen"));
    let written = address.to_string();
    let arguments = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str(), listen, written.as_ref()];
    let daemon = Daemon::spawn(&disk.0, &arguments).unwrap();

    let full = wait::until(PATIENCE, "a sensor that says why it is not healthy", || {
        info(address, |info| info["healthy"] == json!(false) && info["health"].to_string().contains("space"))
    });
    full.unwrap_or_else(|error| panic!("{error:#}; it said: {}", daemon.output()));
    wait::until(PATIENCE, "a sample", || samples(address)).unwrap();
    assert_eq!(jobs(address).unwrap(), [""; 0], "what cannot be kept is not answered");

    std::fs::remove_file(disk.filler()).unwrap();
    std::fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(logs::line(2).as_bytes()).unwrap();
    // It may still report problems about processes on this machine.
    let is_well = |info: &Value| !info["health"].to_string().contains("space");
    wait::until(PATIENCE, "a sensor with space", || info(address, is_well)).unwrap();
    let found = wait::until(PATIENCE, "both jobs", || {
        let jobs = jobs(address)?;
        Ok(if jobs.len() >= 2 { Seen::Done(jobs) } else { Seen::NotYet(format!("{jobs:?}")) })
    });
    assert_eq!(found.unwrap().len(), 2, "each once");
    assert!(disk.0.join("listen").exists(), "what could not be written at the start is written");
    assert!(daemon.stop().unwrap().success());
}
