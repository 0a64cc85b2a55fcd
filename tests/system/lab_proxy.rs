//! A proxy outside a firewall, with the real program: hosts inside only dial out, and are nevertheless
//! queried from outside.
//!
//! Rules: the firewalls are nft's, in the hosts' own namespaces, and each test first verifies that its
//! firewall is effective; only the commands and lines of `docs/firewalls.md` are used.
//! Not here: clients in other languages (`interop_proxy`), the proxy's rules (`proxy`).

use serde_json::{Value, json};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use system_tests::lab::domains::{Directory, Domain, OVERLAY, sensor, state, visperf};
use system_tests::lab::proxies::{DOOR, Proxy};
use system_tests::lab::walls::Wall;
use system_tests::lab::{self, Daemon, Host, Network, Stopwatch};
use system_tests::program;
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// Timeout for a viewer's first answer through the proxy, from a cold start.
const FIRST: Duration = Duration::from_secs(60);
/// Connection timeout if no firewall interferes.
const CONNECTS: Duration = Duration::from_millis(700);

/// A directory and a proxy outside, two hosts of a domain inside, and a viewer's host.
struct Site {
    directory: Directory,
    proxy: Proxy,
    domain: Domain,
    inside: [Host; 2],
    viewer: Host,
    secret: String,
}

impl Site {
    fn prepare(network: &Network, port: u16) -> Site {
        Site::prepare_on(network.hosts(), port)
    }

    fn prepare_on(hosts: &[Host], port: u16) -> Site {
        let [outside, gate, head, worker, viewer] = hosts else { panic!("five hosts") };
        let inside = [head.clone(), worker.clone()];
        let domain = Domain::create("UT-ICL", &inside).unwrap();
        let proxy = Proxy::join(gate, port, &domain, head).unwrap();
        let secret = proxy.account("ana", &["--domain", "UT-ICL"]).unwrap();
        let directory = Directory::at(outside, port).unwrap();
        Site { directory, proxy, domain, inside, viewer: viewer.clone(), secret }
    }

    /// The answer to the viewer's curl for `path`.
    fn ask(&self, path: &str) -> Option<Value> {
        let login = format!("ana:{}", self.secret);
        let output = self.viewer.run(|| {
            let mut curl = program::command("curl");
            curl.args(["--silent", "--max-time", "10", "--digest", "--user", &login, "--cacert"]);
            curl.arg(self.proxy.certificate()).arg(format!("{}{path}", self.proxy.url()));
            Ok(curl.output()?)
        });
        serde_json::from_slice(&output.unwrap().stdout).ok()
    }

    /// Wait until the viewer gets a matching answer; returns the time taken.
    fn until(&self, path: &str, daemons: &[&Daemon], fits: impl Fn(&Value) -> bool) -> Duration {
        let look = || {
            Ok(match self.ask(path) {
                Some(answer) if fits(&answer) => Seen::Done(()),
                other => Seen::NotYet(format!("{other:?}")),
            })
        };
        let found = Stopwatch::start().until(FIRST, "an answer through the proxy", look);
        let outputs = || daemons.iter().map(|it| format!("{}:\n{}\n", it.host().name(), it.output()));
        found.unwrap_or_else(|error| panic!("{error:#}\n{}", outputs().collect::<String>())).0
    }
}

fn reaches(from: &Host, to: &Host, port: u16) -> bool {
    let at = SocketAddr::from((to.ipv4(), port));
    from.run(|| Ok(TcpStream::connect_timeout(&at, CONNECTS)?)).is_ok()
}

/// Options of a sensor that registers with the proxy.
fn via(proxy: &Proxy) -> Vec<String> {
    vec!["--via".to_owned(), proxy.contact.clone()]
}

fn figure(daemon: &Daemon, name: &str) -> u64 {
    daemon.figure("overlay", name).unwrap()
}

#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn report(line: &str) {
    println!("{line}");
}

/// Subscribe to every process of an inside host, 64 times a second; returns the time until the first entry.
fn first_processes_at_64_hz(ask: impl Fn(&str, Value) -> Value) -> Duration {
    let subscribed = ask("sensor.subscribe", json!({ "domain": "UT-ICL", "host": "h4", "rate": 64 }));
    let id = &subscribed["subscription"];
    let came = Stopwatch::start().until(FIRST, "processes of an inside host", || {
        let taken = ask("sensor.take", json!({ "domain": "UT-ICL", "host": "h4", "subscription": id }));
        let entries = taken["entries"].as_array().map_or(0, Vec::len);
        Ok(if entries > 0 { Seen::Done(()) } else { Seen::NotYet(taken.to_string()) })
    });
    came.unwrap().0
}

