//! A domain of several hosts with the real program: it is created and joined by tokens, elects a
//! representative, replaces it after deaths and partitions, and answers the same wherever it is queried.
//!
//! Rule: only the commands of `docs/domains.md` and queries on each host's loopback are used.
//! Not here: the rules of the election and their many cases (`overlay/tests`).

use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use system_tests::lab::domains::{Domain, agreed, sensor, settled, state, visperf};
use system_tests::lab::{self, Daemon, Network, Stopwatch, Trials};
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// Timeout for expected events.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills in one test.
const KILLS: usize = 3;

/// Start a domain with every host as a member; the first one is the issuer.
fn domain(network: &Network) -> Vec<Daemon> {
    let domain = Domain::create("UT-ICL", network.hosts()).unwrap();
    domain.start(&[], |_| Vec::new()).unwrap()
}

#[test]
fn a_domain_follows_its_representative_through_death() {
    let name = "lab_domain::a_domain_follows_its_representative_through_death";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let mut daemons = domain(&network);
    let (mut current, took) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    println!("one view of 5 hosts after {} ms", took.as_millis());
    let members = visperf(
        &network.hosts()[0],
        &["domain", "members", "--json", "--state", &state(&network.hosts()[0])],
    )
    .unwrap();
    assert_eq!(members.matches("\"host\"").count(), 5, "{members}");

    let mut trials = Trials::default();
    for _ in 0..KILLS {
        let at = daemons.iter().position(|daemon| daemon.host().name() == current).unwrap();
        let dead = daemons.swap_remove(at);
        let host = dead.host().clone();
        dead.kill().unwrap();
        let (next, took) = agreed(&daemons, Some(&current)).unwrap();
        trials.add(took);
        let listed = Stopwatch::start().until(PATIENCE, "the host that died, as last seen", || {
            let hosts = daemons[0].result("domain.hosts", &json!({}))?;
            let mut rows = hosts["hosts"].as_array().into_iter().flatten();
            let is_listed = rows.any(|row| row["host"] == host.name() && row["state"] == "last_seen");
            Ok(if is_listed { Seen::Done(()) } else { Seen::NotYet(hosts.to_string()) })
        });
        println!("{current} is reported as last seen after {} ms more", listed.unwrap().0.as_millis());
        daemons.push(sensor(&host, &[]).unwrap());
        let (after, _) = agreed(&daemons, None).unwrap();
        settled(&daemons).unwrap();
        assert_eq!(after, next, "the one that comes back does not take the domain");
        current = next;
    }
    println!("a new representative answers on all others after {trials}");

    // The same query, at every host.
    let answers: BTreeSet<String> = daemons
        .iter()
        .map(|daemon| {
            let hosts = daemon.result("domain.hosts", &json!({})).unwrap();
            let sensors = hosts["hosts"].as_array().unwrap().iter().map(|host| host["sensor"].to_string());
            sensors.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    // A host's own files, queried at other hosts.
    let far = daemons.iter().find(|daemon| daemon.host().name() != current).unwrap();
    let own = far.result("sensor.filters", &json!({})).unwrap();
    for daemon in &daemons {
        let there = daemon.result("sensor.filters", &json!({ "host": far.host().name() })).unwrap();
        assert_eq!(there, own);
    }
}

/// The founder of a domain has no addresses of the other members after a restart, but knows that there are
/// others.
#[test]
fn a_founder_that_comes_back_alone_claims_a_part_of_the_domain() {
    let name = "lab_domain::a_founder_that_comes_back_alone_claims_a_part_of_the_domain";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(2).unwrap();
    let mut daemons = domain(&network);
    agreed(&daemons, None).unwrap();
    daemons.drain(..).for_each(|daemon| daemon.kill().unwrap());
    let founder = sensor(&network.hosts()[0], &[]).unwrap();
    let represented = Stopwatch::start().until(PATIENCE, "the founder represents the domain", || {
        let summary = founder.result("domain.summary", &json!({}))?;
        let is_there =
            summary["representative"] == founder.host().name() && summary["partial"] == json!(true);
        Ok(if is_there { Seen::Done(()) } else { Seen::NotYet(summary.to_string()) })
    });
    let (took, ()) = represented.unwrap();
    println!("alone, it represents a part of the domain after {} ms", took.as_millis());
    let log = founder.output();
    let claims: Vec<&str> = log.lines().filter(|line| line.contains("role=\"representative\"")).collect();
    assert!(!claims.is_empty() && claims.iter().all(|claim| claim.contains("partial=true")), "{claims:?}");
}

/// Query all of these daemons concurrently; each must be answered by a representative other than `lost`.
/// Returns the time taken.
fn answered_by_the_next(daemons: &[&Daemon], lost: &str) -> Duration {
    // The next representative may not have a route to itself: it is not known in advance which host follows.
    let ask = |daemon: &Daemon| daemon.ask("domain.summary", &json!({})).unwrap();
    let asked = Stopwatch::start();
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let asking: Vec<_> = daemons.iter().map(|daemon| scope.spawn(|| ask(daemon))).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let by = |answer: &Answer| match answer {
        Answer::Result(value) => value["representative"].as_str().map(str::to_owned),
        Answer::Fault { .. } => None,
    };
    let is_by_another = |answer: &Answer| by(answer).is_some_and(|by| by != lost);
    let others: Vec<&Answer> = answers.iter().filter(|answer| !is_by_another(answer)).collect();
    assert!(others.is_empty(), "not answered by another than {lost}: {others:?}");
    asked.elapsed()
}

/// A query while the representative hangs is answered by its successor, without a retry by the client.
#[test]
fn a_question_to_a_representative_that_hangs_is_answered_by_the_next() {
    let name = "lab_domain::a_question_to_a_representative_that_hangs_is_answered_by_the_next";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let daemons = domain(&network);
    let (current, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let (hung, others): (Vec<_>, Vec<_>) = daemons.iter().partition(|daemon| daemon.host().name() == current);
    hung[0].pause().unwrap();
    let took = answered_by_the_next(&others, &current);
    println!("asked while {current} hangs, all are answered after {} ms", took.as_millis());
    hung[0].resume().unwrap();
}

/// The same at once after it died, before another one is known. Not for the last member, which stays alone
/// for ten seconds before it represents the domain.
#[test]
fn a_question_to_a_representative_that_died_is_answered_by_the_next() {
    let name = "lab_domain::a_question_to_a_representative_that_died_is_answered_by_the_next";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let mut daemons = domain(&network);
    settled(&daemons).unwrap();
    while daemons.len() > 2 {
        let (current, _) = agreed(&daemons, None).unwrap();
        let at = daemons.iter().position(|daemon| daemon.host().name() == current).unwrap();
        daemons.swap_remove(at).kill().unwrap();
        for _ in 0..3 {
            let took = answered_by_the_next(&daemons.iter().collect::<Vec<_>>(), &current);
            println!("asked after the end of {current}, all are answered after {} ms", took.as_millis());
        }
    }
}

#[test]
fn a_stopped_representative_resigns_and_a_stranger_learns_nothing() {
    let name = "lab_domain::a_stopped_representative_resigns_and_a_stranger_learns_nothing";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let mut daemons = domain(&network);
    let (current, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let at = daemons.iter().position(|daemon| daemon.host().name() == current).unwrap();
    assert!(daemons.swap_remove(at).stop().unwrap().success());
    let (next, took) = agreed(&daemons, Some(&current)).unwrap();
    println!("{next} follows {current} {} ms after its stop", took.as_millis());

    // Revoked by the issuer: it is refused.
    let issuer = &network.hosts()[0];
    let victim = daemons.iter().find(|daemon| daemon.host().name() != "h1").unwrap().host().clone();
    visperf(issuer, &["domain", "revoke", victim.name(), "--state", &state(issuer)]).unwrap();
    let members = visperf(issuer, &["domain", "members", "--json", "--state", &state(issuer)]).unwrap();
    let denied =
        members.lines().find(|line| line.contains(&format!("\"host\":\"{}\"", victim.name()))).unwrap();
    assert!(denied.contains("revoked"), "{denied}");
}

/// A daemon that is stopped announces that it leaves, whatever its role.
#[test]
fn a_host_that_stops_is_listed_as_left() {
    let Some(lab) = lab::enter("lab_domain::a_host_that_stops_is_listed_as_left").unwrap() else { return };
    let network = lab.network(6).unwrap();
    let mut daemons = domain(&network);
    agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    for role in ["member", "standby", "representative", "standby", "representative"] {
        let look = || {
            let hosts = daemons[0].result("domain.hosts", &json!({}))?;
            let mut rows = hosts["hosts"].as_array().into_iter().flatten();
            let row = rows.find(|row| row["role"] == role && row["state"] == "live");
            let at = row.and_then(|row| daemons.iter().position(|one| row["host"] == one.host().name()));
            Ok(at.map_or_else(|| Seen::NotYet(hosts.to_string()), Seen::Done))
        };
        let (_, at) = Stopwatch::start().until(PATIENCE, role, look).unwrap();
        let stopped = daemons.swap_remove(at);
        let host = stopped.host().clone();
        stopped.stop().unwrap();
        let look = || {
            let hosts = daemons[0].result("domain.hosts", &json!({}))?;
            let mut rows = hosts["hosts"].as_array().into_iter().flatten();
            let is_listed = rows.any(|row| row["host"] == host.name() && row["state"] == "left");
            Ok(if is_listed { Seen::Done(()) } else { Seen::NotYet(hosts.to_string()) })
        };
        let (took, ()) = Stopwatch::start().until(PATIENCE, "a host that left", look).unwrap();
        println!("the {role} {} is reported as left after {} ms", host.name(), took.as_millis());
    }
}
