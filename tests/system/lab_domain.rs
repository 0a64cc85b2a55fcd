//! A domain of several hosts with the real program: it is created and joined by tokens, elects a
//! representative, follows it through death and partition, and answers the same wherever it is asked.
//!
//! Rule: nothing but the commands of `docs/domains.md` and queries on each host's loopback.
//! Not here: the rules of the election and their thousand cases (`overlay/tests`).

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use system_tests::lab::{self, Daemon, Host, Network, Stopwatch, Trials};
use system_tests::program;
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// Longest wait for a domain to agree: seconds, on a machine that builds at the same time.
const AGREED: Duration = Duration::from_secs(60);

/// Kills in one story.
const KILLS: usize = 3;

fn visperf(host: &Host, arguments: &[&str]) -> String {
    let output = host.run(|| Ok(program::command(program::visperf()?).args(arguments).output()?)).unwrap();
    assert!(output.status.success(), "visperf {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn state(host: &Host) -> String {
    host.folder().join("sensor").display().to_string()
}

fn sensor(host: &Host) -> Daemon {
    let words = ["sensor", "--listen", "127.0.0.1:7317", "--log", "info"].map(str::to_owned);
    host.daemon(&words).unwrap()
}

/// Every host a member of one domain, with its sensor running; the first one is the issuer.
fn domain(network: &Network) -> Vec<Daemon> {
    let hosts = network.hosts();
    let first = &hosts[0];
    visperf(first, &["domain", "create", "UT-ICL", "--host", first.name(), "--state", &state(first)]);
    let mut daemons = vec![sensor(first)];
    let told = visperf(first, &["token", "create", "--uses", "100", "--json", "--state", &state(first)]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let token = told["token"].as_str().unwrap();
    for host in &hosts[1..] {
        visperf(host, &["join", token, "--host", host.name(), "--state", &state(host)]);
        daemons.push(sensor(host));
    }
    daemons
}

/// Who represents the domain as each of them says, where it can say.
fn representatives(daemons: &[Daemon]) -> Vec<Option<String>> {
    let ask = |daemon: &Daemon| match daemon.ask("domain.summary", &json!({})) {
        Ok(Answer::Result(summary)) => summary["representative"].as_str().map(str::to_owned),
        Ok(Answer::Fault { .. }) | Err(_) => None,
    };
    daemons.iter().map(ask).collect()
}

/// Waits until all name one representative other than `former`; it, and how long that took.
fn agreed(daemons: &[Daemon], former: Option<&str>) -> (String, Duration) {
    let look = || {
        let named = representatives(daemons);
        let all: BTreeSet<_> = named.iter().collect();
        Ok(match (all.len(), &named[0]) {
            (1, Some(one)) if Some(one.as_str()) != former => Seen::Done(one.clone()),
            _ => Seen::NotYet(format!("they name {named:?}")),
        })
    };
    let found = Stopwatch::start().until(AGREED, "one representative", look);
    let (took, one) = found.unwrap_or_else(|error| {
        let told = daemons.iter().map(|daemon| format!("{}:\n{}", daemon.host().name(), daemon.told()));
        panic!("{error:#}\n{}", told.collect::<Vec<_>>().join("\n"))
    });
    (one, took)
}

/// Waits until each is connected to the representative and both standbys. A domain whose only seed dies before its
/// members have heard of each other cannot find together again until that seed is back.
fn settled(daemons: &[Daemon]) {
    let look = || {
        let guests = daemons.iter().map(|daemon| {
            let info = daemon.result("daemon.info", &json!({}))?;
            Ok(info["statistics"]["overlay"]["guests"].as_u64().unwrap_or(0))
        });
        let guests: Vec<u64> = guests.collect::<anyhow::Result<_>>()?;
        Ok(match guests.iter().all(|count| *count >= 3) {
            true => Seen::Done(()),
            false => Seen::NotYet(format!("they have {guests:?} peers")),
        })
    };
    Stopwatch::start().until(AGREED, "members that know each other", look).unwrap();
}

#[test]
fn a_domain_follows_its_representative_through_death() {
    let name = "lab_domain::a_domain_follows_its_representative_through_death";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let mut daemons = domain(&network);
    let (mut current, took) = agreed(&daemons, None);
    settled(&daemons);
    println!("one view of 5 hosts after {} ms", took.as_millis());
    let members = visperf(
        &network.hosts()[0],
        &["domain", "members", "--json", "--state", &state(&network.hosts()[0])],
    );
    assert_eq!(members.matches("\"host\"").count(), 5, "{members}");

    let mut trials = Trials::default();
    for _ in 0..KILLS {
        let at = daemons.iter().position(|daemon| daemon.host().name() == current).unwrap();
        let dead = daemons.swap_remove(at);
        let host = dead.host().clone();
        dead.kill().unwrap();
        let (next, took) = agreed(&daemons, Some(&current));
        trials.add(took);
        daemons.push(sensor(&host));
        let (after, _) = agreed(&daemons, None);
        settled(&daemons);
        assert_eq!(after, next, "the one that comes back does not take the domain");
        current = next;
    }
    println!("a new representative answers on all others after {trials}");

    // The same question, wherever it is asked.
    let answers: BTreeSet<String> = daemons
        .iter()
        .map(|daemon| {
            let hosts = daemon.result("domain.hosts", &json!({})).unwrap();
            let sensors = hosts["hosts"].as_array().unwrap().iter().map(|host| host["sensor"].to_string());
            sensors.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    // One host's own files, asked of another.
    let far = daemons.iter().find(|daemon| daemon.host().name() != current).unwrap();
    let own = far.result("sensor.filters", &json!({})).unwrap();
    for daemon in &daemons {
        let there = daemon.result("sensor.filters", &json!({ "host": far.host().name() })).unwrap();
        assert_eq!(there, own);
    }
}

#[test]
fn a_stopped_representative_resigns_and_a_stranger_learns_nothing() {
    let name = "lab_domain::a_stopped_representative_resigns_and_a_stranger_learns_nothing";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(4).unwrap();
    let mut daemons = domain(&network);
    let (current, _) = agreed(&daemons, None);
    settled(&daemons);
    let at = daemons.iter().position(|daemon| daemon.host().name() == current).unwrap();
    assert!(daemons.swap_remove(at).stop().unwrap().success());
    let (next, took) = agreed(&daemons, Some(&current));
    println!("{next} follows {current} {} ms after its stop", took.as_millis());

    // Out of the domain by the issuer's word: the issuer refuses it.
    let issuer = &network.hosts()[0];
    let victim = daemons.iter().find(|daemon| daemon.host().name() != "h1").unwrap().host().clone();
    visperf(issuer, &["domain", "revoke", victim.name(), "--state", &state(issuer)]);
    let members = visperf(issuer, &["domain", "members", "--json", "--state", &state(issuer)]);
    let denied = members.lines().find(|line| line.contains(victim.name())).unwrap();
    assert!(denied.contains("revoked"), "{denied}");
}
