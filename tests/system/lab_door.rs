//! A running proxy and malicious clients: one with an account that tries everything, thousands of slow ones,
//! requests with ambiguous length (smuggling).
//!
//! Rules: the real program with its own certificate; what a client may see is written here by hand, not taken
//! from the proxy; each test is repeated where its protection cannot hold.
//! Not here: logins (`lab_logins`), the individual decisions (`proxy`).

use serde_json::Value;
use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use system_tests::lab::domains::{Directory, Domain, OVERLAY};
use system_tests::lab::proxies::{DOOR, Proxy};
use system_tests::lab::{self, Daemon, Host, Network, Stopwatch, Trials};
use system_tests::program;
use system_tests::random::Random;
use system_tests::wait::{self, Seen};

#[path = "../../proxy/tests/visitor/mod.rs"]
pub(super) mod visitor;

#[path = "../../rpc/tests/integration/smuggled.rs"]
mod smuggled;

use visitor::{Answer, Place};

/// Timeout for the first answer.
const FIRST: Duration = Duration::from_secs(60);
/// Job in the log of each host; an account without access to logs must never see it.
pub(super) const IN_LOGS: &str = "773199481";

/// A directory, a proxy, two hosts of a domain, and a host with a client.
pub(super) struct Site {
    pub(super) proxy: Proxy,
    pub(super) daemon: Daemon,
    pub(super) sensors: Vec<Daemon>,
    pub(super) viewer: Host,
    directory: Directory,
    _directory: Daemon,
}

impl Site {
    pub(super) fn start(network: &Network, accounts: impl Fn(&Proxy)) -> Site {
        let [outside, gate, head, worker, viewer] = network.hosts() else { panic!("five hosts") };
        let hosts = [head.clone(), worker.clone()];
        let domain = Domain::create("UT-ICL", &hosts).unwrap();
        let proxy = Proxy::join(gate, OVERLAY, &domain, head).unwrap();
        accounts(&proxy);
        let directory = Directory::new(outside).unwrap();
        let directories = std::slice::from_ref(&directory);
        let started = directory.start(&[], &[&domain]).unwrap();
        let tail = |host: &Host| {
            let log = host.folder().join("slurmctld.log");
            let line = "[2026-11-21T10:00:00.000] _slurm_rpc_submit_batch_job: JobId=";
            std::fs::write(&log, format!("{line}{IN_LOGS} InitPrio=1 usec=100\n")).unwrap();
            vec!["--tail".to_owned(), format!("{}=slurmctld", log.display())]
        };
        let sensors = domain.start(directories, tail).unwrap();
        let daemon = proxy.start(directories, "").unwrap();
        Site { proxy, daemon, sensors, viewer: viewer.clone(), directory, _directory: started }
    }

    pub(super) fn place(&self) -> Place {
        let at = SocketAddr::from((self.proxy.host.ipv4(), DOOR));
        Place::encrypted(at, &self.proxy.host.ipv4().to_string(), &self.proxy.certificate())
    }

    /// Wait until this account gets an answer for `path`.
    pub(super) fn until_answered(&self, (name, secret): (&str, &str), path: &str) {
        let (place, login) = (self.place(), format!("{name}:{secret}"));
        let look = || {
            let answer = at(&self.viewer, async {
                let (name, secret) = login.split_once(':').unwrap();
                place.connect().await.with_account(name, secret).get(path).await
            });
            Ok(if answer.status == 200 { Seen::Done(()) } else { Seen::NotYet(format!("{answer:?}")) })
        };
        let output = || [&self.daemon, &self.sensors[0]].map(Daemon::output).join("\n---\n");
        wait::until(FIRST, "an answer through the proxy", look)
            .unwrap_or_else(|error| panic!("{error:#}\n{}", output()));
    }

