//! Clients of a proxy over the overlay: the answers pass the proxy unread, through whatever transport works
//! at their site, and only as long as, and as far as, their account permits.
//!
//! Rules: every command is as a user types it; the proxy's memory is searched, and the same search finds what
//! came in at its HTTPS listener.
//! Not here: clients over HTTP (`lab_proxy`, `lab_door`), the ladder of transports of hosts inside
//! (`lab_ladder`).

use super::lab_ladder::{BOX, Middlebox, Site, WEB, reaches, report};
use serde_json::{Value, json};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command};
use std::time::Duration;
use system_tests::lab::domains::{Directory, Domain, OVERLAY, agreed, visperf};
use system_tests::lab::proxies::Proxy;
use system_tests::lab::walls::Wall;
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::program;
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// Timeout for an answer that needs everything else to be up first.
const PATIENCE: Duration = Duration::from_secs(90);
/// Well before a client would log in again by itself, and find out.
const PUT_OUT: Duration = Duration::from_secs(30);
/// Address where `visperf tunnel` listens.
const TUNNEL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7327);
/// Name of a process that only the inside host has; the system cuts names at 15 bytes.
const HUSH: &str = "hush7c41e0b9d2";

/// Create an account at `proxy`, with its secret in a file of `viewer`; returns the options to query through
/// it.
fn login(proxy: &Proxy, viewer: &Host, name: &str, granted: &[&str]) -> Vec<String> {
    let secret = proxy.account(name, granted).unwrap();
    let file = viewer.folder().join(format!("{name}.secret"));
    std::fs::write(&file, secret).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let via = format!("{}/d/UT-ICL", proxy.contact);
    let words = ["--via", &via, "--account", name, "--secret", &file.display().to_string()];
    words.map(str::to_owned).to_vec()
}

/// Run `visperf WORDS…` on `host`.
fn type_in(host: &Host, words: &[&str], login: &[String]) -> anyhow::Result<String> {
    let output = host.run(|| Ok(command(host)?.args(words).args(login).output()?))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "visperf {words:?} on {}: {complaint}", host.name());
    Ok(String::from_utf8(output.stdout)?)
}

/// The program, with its known domains in the host's own folder.
fn command(host: &Host) -> anyhow::Result<Command> {
    let mut command = program::command(program::visperf()?);
    command.env("VISPERF_KNOWN_DOMAINS", host.folder().join("known_domains"));
    Ok(command)
}

/// Wait until this command succeeds; returns its output and the time taken.
fn answered(
    host: &Host,
    words: &[&str],
    login: &[String],
    output: impl Fn() -> String,
) -> (String, Duration) {
    let look = || {
        Ok(match type_in(host, words, login) {
            Ok(output) => Seen::Done(output),
            Err(error) => Seen::NotYet(format!("{error:#}")),
        })
    };
    let found = Stopwatch::start().until(PATIENCE, &format!("{words:?}"), look);
    let (time, text) = found.unwrap_or_else(|error| panic!("{error:#}\n{}", output()));
    (text, time)
}

/// A process on a host, killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Start `visperf tunnel` on `host`.
fn tunnel(host: &Host, login: &[String]) -> Running {
    let file = std::fs::File::create(host.folder().join("tunnel")).unwrap();
    let child = host.run(|| Ok(command(host)?.arg("tunnel").args(login).stderr(file).spawn()?));
    Running(child.unwrap())
}

/// The tunnel's output so far.
fn tunnel_output(host: &Host) -> String {
    std::fs::read_to_string(host.folder().join("tunnel")).unwrap()
}

/// Wait until `method` is answered through the tunnel.
fn answer_of(host: &Host, method: &str, params: &Value) -> (Value, Duration) {
    let look = || {
        Ok(match host.ask(TUNNEL, method, params) {
            Ok(Answer::Result(value)) => Seen::Done(value),
            other => Seen::NotYet(format!("{other:?}")),
        })
    };
    let found = Stopwatch::start().until(PATIENCE, method, look);
    let (time, value) = found.unwrap_or_else(|error| panic!("{error:#}\n{}", tunnel_output(host)));
    (value, time)
}

