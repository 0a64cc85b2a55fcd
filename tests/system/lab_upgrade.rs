//! Two adjacent versions in one domain: half of the hosts run the previous program, which `VISPERF_PREVIOUS`
//! names.
//!
//! Events of all hosts reach the representative once, whichever version represents the domain; every host
//! answers for every other; the role passes from one version to the other and back. Then the hosts of the
//! previous version are upgraded in their state folders, and rolled back.
//! Not here: stored files of older formats (`formats`), the package (`tests/guest`).

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system_tests::account::Account;
use system_tests::lab::domains::{agreed, sensor_by, settled, state, visperf_by};
use system_tests::lab::{self, Daemon, Host, Network, Stopwatch};
use system_tests::ledger::Ledger;
use system_tests::wait::Seen;
use system_tests::{logs, program};

/// Number of hosts in the domain; initially every second one runs the previous version.
const HOSTS: u16 = 4;
/// Lines that each log gets at each step.
const LINES: usize = 50;
/// Timeout for events to arrive.
const ARRIVED: Duration = Duration::from_secs(120);

/// Version of the program on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// The version under test.
    Current,
    /// The previous version.
    Previous,
}

struct Story {
    programs: [PathBuf; 2],
    versions: BTreeMap<String, Version>,
    daemons: Vec<Daemon>,
    written: BTreeMap<String, usize>,
    reader: Account,
    /// Key of each host's sensor, which stays the same with its state folder.
    keys: BTreeMap<String, Value>,
}

fn log(host: &Host) -> PathBuf {
    host.folder().join("slurmctld.log")
}

impl Story {
    /// Create a domain by the current version; half of the hosts join by the previous one.
    fn begin(network: &Network) -> Story {
        let programs = [program::visperf().unwrap().to_owned(), program::previous().unwrap()];
        let kinds = [Version::Current, Version::Previous].into_iter().cycle();
        let names = network.hosts().iter().map(|host| host.name().to_owned());
        let (daemons, written, keys) = Default::default();
        let versions = names.zip(kinds).collect();
        let mut story = Story { programs, versions, daemons, written, reader: Account::default(), keys };
        let first = &network.hosts()[0];
        let create = ["domain", "create", "UT-ICL", "--host", first.name(), "--state", &state(first)];
        visperf_by(story.program(first), first, &create).unwrap();
        story.start(first);
        let words = ["token", "create", "--uses", "10", "--json", "--state", &state(first)];
        let printed: Value =
            serde_json::from_str(&visperf_by(story.program(first), first, &words).unwrap()).unwrap();
        let token = printed["token"].as_str().unwrap();
        for host in &network.hosts()[1..] {
            let join = ["join", token, "--host", host.name(), "--state", &state(host)];
            visperf_by(story.program(host), host, &join).unwrap();
            story.start(host);
        }
        story
    }

    fn program(&self, host: &Host) -> &Path {
        match self.versions[host.name()] {
            Version::Current => &self.programs[0],
            Version::Previous => &self.programs[1],
        }
    }

    /// Start a host's sensor, in its existing state folder.
    fn start(&mut self, host: &Host) {
        if !log(host).exists() {
            std::fs::write(log(host), "").unwrap();
        }
        let options = ["--tail".to_owned(), format!("{}=slurmctld", log(host).display())];
        self.daemons.push(sensor_by(self.program(host), host, &options).unwrap());
    }

    fn take(&mut self, host: &str) -> Daemon {
        let at = self.daemons.iter().position(|daemon| daemon.host().name() == host).unwrap();
        self.daemons.swap_remove(at)
    }

    /// Stop a host's sensor and start it by another version, in the same state folder.
    #[allow(clippy::print_stdout)] // The measurements of a test are read in its output.
    fn change(&mut self, host: &str, to: Version) {
        let daemon = self.take(host);
        let at = daemon.host().clone();
        assert!(daemon.stop().unwrap().success());
        self.versions.insert(host.to_owned(), to);
        self.start(&at);
        println!("{host} runs {to:?}");
    }

    /// Check that all agree, every log grows, every event arrives, and each host answers for each other;
    /// returns the representative.
    #[allow(clippy::print_stdout)] // The measurements of a test are read in its output.
    fn check(&mut self) -> (String, Version) {
        let (current, _) = agreed(&self.daemons, None).unwrap();
        settled(&self.daemons).unwrap();
        self.grow();
        self.ask_all();
        let kind = self.versions[&current];
        println!(
            "{current} represents the domain with {kind:?}: all events arrived, all answer for each other"
        );
        (current, kind)
    }

