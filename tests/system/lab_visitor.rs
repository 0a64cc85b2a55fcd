//! A member that is only a viewer, or an operator's workstation: it publishes nothing, is not listed as a
//! host, and yet all its queries about its domain are answered, with directories and without.
//!
//! Not here: refused admissions (`lab_admission`), an operator's commands (`lab_control`).

use serde_json::{Value, json};
use std::time::Duration;
use system_tests::lab::domains::{Directory, Domain, agreed, sensor, settled, state, visperf};
use system_tests::lab::{self, Daemon, Host};
use system_tests::query::Answer;
use system_tests::wait::{self, Seen};

/// Timeout for a new member to be admitted and answered.
const PATIENCE: Duration = Duration::from_secs(90);

/// Admit `desk` as a viewer, and start its sensor.
fn visitor(issuer: &Host, desk: &Host) -> Daemon {
    let state_of_issuer = state(issuer);
    let words = ["token", "create", "--role", "viewer", "--json", "--state", &state_of_issuer];
    let answer: Value = serde_json::from_str(&visperf(issuer, &words).unwrap()).unwrap();
    let token = answer["token"].as_str().unwrap();
    visperf(desk, &["join", token, "--host", desk.name(), "--state", &state(desk)]).unwrap();
    sensor(desk, &[]).unwrap()
}

/// Names of the domain's hosts according to this daemon, once there are this many.
fn hosts(daemon: &Daemon, count: usize) -> Vec<String> {
    wait::until(PATIENCE, "the domain's hosts", || {
        let answer = daemon.ask("domain.hosts", &json!({}))?;
        let Answer::Result(value) = &answer else { return Ok(Seen::NotYet(format!("{answer:?}"))) };
        let names =
            value["hosts"].as_array().unwrap().iter().map(|host| host["host"].as_str().unwrap().to_owned());
        let names: Vec<String> = names.collect();
        Ok(if names.len() < count { Seen::NotYet(format!("{names:?}")) } else { Seen::Done(names) })
    })
    .unwrap()
}

fn is_answered_and_has_no_part(name: &str, has_directory: bool) {
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let (members, desk) = (&network.hosts()[..4], &network.hosts()[4]);
    let domain = Domain::create("UT-ICL", members).unwrap();
    let directories: Vec<Directory> = network.hosts()[5..]
        .iter()
        .filter(|_| has_directory)
        .map(|host| Directory::new(host).unwrap())
        .collect();
    let started = directories.iter().map(|one| one.start(&directories, &[&domain]).unwrap());
    let _directory: Vec<Daemon> = started.collect();
    let daemons = domain.start(&directories, |_| Vec::new()).unwrap();
    agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let looking = visitor(&members[0], desk);
    assert_eq!(hosts(&looking, 4).len(), 4, "{}", looking.output());
    // Each of them, whichever the viewer's host is connected to.
    for member in members {
        let look = || match looking.result("sensor.metrics", &json!({ "host": member.name() })) {
            Ok(answer) if !answer["metrics"].as_array().unwrap().is_empty() => Ok(Seen::Done(())),
            answer => Ok(Seen::NotYet(format!("{answer:?}"))),
        };
        wait::until(PATIENCE, "a member's figures", look).unwrap();
    }
    let look = || match looking.ask("sensor.metrics", &json!({ "host": "h99" }))? {
        Answer::Fault { message, .. } if message.contains("no host h99") => Ok(Seen::Done(())),
        other @ (Answer::Result(_) | Answer::Fault { .. }) => Ok(Seen::NotYet(format!("{other:?}"))),
    };
    wait::until(PATIENCE, "that there is no such host", look).unwrap();
    assert_eq!(hosts(&daemons[1], 4).len(), 4, "it is none of the domain's hosts");
    for daemon in &daemons {
        assert!(!daemon.output().contains("outside the domain"), "{}", daemon.output());
    }
}

#[test]
fn a_reader_asks_whichever_member_it_reaches() {
    is_answered_and_has_no_part("lab_visitor::a_reader_asks_whichever_member_it_reaches", false);
}

#[test]
fn a_reader_asks_the_representative_that_directories_know() {
    let name = "lab_visitor::a_reader_asks_the_representative_that_directories_know";
    is_answered_and_has_no_part(name, true);
}