/// Whether `needle` is anywhere in the writable memory of a process.
fn remembers(daemon: &Daemon, needle: &[u8]) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", daemon.pid())).unwrap();
    let mut memory = std::fs::File::open(format!("/proc/{}/mem", daemon.pid())).unwrap();
    maps.lines().filter(|line| line.contains(" rw")).any(|line| {
        let (from, rest) = line.split_once('-').unwrap();
        let until = rest.split_once(' ').unwrap().0;
        let [from, until] = [from, until].map(|end| u64::from_str_radix(end, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(until - from).unwrap()];
        let read = memory.seek(SeekFrom::Start(from)).and_then(|_| memory.read_exact(&mut bytes));
        // A mapping that is gone meanwhile contains nothing.
        read.is_ok() && bytes.windows(needle.len()).any(|window| window == needle)
    })
}

#[test]
fn what_a_visitor_receives_passes_the_proxy_unread() {
    let name = "lab_visits::what_a_visitor_receives_passes_the_proxy_unread";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::prepare(network.hosts());
    let ana = login(&site.proxy, &site.viewer, "bea", &["--domain", "UT-ICL"]);
    let running = site.start_outside();
    Wall::NoInbound { but: Vec::new() }.put_up(&site.inside).unwrap();
    assert!(!reaches(&site.viewer, &site.inside, OVERLAY), "the wall has a hole");
    let sensor = site.start_inside();
    let hushed = site.inside.folder().join(HUSH);
    std::fs::copy("/bin/sleep", &hushed).unwrap();
    let _hushed = Running(site.inside.run(|| Ok(program::command(&hushed).arg("600").spawn()?)).unwrap());
    let all = || [&sensor, &running.proxy, &running.directory].map(Daemon::output).join("\n---\n");
    let (_, time) = answered(&site.viewer, &["hosts"], &ana, all);
    report(&format!("{name}: hosts after {} ms from cold", time.as_millis()));
    let host = site.inside.name();
    let params = json!({ "domain": "UT-ICL", "host": host, "limit": 1000 }).to_string();
    let asking = ["call", "sensor.processes", &params];
    for _ in 0..20 {
        let (text, _) = answered(&site.viewer, &asking, &ana, all);
        assert!(text.contains(HUSH), "{text}");
    }
    let watching = ["watch", "--host", host, "--rate", "64", "--samples", "64"];
    let (text, _) = answered(&site.viewer, &watching, &ana, all);
    assert!(text.contains(HUSH), "{text}");
    assert!(!remembers(&running.proxy, HUSH.as_bytes()), "the proxy has read what it carried");
    // At its HTTPS listener the proxy reads what it forwards, and the search finds that, unless it was
    // overwritten already.
    let look = || {
        let door = site.ask("/d/UT-ICL", &asking)?;
        anyhow::ensure!(door.contains(HUSH), "{door}");
        let is_found = remembers(&running.proxy, HUSH.as_bytes());
        Ok(if is_found { Seen::Done(()) } else { Seen::NotYet("nothing".to_owned()) })
    };
    Stopwatch::start().until(PATIENCE, "the search to find what came in at the door", look).unwrap();
}

