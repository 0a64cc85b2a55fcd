//! Authorized commands that are still refused: protected processes, too many commands at once, no space for
//! the audit trail. An accepted command reaches the process with all of its threads.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // These tests start processes, and may panic.

use rustix::fs::{CWD, FileType, Mode};
use sensor::control::act::ProcessHandle;
use sensor::control::authority::{Authority, RejectedCommand, VerifiedCommand};
use sensor::control::config::{Config, RawConfig};
use sensor::control::refusal::Refusal;
use sensor::control::target;
use sensor::control::worker::{Handle, ORDERS_BURST, ORDERS_INTERVAL};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::control::{Act, Nice, Nonce, Order, Signal};
use wire::id::{DomainName, HostName, PeerKey};
use wire::process::ProcessKey;
use wire::time::{Moment, Time};

const PROC: &str = "/proc";
/// Timeout for the end of a process: the worker waits less, and then reports that the process still exists.
const PATIENCE: Duration = Duration::from_secs(30);

/// Authority that accepts every text `PID START_NS WORD`, where the last word is a signal or a nice value.
struct Believer;

impl Authority for Believer {
    fn verify(&self, text: &str) -> Result<VerifiedCommand, RejectedCommand> {
        let words: Vec<&str> = text.split(' ').collect();
        let [pid, start_ns, word] = words[..] else {
            return Err(RejectedCommand { why: "no order".to_owned(), claimed: None, signer: None });
        };
        let order = Order {
            domain: DomainName::try_from("alpha").unwrap(),
            root: PeerKey([1; 32]),
            host: HostName::try_from("wn01").unwrap(),
            process: ProcessKey { pid: pid.parse().unwrap(), start_ns: start_ns.parse().unwrap() },
            act: word.parse().map_or_else(
                |_| {
                    Act::Renice(
                        Nice::try_from(word.strip_prefix("nice=").unwrap().parse::<i8>().unwrap()).unwrap(),
                    )
                },
                Act::Signal,
            ),
            nonce: Nonce([1; 16]),
            sequence: 1,
            issued: Time::default(),
            expires: Time::default(),
        };
        Ok(VerifiedCommand { order, operator: PeerKey([2; 32]), from: HostName::try_from("ws1").unwrap() })
    }
}

struct Rig {
    state: tempfile::TempDir,
    worker: Handle,
}

impl Rig {
    fn new(config: Config) -> Rig {
        Rig::with(config, Path::new(PROC))
    }

    fn with(config: Config, proc: &Path) -> Rig {
        let state = tempfile::tempdir().unwrap();
        let worker = Handle::new(config, state.path(), HostName::try_from("wn01").unwrap(), proc);
        worker.set_authority(Arc::new(Believer));
        Rig { state, worker }
    }

    /// Allows the processes of the user that runs the tests, and of the user of the processes that it starts
    /// as root.
    fn listing_us() -> Rig {
        Rig::looking_at(Path::new(PROC))
    }

    fn looking_at(proc: &Path) -> Rig {
        let uids = [rustix::process::geteuid().as_raw(), 65_534].map(|uid| uid.to_string());
        let users = uids.into_iter().filter(|uid| uid != "0").collect();
        Rig::with(Config::new(RawConfig { users }).unwrap(), proc)
    }

    fn give(&self, process: ProcessKey, word: &str) -> Result<(), Refusal> {
        let ProcessKey { pid, start_ns } = process;
        self.worker.execute(&format!("{pid} {start_ns} {word}")).map(|_| ())
    }

    fn trail(&self) -> String {
        std::fs::read_to_string(self.state.path().join("control/trail.log")).unwrap_or_default()
    }
}

fn key_of(pid: u32) -> ProcessKey {
    target::read(Path::new(PROC), pid).unwrap().unwrap().key
}

/// A sleeping process that is no child of this one; killed on drop.
struct Sleeper(ProcessKey);