    /// Restart the proxy, as after a reboot.
    pub(super) fn start_again(self) -> Site {
        self.daemon.kill().unwrap();
        let daemon = self.proxy.start(std::slice::from_ref(&self.directory), "").unwrap();
        Site { daemon, ..self }
    }

    /// A counter of the proxy (`door`, `overlay`).
    pub(super) fn figure(&self, part: &str, name: &str) -> u64 {
        self.daemon.figure(part, name).unwrap()
    }
}

/// Run a future on this host, on one thread.
pub(super) fn at<T: Send>(host: &Host, work: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(work))
    };
    host.run(run).unwrap()
}

/// Give the host more addresses of its network, from `10.77.100.1` on.
pub(super) fn more_addresses(host: &Host, count: u8) -> Vec<IpAddr> {
    let all: Vec<Ipv4Addr> = (1..=count).map(|number| Ipv4Addr::new(10, 77, 100, number)).collect();
    let add = |address: &Ipv4Addr| {
        let words = format!("addr add {address}/16 dev eth0");
        let output = host.run(|| Ok(program::command("ip").args(words.split(' ')).output()?)).unwrap();
        assert!(output.status.success(), "ip {words}: {output:?}");
    };
    all.iter().for_each(add);
    all.into_iter().map(IpAddr::V4).collect()
}

#[allow(clippy::print_stdout)] // A test's output is read when it fails.
pub(super) fn report(line: &str) {
    println!("{line}");
}

/// Number of tries; more with `VISPERF_TRIES`.
fn tries() -> u64 {
    std::env::var("VISPERF_TRIES").map_or(10_000, |tries| tries.parse().expect("a number of tries"))
}

/// Methods that return only samples, hosts and processes, which an account of class `figures` may call.
const FIGURES: [&str; 12] = [
    "domain.history",
    "domain.metrics",
    "sensor.history",
    "sensor.process_history",
    "sensor.metrics",
    "sensor.processes",
    "sensor.channels",
    "sensor.subscriptions",
    "sensor.subscribe",
    "sensor.alter",
    "sensor.unsubscribe",
    "sensor.take",
];

/// A random request as an attacker might send it, and the method that it names.
fn question(random: &mut Random, methods: &[String]) -> (String, String) {
    let mut one = |all: &[&str]| all[usize::try_from(random.below(all.len() as u64)).unwrap()].to_owned();
    // Half of the choices for each part are correct, so that single errors are tried too.
    let mut of =
        |right: &str, wrong: &[&str]| if one(&["0", "1"]) == "0" { right.to_owned() } else { one(wrong) };
    let domain = of("UT-ICL", &["CERN", "ut-icl", "UT-ICL%00", "..", "*", "", "%55T-ICL"]);
    let host = of("/h3", &["", "/h4", "/H4", "/h4%00", "/h3/../h4", "/h3%2f..%2fh4", "/%68%34", "/*", "/h2"]);
    let base = of("/d/", &["/md5/d/", "//d/", "/D/", "/d/h4/../"]);
    let rest = of("/api/v1/", &["/api/v1//", "/API/v1/", "/../api/v1/"]);
    let wrong = ["?host=h4", "?host=h3&host=h4", "?domain=CERN", "?domain=UT-ICL&host=h4", "?host=%68%34"];
    let more = of("", &[&wrong[..], &["?limit=3", "?domain=UT-ICL&host=h3"]].concat());
    let number = usize::try_from(random.below(methods.len() as u64)).unwrap();
    let method = methods[number].clone();
    let path = match random.below(8) {
        0 => format!("{rest}{method}{more}"),
        _ => format!("{base}{domain}{host}{rest}{method}{more}"),
    };
    (path, method)
}