    fn grow(&mut self) {
        for daemon in &self.daemons {
            let host = daemon.host();
            let written = self.written.entry(host.name().to_owned()).or_default();
            let text: String = (*written + 1..=*written + LINES).map(logs::line).collect();
            let mut file = std::fs::OpenOptions::new().append(true).open(log(host)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            *written += LINES;
        }
        let (daemons, reader, written) = (&self.daemons, &mut self.reader, &self.written);
        let look = || {
            for daemon in daemons {
                reader.read(daemon, true)?;
            }
            let out = |host: &String| reader.hosts.get(host).map_or(0, Ledger::count);
            let behind = written.iter().filter(|(host, lines)| out(host) < **lines);
            let behind: Vec<String> =
                behind.map(|(host, lines)| format!("{host}: {} of {lines}", out(host))).collect();
            Ok(if behind.is_empty() { Seen::Done(()) } else { Seen::NotYet(behind.join(", ")) })
        };
        if let Err(error) = Stopwatch::start().until(ARRIVED, "events of every host", look) {
            let output =
                daemons.iter().map(|daemon| format!("{}:\n{}", daemon.host().name(), daemon.output()));
            panic!("{error:#}\n{}", output.collect::<Vec<_>>().join("\n"))
        }
    }

    /// Check that each host's answers are the same wherever it is queried, and that each sensor has its
    /// original key.
    fn ask_all(&mut self) {
        for far in &self.daemons {
            let name = far.host().name();
            let own = far.result("sensor.files", &json!({})).unwrap();
            let path = |files: &Value| files["files"][0]["path"].clone();
            assert!(path(&own).is_string(), "{own}");
            for daemon in &self.daemons {
                let there = daemon.result("sensor.files", &json!({ "host": name })).unwrap();
                assert_eq!(path(&there), path(&own), "{name} asked at {}", daemon.host().name());
                let events = daemon.result("sensor.events", &json!({ "host": name, "limit": 1 })).unwrap();
                assert_eq!(events["events"][0]["source"]["host"], name, "{events}");
            }
        }
        let hosts = self.daemons[0].result("domain.hosts", &json!({})).unwrap();
        for row in hosts["hosts"].as_array().unwrap() {
            let host = row["host"].as_str().unwrap().to_owned();
            let key = self.keys.entry(host).or_insert_with(|| row["sensor"].clone());
            assert_eq!(*key, row["sensor"], "another sensor: {row}");
        }
    }

    /// Kill all daemons of the representative's version, itself last, so that the other version takes over;
    /// then restart them.
    #[allow(clippy::print_stdout)] // The measurements of a test are read in its output.
    fn hand_over(&mut self) -> Version {
        let (current, kind) = self.check();
        let of_kind = |name: &String| self.versions[name] == kind && *name != current;
        let mut ended: Vec<String> = self.versions.keys().filter(|name| of_kind(name)).cloned().collect();
        ended.push(current.clone());
        let dead: Vec<Host> = ended
            .iter()
            .map(|name| {
                let daemon = self.take(name);
                let host = daemon.host().clone();
                daemon.kill().unwrap();
                host
            })
            .collect();
        let (next, took) = agreed(&self.daemons, Some(&current)).unwrap();
        let follows = self.versions[&next];
        assert_ne!(follows, kind);
        println!("{next} ({follows:?}) follows {current} ({kind:?}) after {} ms", took.as_millis());
        for host in &dead {
            self.start(host);
        }
        let (after, _) = self.check();
        assert_eq!(after, next, "those that come back do not take the domain");
        follows
    }

    #[allow(clippy::print_stdout)] // The measurements of a test are read in its output.
    fn end(mut self) {
        self.check();
        let stored = Account::stored(&self.daemons[0]).unwrap();
        assert_eq!(stored.missed, 0);
        for (host, verdict) in stored.verdicts(&self.written) {
            println!("in the last store, {host}: {verdict}");
            assert!(verdict.is_clean(), "{host}: {verdict}");
        }
        for daemon in self.daemons {
            let output = daemon.output();
            assert!(!output.contains("cannot be read") && !output.contains("panicked"), "{output}");
            assert!(daemon.stop().unwrap().success());
        }
    }
}

#[test]
fn two_adjacent_versions_share_a_domain_through_fail_over_upgrade_and_roll_back() {
    let name = "lab_upgrade::two_adjacent_versions_share_a_domain_through_fail_over_upgrade_and_roll_back";
    let Some(lab) = lab::enter(name).unwrap() else { return };
    let network = lab.network(HOSTS).unwrap();
    let mut story = Story::begin(&network);
    let first = story.hand_over();
    let second = story.hand_over();
    assert_ne!(first, second, "the domain went from one version to the other and back");

    let previous = ["h2", "h4"];
    for host in previous {
        story.change(host, Version::Current);
        story.check();
    }
    // Roll back, also the issuer, whose state folder the current version created.
    for host in ["h4", "h1", "h2"] {
        story.change(host, Version::Previous);
        story.check();
    }
    story.end();
}
