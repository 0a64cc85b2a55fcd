//! Hostile files that a local user places for a sensor run by root: each is refused and reported, later jobs
//! are still joined with their processes, and the sensor ends in time.
//!
//! Each file is named in the environment of a process, as middleware names the files of a job. Needs root,
//! for the file systems. Not here: how a file is opened (the sensor's own tests).

use anyhow::Result;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::{Value, json};
use std::ffi::{CString, OsStr};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use system_tests::grid::Daemon;
use system_tests::wait::{self, Seen};
use system_tests::{program, query};

/// Timeout for the sensor to see a process and the file that it names.
const SEEN: Duration = Duration::from_secs(60);
/// Longest time for a sensor to end, whatever blocks one of its threads.
const END_MAX: Duration = Duration::from_secs(5);

/// A process with a variable in its environment; killed when it is dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start(name: &str, value: &str) -> Sleeper {
        Sleeper(program::command("sleep").arg("600").env(name, value).spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A mounted file system, unmounted when it is dropped.
struct Mounted(PathBuf, #[allow(dead_code)] Option<std::fs::File>);

impl Mounted {
    fn traces(place: &Path) -> Mounted {
        std::fs::create_dir(place).unwrap();
        mount("tracefs", place, "tracefs", MountFlags::empty(), None).unwrap();
        Mounted(place.to_owned(), None)
    }

    /// A FUSE file system whose server never answers.
    fn unanswering(place: &Path) -> Mounted {
        std::fs::create_dir(place).unwrap();
        let server = OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", server.as_raw_fd());
        let options = CString::new(options).unwrap();
        mount("fuse", place, "fuse", MountFlags::empty(), options.as_c_str()).unwrap();
        Mounted(place.to_owned(), Some(server))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.0, UnmountFlags::DETACH).unwrap();
    }
}

/// Start a sensor; returns it with its local socket, at which the user of the test is identified as root.
fn start(folder: &Path) -> (Daemon, PathBuf) {
    let config = folder.join("visperf.toml");
    std::fs::write(&config, "[sensor]\nprocess_hz = 20\n").unwrap();
    let arguments: [&OsStr; 3] = ["sensor".as_ref(), "--config".as_ref(), config.as_os_str()];
    let (daemon, _) = Daemon::start(&folder.join("state"), &arguments).unwrap();
    (daemon, folder.join("state/sensor.sock"))
}

fn health(socket: &Path) -> Result<String> {
    Ok(query::local_result(socket, "daemon.info", &json!({}))?["health"].to_string())
}

/// Whether the sensor lists this process among the call's.
fn serves(socket: &Path, call: &str, pid: u32) -> Result<Seen<()>> {
    let answer = query::local_result(socket, "sensor.call_processes", &json!({ "call": call }))?;
    let is_it = |process: &Value| process["pid"] == json!(pid);
    let is_known = answer["processes"].as_array().is_some_and(|all| all.iter().any(is_it));
    Ok(if is_known { Seen::Done(()) } else { Seen::NotYet(answer.to_string()) })
}

/// Start a process that names each of `files`, check how the sensor's health reports it, and start a job
/// after each.
fn attack(socket: &Path, files: &[(String, &str)]) -> Vec<Sleeper> {
    let mut attackers = Vec::new();
    for (number, (file, refused)) in files.iter().enumerate() {
        attackers.push(Sleeper::start("_CONDOR_JOB_AD", file));
        wait::until(SEEN, &format!("{file} in health"), || {
            let health = health(socket)?;
            Ok(if health.contains(refused) { Seen::Done(()) } else { Seen::NotYet(health) })
        })
        .unwrap();
        let job = format!("66{}{number}", std::process::id());
        let later = Sleeper::start("SLURM_JOB_ID", &job);
        wait::until(SEEN, &format!("the job after {file}"), || {
            serves(socket, &format!("slurm:{job}"), later.0.id())
        })
        .unwrap();
    }
    attackers
}

#[test]
fn a_file_laid_in_the_way_is_refused_later_jobs_are_joined_and_sigterm_ends_the_sensor() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let text = |name: &str| place(name).display().to_string();
    rustix::fs::mknodat(rustix::fs::CWD, place("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", place("link")).unwrap();
    let huge = std::fs::File::create(place("huge")).unwrap();
    huge.set_len(100 << 30).unwrap();
    let (_traces, _fuse) = (Mounted::traces(&place("tracing")), Mounted::unanswering(&place("fuse")));
    let (daemon, socket) = start(folder.path());
    let attackers = attack(
        &socket,
        &[
            ("/proc/kmsg".into(), "/proc/kmsg: it is on a file system of type proc"),
            (text("tracing/trace_pipe"), "trace_pipe: it is on a file system of type tracefs"),
            (text("fuse/ad"), "fuse/ad: it is on a file system of type fuse"),
            (text("pipe"), "pipe: it is not a plain file"),
            (text("link"), "link: it leads through a symbolic link"),
        ],
    );
    // Only the start of a huge file is read, which names no job here.
    let reader = Sleeper::start("_CONDOR_JOB_AD", &text("huge"));
    let later = Sleeper::start("SLURM_JOB_ID", "667001");
    wait::until(SEEN, "the job after the huge file", || serves(&socket, "slurm:667001", later.0.id()))
        .unwrap();
    let asked = wait::now();
    daemon.stop().unwrap();
    let took = wait::now() - asked;
    assert!(took <= END_MAX, "it took {took:?} to end");
    drop((attackers, reader));
}
