//! A sensor of one domain looks another up in real directories.

use crate::service::rig::{Member, Root, SOON, directories, domain, until};
use crate::service::sensors::Sensor;
use directory::opened::Opened;
use overlay::resolve::asker::{Asker, Asking};
use overlay::resolve::{Found, Outcome, Source};
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::credential::Statement;

struct Running {
    asker: Asker,
    shutdown: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    fn start(sensor: &Sensor, state: &Path) -> Running {
        let (gate, directories) = (Arc::clone(&sensor.gate), Arc::clone(&sensor.directories));
        let (asking, asker) = Asking::open(state, gate, directories, 7).expect("readable");
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(asking.run(shutdown.clone()));
        Running { asker, shutdown, task }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic").expect("stored");
    }
}

fn found(outcome: Outcome) -> Found {
    let Outcome::Found(found) = outcome else { panic!("{outcome:?}") };
    *found
}

fn take(directory: &directory::handle::Handle, member: &Member, statement: Statement) {
    let record = statement.record.unverified().expect("a record");
    directory.state(member.key.peer(), Opened::signed(record, statement).expect("signed")).expect("taken");
}

#[tokio::test]
async fn a_domain_is_found_by_all_who_ask_and_remembered_when_every_directory_is_dead() {
    let (root, other) = (Root::new("A"), Root::new("B"));
    let [one, two] = directories(&[&root, &other]);
    let (first, second) = (one.start(&[&one]), two.start(&[&two]));
    let member = root.representative();
    take(&first.table, &member, member.statement(1, 1));
    take(&second.table, &member, member.statement(1, 2));
    let sensor = Sensor::start(&other.representative(), &[&one, &two], None);
    let state = tempfile::tempdir().expect("a folder");
    let running = Running::start(&sensor, state.path());
    assert_eq!(running.asker.last_known(&domain("A")), Outcome::Unreachable, "the control");
    until("both connected", || sensor.is_connected()).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let asker = running.asker.clone();
        asking.spawn(async move { asker.resolve(&domain("A"), SOON).await });
    }
    let mut age_secs = 0;
    while let Some(outcome) = asking.join_next().await {
        let found = found(outcome.expect("no panic"));
        assert_eq!(
            (found.primary.record.sequence, found.source),
            (2, Source::Asked(2)),
            "the higher of both"
        );
        assert!(!found.agreed && !found.primary.remaining.is_zero());
        age_secs = found.primary.age.as_secs();
    }
    first.kill().await;
    second.kill().await;
    until("the answer to be old", || {
        matches!(running.asker.last_known(&domain("A")), Outcome::Found(found) if found.primary.age.as_secs() > age_secs + 6)
    })
    .await;
    let started = overlay::clock::now();
    let old = found(running.asker.resolve(&domain("A"), std::time::Duration::from_secs(1)).await);
    assert!(overlay::clock::now().since(started).as_secs() < 3);
    assert_eq!((old.primary.record.sequence, old.source), (2, Source::Memory));
    running.stop().await;
    let again = Running::start(&sensor, state.path());
    let stored = found(again.asker.last_known(&domain("A")));
    assert_eq!(stored.primary.statement, old.primary.statement);
    assert!(stored.primary.remaining.is_zero() && stored.primary.age >= old.primary.age);
    again.stop().await;
    std::fs::write(state.path().join("domains"), b"something else").expect("written");
    let empty = Running::start(&sensor, state.path());
    assert!(empty.asker.known().is_empty() && state.path().join("domains.unreadable").exists());
}

#[tokio::test]
async fn an_unsigned_answer_of_a_directory_is_not_believed() {
    let (root, other) = (Root::new("A"), Root::new("B"));
    let [one] = directories(&[&root, &other]);
    let directory = one.start(&[&one]);
    let (member, thief) = (root.representative(), root.representative());
    // The table trusts its input; a malicious directory fills this one.
    let mut forged = member.statement(1, 1);
    forged.chain = thief.statement(1, 1).chain;
    take(&directory.table, &member, forged);
    let sensor = Sensor::start(&other.representative(), &[&one], None);
    let state = tempfile::tempdir().expect("a folder");
    let running = Running::start(&sensor, state.path());
    assert_eq!(running.asker.resolve(&domain("A"), SOON).await, Outcome::Unreachable);
    assert!(running.asker.known().is_empty(), "nothing was learnt");
    take(&directory.table, &member, member.statement(1, 2));
    let outcome = found(running.asker.resolve(&domain("A"), SOON).await);
    assert_eq!(outcome.primary.record.sequence, 2, "the control");
}
