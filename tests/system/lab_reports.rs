//! Real logs, tailed on every host of a domain, arrive at its representative once each, whichever host that
//! is and however often it is killed.
//!
//! Each host's log grows and is rotated while representatives are killed with SIGKILL. At the end the store
//! of the last one is compared with what was written; and a reader that continued from its cursor throughout
//! has missed nothing.
//! Not here: how soon there is another representative (`lab_domain`), a single sensor that is killed
//! (`kill9`).

use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use system_tests::account::Account;
use system_tests::lab::domains::{Domain, agreed, sensor, settled};
use system_tests::lab::{self, Daemon, Host, Network, Stopwatch};
use system_tests::ledger::Ledger;
use system_tests::logs::{Growth, ROTATED_KEPT, Writer};
use system_tests::wait::Seen;

/// Number of hosts in the domain.
const HOSTS: u16 = 4;
/// Kills of representatives.
const KILLS: usize = 2;
/// Growth of each log: a rate that five sensors on one machine, built for debugging, can process.
const GROWTH: Growth = Growth {
    lines_per_sec: 300,
    rotate_every: Duration::from_secs(3),
    ahead_max: 20_000,
    kept: ROTATED_KEPT,
};
/// Lines that every log gets between two kills.
const LINES_BETWEEN: usize = 600;
/// Timeout for events to arrive.
const ARRIVED: Duration = Duration::from_secs(120);
/// The same if it is known that events are missing.
const ARRIVED_IN_VAIN: Duration = Duration::from_secs(8);
fn log(host: &Host) -> PathBuf {
    host.folder().join("logs/slurmctld.log")
}

/// Options that make a host's sensor follow its log, from the start.
fn options(host: &Host) -> Vec<String> {
    vec!["--tail".to_owned(), format!("{}=slurmctld", log(host).display())]
}

/// Result of a run.
struct Outcome {
    written: BTreeMap<String, usize>,
    /// Events stored by the last representative.
    stored: Account,
    /// Events received by the reader that continued throughout.
    read: Account,
    /// `domain.hosts` and other answers of each daemon.
    answers: Vec<String>,
    notes: Vec<String>,
}

struct Story {
    daemons: Vec<Daemon>,
    writers: BTreeMap<String, Writer>,
    reader: Account,
    current: String,
    notes: Vec<String>,
}

impl Story {
    fn begin(network: &Network) -> Story {
        for host in network.hosts() {
            std::fs::create_dir_all(host.folder().join("logs")).unwrap();
        }
        let domain = Domain::create("UT-ICL", network.hosts()).unwrap();
        let daemons = domain.start(&[], options).unwrap();
        let (current, _) = agreed(&daemons, None).unwrap();
        settled(&daemons).unwrap();
        // Files that are rotated before a sensor knows their log are not read.
        let writer = |host: &Host| (host.name().to_owned(), Writer::start(&log(host), GROWTH).unwrap());
        let writers = network.hosts().iter().map(writer).collect();
        Story { daemons, writers, reader: Account::default(), current, notes: Vec::new() }
    }

    /// Read until every log has this many more lines and all of them were received.
    fn grow(&mut self, lines: usize) {
        let aims: BTreeMap<String, usize> =
            self.writers.iter().map(|(host, writer)| (host.clone(), writer.written() + lines)).collect();
        let (daemons, reader, writers) = (&self.daemons, &mut self.reader, &self.writers);
        let look = || {
            // The representative is queried through the other members too.
            for daemon in daemons {
                reader.read(daemon, true)?;
            }
            let behind = |(host, aim): (&String, &usize)| {
                let out = reader.hosts.get(host).map_or(0, Ledger::count);
                writers[host].report_read(out);
                (out < *aim).then(|| format!("{host}: {out} of {aim}"))
            };
            let behind: Vec<String> = aims.iter().filter_map(behind).collect();
            Ok(if behind.is_empty() { Seen::Done(()) } else { Seen::NotYet(behind.join(", ")) })
        };
        let found = Stopwatch::start().until(ARRIVED, "events of every host", look);
        if let Err(error) = found {
            let outputs =
                daemons.iter().map(|daemon| format!("{}:\n{}", daemon.host().name(), daemon.output()));
            panic!("{error:#}\n{}", outputs.collect::<Vec<_>>().join("\n"))
        }
    }

    /// Kill the representative while logs grow; its sensor is restarted, with an empty state if `forget`.
    fn kill(&mut self, forget: bool) {
        let at = self.daemons.iter().position(|daemon| daemon.host().name() == self.current).unwrap();
        let dead = self.daemons.swap_remove(at);
        let host = dead.host().clone();
        dead.kill().unwrap();
        let (next, took) = agreed(&self.daemons, Some(&self.current)).unwrap();
        self.notes.push(format!("{next} follows {} after {} ms", self.current, took.as_millis()));
        if forget {
            std::fs::remove_dir_all(host.folder().join("sensor/sensor")).unwrap();
        }
        self.daemons.push(sensor(&host, &options(&host)).unwrap());
        agreed(&self.daemons, None).unwrap();
        settled(&self.daemons).unwrap();
        self.current = next;
    }

