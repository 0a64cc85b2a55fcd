//! The ladder of transports behind real firewalls: a host inside, from which only web traffic gets out, is
//! queried from outside through the proxy, from a cold start, and each test checks which transport is used.
//!
//! Rules: the firewalls are nft's, in the hosts' own namespaces; connections are inspected by a program that
//! speaks TLS and HTTP itself (`tests/clients/middlebox.py`); each test first verifies that its firewall is
//! effective.
//! Not here: sites that configure a transport themselves (`lab_proxy`), the same without firewalls
//! (`proxy/tests/tunnels`).

use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use system_tests::lab::domains::{Directory, Domain, OVERLAY, visperf};
use system_tests::lab::proxies::Proxy;
use system_tests::lab::walls::Wall;
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::program;
use system_tests::wait::Seen;

/// Port that firewalls let out.
pub(super) const WEB: u16 = 443;
/// Port of the inspecting program.
pub(super) const BOX: u16 = 8443;
/// Timeout for an answer from outside, from a cold start.
const FIRST: Duration = Duration::from_secs(60);
/// Connection timeout if no firewall interferes.
const CONNECTS: Duration = Duration::from_millis(700);

/// A directory and a proxy outside, one host inside, one between, and a viewer's host.
pub(super) struct Site {
    /// The directory as hosts outside reach it.
    pub(super) near: Directory,
    /// The directory as the host inside reaches it: through the proxy.
    pub(super) directory: Directory,
    pub(super) proxy: Proxy,
    pub(super) domain: Domain,
    pub(super) inside: Host,
    pub(super) between: Host,
    pub(super) viewer: Host,
    /// Options with which the viewer logs in at the proxy.
    login: Vec<String>,
}

/// Running daemons of the site.
pub(super) struct Running {
    pub(super) directory: Daemon,
    pub(super) proxy: Daemon,
}

impl Site {
    pub(super) fn prepare(hosts: &[Host]) -> Site {
        let [outside, gate, inside, between, viewer] = hosts else { panic!("five hosts") };
        let domain = Domain::create("UT-ICL", std::slice::from_ref(inside)).unwrap();
        let proxy = Proxy::join(gate, OVERLAY, &domain, inside).unwrap().with_door(WEB);
        let secret = proxy.account("ana", &["--domain", "UT-ICL"]).unwrap();
        let file = viewer.folder().join("secret");
        std::fs::write(&file, secret).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let certificate = proxy.certificate().display().to_string();
        let login =
            ["--account", "ana", "--secret", &file.display().to_string(), "--certificate", &certificate];
        let login = login.map(str::to_owned).to_vec();
        let near = Directory::new(outside).unwrap();
        let directory = near.through(&proxy.contact);
        let (inside, between, viewer) = (inside.clone(), between.clone(), viewer.clone());
        Site { near, directory, proxy, domain, inside, between, viewer, login }
    }

    /// Start the daemons outside.
    pub(super) fn start_outside(&self) -> Running {
        let directory = self.directory.start(&[], &[&self.domain]).unwrap();
        let proxy = self.proxy.start(std::slice::from_ref(&self.near), "").unwrap();
        Running { directory, proxy }
    }

    /// Start the sensor inside.
    pub(super) fn start_inside(&self) -> Daemon {
        let via = |_: &Host| vec!["--via".to_owned(), self.proxy.contact.clone()];
        let mut all = self.domain.start(std::slice::from_ref(&self.directory), via).unwrap();
        all.remove(0)
    }

    /// Run `visperf WORDS… --via …` as the viewer.
    pub(super) fn ask(&self, place: &str, words: &[&str]) -> anyhow::Result<String> {
        let via = format!("{}{place}", self.proxy.url());
        let mut all: Vec<&str> = words.to_vec();
        all.extend(["--via", &via]);
        all.extend(self.login.iter().map(String::as_str));
        visperf(&self.viewer, &all)
    }

    /// Times from a cold start: until events of the inside host are returned outside, and then until its
    /// processes arrive at 64 Hz.
    pub(super) fn reach(&self, running: &Running, sensor: &Daemon) -> [Duration; 2] {
        let mut watch = Stopwatch::start();
        let place = format!("/d/UT-ICL/{}", self.inside.name());
        let look = || {
            Ok(match self.ask(&place, &["events"]) {
                Ok(_) => Seen::Done(()),
                Err(error) => Seen::NotYet(format!("{error:#}")),
            })
        };
        let found = watch.until(FIRST, "events of the inside host", look);
        let output = || [sensor, &running.proxy, &running.directory].map(Daemon::output).join("\n---\n");
        let (events, ()) = found.unwrap_or_else(|error| panic!("{error:#}\n{}", output()));
        let call = |method: &str, params: Value| -> anyhow::Result<Value> {
            Ok(serde_json::from_str(&self.ask("", &["call", method, &params.to_string()])?)?)
        };
        let host = self.inside.name();
        let rate = json!({ "domain": "UT-ICL", "host": host, "rate": 64 });
        let id = call("sensor.subscribe", rate).unwrap()["subscription"].clone();
        let processes = Stopwatch::start().until(FIRST, "processes at 64 Hz", || {
            let taken = call("sensor.take", json!({ "domain": "UT-ICL", "host": host, "subscription": id }))?;
            let entries = taken["entries"].as_array().map_or(0, Vec::len);
            Ok(if entries > 0 { Seen::Done(()) } else { Seen::NotYet(taken.to_string()) })
        });
        [events, processes.unwrap().0]
    }

