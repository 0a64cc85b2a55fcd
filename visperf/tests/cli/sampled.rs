//! Processes on the command line, from a sensor that samples this host.

use crate::control::Sensor;
use crate::followed::{interrupt, lines};
use crate::program::{DEADLINE, Home};
use std::io::Write as _;

#[test]
fn how_processes_are_read_and_where_state_is_are_printed() {
    let home = Home::new();
    let sensor = Sensor::start(&home, &["sensor"]);
    let ran = sensor.run(&["processes", "--limit", "1"]).ok();
    assert!(ran.notes.lines().last().is_some_and(|last| last.starts_with("read by ")), "{ran:#?}");
    let ran = sensor.run(&["processes", "--limit", "1", "--json"]).ok();
    assert!(!ran.notes.contains("read by"), "{ran:#?}");
    let info = sensor.run(&["info", "--json"]).ok().json().remove(0);
    let folder = home.path().canonicalize().unwrap().join("own");
    assert_eq!(info["state_directory"], folder.to_str().unwrap(), "not as it was given: own");
}

#[test]
fn a_port_in_use_is_reported_with_the_process_that_has_it() {
    let home = Home::new();
    let _sensor = Sensor::start(&home, &["sensor"]);
    let address = std::fs::read_to_string(home.path().join("own/listen")).unwrap();
    let port = address.lines().next().unwrap().rsplit(':').next().unwrap().to_owned();
    let listen = format!("127.0.0.1:{port}");
    let ran = home.run(&["sensor", "--state", "other", "--listen", &listen]).with_code(1);
    ran.notes(&["in use", &format!("port {port} is used by visperf (process ")]);
}

#[test]
fn what_passes_nothing_is_said_and_what_cannot_be_is_refused() {
    let home = Home::new();
    let sensor = Sensor::start(&home, &["sensor"]);
    let mut silent = home.command(&["watch", "--state", "own", "--pid", "4194304"]).spawn().unwrap();
    let notes = lines(silent.stderr.take().unwrap());
    for arguments in [["--pid", "0"], ["--under", "0"], ["--cpu-ms", "0"], ["--cpu-ms", "501"]] {
        sensor
            .run(&[&["watch"][..], &arguments].concat())
            .with_code(2)
            .notes(&["expected a whole number from 1"]);
    }
    sensor.run(&["processes", "--pid", "0"]).with_code(2).notes(&["expected a whole number from 1"]);
    let note = notes.recv_timeout(DEADLINE).expect("it is said that nothing passes");
    assert_eq!(note, "nothing passed for 5 s; it is watched on, until Ctrl-C");
    interrupt(&silent);
    assert_eq!(silent.wait().unwrap().code(), Some(130));
    assert_eq!(notes.iter().count(), 0, "it is said once");
}

#[test]
fn a_script_beyond_the_budget_gets_the_hint_how_to_raise_it() {
    let home = Home::new();
    let sensor = Sensor::start(&home, &["sensor"]);
    let ran = sensor.run(&["watch", "--rate", "1000", "--cpu-ms", "1"]).with_code(1);
    ran.notes(&["expected at most 1 ms of CPU time a second", "; --cpu-ms N gives it more, at most 500"]);
    sensor.run(&["watch", "--rate", "10", "--cpu-ms", "500", "--samples", "2"]).ok();
}

/// Completion log of three jobs with three different outcomes.
fn three_jobs() -> String {
    let job = |number: u32, state: &str, exit: &str| {
        format!(
            "JobId={number} UserId=ann(1001) GroupId=ann(1001) Name=sweep JobState={state} Partition=short TimeLimit=10 \
             StartTime=2026-11-20T12:24:21 EndTime=2026-11-20T12:24:22 NodeList=wn04 NodeCnt=1 ProcCnt=1 \
             WorkDir=/home/ann SubmitTime=2026-11-20T12:24:20 EligibleTime=2026-11-20T12:24:21 ExitCode={exit} \n"
        )
    };
    [job(1, "COMPLETED", "0:0"), job(2, "FAILED", "1:0"), job(3, "TIMEOUT", "0:1")].concat()
}

