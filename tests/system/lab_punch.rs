//! Hole punching: two sites behind NATs, which know each other only through a proxy, establish a direct
//! connection; if their NATs do not allow it, they continue through the proxy.
//!
//! Rules: the NATs are nft's, and let no unsolicited connections in; each test first verifies that neither
//! host can be reached from the other site; a query is answered at the start and at the end, whatever happens
//! between.
//! Not here: how a host reaches its proxy (`lab_reach`, `lab_ladder`), the same without NATs
//! (`overlay/tests/net`).

use super::lab_ladder::{reaches, reaches_at_last, report};
use serde_json::{Value, json};
use std::time::Duration;
use system_tests::lab::domains::{Directory, Domain, OVERLAY};
use system_tests::lab::proxies::Proxy;
use system_tests::lab::walls::Wall;
use system_tests::lab::{self, Daemon, Delay, Host, Network, Stopwatch};
use system_tests::query::Answer;
use system_tests::wait::Seen;

/// Timeout for anything that is expected.
const LAST: Duration = Duration::from_secs(90);

/// Reaction of a NAT to an unsolicited connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unasked {
    Dropped,
    Refused,
}

/// A directory and a proxy outside; two domains of one host, each behind a NAT; only one of them registers
/// with the proxy.
struct Sites {
    directory: Directory,
    proxy: Proxy,
    asked: Domain,
    asker: Domain,
    /// Each host, after its NAT.
    inside: [(Host, Host); 2],
}

/// Running daemons of the sites.
struct Running {
    directory: Daemon,
    proxy: Daemon,
    asked: Daemon,
    asker: Daemon,
}

impl Sites {
    fn prepare(network: &Network) -> Sites {
        let [outside, gate, outer, one, other_outer, other] = network.hosts() else { panic!("six hosts") };
        let asked = Domain::create("UT-ICL", std::slice::from_ref(one)).unwrap();
        let asker = Domain::create("CERN", std::slice::from_ref(other)).unwrap();
        let proxy = Proxy::join(gate, OVERLAY, &asked, one).unwrap();
        let directory = Directory::new(outside).unwrap();
        let inside = [(outer.clone(), one.clone()), (other_outer.clone(), other.clone())];
        Sites { directory, proxy, asked, asker, inside }
    }

    /// Put each host behind its NAT, with nft's statement `how`; a port may be forwarded to the first.
    /// Unsolicited packets are dropped silently, as in homes and most sites, or refused.
    fn translate(&self, how: &str, led: Option<u16>, unasked: Unasked) {
        for (nth, (outer, inside)) in (0_u8..).zip(&self.inside) {
            let private = Wall::private_within(8 + nth, outer, inside).unwrap();
            Wall::translate_by(how, led.filter(|_| nth == 0), private, outer, inside).unwrap();
            if unasked == Unasked::Dropped {
                Wall::NoInbound { but: vec![private.worker] }.put_up(outer).unwrap();
            }
        }
    }

    fn start(&self) -> Running {
        let directory = self.directory.start(&[], &[&self.asked, &self.asker]).unwrap();
        let directories = std::slice::from_ref(&self.directory);
        let proxy = self.proxy.start(directories, "").unwrap();
        for (_, inside) in &self.inside {
            reaches_at_last(inside, &self.directory.host, OVERLAY);
            reaches_at_last(inside, &self.proxy.host, OVERLAY);
        }
        let via = |_: &Host| vec!["--via".to_owned(), self.proxy.contact.clone()];
        let asked = self.asked.start(directories, via).unwrap().remove(0);
        let asker = self.asker.start(directories, |_| Vec::new()).unwrap().remove(0);
        Running { directory, proxy, asked, asker }
    }
}

impl Running {
    fn output(&self) -> String {
        [&self.asker, &self.asked, &self.proxy, &self.directory].map(Daemon::output).join("\n---\n")
    }

    /// Whether a query of one site about the other is answered.
    fn answers(&self) -> Result<(), String> {
        let answer = self.asker.ask("domain.hosts", &json!({ "domain": "UT-ICL" }));
        let is_one = |answer: &Value| answer["hosts"].as_array().is_some_and(|hosts| hosts.len() == 1);
        let is_whole = matches!(&answer, Ok(Answer::Result(answer)) if is_one(answer));
        if is_whole { Ok(()) } else { Err(format!("{answer:?}")) }
    }

    /// Repeat the query until the condition holds, requiring an answer each time; returns the time taken.
    fn until(&self, what: &str, is_so: impl Fn() -> bool) -> Duration {
        let look = || {
            self.answers().unwrap_or_else(|error| panic!("{what}: {error}\n{}", self.output()));
            Ok(if is_so() { Seen::Done(()) } else { Seen::NotYet(self.figures()) })
        };
        let found = Stopwatch::start().until(LAST, what, look);
        found.unwrap_or_else(|error| panic!("{error:#}\n{}", self.output())).0
    }

