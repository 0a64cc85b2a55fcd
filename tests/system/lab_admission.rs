//! Refused admissions, with the real program: used, expired and altered tokens, a revoked member, a domain
//! that is not admitted. Each is refused with a message, logged by the daemon that refused, and gets no data.
//!
//! Rule: each refusal is compared with a host that is admitted by the same step.
//! Not here: forged, expired and role-less certificates, records signed by others (`overlay/tests/admission`,
//! `directory/tests/service`: no command creates them).

use anyhow::bail;
use serde_json::{Value, json};
use std::time::Duration;
use system_tests::lab::domains::{AGREED, Directory, Domain, agreed, sensor, settled, state, visperf};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// Create a token for one host on the issuer.
fn token(issuer: &Host, more: &[&str]) -> String {
    let state = state(issuer);
    let words: Vec<&str> =
        ["token", "create", "--json", "--state", &state].into_iter().chain(more.iter().copied()).collect();
    let answer: Value = serde_json::from_str(&visperf(issuer, &words).unwrap()).unwrap();
    answer["token"].as_str().unwrap().to_owned()
}

fn join(host: &Host, token: &str) -> anyhow::Result<String> {
    visperf(host, &["join", token, "--host", host.name(), "--state", &state(host)])
}

/// Error message for `host`, which must not be admitted.
fn refused(host: &Host, token: &str) -> String {
    let error = join(host, token).expect_err("it was let in").to_string();
    assert!(!host.folder().join("sensor/membership").exists(), "{} has a certificate", host.name());
    error
}

fn fault(daemon: &Daemon, method: &str, params: &Value) -> String {
    match daemon.ask(method, params).unwrap() {
        Answer::Fault { message, .. } => message,
        Answer::Result(result) => panic!("{} learnt {result}", daemon.host().name()),
    }
}

#[test]
fn tokens_admit_their_hosts_and_no_others() {
    let Some(lab) = lab::enter("lab_admission::tokens_admit_their_hosts_and_no_others").unwrap() else {
        return;
    };
    let network = lab.network(4).unwrap();
    let [issuer, second, third, fourth] = network.hosts() else { panic!("four hosts") };
    Domain::create("UT-ICL", std::slice::from_ref(issuer)).unwrap();
    let running = sensor(issuer, &[]).unwrap();

    let once = token(issuer, &[]);
    join(second, &once).unwrap();
    let refusal = refused(third, &once);
    assert!(refusal.contains("used"), "{refusal}");
    join(second, &once).expect("the same host may ask again");

    let stale = token(issuer, &["--ttl", "1s"]);
    std::thread::sleep(Duration::from_millis(1500));
    let refusal = refused(third, &stale);
    assert!(refusal.contains("expired"), "{refusal}");

    let good = token(issuer, &[]);
    // In the secret, and in the domain's name.
    for at in [good.len() / 2, good.len() - 3] {
        let mut altered = good.clone().into_bytes();
        altered[at] = if altered[at] == b'a' { b'b' } else { b'a' };
        let refusal = refused(third, &String::from_utf8(altered).unwrap());
        println!("altered at {at}: {}", refusal.lines().last().unwrap_or_default());
    }
    join(third, &good).expect("the unaltered one is good");
    assert!(running.output().contains("audit"), "refusals are logged: {}", running.output());

    // A token of an unrelated domain: no daemon of that root answers.
    let other = Domain::create("CERN", std::slice::from_ref(fourth)).unwrap();
    assert_ne!(other.root, "");
    let words = [
        "token",
        "create",
        "--json",
        "--state",
        &state(fourth),
        "--address",
        &format!("{}:7318", issuer.ipv4()),
    ];
    let answer: Value = serde_json::from_str(&visperf(fourth, &words).unwrap()).unwrap();
    let astray = network.hosts()[1].folder().join("astray").display().to_string();
    let error = visperf(second, &["join", answer["token"].as_str().unwrap(), "--state", &astray])
        .expect_err("let in astray");
    assert!(error.to_string().contains("issuer"), "{error}");
}

