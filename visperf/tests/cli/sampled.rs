//! Processes as the command line tells them of a sensor that samples this host.

use crate::control::Sensor;
use crate::followed::{interrupt, lines};
use crate::program::{DEADLINE, Home};

#[test]
fn how_processes_are_read_and_where_state_is_are_told() {
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
    let told = notes.recv_timeout(DEADLINE).expect("it is said that nothing passes");
    assert_eq!(told, "nothing passed for 5 s; it is watched on, until Ctrl-C");
    interrupt(&silent);
    assert_eq!(silent.wait().unwrap().code(), Some(130));
    assert_eq!(notes.iter().count(), 0, "it is said once");
}

#[test]
fn who_needs_more_cpu_time_than_the_budget_is_told_how_to_give_it() {
    let home = Home::new();
    let sensor = Sensor::start(&home, &["sensor"]);
    let ran = sensor.run(&["watch", "--rate", "1000", "--cpu-ms", "1"]).with_code(1);
    ran.notes(&["expected at most 1 ms of CPU time a second", "; --cpu-ms N gives it more, at most 500"]);
    sensor.run(&["watch", "--rate", "10", "--cpu-ms", "500", "--samples", "2"]).ok();
}