    fn end(mut self, patience: Duration) -> Outcome {
        let stop = |(host, writer): (String, Writer)| (host, writer.stop().unwrap());
        let written: BTreeMap<String, usize> = self.writers.into_iter().map(stop).collect();
        let all: usize = written.values().sum();
        let (daemons, reader) = (&self.daemons, &mut self.reader);
        let look = || {
            for daemon in daemons {
                reader.read(daemon, true)?;
            }
            let count_events = |daemon: &Daemon| {
                // If it does not answer for a moment, it is queried again.
                let answer = daemon.result("domain.summary", &json!({})).unwrap_or_default();
                usize::try_from(answer["events"].as_u64().unwrap_or(0)).unwrap_or(0)
            };
            let events = count_events(&daemons[0]);
            let out = reader.count();
            Ok(match events >= all && out >= all {
                true => Seen::Done(()),
                false => Seen::NotYet(format!("{events} of {all} are stored, {out} were read")),
            })
        };
        if let Err(error) = Stopwatch::start().until(patience, "all events", look) {
            self.notes.push(format!("{error:#}"));
        }
        // Between two queries a host may be silent for a moment.
        let alike = || {
            let answers: Vec<String> = daemons.iter().map(answers_of).collect();
            let is_alike = answers.iter().all(|answer| *answer == answers[0]);
            Ok(if is_alike { Seen::Done(answers) } else { Seen::NotYet(format!("{answers:#?}")) })
        };
        let answers = Stopwatch::start().until(ARRIVED, "the same answer everywhere", alike).unwrap().1;
        Outcome {
            stored: Account::stored(&daemons[0]).unwrap(),
            written,
            answers,
            read: self.reader,
            notes: self.notes,
        }
    }
}

/// The stable parts of a daemon's answers for the domain.
fn answers_of(daemon: &Daemon) -> String {
    let ask = |method: &str| daemon.result(method, &json!({ "limit": 10_000 }));
    let hosts = daemon.result("domain.hosts", &json!({})).unwrap();
    let rows = hosts["hosts"].as_array().unwrap().iter();
    let hosts: Vec<_> = rows
        .map(|row| format!("{} {} {} {}", row["host"], row["state"], row["sensor"], row["events"]))
        .collect();
    let summary = daemon.result("domain.summary", &json!({})).unwrap();
    let calls = ask("domain.calls").unwrap();
    let metrics = daemon.result("domain.metrics", &json!({ "name": "node_load1" })).unwrap();
    let of: Vec<_> =
        metrics["metrics"].as_array().unwrap().iter().map(|one| one["host"].to_string()).collect();
    let counts = (&summary["representative"], &summary["hosts_live"], &summary["events"], &summary["calls"]);
    format!("{hosts:?} {counts:?} {} {of:?}", calls["total"])
}

fn story(network: &Network, forget: bool) -> Outcome {
    let mut story = Story::begin(network);
    story.grow(LINES_BETWEEN);
    for number in 0..KILLS {
        story.kill(forget && number == 0);
        story.grow(LINES_BETWEEN);
    }
    story.end(if forget { ARRIVED_IN_VAIN } else { ARRIVED })
}

#[test]
fn every_line_arrives_once_however_often_the_representative_is_killed() {
    let name = "lab_reports::every_line_arrives_once_however_often_the_representative_is_killed";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(HOSTS).unwrap();
    let outcome = story(&network, false);
    println!("{:?}", outcome.notes);
    println!("written: {:?}; a reader saw {} events again", outcome.written, outcome.read.again);
    for (host, verdict) in outcome.stored.verdicts(&outcome.written) {
        println!("in the last store, {host}: {verdict}");
        assert!(verdict.is_clean(), "{host}: {verdict}");
    }
    for (host, verdict) in outcome.read.verdicts(&outcome.written) {
        assert!(verdict.is_clean(), "read on, {host}: {verdict}");
    }
    assert_eq!(outcome.stored.hosts.len(), usize::from(HOSTS));
    assert_eq!((outcome.stored.missed, outcome.read.missed), (0, 0));
    assert!(outcome.answers.iter().all(|answer| *answer == outcome.answers[0]), "{:#?}", outcome.answers);
}

/// The control: a representative that comes back without its state has lost events that only it had, and the
/// test detects it.
#[test]
fn a_sensor_that_forgets_is_found_out() {
    let name = "lab_reports::a_sensor_that_forgets_is_found_out";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(HOSTS).unwrap();
    let outcome = story(&network, true);
    let verdicts = outcome.stored.verdicts(&outcome.written);
    let faulty: Vec<String> = verdicts
        .iter()
        .filter(|(_, verdict)| !verdict.is_clean())
        .map(|(host, verdict)| format!("{host}: {verdict}"))
        .collect();
    println!("{:?} {faulty:?}", outcome.notes);
    assert_eq!(faulty.len(), 1, "{faulty:?}");
}
