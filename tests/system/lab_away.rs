//! A host that cannot reach its domain for a long time: its log keeps growing, is rotated and deleted, and
//! its events arrive once each when the host is back.
//!
//! `VISPERF_AWAY_SECS` sets how long it is away, 30 by default; the log is rotated twenty times meanwhile.
//! Not here: representatives that die (`lab_reports`), events beyond the disk budget (`sensor/tests/report`).

use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use system_tests::account::Account;
use system_tests::lab::domains::{Domain, agreed, sensor, settled};
use system_tests::lab::{self, Host, Network, Stopwatch};
use system_tests::ledger::{Ledger, Verdict};
use system_tests::logs::{Growth, Writer};
use system_tests::wait::Seen;

/// Rotations while it is away.
const ROTATIONS: u32 = 20;
/// Number of rotated files: a file that the sensor has not read by the fifth rotation is gone.
const KEPT: usize = 4;
/// Lines before and after.
const LINES: usize = 600;
/// Timeout for events to arrive.
const ARRIVED: Duration = Duration::from_secs(120);
/// The same if it is known that events are missing.
const ARRIVED_IN_VAIN: Duration = Duration::from_secs(8);

fn away() -> Duration {
    let secs =
        std::env::var("VISPERF_AWAY_SECS").map_or(30, |secs| secs.parse().expect("a number of seconds"));
    Duration::from_secs(secs)
}

fn log(host: &Host) -> PathBuf {
    host.folder().join("logs/slurmctld.log")
}

/// Run the scenario; the host that is away loses its state if `forget`. Returns the verdict on its lines.
#[allow(clippy::print_stdout)] // Prints the measured figures.
fn story(network: &Network, forget: bool) -> Verdict {
    let domain = Domain::create("UT-ICL", network.hosts()).unwrap();
    let mut daemons = domain.start(&[], |_| Vec::new()).unwrap();
    let (representative, _) = agreed(&daemons, None).unwrap();
    settled(&daemons).unwrap();
    let at = daemons.iter().position(|daemon| daemon.host().name() != representative).unwrap();
    let host = daemons[at].host().clone();
    daemons.swap_remove(at).stop().unwrap();
    std::fs::create_dir_all(host.folder().join("logs")).unwrap();
    let growth = Growth {
        lines_per_sec: 300,
        rotate_every: away() / ROTATIONS,
        ahead_max: usize::MAX / 2,
        kept: KEPT,
    };
    let writer = Writer::start(&log(&host), growth).unwrap();
    let options = || vec!["--tail".to_owned(), format!("{}=slurmctld", log(&host).display())];
    let mut member = sensor(&host, &options()).unwrap();
    arrive(&daemons[0], &host, LINES, ARRIVED).unwrap();

    let others: Vec<&str> =
        network.hosts().iter().map(Host::name).filter(|other| *other != host.name()).collect();
    network.partition(&[&[host.name()], &others]).unwrap();
    let (start, before) = (Stopwatch::start(), writer.written());
    let aim = before + usize::try_from(away().as_secs()).unwrap() * growth.lines_per_sec;
    let look = || {
        let is_over = start.elapsed() >= away() && writer.written() >= aim;
        Ok(if is_over {
            Seen::Done(())
        } else {
            Seen::NotYet(format!("{} of {aim} lines", writer.written()))
        })
    };
    Stopwatch::start().until(away() * 4, "the time away", look).unwrap();
    if forget {
        member.kill().unwrap();
        std::fs::remove_dir_all(host.folder().join("sensor/sensor")).unwrap();
        member = sensor(&host, &options()).unwrap();
    }
    let there = Account::stored(&daemons[0]).unwrap().hosts.get(host.name()).map_or(0, Ledger::count);
    println!("{} lines were written while away; the domain knew {there} then", writer.written() - before);
    assert!(there < aim, "it was away");

    network.heal_all().unwrap();
    let written = writer.stop().unwrap();
    let arrived = arrive(&daemons[0], &host, written, if forget { ARRIVED_IN_VAIN } else { ARRIVED });
    println!("{written} lines in all; back after {:.1} s: {arrived:?}", start.elapsed().as_secs_f64());
    let stored = Account::stored(&daemons[0]).unwrap();
    assert_eq!(stored.missed, 0);
    member.stop().unwrap();
    stored.hosts.get(host.name()).map_or_else(Ledger::default, Clone::clone).verdict(written)
}

/// Wait until the domain has this many events of a host.
fn arrive(asked: &lab::Daemon, host: &Host, lines: usize, patience: Duration) -> anyhow::Result<()> {
    let look = || {
        let hosts = match asked.result("domain.hosts", &json!({})) {
            Ok(hosts) => hosts,
            Err(error) => return Ok(Seen::NotYet(error.to_string())),
        };
        let rows = hosts["hosts"].as_array().into_iter().flatten();
        let of = rows.filter(|row| row["host"] == host.name()).find_map(|row| row["events"].as_u64());
        let events = usize::try_from(of.unwrap_or(0))?;
        Ok(if events >= lines { Seen::Done(()) } else { Seen::NotYet(format!("{events} of {lines} events")) })
    };
    Stopwatch::start().until(patience, "events of the host", look).map(drop)
}

#[test]
fn what_a_host_reported_while_it_was_away_is_there_once_when_it_is_back() {
    let name = "lab_away::what_a_host_reported_while_it_was_away_is_there_once_when_it_is_back";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let verdict = story(&lab.network(4).unwrap(), false);
    assert!(verdict.is_clean(), "{verdict}");
}

/// The control: a host that loses its state while it is away has lost what was deleted meanwhile, and the
/// test detects it.
#[test]
fn a_host_that_forgets_what_it_reported_is_found_out() {
    let name = "lab_away::a_host_that_forgets_what_it_reported_is_found_out";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let verdict = story(&lab.network(4).unwrap(), true);
    assert!(!verdict.lost.is_empty(), "{verdict}");
}
