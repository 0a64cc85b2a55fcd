//! Daemons started by the program: what is refused or reported before they run, and the demo from end to end.

use crate::followed::{interrupt, lines};
use crate::program::{DEADLINE, Home};
use rustix::fs::{FileType, Mode};
use std::process::Child;
use std::sync::mpsc::Receiver;
use std::time::Instant;

pub(crate) const UP: [&str; 5] = ["up", "--listen", "127.0.0.1:0", "--state", "own"];

/// A started daemon, and its output.
pub(crate) struct Started {
    child: Child,
    out: Receiver<String>,
    notes: Receiver<String>,
}

impl Started {
    pub(crate) fn new(home: &Home, arguments: &[&str]) -> Started {
        let mut command = home.command(arguments);
        let mut child = command.env("TMPDIR", home.path().join("tmp")).spawn().unwrap();
        let (out, notes) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Started { child, out, notes }
    }

    /// The next line that contains this.
    #[track_caller]
    pub(crate) fn line(&self, part: &str) -> String {
        let mut before = Vec::new();
        // A daemon prints all the time, so the deadline applies to all lines together.
        let until = Instant::now() + DEADLINE;
        while let Ok(line) = self.out.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if line.contains(part) {
                return line;
            }
            before.push(line);
        }
        let notes: Vec<String> = self.notes.try_iter().collect();
        panic!("{part:?} does not come after {before:#?} and the notes {notes:#?}")
    }

    /// End it by Ctrl-C; returns its remaining notes.
    pub(crate) fn end(mut self) -> Vec<String> {
        interrupt(&self.child);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.notes.iter().collect()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _code = self.child.wait();
    }
}

#[test]
fn a_sensor_in_no_domain_answers_for_itself_alone() {
    let home = Home::new();
    let up = Started::new(&home, &["up", "--listen", "127.0.0.1:0", "--state", "own", "--json"]);
    let look = || home.run(&["hosts", "--state", "own", "--json"]);
    let until = Instant::now() + DEADLINE;
    while look().code != 0 {
        assert!(Instant::now() < until, "it does not answer");
        std::thread::yield_now();
    }
    let own = look().ok().json()[0]["host"].as_str().unwrap().to_owned();
    let call = |method: &str, given: &str| home.run(&["call", "--state", "own", method, given]);
    call("sensor.files", &format!("host={own}")).ok();
    for (method, given) in
        [("sensor.files", "host=wn99"), ("sensor.events", "host=wn99"), ("domain.hosts", "domain=CERN")]
    {
        call(method, given).with_code(4).notes(&["is not here", "joined no domain"]);
    }
    up.end();
}

