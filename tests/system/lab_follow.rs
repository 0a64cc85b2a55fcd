//! Viewers that follow at a proxy: they share one query inside, an account is removed, a representative dies.
//!
//! Rules: the real programs, each on its own host; a follower never logs in again. Figures are printed.
//! Not here: slow followers (the tests of `rpc`), ten thousand of them (`benches/viewers.sh`).

use super::lab_door::visitor::Place;
use super::lab_door::{Site, at, report};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use system_tests::lab::domains::{agreed, visperf};
use system_tests::lab::{self, Host, Stopwatch};

const HOSTS: &str = "/d/UT-ICL/api/v1/domain.hosts";
const EVERY: &str = "?follow=0.5";
/// Timeout for anything that is expected.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a follower receives.
#[derive(Debug)]
enum Received {
    Answer(u64, Value),
    Fault(Value),
    End,
}

/// Follow at the proxy until the end, and send what is received.
async fn watch(place: &Place, (name, secret): (&str, &str), sender: SyncSender<Received>) {
    let mut visitor = place.connect().await.with_account(name, secret);
    let response = visitor.get(&format!("{HOSTS}{EVERY}")).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.fields("content-type"), ["text/event-stream"]);
    let mut text = String::new();
    loop {
        let some = visitor.some(1 << 16).await;
        text.push_str(&String::from_utf8(some.clone()).unwrap());
        while let Some(end) = text.find("\n\n") {
            let block: String = text.drain(..end + 2).collect();
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            let Some(data) = field("data: ") else { continue };
            let mut data: Value = serde_json::from_str(data).unwrap();
            let one = match data.get("answer") {
                None => Received::Fault(data["error"].take()),
                Some(_) => Received::Answer(field("id: ").unwrap().parse().unwrap(), data["answer"].take()),
            };
            // The test may have seen enough.
            if sender.send(one).is_err() {
                return;
            }
        }
        if some.is_empty() {
            let _ = sender.send(Received::End);
            return;
        }
    }
}

struct Follower(Receiver<Received>);

impl Follower {
    fn next(&self) -> Received {
        match self.0.recv_timeout(PATIENCE) {
            Ok(received) => received,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came for a minute"),
            Err(RecvTimeoutError::Disconnected) => panic!("the follower is gone"),
        }
    }

    /// The next answer, and the number of faults before it.
    fn answer(&self) -> (u64, Value, usize) {
        let mut faults = 0;
        loop {
            match self.next() {
                Received::Answer(number, answer) => return (number, answer, faults),
                Received::Fault(_) => faults += 1,
                Received::End => panic!("it ended"),
            }
        }
    }
}

/// Remove a follower's account: it receives a fault and its stream is closed.
fn is_cut_with_its_account(site: &Site, follower: &Follower) {
    let own = site.proxy.host.folder().join("proxy").display().to_string();
    visperf(&site.proxy.host, &["account", "remove", "bob", "--state", &own]).unwrap();
    let removed = Stopwatch::start();
    let mut last_words = json!(null);
    loop {
        match follower.next() {
            Received::Answer(..) => {}
            Received::Fault(fault) => last_words = fault,
            Received::End => break,
        }
    }
    assert_eq!(last_words["code"], -32006, "{last_words}");
    report(&format!(
        "who followed is cut off {} ms after its account was removed",
        removed.elapsed().as_millis()
    ));
    assert_eq!(site.figure("queries", "followers"), 1);
}

/// Kill the representative: the same stream continues with another's answers.
fn goes_on_with_another(site: &mut Site, representative: &str, follower: &Follower) {
    let which = site.sensors.iter().position(|daemon| daemon.host().name() == representative).unwrap();
    while follower.0.try_recv().is_ok() {}
    site.sensors.remove(which).kill().unwrap();
    let killed = Stopwatch::start();
    let is_dead = |answer: &Value| {
        let row = answer["hosts"].as_array()?.iter().find(|row| row["host"] == representative)?;
        Some(row["state"] != "live")
    };
    let mut faults = 0;
    loop {
        let (_, answer, more) = follower.answer();
        faults += more;
        if is_dead(&answer).unwrap_or(false) {
            break;
        }
        assert!(killed.elapsed() < PATIENCE, "{answer}");
    }
    let took = killed.elapsed().as_millis();
    report(&format!(
        "a new representative's answers come after {took} ms and {faults} faults, on the same connection"
    ));
}

#[test]
fn a_follower_outlives_a_representative_and_not_its_account() {
    let name = "lab_follow::a_follower_outlives_a_representative_and_not_its_account";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let secrets = Mutex::new(Vec::new());
    let mut site = Site::start(&network, |proxy| {
        let one = |name| proxy.account(name, &["--domain", "UT-ICL"]).unwrap();
        secrets.lock().unwrap().extend([one("ana"), one("bob")]);
    });
    let secrets = secrets.into_inner().unwrap();
    let (ana, bob) = (("ana", secrets[0].as_str()), ("bob", secrets[1].as_str()));
    site.until_answered(ana, HOSTS);
    let (representative, _) = agreed(&site.sensors, None).unwrap();
    let (place, viewer) = (site.place(), site.viewer.clone());
    std::thread::scope(|scope| {
        let follow = |login| {
            let (sender, came) = sync_channel(1_000);
            let (place, viewer): (&Place, &Host) = (&place, &viewer);
            scope.spawn(move || at(viewer, watch(place, login, sender)));
            Follower(came)
        };
        let (of_ana, of_bob) = (follow(ana), follow(bob));
        let calls = |site: &Site| site.figure("queries", "calls_total");
        of_ana.answer();
        of_bob.answer();
        let before = calls(&site);
        let (first, ..) = of_ana.answer();
        for _ in 0..5 {
            of_ana.answer();
            of_bob.answer();
        }
        let (last, answer, _) = of_ana.answer();
        assert!(answer["hosts"].as_array().is_some_and(|hosts| hosts.len() == 2), "{answer}");
        // Apart from the followed calls, the two queries of the counters are calls too.
        let asked = calls(&site) - before;
        assert!(asked <= last - first + 4, "{asked} calls for {} answers to two", last - first);
        assert_eq!(site.figure("queries", "followers"), 2);

        is_cut_with_its_account(&site, &of_bob);
        goes_on_with_another(&mut site, &representative, &of_ana);
        drop(of_ana);
    });
    assert_eq!(site.figure("queries", "follows_total"), 2, "no client connected again");
}