/// What is wrong with an answer to an account that may only see figures of h3.
fn wrong(path: &str, method: &str, answer: &Answer) -> Option<&'static str> {
    // A process may have a host's name: all processes of this machine are visible, also those of other tests.
    let text = String::from_utf8_lossy(&answer.body).replace("\"name\":\"h4\"", "");
    if text.contains(IN_LOGS) || text.contains("\"h4\"") {
        return Some("it shows what was not granted");
    }
    if answer.status != 200 || text.starts_with("{\"error\"") {
        return None;
    }
    let place = path.to_lowercase().replace("%68%34", "h4");
    if ["h4", "h2", "cern", "*"].iter().any(|other| place.contains(other)) || !place.contains("h3") {
        return Some("a place is answered for that was not granted");
    }
    (!FIGURES.contains(&method)).then_some("a method is answered that was not granted")
}

/// Send all tries; returns how many were answered, and those that should not have been.
async fn try_all(place: &Place, login: (&str, &str), methods: &[String], seed: u64) -> (usize, Vec<String>) {
    let mut visitor = place.connect().await.with_account(login.0, login.1);
    let (mut random, mut answered, mut found) = (Random::new(seed), 0, Vec::new());
    for _ in 0..tries() {
        let (path, method) = question(&mut random, methods);
        let answer = visitor.get(&path).await;
        answered += usize::from(answer.status == 200);
        if let Some(why) = wrong(&path, &method, &answer) {
            found.push(format!("{path}: {why}: {}", String::from_utf8_lossy(&answer.body)));
        }
        if answer.fields("connection").contains(&"close") {
            visitor = place.connect().await.with_account(login.0, login.1);
        }
    }
    (answered, found)
}

#[test]
fn a_visitor_that_tries_everything_sees_what_was_granted() {
    let name = "lab_door::a_visitor_that_tries_everything_sees_what_was_granted";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let secrets = std::sync::Mutex::new(Vec::new());
    let site = Site::start(&lab.network(5).unwrap(), |proxy| {
        let some = ["--domain", "UT-ICL", "--host", "h3", "--calls", "figures"];
        let all =
            [proxy.account("some", &some).unwrap(), proxy.account("all", &["--domain", "UT-ICL"]).unwrap()];
        secrets.lock().unwrap().extend(all);
    });
    let secrets = secrets.into_inner().unwrap();
    let (some, all) = (("some", secrets[0].as_str()), ("all", secrets[1].as_str()));
    site.until_answered(all, "/d/UT-ICL/h4/api/v1/sensor.events");
    site.until_answered(some, "/d/UT-ICL/h3/api/v1/sensor.metrics");
    let list = at(&site.viewer, async {
        site.place().connect().await.with_account(all.0, all.1).get("/api/v1").await
    });
    let list: Value = serde_json::from_slice(&list.body).unwrap();
    let names =
        list["methods"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
    // `system.*` describes methods, for every client that was admitted.
    let mut methods: Vec<String> = names.filter(|name| !name.starts_with("system.")).collect();
    methods.extend(
        ["sensor.of_tomorrow", "SENSOR.METRICS", "sensor.metrics%00", "../sensor.events"].map(str::to_owned),
    );
    let known: BTreeSet<_> = methods.iter().map(String::as_str).collect();
    assert!(FIGURES.iter().all(|name| known.contains(name)), "{known:?}");

    let (answered, found) = at(&site.viewer, try_all(&site.place(), some, &methods, 7));
    report(&format!("{} tries, {answered} answered, {} of them wrongly", tries(), found.len()));
    assert!(found.is_empty(), "{found:?}");
    assert!(answered > 0, "nothing was answered, so nothing was shown");
    // The same tries with an account that may see both hosts and their logs: the search finds what it looks
    // for.
    let (_, found) = at(&site.viewer, try_all(&site.place(), all, &methods, 7));
    assert!(found.iter().any(|one| one.contains(IN_LOGS)) && found.len() > 10, "{found:?}");
}

#[test]
fn requests_with_two_ends_are_refused_at_the_door() {
    let name = "lab_door::requests_with_two_ends_are_refused_at_the_door";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let site = Site::start(&lab.network(5).unwrap(), |proxy| {
        drop(proxy.account("ana", &["--all-domains"]).unwrap())
    });
    let place = site.place();
    let path = "/d/UT-ICL/h3/RPC2";
    let body = "<methodCall><methodName>sensor.metrics</methodName></methodCall>";
    let behind = "GET /api/v1/daemon.info HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answered = |request: &str| {
        let bytes = format!("{request}{behind}").into_bytes();
        at(&site.viewer, async {
            let mut visitor = place.connect().await;
            visitor.send(&bytes).await;
            String::from_utf8(visitor.rest().await).unwrap()
        })
    };
    for request in smuggled::requests(path, body) {
        let all = answered(&request);
        assert!(all.starts_with("HTTP/1.1 400 ") && all.contains("connection: close"), "{request:?} {all}");
        assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{request:?} {all}");
    }
    // The control: a request with one length is asked for a login, and its connection stays open.
    let control = format!("{}{behind}", smuggled::control(path, body)).into_bytes();
    let statuses = at(&site.viewer, async {
        let mut visitor = place.connect().await;
        [visitor.exchange(&control).await.status, visitor.exchange(b"").await.status]
    });
    assert_eq!(statuses, [401, 401]);
}

