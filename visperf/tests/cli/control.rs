//! Commands to processes from the command line: executed, refused, confirmed, and recorded as events.

use crate::program::{DEADLINE, Home, Ran};
use rustix::process::{Pid, Signal};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// User whose processes are controlled if the tests run as root.
const NOBODY: u32 = 65_534;

/// A sleeping process that is not a child of the sensor.
struct Sleeper(u32);

impl Sleeper {
    fn start() -> Sleeper {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 86400 >/dev/null 2>&1 & echo $!"]).current_dir("/").stdin(Stdio::null());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Sleeper(String::from_utf8(command.output().unwrap().stdout).unwrap().trim().parse().unwrap())
    }

    fn lives(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    fn pid(&self) -> String {
        self.0.to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.0).unwrap()).unwrap();
        let _ended = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// A sensor with a state folder `own`, killed when it is dropped.
pub(crate) struct Sensor<'a> {
    home: &'a Home,
    child: Child,
}

impl Sensor<'_> {
    pub(crate) fn start<'a>(home: &'a Home, arguments: &[&str]) -> Sensor<'a> {
        let mut command = home.command(arguments);
        command.args(["--listen", "127.0.0.1:0", "--state", "own"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let sensor = Sensor { home, child };
        sensor.until("it answers", |sensor| {
            let ran = sensor.run(&["processes", "--json"]);
            (ran.code == 0).then_some(())
        });
        sensor
    }

    /// Run a command that queries it.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.home.run(&[arguments, &["--state", "own"]].concat())
    }

    #[track_caller]
    pub(crate) fn until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(seen) = look(self) {
                return seen;
            }
            assert!(Instant::now() < until, "{what}");
            std::thread::yield_now();
        }
    }

    /// Wait until a sweep has seen the process; returns its row.
    fn sees(&self, sleeper: &Sleeper) -> serde_json::Value {
        self.until("a sweep sees it", |sensor| {
            sensor.run(&["processes", "--pid", &sleeper.pid(), "--json"]).ok().json().pop()
        })
    }
}

impl Drop for Sensor<'_> {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _code = self.child.wait();
    }
}

fn uid() -> u32 {
    match rustix::process::geteuid().as_raw() {
        0 => NOBODY,
        own => own,
    }
}

#[test]
fn root_a_process_is_ended_by_who_started_the_daemon_and_that_is_an_event() {
    let home = Home::new();
    home.file("visperf.toml", format!("[sensor.control]\nusers = ['{}']\n", uid()));
    let (sensor, sleeper) = (Sensor::start(&home, &["sensor", "--config", "visperf.toml"]), Sleeper::start());
    let seen = sensor.sees(&sleeper);
    let start = seen["start_ns"].as_u64().unwrap();
    let pid = sleeper.pid();
    // There is no terminal to ask for confirmation; the pid belongs to another process; there is no such
    // process.
    sensor.run(&["kill", "localhost", &pid]).with_code(2).notes(&["--yes"]);
    let other = (start + 1).to_string();
    let ran = sensor.run(&["kill", "localhost", &pid, "--yes", "--start-ns", &other]);
    ran.with_code(1).notes(&["another process has that number now"]);
    let ran = sensor.run(&["kill", "localhost", "4194304", "--yes"]).with_code(1);
    ran.notes(&["there is no process", "may not have been seen yet"]);
    let own = sensor.child.id().to_string();
    let ran = sensor.run(&["kill", "localhost", "4194304", "4194303", &own, "--yes"]).with_code(1);
    let count = |part: &str| ran.notes.matches(part).count();
    let counts = [count("no process 4194304"), count("no process 4194303"), count("the sensor itself")];
    assert_eq!((counts, ran.notes.lines().count()), ([1, 1, 1], 3), "{ran:#?}");
    sensor.run(&["kill", "wn99", &pid, "--yes"]).with_code(4).notes(&["joined no domain"]);
    sensor.run(&["kill", "localhost", &own, "--yes"]).with_code(4).notes(&["the sensor itself", "-32007"]);
    assert!(sleeper.lives());
    sensor
        .run(&["renice", "localhost", &pid, "--nice", "3", "--yes"])
        .ok()
        .prints(&["set the niceness to 3 of sleep"]);
    let exact = start.to_string();
    let ran = sensor.run(&["kill", "localhost", &pid, "--yes", "--start-ns", &exact, "--json"]).ok();
    let result = &ran.json()[0];
    assert!(result["act"] == "TERM" && result["ended"].is_boolean(), "{result}");
    sensor.until("it has ended", |_| (!sleeper.lives()).then_some(()));
    let events = sensor.until("each is an event", |sensor| {
        let events = sensor.run(&["events", "--kind", "message", "--json"]).ok().json();
        let last = events.last().is_some_and(|event| event["attributes"]["act"] == "TERM");
        last.then_some(events)
    });
    let results: Vec<_> =
        events.iter().map(|event| event["attributes"]["result"].as_str().unwrap_or_default()).collect();
    assert_eq!(results, ["refused", "refused", "obeyed", "obeyed"], "{events:#?}");
    let last = &events[3];
    assert_eq!(last["attributes"]["order"], result["order"]);
    assert_eq!(last["source"]["filter"], "visperf-control");
    assert_eq!(last["attributes"]["process"], "sleep");
}

#[test]
fn root_a_sensor_that_lists_no_account_takes_no_orders_and_has_no_operator() {
    let home = Home::new();
    let (sensor, sleeper) = (Sensor::start(&home, &["sensor"]), Sleeper::start());
    sensor.sees(&sleeper);
    let ran = sensor.run(&["kill", "localhost", &sleeper.pid(), "--yes"]);
    ran.with_code(1).notes(&["no certificate of an operator of local", "docs/control.md"]);
    let ran = sensor.run(&["call", "sensor.control", "order=visperforder1-aaaa"]);
    ran.with_code(4).notes(&["takes no orders", "[sensor.control]", "-32007"]);
    assert!(sleeper.lives() && !home.path().join("own/operator").exists());
}

#[test]
fn root_a_machine_by_itself_lets_its_user_end_its_users_processes() {
    let home = Home::new();
    let (sensor, sleeper) = (Sensor::start(&home, &["up"]), Sleeper::start());
    sensor.sees(&sleeper);
    let ran = sensor.run(&["kill", "localhost", &sleeper.pid(), "--yes"]);
    // Processes of root are never ended, and root cannot end those of others with this sensor.
    let is_root = rustix::process::geteuid().is_root();
    ran.with_code(if is_root { 1 } else { 0 });
    match is_root {
        true => assert!(sleeper.lives()),
        false => sensor.until("it has ended", |_| (!sleeper.lives()).then_some(())),
    }
}