#[test]
fn a_revoked_member_and_an_unadmitted_domain_learn_nothing() {
    let name = "lab_admission::a_revoked_member_and_an_unadmitted_domain_learn_nothing";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(8).unwrap();
    let hosts = network.hosts();
    let directories = [Directory::new(&hosts[0]).unwrap()];
    let own = Domain::create("UT-ICL", &hosts[1..5]).unwrap();
    let guest = Domain::create("CERN", &hosts[5..6]).unwrap();
    let stranger = Domain::create("NOBODY", &hosts[6..8]).unwrap();
    let server = directories[0].start(&directories, &[&own, &guest]).unwrap();
    let members = own.start(&directories, |_| Vec::new()).unwrap();
    let guests = guest.start(&directories, |_| Vec::new()).unwrap();
    let strangers = stranger.start(&directories, |_| Vec::new()).unwrap();
    let (representative, _) = agreed(&members, None).unwrap();
    settled(&members).unwrap();
    agreed(&strangers, None).unwrap();

    // The control: an admitted domain queries the other one, and is answered.
    let about = json!({ "domain": "UT-ICL" });
    let look = || match guests[0].ask("domain.summary", &about)? {
        Answer::Result(summary) => Ok(Seen::Done(summary)),
        Answer::Fault { message, .. } => Ok(Seen::NotYet(message)),
    };
    Stopwatch::start().until(AGREED, "an answer to an admitted domain", look).unwrap();
    // A domain that is not admitted is refused, by the directory as well as by a member.
    println!("to a stranger: {}", fault(&strangers[0], "domain.summary", &about));
    println!("to a stranger: {}", fault(&strangers[0], "directory.resolve", &about));
    let look = || {
        let domains = server.result("directory.domains", &json!({}))?.to_string();
        assert!(!domains.contains("NOBODY"), "{domains}");
        let is_logged = server.output().contains("NOBODY");
        let are_there = domains.contains("UT-ICL") && domains.contains("CERN");
        let seen = format!("{domains}; the refusal is logged: {is_logged}");
        Ok(if is_logged && are_there { Seen::Done(()) } else { Seen::NotYet(seen) })
    };
    Stopwatch::start().until(AGREED, "two domains, and a third refused", look).unwrap();

    // A member is revoked: the representative receives the revocation list, and closes its connections.
    let issuer = &hosts[1];
    let victim = standby(&members, issuer.name());
    let watching = members.iter().find(|daemon| daemon.host().name() == representative).unwrap();
    visperf(issuer, &["domain", "revoke", victim.host().name(), "--state", &state(issuer)]).unwrap();
    let look = || match victim.ask("directory.domains", &json!({}))? {
        Answer::Fault { message, .. } => Ok(Seen::Done(message)),
        Answer::Result(found)
            if found["domains"].as_array().is_some_and(|all| all.iter().all(|it| it["state"] != "live")) =>
        {
            Ok(Seen::Done("only what it remembers".to_owned()))
        }
        Answer::Result(found) => Ok(Seen::NotYet(found.to_string())),
    };
    let (took, answer) = Stopwatch::start().until(AGREED, "a closed door", look).unwrap();
    println!("revoked: {} ms later the directory reports it: {answer}", took.as_millis());
    is_seen_gone(watching, victim.host().name());
    let look = || {
        let guests = victim.figure("overlay", "guests")?;
        Ok(if guests == 0 { Seen::Done(()) } else { Seen::NotYet(format!("{guests} connections")) })
    };
    let (took, ()) = Stopwatch::start().until(AGREED, "no connection of the revoked", look).unwrap();
    println!("revoked: no peer of the grid is connected to it {} ms later", took.as_millis());
    // The revoked member reports it itself.
    let look = || {
        let info = victim.result("daemon.info", &json!({}))?;
        let health = info["health"].to_string();
        let tells = info["healthy"] == json!(false) && health.contains("not let this one in");
        Ok(if tells { Seen::Done(health) } else { Seen::NotYet(health) })
    };
    let (_, health) = Stopwatch::start().until(AGREED, "its own health", look).unwrap();
    println!("revoked: it says {health}");
    is_alone(victim);
}