impl Sleeper {
    fn start() -> Sleeper {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 86400 >/dev/null 2>&1 & echo $!"]).current_dir("/").stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        let pid: u32 = String::from_utf8(command.output().unwrap().stdout).unwrap().trim().parse().unwrap();
        Sleeper(key_of(pid))
    }

    fn held(&self) -> ProcessHandle {
        ProcessHandle::open(self.0.pid).unwrap().unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        if let Some(held) = ProcessHandle::open(self.0.pid).unwrap() {
            let _ended = held.signal(Signal::Kill);
        }
    }
}

#[track_caller]
fn check(rig: &Rig, process: ProcessKey, part: &str) {
    let refusal = rig.give(process, "KILL").unwrap_err().to_string();
    assert!(refusal.contains(part), "{part:?} in {refusal:?}");
    assert!(rig.trail().lines().last().unwrap().contains(part), "{}", rig.trail());
}

#[test]
fn root_no_order_ends_the_sensor_what_it_rests_on_or_what_it_started() {
    let rig = Rig::listing_us();
    check(&rig, key_of(std::process::id()), "the sensor itself");
    let parent = std::os::unix::process::parent_id();
    check(&rig, key_of(parent), if parent == 1 { "first process" } else { "started by" });
    check(&rig, key_of(1), "first process");
    let mut child: Child = Command::new("sleep").arg("86400").spawn().unwrap();
    check(&rig, key_of(child.id()), "a part of the sensor");
    child.kill().unwrap();
    check(&rig, key_of(child.id()), "a part of the sensor");
    child.wait().unwrap();
}

#[test]
fn root_users_who_are_not_listed_are_left_alone_and_without_a_list_all_are() {
    let sleeper = Sleeper::start();
    let others = Rig::new(Config::new(RawConfig { users: vec!["54321".to_owned()] }).unwrap());
    check(&others, sleeper.0, "may not be controlled here; listed under [sensor.control] are: 54321");
    let off = Rig::new(Config::default());
    assert_eq!(off.give(sleeper.0, "KILL"), Err(Refusal::Off));
    assert!(off.trail().contains(" refused order=- "), "{}", off.trail());
    assert!(!sleeper.held().has_ended(Duration::ZERO));
}

#[test]
fn root_an_order_that_cannot_be_written_down_is_not_obeyed() {
    let (rig, sleeper) = (Rig::listing_us(), Sleeper::start());
    std::fs::write(rig.state.path().join("control"), "a file where the folder should be").unwrap();
    assert!(matches!(rig.give(sleeper.0, "KILL"), Err(Refusal::NoTrail(_))));
    assert!(!sleeper.held().has_ended(Duration::ZERO));
    std::fs::remove_file(rig.state.path().join("control")).unwrap();
    let held = sleeper.held();
    assert_eq!(rig.give(sleeper.0, "KILL"), Ok(()));
    assert!(held.has_ended(PATIENCE));
}

/// Creates a folder with the `/proc` entries of these processes and of their ancestors.
fn made_up(pids: &[u32]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for pid in pids {
        let mut next = *pid;
        while next != 0 {
            let (from, to) = (Path::new(PROC).join(next.to_string()), folder.path().join(next.to_string()));
            std::fs::create_dir_all(&to).unwrap();
            for file in ["stat", "status"] {
                std::fs::write(to.join(file), std::fs::read(from.join(file)).unwrap()).unwrap();
            }
            let stat = std::fs::read_to_string(to.join("stat")).unwrap();
            next = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
        }
    }
    folder
}