/// Slow connections.
async fn slow(place: &Place, from: &[IpAddr], count: usize) -> Vec<visitor::Slow> {
    let mut held = Vec::new();
    for number in 0..count {
        // One in ten sends half a request; the others send nothing.
        held.extend(place.connect_slowly(from[number % from.len()], number % 10 == 0).await);
    }
    held
}

#[test]
fn thousands_of_slow_clients_keep_no_one_out() {
    let name = "lab_door::thousands_of_slow_clients_keep_no_one_out";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let secrets = std::sync::Mutex::new(Vec::new());
    let network = lab.network(5).unwrap();
    let site = Site::start(&network, |proxy| {
        secrets.lock().unwrap().push(proxy.account("ana", &["--domain", "UT-ICL"]).unwrap());
    });
    let secret = secrets.into_inner().unwrap().remove(0);
    let path = "/d/UT-ICL/h3/api/v1/sensor.metrics?name=node_load1";
    site.until_answered(("ana", &secret), path);
    let from = more_addresses(&site.viewer, 5);
    let (good, place, count) = (&network.hosts()[0], site.place(), 5_000);
    let good_times = std::thread::scope(|scope| {
        let attack = scope.spawn(|| {
            at(&site.viewer, async {
                let mut peak = 0;
                // A connection that is closed is opened again at once.
                let mut held = slow(&place, &from, count).await;
                for round in 0..20 {
                    if round >= 3 && peak > 2_000 {
                        break;
                    }
                    held.retain_mut(|one| !one.is_ended());
                    peak = peak.max(held.len());
                    held.extend(slow(&place, &from, count - held.len()).await);
                }
                peak
            })
        });
        let mut times = Trials::default();
        while !attack.is_finished() {
            let watch = Stopwatch::start();
            let answer =
                at(good, async { place.connect().await.with_account("ana", &secret).get(path).await });
            assert_eq!(answer.status, 200, "{answer:?}");
            times.add(watch.elapsed());
        }
        let peak = attack.join().unwrap();
        report(&format!("{peak} connections at once, most of them slow; good ones meanwhile: {times}"));
        assert!(peak > 2_000, "{peak}");
        times
    });
    assert!(good_times.count() > 3);
    // One address cannot have as many: a client that shares it with them is refused.
    at(&site.viewer, async {
        let mut held = slow(&place, &from[..1], 2_300).await;
        for _ in 0..20 {
            // Those that were closed meanwhile made room.
            held.retain_mut(|one| !one.is_ended());
            held.extend(slow(&place, &from[..1], 2_300 - held.len()).await);
            if place.connect_slowly(from[0], true).await.is_none() {
                return;
            }
        }
        panic!("{} are held", held.len());
    });
}