    /// Transport of the inside host's connection to the proxy, as it reports itself.
    pub(super) fn rung(&self, sensor: &Daemon) -> String {
        let info = sensor.result("daemon.info", &json!({})).unwrap();
        let key = self.proxy.contact.split_once('@').map_or("", |(key, _)| key);
        let reach = info["reach"].as_array().cloned().unwrap_or_default();
        let mut rungs = reach.iter().filter(|one| one["peer"] == key).filter_map(|one| one["rung"].as_str());
        rungs.next().unwrap_or("direct").to_owned()
    }
}

pub(super) fn reaches(from: &Host, to: &Host, port: u16) -> bool {
    let at = SocketAddr::from((to.ipv4(), port));
    from.run(|| Ok(TcpStream::connect_timeout(&at, CONNECTS)?)).is_ok()
}

/// Wait until the port can be reached.
pub(super) fn reaches_at_last(from: &Host, to: &Host, port: u16) {
    let look =
        || Ok(if reaches(from, to, port) { Seen::Done(()) } else { Seen::NotYet("refused".to_owned()) });
    Stopwatch::start()
        .until(FIRST, &format!("a connection of {} to {}", from.name(), to.name()), look)
        .unwrap();
}

#[allow(clippy::print_stdout)] // A test's output is read when it fails.
pub(super) fn report(line: &str) {
    println!("{line}");
}

/// Inspecting program, killed when it is dropped.
pub(super) struct Middlebox {
    child: std::process::Child,
    output: std::path::PathBuf,
}

impl Middlebox {
    pub(super) fn start(host: &Host, kind: &str, target: &Proxy) -> Middlebox {
        let output = host.folder().join("output");
        let script = program::workspace().join("tests/clients/middlebox.py");
        let file = std::fs::File::create(&output).unwrap();
        let child = host.run(|| {
            let mut command = program::command("python3");
            command.arg(&script).args([&host.ipv4().to_string(), &BOX.to_string(), kind]);
            command.arg(host.folder()).env("TARGET", format!("{}:{WEB}", target.host.ipv4()));
            Ok(command.stdout(file).spawn()?)
        });
        let middlebox = Middlebox { child: child.unwrap(), output };
        let ready = || {
            let text = middlebox.output();
            Ok(if text.contains("ready") { Seen::Done(()) } else { Seen::NotYet(text) })
        };
        system_tests::wait::until(FIRST, "what looks into connections", ready).unwrap();
        middlebox
    }

    pub(super) fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap()
    }
}

impl Drop for Middlebox {
    fn drop(&mut self) {
        // It may have ended by itself, and then the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Run one test: `kind` of inspection, `None` if only the port counts; `rung` is the expected transport.
fn story(name: &str, kind: Option<&str>, rung: &str) -> Option<String> {
    let lab = lab::enter(name).unwrap()?;
    let network = lab.network(5).unwrap();
    let site = Site::prepare(network.hosts());
    let running = site.start_outside();
    let middlebox = kind.map(|kind| Middlebox::start(&site.between, kind, &site.proxy));
    let wall = match middlebox {
        None => Wall::OnlyOut { ports: vec![WEB], but: Vec::new() },
        Some(_) => Wall::Looked { port: WEB, at: (site.between.ipv4(), BOX), but: Vec::new() },
    };
    wall.put_up(&site.inside).unwrap();
    assert!(!reaches(&site.viewer, &site.inside, OVERLAY), "the wall has a hole");
    assert!(!reaches(&site.inside, &site.proxy.host, OVERLAY), "more than {WEB} gets out");
    assert!(!reaches(&site.inside, &site.directory.host, OVERLAY), "more than {WEB} gets out");
    let sensor = site.start_inside();
    let [events, processes] = site.reach(&running, &sensor);
    let found = site.rung(&sensor);
    report(&format!(
        "{name}: carried by {found}; events after {} ms, processes at 64 Hz after {} ms more",
        events.as_millis(),
        processes.as_millis()
    ));
    let output = middlebox.as_ref().map(Middlebox::output).unwrap_or_default();
    assert_eq!(found, rung, "{output}\n{}", sensor.output());
    Some(output)
}

#[test]
fn a_site_that_lets_out_to_443_alone_comes_in_at_the_door() {
    story("lab_ladder::a_site_that_lets_out_to_443_alone_comes_in_at_the_door", None, "direct");
}

#[test]
fn a_site_that_lets_out_https_alone_comes_in_by_a_web_socket() {
    let name = "lab_ladder::a_site_that_lets_out_https_alone_comes_in_by_a_web_socket";
    let Some(output) = story(name, Some("tls"), "websocket") else { return };
    assert!(output.contains("refused what is no TLS") && output.contains("passed TLS"), "{output}");
}

#[test]
fn a_site_that_looks_into_https_and_lets_no_upgrade_through_comes_in_by_polling() {
    let name = "lab_ladder::a_site_that_looks_into_https_and_lets_no_upgrade_through_comes_in_by_polling";
    let Some(output) = story(name, Some("web"), "polling") else { return };
    let all = ["refused what is no TLS", "refused an upgrade", "passed GET /tunnel/", "passed POST /tunnel/"];
    for line in all {
        assert!(output.contains(line), "expected {line:?}: {output}");
    }
}