#[test]
fn root_a_process_that_becomes_roots_while_the_order_is_written_down_is_left_alone() {
    let sleeper = Sleeper::start();
    let proc = made_up(&[sleeper.0.pid, std::process::id()]);
    let (rig, status) =
        (Rig::looking_at(proc.path()), proc.path().join(sleeper.0.pid.to_string()).join("status"));
    let before = std::fs::read_to_string(&status).unwrap();
    let is_uid = |line: &&str| line.starts_with("Uid:");
    let after = before.replace(before.lines().find(is_uid).unwrap(), "Uid:\t0\t0\t0\t0");
    // The first reader gets the old content, and every later one the new content.
    std::fs::remove_file(&status).unwrap();
    rustix::fs::mknodat(CWD, &status, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let writing = std::thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(&status).unwrap();
        let fresh = status.with_extension("new");
        std::fs::write(&fresh, after).unwrap();
        std::fs::rename(&fresh, &status).unwrap();
        pipe.write_all(before.as_bytes()).unwrap();
    });
    let refusal = rig.give(sleeper.0, "KILL").unwrap_err();
    writing.join().unwrap();
    assert!(matches!(refusal, Refusal::Untouchable { .. }), "{refusal}");
    let outcomes: Vec<String> =
        rig.trail().lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(outcomes, ["obeyed", "failed"]);
    assert!(!sleeper.held().has_ended(Duration::ZERO));
}

#[test]
fn root_so_many_orders_come_at_once_and_then_some_each_second() {
    let (rig, sleeper) = (Rig::listing_us(), Sleeper::start());
    let ProcessKey { pid, start_ns } = sleeper.0;
    let give =
        |at: Duration| rig.worker.execute_at(&format!("{pid} {start_ns} CONT"), Time::default(), Moment(at));
    let start = Duration::from_secs(100);
    for number in 0..ORDERS_BURST {
        assert!(give(start).is_ok(), "{number}");
    }
    assert!(matches!(give(start), Err(Refusal::TooMany { .. })));
    assert!(give(start + ORDERS_INTERVAL).is_ok());
    assert!(matches!(give(start + ORDERS_INTERVAL), Err(Refusal::TooMany { .. })));
    assert_eq!(rig.trail().lines().count(), ORDERS_BURST as usize + 3, "each is logged");
}

#[test]
fn root_signals_and_niceness_reach_the_process() {
    let (rig, sleeper) = (Rig::listing_us(), Sleeper::start());
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", sleeper.0.pid)).unwrap();
    let after_name =
        || stat().rsplit_once(')').unwrap().1.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rig.give(sleeper.0, "nice=7"), Ok(()));
    assert_eq!(after_name()[16], "7");
    let await_state = |state: &str| {
        let until = Instant::now() + Duration::from_secs(30);
        while after_name()[0] != state {
            assert!(Instant::now() < until, "expected {state}, found {:?}", after_name());
            std::thread::yield_now();
        }
    };
    assert_eq!(rig.give(sleeper.0, "STOP"), Ok(()));
    await_state("T");
    assert_eq!(rig.give(sleeper.0, "CONT"), Ok(()));
    await_state("S");
    let held = sleeper.held();
    let done = rig.worker.execute(&format!("{} {} TERM", sleeper.0.pid, sleeper.0.start_ns)).unwrap();
    assert!(done.has_ended.is_some());
    assert!(held.has_ended(PATIENCE));
    assert!(matches!(rig.give(sleeper.0, "TERM"), Err(Refusal::Gone { .. } | Refusal::Ended { .. })));
}

#[test]
fn root_niceness_is_that_of_every_thread() {
    let threads: Vec<_> =
        (0..3).map(|_| std::thread::spawn(|| std::thread::park_timeout(Duration::from_secs(60)))).collect();
    ProcessHandle::open(std::process::id())
        .unwrap()
        .unwrap()
        .renice(Path::new(PROC), Nice::try_from(1).unwrap())
        .unwrap();
    let (mut seen, mut others) = (0, 0);
    for entry in std::fs::read_dir("/proc/self/task").unwrap() {
        let stat = std::fs::read_to_string(entry.unwrap().path().join("stat")).unwrap_or_default();
        match stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().nth(16) == Some("1")) {
            Some(true) => seen += 1,
            Some(false) => others += 1,
            None => {}
        }
    }
    assert!(seen >= 4 && others == 0, "{seen} threads have it, {others} have not");
    threads.iter().for_each(|thread| thread.thread().unpark());
}