/// A client whose site lets out only traffic of `kind`, or one port without it, uses the transport `rung`:
/// whichever comes first if several are possible.
fn from_behind(name: &str, kind: Option<&str>, rung: Option<&str>) {
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::prepare(network.hosts());
    let bea = login(&site.proxy, &site.viewer, "bea", &["--domain", "UT-ICL"]);
    let running = site.start_outside();
    let middlebox = kind.map(|kind| Middlebox::start(&site.between, kind, &site.proxy));
    let wall = match middlebox {
        None => Wall::OnlyOut { ports: vec![WEB], but: Vec::new() },
        Some(_) => Wall::Looked { port: WEB, at: (site.between.ipv4(), BOX), but: Vec::new() },
    };
    wall.put_up(&site.viewer).unwrap();
    assert!(!reaches(&site.viewer, &site.proxy.host, OVERLAY), "more than {WEB} gets out");
    let sensor = site.start_inside();
    let all = || [&sensor, &running.proxy, &running.directory].map(Daemon::output).join("\n---\n");
    let (_, time) = answered(&site.viewer, &["events"], &bea, all);
    let _tunnel = tunnel(&site.viewer, &bea);
    let host = site.inside.name();
    answer_of(&site.viewer, "sensor.metrics", &json!({ "host": host }));
    let info = running.proxy.result("daemon.info", &json!({})).unwrap();
    let carried: Vec<&str> = info["reach"]
        .as_array()
        .map_or(Vec::new(), |all| all.iter().filter_map(|one| one["rung"].as_str()).collect());
    report(&format!("{name}: events after {} ms from cold; carried by {carried:?}", time.as_millis()));
    if let Some(rung) = rung {
        assert!(carried.contains(&rung), "{info}");
    }
    let id =
        answer_of(&site.viewer, "sensor.subscribe", &json!({ "host": host, "rate": 64 })).0["subscription"]
            .clone();
    let look = || {
        let taken = site.viewer.ask(TUNNEL, "sensor.take", &json!({ "host": host, "subscription": id }))?;
        let Answer::Result(taken) = taken else { return Ok(Seen::NotYet(format!("{taken:?}"))) };
        let entries = taken["entries"].as_array().map_or(0, Vec::len);
        Ok(if entries > 0 { Seen::Done(()) } else { Seen::NotYet(taken.to_string()) })
    };
    Stopwatch::start().until(PATIENCE, "processes at 64 Hz", look).unwrap();
}

#[test]
fn a_visitor_whose_site_lets_out_to_443_alone_comes_in() {
    from_behind("lab_visits::a_visitor_whose_site_lets_out_to_443_alone_comes_in", None, None);
}

#[test]
fn a_visitor_whose_site_lets_out_https_alone_comes_in_by_a_web_socket() {
    let name = "lab_visits::a_visitor_whose_site_lets_out_https_alone_comes_in_by_a_web_socket";
    from_behind(name, Some("tls"), Some("websocket"));
}

#[test]
fn a_visitor_whose_site_lets_no_upgrade_through_comes_in_by_polling() {
    let name = "lab_visits::a_visitor_whose_site_lets_no_upgrade_through_comes_in_by_polling";
    from_behind(name, Some("web"), Some("polling"));
}

