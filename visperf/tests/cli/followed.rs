//! `visperf events --follow` with a daemon that comes and goes.

use crate::program::{DEADLINE, Home};
use crate::server::{Daemon, Events, event};
use rustix::process::{Pid, Signal};
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// The lines of a pipe, as they arrive.
pub(crate) fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (give, take) = sync_channel(10_000);
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if give.send(line).is_err() {
                return;
            }
        }
    });
    take
}

fn ids(from: &Receiver<String>, count: usize) -> Vec<String> {
    let id = |line: String| {
        serde_json::from_str::<serde_json::Value>(&line).unwrap()["id"].as_str().unwrap().to_owned()
    };
    (0..count).map(|_| id(from.recv_timeout(DEADLINE).expect("another event"))).collect()
}

fn expected(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("e-{number}")).collect()
}

/// Send the signal of Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    send(child, Signal::INT);
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn ctrl_c_prints_a_cursor_before_any_event_came_and_other_signals_end_nothing() {
    let events = Events::default();
    events.lock().unwrap().extend((0..3).map(event));
    let daemon = Daemon::start("127.0.0.1:0", &events);
    let home = Home::new();
    let address = daemon.connect();
    for round in 0..5 {
        let mut child = home.command(&["events", "--follow", "--connect", &address]).spawn().unwrap();
        let (out, notes) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        daemon.asked_to_wait.recv_timeout(DEADLINE).expect("it waits for the next event");
        // A stopped program returns from waiting with an interrupted call, and must wait again.
        send(&child, Signal::STOP);
        send(&child, Signal::CONT);
        if round == 4 {
            events.lock().unwrap().push(event(3));
            assert!(out.recv_timeout(DEADLINE).expect("the next event").contains("job_start"));
            daemon.asked_to_wait.recv_timeout(DEADLINE).expect("and waits again");
        }
        interrupt(&child);
        let printed: Vec<String> = notes.iter().collect();
        assert_eq!(printed, [format!("go on with: --cursor {}", if round == 4 { 4 } else { 3 })]);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    let mut child =
        home.command(&["events", "--follow", "--connect", &address, "--cursor", "1"]).spawn().unwrap();
    daemon.asked_to_wait.recv_timeout(DEADLINE).expect("it asks");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn following_survives_a_restart_and_repeats_nothing() {
    let events = Events::default();
    events.lock().unwrap().extend((0..3).map(event));
    let daemon = Daemon::start("127.0.0.1:0", &events);
    let address = daemon.connect();
    let home = Home::new();
    let arguments = ["events", "--follow", "--json", "--cursor", "0", "--connect", &address];
    let mut child = home.command(&arguments).spawn().unwrap();
    let (out, notes) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
    assert_eq!(ids(&out, 3), expected(0..3));
    events.lock().unwrap().push(event(3));
    assert_eq!(ids(&out, 1), expected(3..4));

    drop(daemon);
    let note = notes.recv_timeout(DEADLINE).expect("a note that the daemon is gone");
    assert!(note.contains("trying again"), "{note}");
    events.lock().unwrap().extend((4..6).map(event));
    let daemon = Daemon::start(&address, &events);
    assert_eq!(ids(&out, 2), expected(4..6));
    let note = notes.recv_timeout(DEADLINE).expect("a note that it is back");
    assert!(note.contains("going on"), "{note}");

    interrupt(&child);
    let rest: Vec<String> = notes.iter().collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(rest.concat().contains("--cursor 6"), "{rest:?}");
    assert_eq!(out.iter().count(), 0);
    drop(daemon);
}

#[test]
fn following_begins_with_the_next_event_and_stops_at_its_limit() {
    let events = Events::default();
    events.lock().unwrap().extend((0..3).map(event));
    let daemon = Daemon::start("127.0.0.1:0", &events);
    let home = Home::new();
    let address = daemon.connect();
    // The program must have sent its first query before the next event; until then, add one event after
    // another.
    let mut child = home
        .command(&["events", "--follow", "--json", "--limit", "2", "--connect", &address])
        .spawn()
        .unwrap();
    let out = lines(child.stdout.take().unwrap());
    let mut given = 3;
    let first = loop {
        events.lock().unwrap().push(event(given));
        given += 1;
        assert!(given < 1_000, "no event was printed");
        if let Ok(line) = out.recv_timeout(Duration::from_millis(50)) {
            break line;
        }
    };
    assert!(!first.contains("\"e-0\"") && !first.contains("\"e-2\""), "{first}");
    events.lock().unwrap().push(event(given));
    assert!(out.recv_timeout(DEADLINE).is_ok());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
