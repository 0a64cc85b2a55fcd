//! Restart of a directory: its records are last seen, and damage does not prevent the start.

use directory::config::Config;
use directory::handle::Clock;
use directory::registry::State;
use directory::registry::outcome::Accepted;
use directory::run::Directory;
use directory::snapshot;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, HostName};
use wire::registration::{Record, SensorType};
use wire::time::{Moment, Time};

/// Both clocks of a host, set manually.
#[derive(Clone, Default)]
struct ByHand {
    running_secs: Arc<AtomicU64>,
    calendar_secs: Arc<AtomicU64>,
}

impl ByHand {
    fn set(&self, running_secs: u64, calendar_secs: u64) {
        self.running_secs.store(running_secs, Ordering::SeqCst);
        self.calendar_secs.store(calendar_secs, Ordering::SeqCst);
    }
}

impl Clock for ByHand {
    fn now(&self) -> Moment {
        Moment(Duration::from_secs(self.running_secs.load(Ordering::SeqCst)))
    }
    fn calendar(&self) -> Time {
        Time::default().plus(Duration::from_secs(self.calendar_secs.load(Ordering::SeqCst)))
    }
}

fn record(domain: &str, sequence: u64) -> Record {
    Record {
        domain: DomainName::try_from(domain).expect("a name"),
        host: HostName::try_from("n1").expect("a name"),
        port: 7741,
        sensor_type: SensorType::Representative,
        addresses: vec!["http://127.0.0.1:7741".to_owned()],
        term: 1,
        sequence,
        stated: Time::default(),
        reach: None,
    }
}

fn open(state: &Path, clock: &ByHand) -> Directory {
    Directory::open(Config::default(), state, clock.clone()).expect("opens")
}

async fn run_to_the_end(directory: Directory) {
    let shutdown = CancellationToken::new();
    shutdown.cancel();
    directory.run(shutdown).await.expect("saves at the end");
}

#[tokio::test]
async fn a_restarted_directory_knows_domains_but_calls_none_live() {
    let state = tempfile::tempdir().expect("temporary directory");
    let clock = ByHand::default();
    clock.set(1000, 50_000);
    let directory = open(state.path(), &clock);
    let handle = directory.handle();
    handle.register(record("UT-ICL", 7)).expect("accepted");
    clock.set(1002, 50_002);
    assert_eq!(handle.resolve(&record("UT-ICL", 0).domain).expect("held").state, State::Live);
    run_to_the_end(directory).await;

    // A reboot: the monotonic clock started again, the calendar did not.
    clock.set(3, 50_010);
    let directory = open(state.path(), &clock);
    let handle = directory.handle();
    let found = handle.resolve(&record("UT-ICL", 0).domain).expect("held");
    assert_eq!((found.state, found.age.as_secs()), (State::Restored, 10));
    assert_eq!(found.lease_remaining, Duration::ZERO);
    assert!(handle.register(record("UT-ICL", 6)).is_err(), "old statements are still old");
    assert_eq!(handle.register(record("UT-ICL", 8)), Ok(Accepted::Registered));
    assert_eq!(handle.resolve(&record("UT-ICL", 0).domain).expect("held").state, State::Live);
    assert_eq!(handle.counts().registered_total, 1);
}

#[tokio::test]
async fn a_damaged_snapshot_is_moved_aside_and_counted() {
    let state = tempfile::tempdir().expect("temporary directory");
    let path = state.path().join(snapshot::FILE_NAME);
    std::fs::write(&path, b"\x10\0\0\0garbage of some length").expect("written");
    let clock = ByHand::default();
    let directory = open(state.path(), &clock);
    assert_eq!(directory.unreadable_total(), 1);
    assert_eq!(directory.handle().domains(), []);
    assert!(!path.exists() && state.path().join("directory.snapshot.unreadable").exists());
    directory.handle().register(record("a", 1)).expect("accepted");
    run_to_the_end(directory).await;
    let directory = open(state.path(), &clock);
    assert_eq!((directory.unreadable_total(), directory.handle().domains().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_running_directory_saves_in_time() {
    let state = tempfile::tempdir().expect("temporary directory");
    let path = state.path().join(snapshot::FILE_NAME);
    let directory = open(state.path(), &ByHand::default());
    let handle = directory.handle();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(directory.run(shutdown.clone()));
    for sequence in 1..=3 {
        handle.register(record("a", sequence)).expect("accepted");
        // The clock is paused: this lets the task's interval pass, not real time.
        tokio::time::sleep(directory::config::SNAPSHOT_INTERVAL).await;
        let saved = || snapshot::Snapshot::read(&path).ok().flatten();
        let deadline = 10_000;
        let written = |_: &i32| {
            saved().is_some_and(|s| {
                s.kept[0].primary.as_ref().is_some_and(|kept| kept.record.sequence == sequence)
            })
        };
        let mut found = false;
        for turn in 0..deadline {
            if written(&turn) {
                found = true;
                break;
            }
            tokio::task::yield_now().await;
            std::thread::yield_now();
        }
        assert!(found, "sequence {sequence} was not saved");
    }
    shutdown.cancel();
    running.await.expect("no panic").expect("ends well");
}