#[test]
fn a_visitor_sees_what_its_account_says_and_no_longer_than_it_is_there() {
    let name = "lab_visits::a_visitor_sees_what_its_account_says_and_no_longer_than_it_is_there";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::prepare(network.hosts());
    let figures = login(&site.proxy, &site.viewer, "fay", &["--domain", "UT-ICL", "--calls", "figures"]);
    let elsewhere = login(&site.proxy, &site.viewer, "eve", &["--domain", "CERN"]);
    let running = site.start_outside();
    // The firewall makes the proxy carry these clients, so that it can end that.
    Wall::NoInbound { but: Vec::new() }.put_up(&site.inside).unwrap();
    let sensor = site.start_inside();
    let all = || [&sensor, &running.proxy, &running.directory].map(Daemon::output).join("\n---\n");
    answered(&site.viewer, &["hosts"], &figures, all);
    let refused =
        |words: &[&str], login: &[String]| format!("{:#}", type_in(&site.viewer, words, login).unwrap_err());
    let message = refused(&["events"], &figures);
    assert!(message.contains("of class logs") && message.contains("--calls"), "{message}");
    let message = refused(&["call", "sensor.control", "{}"], &figures);
    assert!(message.contains("fault"), "{message}");
    let message = refused(&["hosts"], &elsewhere);
    assert!(message.contains("may not see that domain"), "{message}");
    let guessing: Vec<String> =
        figures.iter().map(|word| if word == "fay" { "eve".to_owned() } else { word.clone() }).collect();
    let message = refused(&["hosts"], &guessing);
    assert!(message.contains("name or secret is wrong"), "{message}");
    let unknown: Vec<String> =
        figures.iter().map(|word| if word == "fay" { "nobody".to_owned() } else { word.clone() }).collect();
    assert_eq!(
        refused(&["hosts"], &unknown),
        message.replace("\"eve\"", "\"nobody\""),
        "an unknown account gets the same answer"
    );
    let mut rooted = figures.clone();
    rooted.extend(["--root".to_owned(), site.proxy.contact.split_once('@').unwrap().0.to_owned()]);
    let message = refused(&["hosts"], &rooted);
    assert!(message.contains("expected the domain UT-ICL of root"), "{message}");

    let _tunnel = tunnel(&site.viewer, &figures);
    answer_of(&site.viewer, "domain.hosts", &json!({}));
    let own = site.proxy.host.folder().join("proxy").display().to_string();
    visperf(&site.proxy.host, &["account", "remove", "fay", "--state", &own]).unwrap();
    let look = || {
        Ok(match site.viewer.ask(TUNNEL, "domain.hosts", &json!({})) {
            Ok(Answer::Fault { message, .. }) if message.contains("name or secret is wrong") => {
                Seen::Done(())
            }
            other => Seen::NotYet(format!("{other:?}")),
        })
    };
    let (out, ()) = Stopwatch::start().until(PUT_OUT, "the visitor is put out", look).unwrap();
    let put_out =
        running.proxy.result("daemon.info", &json!({})).unwrap()["statistics"]["door"]["put_out_total"]
            .clone();
    assert_eq!(put_out, json!(1), "{}", running.proxy.output());
    report(&format!("{name}: out {} ms after its account was removed", out.as_millis()));
}

#[test]
fn a_visit_goes_on_when_another_represents_the_domain() {
    let name = "lab_visits::a_visit_goes_on_when_another_represents_the_domain";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let [outside, gate, viewer, members @ ..] = network.hosts() else { panic!("hosts") };
    let domain = Domain::create("UT-ICL", members).unwrap();
    let proxy = Proxy::join(gate, OVERLAY, &domain, &members[0]).unwrap().with_door(WEB);
    let bea = login(&proxy, viewer, "bea", &["--domain", "UT-ICL"]);
    let directory = Directory::new(outside).unwrap();
    let directories = std::slice::from_ref(&directory);
    let _directory = directory.start(&[], &[&domain]).unwrap();
    let gateway = proxy.start(directories, "").unwrap();
    let via = |_: &Host| vec!["--via".to_owned(), proxy.contact.clone()];
    let mut daemons = domain.start(directories, via).unwrap();
    let (first, _) = agreed(&daemons, None).unwrap();
    answered(viewer, &["hosts"], &bea, || gateway.output());
    let _tunnel = tunnel(viewer, &bea);
    answer_of(viewer, "domain.hosts", &json!({}));
    let at = daemons.iter().position(|daemon| daemon.host().name() == first).unwrap();
    daemons.remove(at).kill().unwrap();
    let live = |value: &Value| {
        value["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|host| host["role"] == "representative")
            .any(|host| host["host"] != first.as_str())
    };
    let look = || {
        Ok(match viewer.ask(TUNNEL, "domain.hosts", &json!({})) {
            Ok(Answer::Result(value)) if live(&value) => Seen::Done(()),
            other => Seen::NotYet(format!("{other:?}")),
        })
    };
    let found = Stopwatch::start().until(PATIENCE, "the next representative answers", look);
    let (time, ()) = found.unwrap_or_else(|error| panic!("{error:#}\n{}", tunnel_output(viewer)));
    report(&format!("{name}: the next representative answered after {} ms", time.as_millis()));
}
