//! An operator's view of a grid in which daemons died: service discovery lists each host as its
//! representative does, and daemons agree on domains, and report the problem, when no directory is left.
//!
//! Rule: one domain and one directory; what is asserted is what `docs/methods.md` and `docs/command-line.md` promise.
//! Not here: the forms of answers (`directory/tests/integration/prometheus.rs`), many domains (`lab_grid`).

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use system_tests::lab::domains::{AGREED, Directory, Domain, agreed, settled, visperf};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::program;
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// State of each host according to a member.
fn member_states(member: &Daemon) -> anyhow::Result<BTreeMap<String, String>> {
    let hosts = member.result("domain.hosts", &json!({}))?;
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let rows = hosts["hosts"].as_array().into_iter().flatten();
    Ok(rows.map(|row| (text(row, "host"), text(row, "state"))).collect())
}

/// State of each host in a directory's targets for Prometheus.
fn states(directory: &Daemon) -> anyhow::Result<BTreeMap<String, String>> {
    let answer = directory.result("directory.targets", &json!({ "domain": "UT-ICL" }))?;
    let text = |labels: &Value, name: &str| labels[name].as_str().unwrap_or_default().to_owned();
    let rows = answer.as_array().into_iter().flatten().map(|row| &row["labels"]);
    Ok(rows.map(|it| (text(it, "__meta_visperf_host"), text(it, "__meta_visperf_state"))).collect())
}

/// Wait until service discovery returns the same states as a member, and `wanted` accepts them; returns the
/// time taken.
fn until_same(
    directory: &Daemon,
    member: &Daemon,
    wanted: impl Fn(&BTreeMap<String, String>) -> bool,
) -> Duration {
    let look = || {
        let (states, reported) = (states(directory)?, member_states(member)?);
        let is_same = states == reported && wanted(&states);
        Ok(if is_same { Seen::Done(()) } else { Seen::NotYet(format!("{states:?}, a member {reported:?}")) })
    };
    Stopwatch::start().until(AGREED, "states of all hosts", look).unwrap().0
}

/// Exit code of a command on a host, and its standard error.
fn ended(host: &Host, arguments: &[&str]) -> (Option<i32>, String) {
    let output = host.run(|| Ok(program::command(program::visperf()?).args(arguments).output()?)).unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn take(daemons: &mut Vec<Daemon>, representative: &str) -> Daemon {
    let at = daemons.iter().position(|daemon| daemon.host().name() != representative).unwrap();
    daemons.swap_remove(at)
}

#[test]
fn dead_hosts_are_reported_as_they_are() {
    let Some(lab) = lab::enter("lab_targets::dead_hosts_are_reported_as_they_are").unwrap() else { return };
    let network = lab.network(5).unwrap();
    let (dirs, hosts) = network.hosts().split_at(1);
    let directories = [Directory::new(&dirs[0]).unwrap()];
    let domain = Domain::create("UT-ICL", hosts).unwrap();
    let server = directories[0].start(&directories, &[&domain]).unwrap();
    let mut members = domain.start(&directories, |_| Vec::new()).unwrap();
    let (representative, _) = agreed(&members, None).unwrap();
    settled(&members).unwrap();
    until_same(&server, &members[0], |states| {
        states.len() == 4 && states.values().all(|state| state == "live")
    });

    let dead = take(&mut members, &representative);
    let silent = dead.host().name().to_owned();
    dead.kill().unwrap();
    let took = until_same(&server, &members[0], |states| states[&silent] == "last_seen");
    println!("a host that was killed is reported as last seen after {} ms", took.as_millis());
    let gone = take(&mut members, &representative);
    let stopped = gone.host().name().to_owned();
    gone.stop().unwrap();
    let took = until_same(&server, &members[0], |states| states[&stopped] != "live");
    println!(
        "a host that was stopped is reported so after {} ms: {:?}",
        took.as_millis(),
        states(&server).unwrap()
    );

    let (code, complaint) = ended(members[0].host(), &["top", "--once", "--host", &silent]);
    assert_eq!(code, Some(3), "{complaint}");
    assert!(complaint.contains(&format!("{silent} of UT-ICL is silent")), "{complaint}");
    match server.ask("directory.targets", &json!({ "domain": "NIX" })).unwrap() {
        Answer::Fault { message, .. } => assert_eq!(message, "no domain NIX; known are UT-ICL"),
        Answer::Result(value) => panic!("an unknown domain has {value}"),
    }
    let complaint = visperf(&dirs[0], &["hosts"]).expect_err("a directory is of no domain").to_string();
    assert!(complaint.contains("name one with --domain DOMAIN; `visperf domains` lists them"), "{complaint}");
    let (code, complaint) = ended(&dirs[0], &["hosts", "--domain", "UT-ICL"]);
    assert_eq!(code, Some(8), "{silent} is dead: {complaint}");
    no_directory_takes_the_record(server, &members, &representative);
}

/// Kill the last directory: the representative reports the problem, and each daemon returns the same about
/// the domain in both queries.
#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn no_directory_takes_the_record(server: Daemon, members: &[Daemon], representative: &str) {
    let first = members.iter().find(|daemon| daemon.host().name() == representative).unwrap();
    let health = || first.result("daemon.info", &json!({})).map(|info| info["health"].to_string());
    assert!(!health().unwrap().contains("no directory has taken"), "one has: {}", health().unwrap());
    server.kill().unwrap();
    let look = || {
        let health = health()?;
        // Its log reports it at the registrar's next poll, which may be later than the answer to a query.
        let is_same = health.contains("no directory has taken this domain's record for")
            && first.output().contains("no directory has taken this domain's record for");
        Ok(if is_same { Seen::Done(health) } else { Seen::NotYet(health) })
    };
    let (took, health) = Stopwatch::start().until(AGREED, "what is wrong", look).unwrap();
    println!("{} ms after the last directory died its representative says {health}", took.as_millis());
    assert_eq!(first.output().matches("no directory has taken").count(), 1, "{}", first.output());
    for daemon in members {
        let part = |record: &Value| ["domain", "host", "state", "term"].map(|name| record[name].clone());
        let resolved = daemon.result("directory.resolve", &json!({ "domain": "UT-ICL" })).unwrap();
        let domains = daemon.result("directory.domains", &json!({})).unwrap();
        let listed = domains["domains"].as_array().unwrap().iter().find(|it| it["domain"] == "UT-ICL");
        assert_eq!(part(listed.unwrap()), part(&resolved), "{}", daemon.host().name());
    }
}
