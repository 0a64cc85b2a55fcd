//! A reader that reads the domain's events from a cursor, at any member, while representatives come and go.
//!
//! Rule: each host's log grows all the time; at the end every line was received, and repeated events are
//! counted.
//! Not here: the account itself (`system_tests::account`).

use super::client::Members;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use system_tests::account::Account;
use system_tests::lab::{Daemon, Host};
use system_tests::logs::{Growth, ROTATED_KEPT, Writer};
use system_tests::random::Random;

/// Lines per second in each log.
pub(super) const LINES_PER_SEC: usize = 50;
const GROWTH: Growth = Growth {
    lines_per_sec: LINES_PER_SEC,
    rotate_every: Duration::from_secs(30),
    ahead_max: usize::MAX / 2,
    kept: ROTATED_KEPT,
};
/// Interval between two queries for events.
const READ_EACH: Duration = Duration::from_millis(250);
/// Timeout for the last lines, in queries.
const LAST_READS: usize = 240;

fn log(host: &Host) -> PathBuf {
    host.folder().join("logs/slurmctld.log")
}

/// Options that make a host's sensor follow its log, from the start.
pub(super) fn options(host: &Host) -> Vec<String> {
    vec!["--tail".to_owned(), format!("{}=slurmctld", log(host).display())]
}

/// Growing logs, and the reader.
pub(super) struct Follower {
    writers: BTreeMap<String, Writer>,
    reading: JoinHandle<Account>,
    ends: Arc<AtomicBool>,
}

impl Follower {
    /// Create the logs of these hosts, before their sensors start.
    pub(super) fn logs(hosts: &[Host]) -> BTreeMap<String, Writer> {
        let writer = |host: &Host| {
            std::fs::create_dir_all(host.folder().join("logs")).unwrap();
            (host.name().to_owned(), Writer::start(&log(host), GROWTH).unwrap())
        };
        hosts.iter().map(writer).collect()
    }

    /// Start to read, at any of `members`.
    pub(super) fn start(writers: BTreeMap<String, Writer>, members: Members, seed: u64) -> Follower {
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let mut random = Random::new(seed);
        let reading = std::thread::spawn(move || {
            let mut account = Account::default();
            while !is_over.load(Ordering::Relaxed) {
                if let Some((host, address)) = members.one(&mut random) {
                    account.read_by(|params| host.ask(address, "domain.events", params), true).unwrap();
                }
                std::thread::sleep(READ_EACH);
            }
            account
        });
        Follower { writers, reading, ends }
    }

    /// Stop the logs and read to their ends at `member`; returns the number of lines written on each host,
    /// and the account.
    pub(super) fn end(self, member: &Daemon) -> (BTreeMap<String, usize>, Account) {
        let stop = |(host, writer): (String, Writer)| (host, writer.stop().unwrap());
        let written: BTreeMap<String, usize> = self.writers.into_iter().map(stop).collect();
        self.ends.store(true, Ordering::Relaxed);
        let mut account = self.reading.join().unwrap();
        let all: usize = written.values().sum();
        for _ in 0..LAST_READS {
            account.read(member, true).unwrap();
            if account.count() >= all {
                break;
            }
            std::thread::sleep(READ_EACH);
        }
        (written, account)
    }
}
