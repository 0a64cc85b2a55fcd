//! Reachability: five kinds of NAT times five firewalls; a host inside is queried from outside each time,
//! from a cold start, and each result states the transport.
//!
//! Rules: NATs and firewalls are nft's; every combination is tried by a sensor that was just started; none
//! takes longer than [`FIRST_MAX`], and all are printed.
//! Not here: tests of each firewall alone (`lab_ladder`, `lab_proxy`).

use super::lab_ladder::{BOX, Middlebox, Running, Site, WEB, reaches, reaches_at_last, report};
use super::lab_proxy::{SQUID, Squid};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use system_tests::lab::domains::{OVERLAY, sensor};
use system_tests::lab::walls::Wall;
use system_tests::lab::{self, Daemon, Host, Stopwatch};
use system_tests::wait::Seen;

/// Longest time from the start of the sensor to its first answer outside.
const FIRST_MAX: Duration = Duration::from_secs(15);
/// How often a failed measurement is tried.
const TRIES: usize = 3;
/// Idle timeout of the firewall, in seconds.
const IDLE_SECS: u32 = 30;

/// A firewall of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NoInbound,
    OnlyWeb,
    OnlyConnect,
    NoUpgrade,
    Forgets,
}

impl Kind {
    const ALL: [Kind; 5] =
        [Kind::NoInbound, Kind::OnlyWeb, Kind::OnlyConnect, Kind::NoUpgrade, Kind::Forgets];

    fn wall(self, site: &Site) -> Wall {
        let but = Vec::new();
        match self {
            Kind::NoInbound | Kind::Forgets => Wall::NoInbound { but },
            Kind::OnlyWeb => Wall::OnlyOut { ports: vec![WEB], but },
            Kind::OnlyConnect => Wall::OnlyOut { ports: vec![SQUID], but },
            Kind::NoUpgrade => Wall::Looked { port: WEB, at: (site.between.ipv4(), BOX), but },
        }
    }

    fn rung(self) -> &'static str {
        match self {
            Kind::NoInbound | Kind::OnlyWeb | Kind::Forgets => "direct",
            Kind::OnlyConnect => "connect",
            Kind::NoUpgrade => "polling",
        }
    }
}

/// Try all firewalls behind the NATs that `translate` sets up on two hosts for the one inside.
fn table(name: &str, translate: impl Fn(&Host, &Host, &Host)) {
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(7).unwrap();
    let (five, translators) = network.hosts().split_at(5);
    let [outer, inner] = translators else { panic!("two translators") };
    let site = Site::prepare(five);
    let running = site.start_outside();
    let _box = Middlebox::start(&site.between, "web", &site.proxy);
    let _squid = Squid::start(&site.between, &site.between.folder().join("squid-log"));
    translate(outer, inner, &site.inside);
    reaches_at_last(&site.inside, &site.proxy.host, OVERLAY);
    assert!(!reaches(&site.viewer, &site.inside, OVERLAY), "it is reached from outside");
    for kind in Kind::ALL {
        kind.wall(&site).put_up(&site.inside).unwrap();
        if kind == Kind::Forgets {
            Wall::forget_idle(inner, IDLE_SECS).unwrap();
        }
        let (mut took, mut found, mut daemon) = first_answer(&site, &running, kind);
        for _ in 1..TRIES {
            if found == kind.rung() && took <= FIRST_MAX {
                break;
            }
            // The machine may have been suspended: try again from a cold start.
            report(&format!(
                "{name} {kind:?}: carried by {found} after {} ms, tried again",
                took.as_millis()
            ));
            daemon.kill().unwrap();
            (took, found, daemon) = first_answer(&site, &running, kind);
        }
        report(&format!(
            "{name} {kind:?}: carried by {found}, first answer after {} ms of {}",
            took.as_millis(),
            FIRST_MAX.as_millis()
        ));
        assert_eq!(found, kind.rung(), "{}", daemon.output());
        assert!(took <= FIRST_MAX, "{}", daemon.output());
        if kind == Kind::Forgets {
            stays(&daemon);
        }
        daemon.kill().unwrap();
        Wall::take_down(&site.inside).unwrap();
    }
}

/// Stay idle for longer than the firewall's timeout; no connection may end.
fn stays(daemon: &Daemon) {
    let ended = || daemon.figure("overlay", "disconnected_total").unwrap();
    let (before, watch) = (ended(), Stopwatch::start());
    let most = Duration::from_secs(u64::from(IDLE_SECS) + 10);
    let waited = Stopwatch::start().until(most * 2, "a time without an end", || {
        assert_eq!(ended(), before, "{}", daemon.output());
        Ok(if watch.elapsed() > most { Seen::Done(()) } else { Seen::NotYet("not over".to_owned()) })
    });
    waited.unwrap();
}

/// Start the sensor, and wait until it is queried from outside.
fn first_answer(site: &Site, running: &Running, kind: Kind) -> (Duration, String, Daemon) {
    let mut section = format!(
        "[overlay]\nvia = [{:?}]\ndirectories = [{:?}]\n",
        site.proxy.contact, site.directory.contact
    );
    if kind == Kind::OnlyConnect {
        let secret = site.inside.folder().join("corporate.secret");
        std::fs::write(&secret, "open sesame\n").unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        section.push_str(&format!(
            "[overlay.connect]\nproxy = \"{}:{SQUID}\"\nname = \"site\"\nsecret = {:?}\n",
            site.between.ipv4(),
            secret.display().to_string()
        ));
    }
    std::fs::write(site.inside.folder().join("sensor.toml"), section).unwrap();
    let mut watch = Stopwatch::start();
    let daemon = sensor(&site.inside, &[]).unwrap();
    let place = format!("/d/UT-ICL/{}", site.inside.name());
    let look = || {
        Ok(match site.ask(&place, &["events"]) {
            Ok(_) => Seen::Done(()),
            Err(error) => Seen::NotYet(format!("{error:#}")),
        })
    };
    let found = watch.until(Duration::from_secs(60), "an answer of the inside host", look);
    let output = || [&daemon, &running.proxy, &running.directory].map(Daemon::output).join("\n---\n");
    let (took, ()) = found.unwrap_or_else(|error| panic!("{kind:?}: {error:#}\n{}", output()));
    let found = site.rung(&daemon);
    (took, found, daemon)
}

/// One NAT, with nft's statement `how`; `port` of it is forwarded.
fn by(how: &'static str, port: Option<u16>) -> impl Fn(&Host, &Host, &Host) {
    move |_, inner, inside| {
        let private = Wall::private(inner, inside).unwrap();
        Wall::translate_by(how, port, private, inner, inside).unwrap();
    }
}

#[test]
fn one_that_leads_a_port_in() {
    table("lab_reach::one_that_leads_a_port_in", by("masquerade", Some(OVERLAY)));
}

#[test]
fn one_that_keeps_ports() {
    table("lab_reach::one_that_keeps_ports", by("masquerade persistent", None));
}

#[test]
fn one_that_draws_ports() {
    table("lab_reach::one_that_draws_ports", by("masquerade random", None));
}

#[test]
fn one_that_draws_ports_for_each_connection() {
    table("lab_reach::one_that_draws_ports_for_each_connection", by("masquerade fully-random", None));
}

#[test]
fn two_behind_each_other() {
    table("lab_reach::two_behind_each_other", |outer, inner, inside| {
        let between = Wall::private_within(8, outer, inner).unwrap();
        Wall::translate(between, outer, inner).unwrap();
        let private = Wall::private(inner, inside).unwrap();
        Wall::translate(private, inner, inside).unwrap();
    });
}
