//! A real representative registers with real directories, and revocation lists are distributed.

use crate::service::rig::{Root, Running, directories, domain, until};
use crate::service::sensors::Sensor;
use directory::opened::Opened;
use directory::registry::State;
use overlay::election::Role;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;
use wire::registration::{Coverage, Record};

fn held(directory: &Running) -> Option<Record> {
    directory.table.resolve(&domain("A")).filter(|found| found.state == State::Live).map(|found| found.record)
}

#[tokio::test]
async fn a_representative_states_its_record_to_all_directories_again_and_again() {
    let root = Root::new("A");
    let [one, two] = directories(&[&root]);
    // Separate, so that each receives it from the representative itself.
    let running = [one.start(&[&one]), two.start(&[&two])];
    let member = root.representative();
    let sensor = Sensor::start(&member, &[&one, &two], None);
    assert_eq!(sensor.directories.keys().len(), 2);
    until("its record everywhere", || running.iter().all(|one| held(one).is_some())).await;
    let record = held(&running[0]).expect("live");
    let reach = record.reach.expect("signed");
    assert_eq!(
        (reach.peer, reach.root, reach.coverage),
        (member.key.peer(), member.root, Coverage::Whole { hosts: 1 })
    );
    assert_eq!(reach.addresses, [sensor.address.into()]);
    assert_eq!(record.term, sensor.members.view().borrow().state.term.0);
    // Once in five attempts, because the machine may pause.
    let (mut took, mut sequence) = (Duration::MAX, record.sequence);
    for _ in 0..5 {
        let higher = |one: &Running| held(one).is_some_and(|held| held.sequence > sequence);
        took = took.min(until("its next statement", || running.iter().all(higher)).await);
        if took.as_secs() < 8 {
            break;
        }
        sequence = held(&running[0]).map_or(sequence, |held| held.sequence);
    }
    assert!(took.as_secs() < 8, "{took:?}");
    // A directory that starts late is notified as soon as it is reachable.
    let [_, second] = running;
    second.kill().await;
    let second = two.start(&[&two]);
    assert!(held(&second).is_none(), "the control");
    until("its record in the new one", || held(&second).is_some()).await;
}

#[tokio::test]
async fn what_a_directory_remembers_of_an_earlier_life_is_exceeded() {
    let root = Root::new("A");
    let [one] = directories(&[&root]);
    let running = one.start(&[&one]);
    let member = root.representative();
    let before = member.statement(1 << 30, 7);
    let opened = Opened::signed(before.record.unverified().expect("a record"), before).expect("signed");
    running.table.state(member.key.peer(), opened).expect("taken");
    let _sensor = Sensor::start(&member, &[&one], None);
    until("a higher term", || held(&running).is_some_and(|held| held.term == (1 << 30) + 1)).await;
}

#[tokio::test]
async fn a_second_sensor_states_nothing_and_the_next_representative_takes_over() {
    let root = Root::new("A");
    let [one] = directories(&[&root]);
    let running = one.start(&[&one]);
    let (first, second) = (root.representative(), root.representative());
    let leading = Sensor::start(&first, &[&one], None);
    until("a record", || held(&running).is_some()).await;
    let following = Sensor::start(&second, &[&one], Some(&leading));
    until("both hosts", || {
        let reach = held(&running).and_then(|held| held.reach);
        reach.is_some_and(|reach| reach.coverage == Coverage::Whole { hosts: 2 })
    })
    .await;
    // It becomes a standby once it knows the members of the domain.
    until("a standby", || following.members.view().borrow().state.role == Role::Standby).await;
    let leader = held(&running).and_then(|held| held.reach).expect("signed").peer;
    assert_eq!(leader, first.key.peer());
    leading.kill().await;
    until("the other's record", || {
        held(&running).and_then(|held| held.reach).is_some_and(|reach| reach.peer == second.key.peer())
    })
    .await;
}

#[tokio::test]
async fn a_list_of_denied_goes_from_one_sensor_through_a_directory_to_another() {
    let root = Root::new("A");
    let [one] = directories(&[&root]);
    let running = one.start(&[&one]);
    let (first, second, bad) = (root.representative(), root.representative(), root.representative());
    let leading = Sensor::start(&first, &[&one], None);
    until("a record", || held(&running).is_some()).await;
    assert!(running.table.denials(&domain("A")).is_empty(), "the control");
    leading.gate.take_denial(first.key.peer(), &root.denial(bad.key.peer())).expect("new");
    until("the list at the directory", || running.table.denials(&domain("A")).len() == 1).await;
    let other = Sensor::start(&second, &[&one], None);
    let numbers = || other.gate.decide(|gate| gate.denials().numbers(&domain("A")));
    until("the list at the other sensor", || numbers() == (1, 0) && other.path("denials").exists()).await;
}

#[tokio::test]
async fn a_sensor_that_neither_represents_nor_stands_by_visits_one_directory_and_hangs_up() {
    let root = Root::new("A");
    let [one, two] = directories(&[&root]);
    let running = [one.start(&[&one, &two]), two.start(&[&one, &two])];
    let bad = root.representative();
    let members: Vec<_> = (0..3).map(|_| root.representative()).collect();
    let leading = Sensor::start(&members[0], &[&one, &two], None);
    until("a record", || running.iter().all(|one| held(one).is_some())).await;
    let _standing_by: Vec<_> =
        members[1..].iter().map(|member| Sensor::start(member, &[&one, &two], Some(&leading))).collect();
    let covers = |hosts: u32| {
        let reach = held(&running[0]).and_then(|held| held.reach);
        reach.is_some_and(|reach| reach.coverage == Coverage::Whole { hosts })
    };
    until("the standbys", || covers(3)).await;
    leading.gate.take_denial(members[0].key.peer(), &root.denial(bad.key.peer())).expect("new");
    until("the list at both", || running.iter().all(|one| one.table.denials(&domain("A")).len() == 1)).await;
    let plain = Sensor::start(&root.representative(), &[&one, &two], Some(&leading));
    let numbers = || plain.gate.decide(|gate| gate.denials().numbers(&domain("A")));
    let visited = RefCell::new(BTreeSet::new());
    let sessions = || {
        let now: Vec<_> = plain.directories.connected().collect();
        visited.borrow_mut().extend(now.iter().copied());
        now.len()
    };
    until("the list at the plain sensor", || sessions() > 0 && numbers() == (1, 0)).await;
    until("all four", || {
        sessions();
        covers(4)
    })
    .await;
    assert_eq!(plain.members.view().borrow().state.role, Role::Member);
    until("its visit to end", || sessions() == 0).await;
    assert_eq!(visited.borrow().len(), 1, "one directory is enough");
    assert!(leading.is_connected(), "a representative stays connected");
}
