//! Who is not let in, with the real program: used, stale and altered tokens, a revoked member, a domain that nobody
//! admits. Each is refused in words, told in the log of whoever refused, and learns nothing.
//!
//! Rule: each refusal stands beside one who is let in by the same step.
//! Not here: forged, expired and role-less certificates, records signed by others (`overlay/tests/admission`,
//! `directory/tests/service`: no command makes them).

use serde_json::{Value, json};
use std::time::Duration;
use system_tests::lab::domains::{AGREED, Directory, Domain, agreed, sensor, settled, state, visperf};
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// A token for one host, made on the issuer.
fn token(issuer: &Host, more: &[&str]) -> String {
    let state = state(issuer);
    let words: Vec<&str> =
        ["token", "create", "--json", "--state", &state].into_iter().chain(more.iter().copied()).collect();
    let told: Value = serde_json::from_str(&visperf(issuer, &words).unwrap()).unwrap();
    told["token"].as_str().unwrap().to_owned()
}

fn join(host: &Host, token: &str) -> anyhow::Result<String> {
    visperf(host, &["join", token, "--host", host.name(), "--state", &state(host)])
}

/// What `host` is told when it must not be let in.
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
fn tokens_let_in_whom_they_are_for_and_no_others() {
    let Some(lab) = lab::enter("lab_admission::tokens_let_in_whom_they_are_for_and_no_others").unwrap()
    else {
        return;
    };
    let network = lab.network(4).unwrap();
    let [issuer, second, third, fourth] = network.hosts() else { panic!("four hosts") };
    Domain::create("UT-ICL", std::slice::from_ref(issuer)).unwrap();
    let running = sensor(issuer, &[]).unwrap();

    let once = token(issuer, &[]);
    join(second, &once).unwrap();
    let told = refused(third, &once);
    assert!(told.contains("used"), "{told}");
    join(second, &once).expect("the same host may ask again");

    let stale = token(issuer, &["--ttl", "1s"]);
    std::thread::sleep(Duration::from_millis(1500));
    let told = refused(third, &stale);
    assert!(told.contains("expired"), "{told}");

    let good = token(issuer, &[]);
    // Within the secret and within what names the domain.
    for at in [good.len() / 2, good.len() - 3] {
        let mut altered = good.clone().into_bytes();
        altered[at] = if altered[at] == b'a' { b'b' } else { b'a' };
        let told = refused(third, &String::from_utf8(altered).unwrap());
        println!("altered at {at}: {}", told.lines().last().unwrap_or_default());
    }
    join(third, &good).expect("the unaltered one is good");
    assert!(running.told().contains("audit"), "refusals are told: {}", running.told());

    // A token of nobody's domain: no daemon of that root answers.
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
    let told: Value = serde_json::from_str(&visperf(fourth, &words).unwrap()).unwrap();
    let astray = network.hosts()[1].folder().join("astray").display().to_string();
    let error = visperf(second, &["join", told["token"].as_str().unwrap(), "--state", &astray])
        .expect_err("let in astray");
    assert!(error.to_string().contains("issuer"), "{error}");
}

#[test]
fn a_revoked_member_and_a_domain_nobody_admits_learn_nothing() {
    let name = "lab_admission::a_revoked_member_and_a_domain_nobody_admits_learn_nothing";
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

    // The control: a domain that is admitted asks the other, and is answered.
    let about = json!({ "domain": "UT-ICL" });
    let look = || match guests[0].ask("domain.summary", &about)? {
        Answer::Result(summary) => Ok(Seen::Done(summary)),
        Answer::Fault { message, .. } => Ok(Seen::NotYet(message)),
    };
    Stopwatch::start().until(AGREED, "an answer to an admitted domain", look).unwrap();
    // One that is not, is not; neither by the directory nor by a member.
    println!("to a stranger: {}", fault(&strangers[0], "domain.summary", &about));
    println!("to a stranger: {}", fault(&strangers[0], "directory.resolve", &about));
    let look = || {
        let domains = server.result("directory.domains", &json!({}))?.to_string();
        assert!(!domains.contains("NOBODY"), "{domains}");
        let is_told = server.told().contains("NOBODY");
        let are_there = domains.contains("UT-ICL") && domains.contains("CERN");
        let seen = format!("{domains}; the refusal is told: {is_told}");
        Ok(if is_told && are_there { Seen::Done(()) } else { Seen::NotYet(seen) })
    };
    Stopwatch::start().until(AGREED, "two domains, and a third refused", look).unwrap();

    // A member is put out: whoever represents the domain hears of it, and closes the door.
    let issuer = &hosts[1];
    let victim = members
        .iter()
        .find(|daemon| daemon.host().name() != issuer.name() && daemon.host().name() != representative);
    let victim = victim.unwrap();
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
    let (took, told) = Stopwatch::start().until(AGREED, "a closed door", look).unwrap();
    println!("revoked: {} ms later the directory tells it: {told}", took.as_millis());
    let look = || {
        let guests = victim.figure("overlay", "guests")?;
        Ok(if guests == 0 { Seen::Done(()) } else { Seen::NotYet(format!("{guests} connections")) })
    };
    let (took, ()) = Stopwatch::start().until(AGREED, "no connection of the revoked", look).unwrap();
    println!("revoked: nobody of the grid is connected to it {} ms later", took.as_millis());
    // It says so itself.
    let look = || {
        let info = victim.result("daemon.info", &json!({}))?;
        let health = info["health"].to_string();
        let tells = info["healthy"] == json!(false) && health.contains("not let this one in");
        Ok(if tells { Seen::Done(health) } else { Seen::NotYet(health) })
    };
    let (_, health) = Stopwatch::start().until(AGREED, "its own health", look).unwrap();
    println!("revoked: it says {health}");
}