#[test]
fn followed_jobs_are_printed_when_they_change_and_not_again_after_a_restart() {
    let home = Home::new();
    home.file("slurmctld.log", "");
    let tail = ["up", "--tail", "slurmctld.log"];
    let sensor = Sensor::start(&home, &tail);
    let write = |text: &str| {
        let time = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.3f");
        let log = std::fs::OpenOptions::new().append(true).open(home.path().join("slurmctld.log"));
        writeln!(log.unwrap(), "[{time}] {text}").unwrap();
    };
    let is_known = |state: &str| {
        let jobs = sensor.run(&["jobs", "--json"]).ok().json();
        jobs.iter().any(|job| job["state"] == state).then_some(())
    };
    write("_slurm_rpc_submit_batch_job: JobId=1 InitPrio=1 usec=3");
    sensor.until("a job that waits", |_| is_known("waiting"));
    let mut child = home.command(&["jobs", "--follow", "--json", "--state", "own"]).spawn().unwrap();
    let (out, notes) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
    let state = || {
        let line = out.recv_timeout(DEADLINE).expect("a change");
        let job: serde_json::Value = serde_json::from_str(&line).unwrap();
        (job["id"].as_str().unwrap().to_owned(), job["state"].as_str().unwrap().to_owned())
    };
    // What it was before is not printed; the program must have asked for that before the job starts.
    assert!(out.recv_timeout(std::time::Duration::from_secs(3)).is_err());
    write("sched: Allocate JobId=1 NodeList=wn1 #CPUs=1 Partition=short");
    assert_eq!(state(), ("slurm:1".to_owned(), "running".to_owned()));
    drop(sensor);
    let lost = notes.recv_timeout(DEADLINE).expect("it says so");
    assert!(lost.contains("trying again until it answers"), "{lost}");
    let _sensor = Sensor::start(&home, &tail);
    write("_job_complete: JobId=1 WEXITSTATUS 0");
    assert_eq!(state(), ("slurm:1".to_owned(), "ended".to_owned()));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(out.try_recv().is_err(), "nothing was printed twice");
}

#[test]
fn outcomes_spans_and_hosts_are_given_as_users_type_them() {
    let home = Home::new();
    home.file("jobcomp.log", three_jobs());
    let sensor = Sensor::start(&home, &["up", "--tail", "jobcomp.log"]);
    let jobs = |arguments: &[&str]| -> Vec<String> {
        let calls = sensor.run(&[&["calls", "--json"], arguments].concat()).ok().json();
        let mut ids: Vec<_> = calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    sensor.until("three calls", |_| (jobs(&[]).len() == 3).then_some(()));
    assert_eq!(jobs(&["--outcome", "failed"]), ["slurm:2"]);
    assert_eq!(jobs(&["--outcome", "failed", "--outcome", "timeout"]), ["slurm:2", "slurm:3"]);

    let me = rustix::system::uname().nodename().to_string_lossy().into_owned();
    sensor.run(&["watch", &me, "--rate", "10", "--samples", "1"]).ok();
    sensor.run(&["watch", "nosuchhost", "--samples", "1"]).with_code(4).notes(&["nosuchhost"]);

    let recorded = sensor.run(&["recordings", "record", "--before", "5s", "--after", "500ms"]).ok();
    recorded.notes(&["ready in"]);
    sensor.run(&["recordings", "record", "--before", "5 parsecs"]).with_code(2).notes(&["90s, 15m"]);
}

#[test]
fn the_past_of_a_metric_is_printed_as_a_line_as_rows_and_as_csv() {
    let home = Home::new();
    let sensor = Sensor::start(&home, &["sensor"]);
    let past = |more: &[&str]| sensor.run(&[&["metrics", "node_load1", "--since", "1h"][..], more].concat());
    let deadline = std::time::Instant::now() + DEADLINE;
    while !past(&[]).out.contains("node_load1") {
        assert!(std::time::Instant::now() < deadline, "{:#?}", past(&[]));
    }
    let ran = past(&[]).ok().prints(&["MIN", "MAX", "TREND", "▁"]);
    ran.notes(&["read from raw; stored: raw since "]);
    past(&["--values", "--step", "1m"]).ok().prints(&["TIME", "VALUE", ":00.000Z"]);
    past(&["--csv", "--step", "0"])
        .ok()
        .prints(&["host,metric,labels,time,value,unit\n", "\"node_load1\",\"\","]);
    let series = past(&["--json", "--agg", "count"]).ok().json().remove(0);
    assert!(series["host"].is_string() && series["aggregate"] == "count", "{series}");
    assert!(series["samples"][0]["value"].as_u64() > Some(0), "{series}");
    past(&["--step", "soon"]).with_code(2).notes(&["--step", "expected"]);
    past(&["--agg", "median"]).with_code(2).notes(&["avg", "p95"]);
    sensor.run(&["metrics", "node_lod1", "--since", "1h"]).with_code(2).notes(&["did you mean node_load1"]);
    let cpu = ["metrics", "node_cpu_seconds_total", "--since", "1h", "--by", "mode", "--top", "1"];
    // A rate needs two samples.
    while sensor.run(&cpu).ok().out.is_empty() {
        assert!(std::time::Instant::now() < deadline, "{:#?}", sensor.run(&cpu));
    }
    let ran = sensor.run(&cpu).ok();
    assert_eq!(ran.out.lines().count(), 2, "the head and one series: {ran:#?}");
    ran.prints(&["mode=", "seconds/s"]);
    let too_many = ["metrics", "--since", "1h", "--step", "1us"];
    sensor.run(&too_many).with_code(2);
}