#[test]
fn what_is_watched_comes_and_ends_with_its_subscription() {
    let home = Home::new();
    let up = Started::new(&home, &["up", "--listen", "127.0.0.1:0", "--state", "own", "--json"]);
    let subscriptions = || {
        let ran = home.run(&["call", "--state", "own", "sensor.subscriptions"]);
        let answer = || serde_json::from_str::<serde_json::Value>(&ran.out).unwrap();
        (ran.code == 0).then(|| answer()["subscriptions"].as_array().unwrap().len())
    };
    let wait_for = |count: usize| {
        let until = Instant::now() + DEADLINE;
        while subscriptions() != Some(count) {
            assert!(Instant::now() < until, "there are not {count} subscriptions");
            std::thread::yield_now();
        }
    };
    wait_for(0);
    let own = std::process::id().to_string();
    let few = ["watch", "--state", "own", "--rate", "20", "--under", &own, "--samples", "3", "--json"];
    let entries = home.run(&few).ok().json();
    let numbers: Vec<_> = entries.iter().map(|entry| entry["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let pids =
        entries[0]["processes"].as_array().unwrap().iter().map(|process| process["pid"].as_u64().unwrap());
    assert!(pids.into_iter().any(|pid| pid == u64::from(std::process::id())));
    assert_eq!(subscriptions(), Some(0), "it ended its subscription");

    let mut watching =
        home.command(&["watch", "--state", "own", "--rate", "20", "--pid", &own]).spawn().unwrap();
    let out = lines(watching.stdout.take().unwrap());
    assert!(out.recv_timeout(DEADLINE).expect("a sample").contains(&format!("[{own}]")));
    assert_eq!(subscriptions(), Some(1));
    interrupt(&watching);
    assert_eq!(watching.wait().unwrap().code(), Some(130));
    wait_for(0);

    let script = home.file("endless.rhai", "loop {}");
    let endless = ["watch", "--state", "own", "--script", script.to_str().unwrap()];
    home.run(&endless)
        .with_code(1)
        .notes(&["the sensor stopped it: script: expected at most 20000 operations"]);
    home.run(&["watch", "--filter", "cpu >>"])
        .with_code(2)
        .notes(&["found > at character 6", "  cpu >>\n       ^"]);
    home.run(&["watch", "--state", "own", "--filter", "rss > 1"]).with_code(4).notes(&["known are cpu"]);

    let load = ["watch", "--state", "own", "--kind", "host", "--metric", "node_load?", "--samples", "1"];
    let line = home.run(&load).ok().out;
    assert!(
        line.contains("node_load1 ") && line.contains("node_load5 ") && !line.contains("load15"),
        "{line}"
    );
    for (arguments, note) in [
        (["--kind", "event", "--pid", "1"], "selection: expected name, user, job, call, kind, outcome"),
        (["--kind", "host", "--filter", "load > 1"], "known are value"),
        (["--kind", "call", "--filter", "state = \"over\""], "expected one of waiting, running, ended"),
    ] {
        home.run(&[&["watch", "--state", "own"][..], &arguments].concat()).with_code(4).notes(&[note]);
    }
    up.end();
}

#[test]
fn what_cannot_work_is_refused_before_anything_starts() {
    let home = Home::new();
    let up = |more: &[&str]| home.run(&UP.iter().chain(more).copied().collect::<Vec<_>>());
    up(&["--tail", "x.log=slurmctl"]).with_code(2).notes(&[
        "--tail",
        "x.log",
        "no filter is called \"slurmctl\"",
        "did you mean slurmctld",
        "--filters",
    ]);
    up(&["--tail", "x.log=./own.toml"]).with_code(2).notes(&["name of a filter", "own.toml", "--filters"]);
    home.file("own-filters/b.toml", "nonsense");
    up(&["--filters", "own-filters"]).with_code(6).notes(&["own-filters/b.toml:1:", "expected"]);
    home.file(".config/visperf/filters/c.toml", "[filter]\nname = 5\n");
    up(&[]).with_code(6).notes(&["filters/c.toml:2:8"]);
    assert!(!home.path().join("own").exists(), "nothing was opened");
}

#[test]
fn a_configuration_that_names_no_filter_is_refused_by_the_check_and_by_the_sensor() {
    let home = Home::new();
    home.file(
        "c.toml",
        "[[sensor.tail]]\npath = \"/y.log\"\n[[sensor.tail]]\npath = \"/x.log\"\nfilter = \"slrumctld\"\n",
    );
    let expected = ["c.toml:5:10", "/x.log", "no filter is called", "did you mean slurmctld"];
    home.run(&["config", "check", "c.toml"]).with_code(6).notes(&expected);
    let folder = |name: &str| home.path().join(name).display().to_string();
    let folders = format!("[sensor]\nfilters = [{:?}, {:?}]\n", folder("none"), folder("some"));
    home.file("folders.toml", folders);
    home.file("some/good.toml", "[filter]\nname = \"good\"\nproduct = \"G\"\n[[rule]]\nmatch = '^g'\n");
    home.run(&["config", "check", "folders.toml"]).ok().notes(&["/none is not there yet"]);
    home.file("some/bad.toml", "nonsense");
    home.run(&["config", "check", "folders.toml"]).with_code(6).notes(&["some/bad.toml:1:"]);
    home.run(&["sensor", "--config", "c.toml", "--state", "own", "--listen", "127.0.0.1:0"])
        .with_code(6)
        .notes(&expected);
}

#[test]
fn a_log_that_is_not_there_yet_is_reported_and_waited_for() {
    let home = Home::new();
    let up =
        Started::new(&home, &[&UP[..], &["--tail", "late.log=slurmctld", "--tail", "none-*.log"]].concat());
    up.line("XML-RPC  http://127.0.0.1:");
    home.file(
        "late.log",
        "[2026-11-20T12:24:17.446] sched: _slurm_rpc_allocate_resources JobId=1 NodeList=wn01 usec=5\n",
    );
    up.line("-> wn01");
    let notes = up.end().join("\n");
    assert!(notes.contains("/late.log: there is no such file yet"), "{notes}");
    assert!(notes.contains("/none-*.log: nothing fits yet"), "{notes}");
}

#[test]
fn a_folder_with_a_pipe_and_an_empty_one_hold_nothing_up() {
    let home = Home::new();
    home.file(
        "logs/slurmctld.log",
        "[2026-11-20T12:24:17.446] slurmctld version 22.05.8 started on cluster a\n",
    );
    std::fs::create_dir(home.path().join("empty")).unwrap();
    let pipe = home.path().join("logs/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let up = Started::new(&home, &[&UP[..], &["--tail", "logs", "--tail", "empty"]].concat());
    up.line("XML-RPC  http://127.0.0.1:");
    up.line("1 event");
    let files = home.run(&["files", "--json", "--state", "own"]).ok().json();
    let pipe = files.iter().find(|file| file["path"].as_str().unwrap().ends_with("/pipe")).unwrap();
    assert_eq!(pipe["state"], "no_log");
    assert!(pipe["health"].as_str().unwrap().contains("FIFO"), "{pipe}");
    home.run(&["info", "--json", "--state", "own"]).ok().prints(&["\"healthy\":true"]);
    let notes = up.end().join("\n");
    assert!(notes.contains("/logs/pipe: expected a plain file, found a FIFO"), "{notes}");
    assert!(notes.contains("/empty/*: nothing fits yet"), "{notes}");
}

#[test]
fn a_log_that_is_awaited_is_shown_with_its_filter() {
    let home = Home::new();
    let tails = ["--tail", "late.log=slurmctld", "--tail", "none/slurmd.log"];
    let up = Started::new(&home, &[&UP[..], &tails].concat());
    up.line("-- local/");
    let files = home.run(&["files", "--json", "--state", "own"]).ok().json();
    let state = |name: &str| {
        let file = files.iter().find(|file| file["path"].as_str().unwrap().ends_with(name)).unwrap();
        [&file["state"], &file["filter"]].map(|text| text.as_str().unwrap().to_owned())
    };
    assert_eq!(state("/late.log"), ["awaited", "slurmctld"]);
    assert_eq!(state("none/slurmd.log"), ["awaited", "slurmd"]);
    let shown = home.run(&["files", "--state", "own"]).ok();
    shown.prints(&["awaited", "late.log: there is no such file yet; it is read as soon as it comes"]);
    home.run(&["info", "--json", "--state", "own"]).ok().prints(&["\"healthy\":true"]);
    up.end();
}

#[test]
fn a_second_start_says_who_holds_the_state_and_each_reason_once() {
    let home = Home::new();
    let first = Started::new(&home, &UP);
    let line = first.line("XML-RPC  http://");
    let address = line.trim_start_matches("XML-RPC  http://").trim_end_matches("/RPC2");
    first.line("-- local/");
    let own = home.path().canonicalize().unwrap().join("own").display().to_string();
    home.run(&UP).with_code(1).notes(&[
        &format!("the state folder {own} is in use by another visperf"),
        &format!("process {} (", first.child.id()),
        &format!("it answers at {address}: visperf info --state {own}"),
        "--state DIR",
    ]);
    let taken = home.run(&["directory", "--state", "other", "--listen", address]).with_code(1);
    assert_eq!(taken.notes.matches("Address already in use").count(), 1, "{taken:?}");
    home.run(&["up", "--listen", "foo"]).with_code(2).notes(&["127.0.0.1:7317"]);
    assert_eq!(first.end(), [""; 0]);
}

#[test]
fn logs_of_a_folder_that_appears_later_are_read() {
    let home = Home::new();
    let up = Started::new(&home, &[&UP[..], &["--tail", "middleware/log"]].concat());
    up.line("-- local/");
    home.file(
        "middleware/log/slurmctld.log",
        "[2026-11-20T12:24:17.446] _slurm_rpc_submit_batch_job: JobId=71 InitPrio=1 usec=7\n",
    );
    assert!(up.line("job_submit").contains("71"));
    up.end();
}

#[test]
fn a_demo_ends_with_what_to_try_next() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("tmp")).unwrap();
    let demo = Started::new(&home, &["up", "--demo", "--speed", "5000", "--listen", "127.0.0.1:0"]);
    let over = demo.line("The recording is over: ");
    let calls: u64 = over.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(calls > 500, "{over}");
    let command = demo.line("visperf calls --connect").trim().to_owned();
    let state = demo.line("export VISPERF_STATE=").trim().replace("export VISPERF_STATE=", "");
    demo.line("Ctrl-C ends it");
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    let past = |more: &[&str]| home.run(&[&["calls", "--since", "1d", "--limit", "1"], more].concat()).ok();
    assert!(
        !past(&["--state", &state]).notes.contains("of other users"),
        "over the socket the user is known"
    );
    past(&arguments[1..3]).notes(&["of other users"]);
    home.run(&arguments).ok().prints(&["failed"]);
    let address = arguments.iter().skip_while(|word| **word != "--connect").nth(1).unwrap();
    let all = ["calls", "--json", "--limit", "10000", "--connect", *address];
    let known = home.run(&all).ok().json();
    let is_htcondor = |call: &&serde_json::Value| call["id"].as_str().unwrap().starts_with("htcondor:");
    let started: Vec<_> =
        known.iter().filter(is_htcondor).filter(|call| !call["started"].is_null()).collect();
    assert!(started.len() > 50, "{}", started.len());
    assert!(started.iter().all(|call| call["user"] != ""), "{started:#?}");
    assert_eq!(demo.end(), [""; 0]);
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_demo_that_was_killed_is_cleaned_up_by_the_next_and_names_recorded_hosts() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("tmp")).unwrap();
    let folders = || std::fs::read_dir(home.path().join("tmp")).unwrap().count();
    let arguments = ["up", "--demo", "--speed", "5000", "--listen", "127.0.0.1:0", "--json"];
    let mut first = Started::new(&home, &arguments);
    first.line("\"type\":\"started\"");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_eq!(folders(), 1);
    let second = Started::new(&home, &arguments);
    second.line("\"type\":\"started\"");
    assert_eq!(folders(), 1, "the first one's is gone");
    let me = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut hosts = std::collections::BTreeSet::new();
    loop {
        let line: serde_json::Value = serde_json::from_str(&second.line("\"type\":")).unwrap();
        match line["type"].as_str() {
            Some("recording_over") => {
                let outcomes =
                    line["outcomes"].as_object().unwrap().values().map(|calls| calls.as_u64().unwrap());
                assert_eq!(Some(outcomes.sum()), line["ended"].as_u64(), "{line}");
                break;
            }
            Some("event") => {
                assert_ne!(line["to"], me, "{line}");
                hosts.insert(line["source"]["host"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    let expected = ["cm01", "ctl01", "qm01", "se01", "se02", "sub01", "wn01", "wn02", "wn03", "wn04"];
    assert_eq!(hosts.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_folder_that_a_daemon_of_another_kind_has_is_left_alone() {
    let home = Home::new();
    let up = Started::new(&home, &UP);
    up.line("-- local/");
    let contents = || std::fs::read_to_string(home.path().join("own/listen")).unwrap();
    let before = contents();
    let words = ["directory", "--state", "own", "--listen", "127.0.0.1:0"];
    home.run(&words).with_code(1).notes(&["/own is in use by another visperf"]);
    assert_eq!(contents(), before);
    home.run(&["info", "--state", "own"]).ok();
    up.end();
    assert!(!home.path().join("own/listen").exists());
}