#[test]
fn a_site_that_takes_nothing_in_is_asked_through_the_proxy() {
    let name = "lab_proxy::a_site_that_takes_nothing_in_is_asked_through_the_proxy";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::prepare(&network, OVERLAY);
    let stranger = Domain::create("CERN", std::slice::from_ref(&site.viewer)).unwrap();
    let directory = site.directory.start(&[], &[&site.domain, &stranger]).unwrap();
    let proxy = site.proxy.start(std::slice::from_ref(&site.directory), "").unwrap();
    // The two inside reach each other; from elsewhere only replies pass.
    for host in &site.inside {
        Wall::NoInbound { but: site.inside.iter().map(Host::ipv4).collect() }.put_up(host).unwrap();
    }
    // Either of them may be the representative, which must be reachable.
    let directories = std::slice::from_ref(&site.directory);
    let sensors = site.domain.start(directories, |_| via(&site.proxy)).unwrap();
    assert!(!reaches(&site.viewer, &site.inside[0], 7318), "the wall has a hole");
    assert!(!reaches(&site.proxy.host, &site.inside[0], 7318), "the wall has a hole");
    assert!(reaches(&site.inside[0], &site.proxy.host, 7318), "nothing gets out either");

    let daemons = [&directory, &proxy, &sensors[0], &sensors[1]];
    let hosts = |answer: &Value| answer["hosts"].as_array().is_some_and(|hosts| hosts.len() == 2);
    let took = site.until("/d/UT-ICL/api/v1/domain.hosts", &daemons, hosts);
    report(&format!(
        "both hosts of a site that takes nothing in are seen from outside after {} ms",
        took.as_millis()
    ));
    let filters = |answer: &Value| answer["filters"].is_array();
    site.until("/d/UT-ICL/h4/api/v1/sensor.filters", &daemons, filters);
    for (daemon, name) in
        [(&sensors[0], "registrations"), (&sensors[1], "registrations"), (&proxy, "registered")]
    {
        let look =
            || Ok(if figure(daemon, name) >= 1 { Seen::Done(()) } else { Seen::NotYet(daemon.output()) });
        Stopwatch::start().until(Duration::from_secs(60), name, look).unwrap();
    }
    assert_eq!(figure(&sensors[0], "registrations"), 1, "{}", sensors[0].output());

    // The command line uses the same listener.
    let secret = site.viewer.folder().join("secret");
    std::fs::write(&secret, &site.secret).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (door, secret) = (site.proxy.url(), secret.display().to_string());
    let certificate = site.proxy.certificate().display().to_string();
    let by = ["--via", &door, "--account", "ana", "--secret", &secret, "--certificate", &certificate];
    let words = [&["call", "domain.summary", r#"{"domain": "UT-ICL"}"#], &by[..]].concat();
    let summary = visperf(&site.viewer, &words).unwrap();
    assert!(summary.contains("hosts_live"), "{summary}");
    let place = format!("{door}/d/UT-ICL/h3");
    let words = [&["events", "--via", &place], &by[2..]].concat();
    visperf(&site.viewer, &words).unwrap();

    let took = first_processes_at_64_hz(|method, params| {
        let params = params.to_string();
        let words = [&["call", method, &params], &by[..]].concat();
        serde_json::from_str(&visperf(&site.viewer, &words).unwrap()).unwrap()
    });
    report(&format!("processes of an inside host come at 64 Hz, the first within {} ms", took.as_millis()));

    // A daemon elsewhere finds the domain by its name, through the proxy, which sees only encrypted bytes.
    let far = stranger.start(directories, |_| Vec::new()).unwrap();
    let look = || {
        let answer = far[0].ask("domain.hosts", &json!({ "domain": "UT-ICL" }))?;
        let whole = matches!(&answer, Answer::Result(answer) if hosts(answer));
        Ok(if whole { Seen::Done(()) } else { Seen::NotYet(format!("{answer:?}")) })
    };
    let found = Stopwatch::start().until(FIRST, "an answer from another domain", look);
    let output = || [&far[0], &proxy, &sensors[0], &directory].map(Daemon::output).join("\n---\n");
    let (took, ()) = found.unwrap_or_else(|error| panic!("{error:#}\n{}", output()));
    report(&format!(
        "another domain's daemon gets an answer through the proxy after {} ms",
        took.as_millis()
    ));
    assert!(figure(&proxy, "circuits_total") >= 1, "{}", proxy.output());

    // The proxy dies: registrations with the new one are restored automatically.
    proxy.kill().unwrap();
    let proxy = site.proxy.start(directories, "").unwrap();
    let took = site.until("/d/UT-ICL/api/v1/domain.hosts", &[&proxy, &sensors[0]], hosts);
    report(&format!("after a new start of the proxy the site is seen again after {} ms", took.as_millis()));
}

#[test]
fn a_private_cluster_is_asked_through_its_head() {
    let name = "lab_proxy::a_private_cluster_is_asked_through_its_head";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::prepare(&network, OVERLAY);
    let directory = site.directory.start(&[], &[&site.domain]).unwrap();
    let proxy = site.proxy.start(std::slice::from_ref(&site.directory), "").unwrap();
    let [head, worker] = &site.inside;
    // The worker has a private address, and a route only to the head, which forwards nothing.
    let private = Wall::private(head, worker).unwrap();
    std::fs::write(
        head.folder().join("sensor.toml"),
        format!(
            "[overlay]\ndirectories = [{:?}]\nadvertise = [\"{}:7318\"]\n",
            site.directory.contact, private.head
        ),
    )
    .unwrap();
    Wall::NoInbound { but: vec![private.worker] }.put_up(head).unwrap();
    let first = sensor(head, &via(&site.proxy)).unwrap();
    let of = state(head);
    let at = format!("{}:7318", private.head);
    let roles = ["--role", "viewer", "--role", "publisher"];
    let words = [&["token", "create", "--json", "--address", &at, "--state", &of], &roles[..]].concat();
    let answer: Value = serde_json::from_str(&visperf(head, &words).unwrap()).unwrap();
    let token = answer["token"].as_str().unwrap();
    let own = state(worker);
    visperf(worker, &["join", token, "--host", "h4", "--state", &own]).unwrap();
    let second = sensor(worker, &[]).unwrap();
    assert!(!reaches(worker, &site.proxy.host, 7318), "the worker is not private");
    assert!(!reaches(&site.proxy.host, head, 7318), "the head takes something in");

    let daemons = [&directory, &proxy, &first, &second];
    let filters = |answer: &Value| answer["filters"].is_array();
    let took = site.until("/d/UT-ICL/h4/api/v1/sensor.filters", &daemons, filters);
    report(&format!("a worker behind its head is asked from outside after {} ms", took.as_millis()));
}

#[test]
fn a_site_that_lets_out_to_443_alone_is_asked_through_the_proxy() {
    let name = "lab_proxy::a_site_that_lets_out_to_443_alone_is_asked_through_the_proxy";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let site = Site::prepare(&network, 443);
    let directories = std::slice::from_ref(&site.directory);
    let directory = site.directory.start(&[], &[&site.domain]).unwrap();
    let proxy = site.proxy.start(directories, "").unwrap();
    for host in &site.inside {
        let but = site.inside.iter().map(Host::ipv4).collect();
        Wall::OnlyOut { ports: vec![443], but }.put_up(host).unwrap();
    }
    let sensors = site.domain.start(directories, |_| via(&site.proxy)).unwrap();
    assert!(!reaches(&site.viewer, &site.inside[0], OVERLAY), "the wall has a hole");
    assert!(!reaches(&site.inside[0], &site.proxy.host, DOOR), "more than 443 gets out");
    assert!(reaches(&site.inside[0], &site.proxy.host, 443), "443 does not get out");
    let daemons = [&directory, &proxy, &sensors[0], &sensors[1]];
    let hosts = |answer: &Value| answer["hosts"].as_array().is_some_and(|hosts| hosts.len() == 2);
    let took = site.until("/d/UT-ICL/api/v1/domain.hosts", &daemons, hosts);
    report(&format!("a site that lets out to 443 alone is seen from outside after {} ms", took.as_millis()));
}

#[test]
fn a_host_behind_address_translation_is_asked_through_the_proxy() {
    let name = "lab_proxy::a_host_behind_address_translation_is_asked_through_the_proxy";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(5).unwrap();
    let [outside, gate, router, inner, viewer] = network.hosts() else { panic!("five hosts") };
    let private = Wall::private(router, inner).unwrap();
    Wall::translate(private, router, inner).unwrap();
    let domain = Domain::create("UT-ICL", std::slice::from_ref(inner)).unwrap();
    let proxy = Proxy::join(gate, OVERLAY, &domain, inner).unwrap();
    let secret = proxy.account("ana", &["--domain", "UT-ICL"]).unwrap();
    let directory = Directory::new(outside).unwrap();
    let inside = [inner.clone(), inner.clone()];
    let site = Site { directory, proxy, domain, inside, viewer: viewer.clone(), secret };
    let directories = std::slice::from_ref(&site.directory);
    let directory = site.directory.start(&[], &[&site.domain]).unwrap();
    let proxy = site.proxy.start(directories, "").unwrap();
    let sensors = site.domain.start(directories, |_| via(&site.proxy)).unwrap();
    let at = SocketAddr::from((private.worker, OVERLAY));
    assert!(
        viewer.run(|| Ok(TcpStream::connect_timeout(&at, CONNECTS)?)).is_err(),
        "it is reached from outside"
    );
    let hosts = |answer: &Value| answer["hosts"].as_array().is_some_and(|hosts| hosts.len() == 1);
    let took = site.until("/d/UT-ICL/api/v1/domain.hosts", &[&directory, &proxy, &sensors[0]], hosts);
    report(&format!("a host behind address translation is seen from outside after {} ms", took.as_millis()));
}

#[test]
fn a_site_with_an_http_proxy_alone_is_asked_through_both() {
    let name = "lab_proxy::a_site_with_an_http_proxy_alone_is_asked_through_both";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let (five, corporate) = network.hosts().split_at(5);
    let site = Site::prepare_on(five, OVERLAY);
    let corporate = &corporate[0];
    let directories = std::slice::from_ref(&site.directory);
    let directory = site.directory.start(&[], &[&site.domain]).unwrap();
    let proxy = site.proxy.start(directories, "").unwrap();
    let log = corporate.folder().join("squid-log");
    let _squid = Squid::start(corporate, &log);
    let [head, _] = &site.inside;
    let secret = head.folder().join("corporate.secret");
    std::fs::write(&secret, "open sesame\n").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    Wall::OnlyOut { ports: vec![SQUID], but: Vec::new() }.put_up(head).unwrap();
    assert!(!reaches(head, &site.proxy.host, OVERLAY), "the wall has a hole");
    let section = format!(
        "[overlay]\ndirectories = [{:?}]\nvia = [{:?}]\n[overlay.connect]\nproxy = \"{}:{SQUID}\"\nname = \"site\"\n\
         secret = {:?}\n",
        site.directory.contact,
        site.proxy.contact,
        corporate.ipv4(),
        secret.display().to_string()
    );
    std::fs::write(head.folder().join("sensor.toml"), section).unwrap();
    let first = sensor(head, &[]).unwrap();
    let daemons = [&directory, &proxy, &first];
    let hosts = |answer: &Value| answer["hosts"].as_array().is_some_and(|hosts| hosts.len() == 1);
    let took = site.until("/d/UT-ICL/api/v1/domain.hosts", &daemons, hosts);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("connected"), "nothing went through the site's own proxy: {log}");
    report(&format!("a site with an HTTP proxy alone is seen from outside after {} ms", took.as_millis()));
}

/// Port of a site's HTTP proxy.
pub(super) const SQUID: u16 = 3128;

/// A site's own HTTP proxy, killed when it is dropped.
pub(super) struct Squid(std::process::Child);

impl Squid {
    pub(super) fn start(host: &Host, log: &std::path::Path) -> Squid {
        let script = program::workspace().join("tests/clients/connect_proxy.py");
        let file = std::fs::File::create(log).unwrap();
        let child = host.run(|| {
            let mut command = program::command("python3");
            command.arg(&script).args([&host.ipv4().to_string(), &SQUID.to_string(), "site", "open sesame"]);
            Ok(command.stdout(file).spawn()?)
        });
        let ready = || {
            let text = std::fs::read_to_string(log)?;
            Ok(if text.contains("ready") { Seen::Done(()) } else { Seen::NotYet(text) })
        };
        let squid = Squid(child.unwrap());
        system_tests::wait::until(FIRST, "the site's own proxy", ready).unwrap();
        squid
    }
}

impl Drop for Squid {
    fn drop(&mut self) {
        // It may have ended by itself, and then the test has failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