/// A member that would succeed the representative, other than `issuer`.
fn standby<'a>(members: &'a [Daemon], issuer: &str) -> &'a Daemon {
    let look = || {
        let hosts = members[0].result("domain.hosts", &json!({}))?;
        let rows = hosts["hosts"].as_array().map_or(&[][..], Vec::as_slice);
        let named = rows.iter().filter(|row| row["role"] == "standby" && row["host"] != issuer);
        let found =
            named.filter_map(|row| members.iter().find(|one| row["host"] == one.host().name())).next();
        Ok(found.map_or_else(|| Seen::NotYet(hosts.to_string()), Seen::Done))
    };
    Stopwatch::start().until(AGREED, "a standby", look).unwrap().1
}

/// The representative closed the host's connection and lists it as last seen. (That it does so before the
/// host's silence would show it is tested where no time has to pass: `overlay/tests/net`.)
#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn is_seen_gone(representative: &Daemon, host: &str) {
    let look = || {
        let hosts = representative.result("domain.hosts", &json!({}))?;
        let rows = hosts["hosts"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(row) = rows.iter().find(|row| row["host"] == host) else {
            bail!("{host} is not in {hosts}")
        };
        Ok(if row["state"] == "last_seen" {
            Seen::Done(row["age_secs"].as_f64())
        } else {
            Seen::NotYet(row.to_string())
        })
    };
    let (_, age) = Stopwatch::start().until(AGREED, "a revoked host that is last seen", look).unwrap();
    println!("revoked: last seen {age:?} s after its last word");
}

/// A revoked host represents a domain of one.
#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn is_alone(victim: &Daemon) {
    let name = victim.host().name();
    let look = || match victim.ask("domain.summary", &json!({}))? {
        Answer::Result(summary) if summary["representative"] == name => Ok(Seen::Done(summary)),
        Answer::Result(summary) => Ok(Seen::NotYet(summary.to_string())),
        Answer::Fault { message, .. } => Ok(Seen::NotYet(message)),
    };
    let (took, _) = Stopwatch::start().until(AGREED, "a domain of one", look).unwrap();
    println!("revoked: it represents itself {} ms later", took.as_millis());
}

/// Without directories, and whichever member represents the domain: no member admits the revoked one, and it
/// finds that it is alone.
#[test]
fn a_revoked_host_represents_itself_where_no_directory_lists_it() {
    let name = "lab_admission::a_revoked_host_represents_itself_where_no_directory_lists_it";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(3).unwrap();
    let own = Domain::create("UT-ICL", network.hosts()).unwrap();
    let members = own.start(&[], |_| Vec::new()).unwrap();
    let (representative, _) = agreed(&members, None).unwrap();
    let issuer = &network.hosts()[0];
    let victim = standby(&members, issuer.name());
    println!("{representative} represents, {} issues", issuer.name());
    visperf(issuer, &["domain", "revoke", victim.host().name(), "--state", &state(issuer)]).unwrap();
    // Queries meanwhile are refused with the reason.
    let look = || match victim.ask("domain.summary", &json!({}))? {
        Answer::Fault { message, .. } if message.contains("not let this one in") => Ok(Seen::Done(message)),
        answer @ (Answer::Result(_) | Answer::Fault { .. }) => Ok(Seen::NotYet(format!("{answer:?}"))),
    };
    let (took, fault) = Stopwatch::start().until(AGREED, "a fault that says why", look).unwrap();
    println!("{} ms after the revocation: {fault}", took.as_millis());
    is_alone(victim);
    let hellos = || victim.output().matches("what=\"hello\"").count();
    let before = hellos();
    std::thread::sleep(Duration::from_secs(30));
    println!("{} hellos were let in within 30 s", hellos() - before);
}