    /// Wait for the first answer, from a cold start, and verify that neither host can be reached at an
    /// address the other could dial.
    fn begin(&self, sites: &Sites) {
        let look = || Ok(self.answers().map_or_else(Seen::NotYet, Seen::Done));
        let found = Stopwatch::start().until(LAST, "an answer from the other site", look);
        let (took, ()) = found.unwrap_or_else(|error| panic!("{error:#}\n{}", self.output()));
        report(&format!("the first answer comes after {} ms", took.as_millis()));
        let [(outer, one), (other_outer, other)] = &sites.inside;
        assert!(!reaches(other, outer, OVERLAY) && !reaches(one, other_outer, OVERLAY), "a wall has a hole");
    }

    fn figures(&self) -> String {
        let names = ["by_direct", "by_punched", "by_circuit", "punched_total", "punches_failed_total"];
        let of = |daemon| names.map(|name| format!("{name} {}", figure(daemon, name))).join(", ");
        format!("asker: {}; asked: {}", of(&self.asker), of(&self.asked))
    }

    /// Wait until both use a direct connection and the circuit ends, and verify that the proxy is no longer
    /// needed.
    fn come_to_speak_directly(self) {
        let both = [&self.asker, &self.asked];
        let took = self.until("a direct connection", || both.iter().all(|it| figure(it, "by_punched") == 1));
        report(&format!("both speak directly after {} ms more; {}", took.as_millis(), self.figures()));
        let took = self.until("the end of the circuit", || {
            figure(&self.proxy, "circuits") == 0 && both.iter().all(|it| figure(it, "by_circuit") == 0)
        });
        report(&format!("the circuit is closed after {} ms more", took.as_millis()));
        let lost = both.map(|it| figure(it, "silent_total"));
        assert_eq!(lost, [0, 0], "{}", self.output());
        let Running { directory, proxy, asked, asker } = self;
        proxy.kill().unwrap();
        let is_answered = asker.ask("domain.hosts", &json!({ "domain": "UT-ICL" }));
        assert!(matches!(is_answered, Ok(Answer::Result(_))), "without the proxy: {is_answered:?}");
        drop((directory, asked));
    }
}

fn figure(daemon: &Daemon, name: &str) -> u64 {
    daemon.figure("overlay", name).unwrap()
}

#[test]
fn two_sites_whose_translators_keep_ports_come_to_speak_directly() {
    let name = "lab_punch::two_sites_whose_translators_keep_ports_come_to_speak_directly";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let sites = Sites::prepare(&network);
    sites.translate("masquerade", None, Unasked::Dropped);
    let running = sites.start();
    running.begin(&sites);
    running.come_to_speak_directly();
}

/// Both must dial before either packet arrives: a dial that starts too early is refused.
#[test]
fn two_sites_that_refuse_what_comes_too_early_meet_midway() {
    let name = "lab_punch::two_sites_that_refuse_what_comes_too_early_meet_midway";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let sites = Sites::prepare(&network);
    for (outer, _) in &sites.inside {
        network.delay(outer.name(), Delay { time: Duration::from_millis(15), ..Delay::default() }).unwrap();
    }
    sites.translate("masquerade", None, Unasked::Refused);
    let running = sites.start();
    running.begin(&sites);
    running.come_to_speak_directly();
}

#[test]
fn two_sites_whose_translators_draw_ports_go_on_through_the_proxy() {
    let name = "lab_punch::two_sites_whose_translators_draw_ports_go_on_through_the_proxy";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let sites = Sites::prepare(&network);
    sites.translate("masquerade fully-random", None, Unasked::Dropped);
    let running = sites.start();
    running.begin(&sites);
    let both = [&running.asker, &running.asked];
    let took =
        running.until("the end of the try", || both.iter().all(|it| figure(it, "punches_failed_total") == 1));
    let figures = running.figures();
    report(&format!("the try failed after {} ms more; {figures}", took.as_millis()));
    for daemon in both {
        assert_eq!((figure(daemon, "by_punched"), figure(daemon, "by_circuit")), (0, 1), "{figures}");
    }
    assert_eq!(figure(&running.proxy, "circuits"), 1, "{}", running.output());
    running.answers().unwrap();
}

/// A port that an administrator forwards is found by the same dialling, although it is not listed in
/// `advertise`.
#[test]
fn a_port_that_is_led_in_is_found_too() {
    let name = "lab_punch::a_port_that_is_led_in_is_found_too";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(6).unwrap();
    let sites = Sites::prepare(&network);
    sites.translate("masquerade fully-random", Some(OVERLAY), Unasked::Refused);
    let running = sites.start();
    let look = || Ok(running.answers().map_or_else(Seen::NotYet, Seen::Done));
    Stopwatch::start().until(LAST, "an answer from the other site", look).unwrap();
    running.come_to_speak_directly();
}
