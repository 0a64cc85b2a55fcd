//! Directories on loopback: a statement to one is replicated to all, and a refused one to none.

mod asker;
mod registrar;
mod rig;
mod sensors;

use directory::registry::State;
use overlay::net::handle::AskError;
use rig::{Client, Root, Running, directories, domain, until};
use std::time::Duration;
use wire::replication::{Answer, Number, Question, ReplicaQuestion, Resolved, Stated};

/// Time limit for a statement to reach every directory.
const EVERYWHERE_WITHIN: Duration = Duration::from_secs(1);

/// Number of measurements if a busy machine disturbs one.
const TRIES: u64 = 5;
/// Longer than the minimum interval between two statements of one domain.
const BETWEEN_STATEMENTS: Duration = Duration::from_millis(600);

fn number_of(resolved: &Resolved) -> u64 {
    let Resolved::Known { primary, .. } = resolved else { panic!("{resolved:?}") };
    primary.statement.record.unverified().expect("a record").sequence
}

async fn linked(running: &[&Running], probe: &Client, statement: wire::credential::Statement) {
    assert_eq!(probe.state(statement).await, Stated::Primary);
    until("all directories to hear each other", || running.iter().all(|one| one.knows("A"))).await;
}

#[tokio::test]
async fn a_statement_given_to_one_of_two_is_resolved_at_the_other_within_a_second() {
    let root = Root::new("A");
    let [one, two] = directories(&[&root]);
    let running = [one.start(&[&one, &two]), two.start(&[&one, &two])];
    let member = root.representative();
    let near = member.start(&one).await.ready().await;
    let far = root.viewer().start(&two).await.ready().await;
    linked(&[&running[0], &running[1]], &near, member.statement(1, 1)).await;
    let mut took = Duration::MAX;
    for sequence in 2..2 + TRIES {
        tokio::time::sleep(BETWEEN_STATEMENTS).await;
        let started = overlay::clock::now();
        assert_eq!(near.state(member.statement(1, sequence)).await, Stated::Primary);
        while number_of(&far.resolve("A").await) < sequence {}
        took = took.min(overlay::clock::now().since(started));
        if took < EVERYWHERE_WITHIN {
            break;
        }
    }
    assert!(took < EVERYWHERE_WITHIN, "{took:?}");
    assert_eq!(running[1].table.resolve(&domain("A")).expect("known").state, State::Live);
}

#[tokio::test]
async fn of_three_all_know_it_within_a_second_and_one_that_restarts_learns_all() {
    let (root, other) = (Root::new("A"), Root::new("B"));
    let [one, two, mut three] = directories(&[&root, &other]);
    let all = [&one, &two, &three];
    let (first, second, third) = (one.start(&all), two.start(&all), three.start(&all));
    let (member, neighbour) = (root.representative(), other.representative());
    let near = member.start(&one).await.ready().await;
    let replica_peers = neighbour.start(&two).await.ready().await;
    linked(&[&first, &second, &third], &near, member.statement(1, 1)).await;
    let mut took = Duration::MAX;
    for sequence in 1..=TRIES {
        tokio::time::sleep(BETWEEN_STATEMENTS).await;
        assert_eq!(replica_peers.state(neighbour.statement(1, sequence)).await, Stated::Primary);
        let has_it = |one: &&Running| {
            one.table.resolve(&domain("B")).is_some_and(|found| found.record.sequence >= sequence)
        };
        took = took.min(until("B everywhere", || [&first, &second, &third].iter().all(has_it)).await);
        if took < EVERYWHERE_WITHIN {
            break;
        }
    }
    assert!(took < EVERYWHERE_WITHIN, "{took:?}");

    third.kill().await;
    // With an empty disk, so that it can learn only from the others.
    three.state = tempfile::tempdir().expect("a folder");
    three.admit(&[&root, &other]);
    assert_eq!(near.state(member.statement(1, 2)).await, Stated::Primary);
    let third = three.start(&[&one, &two, &three]);
    assert!(!third.knows("A"), "the control");
    let asker = root.viewer().start(&three).await.ready().await;
    let early = asker.resolve("A").await;
    assert!(matches!(early, Resolved::NotYet | Resolved::Known { .. }), "never unknown: {early:?}");
    // It may first learn the statement before the newest, from a directory that has only that.
    let has_newest = || third.table.resolve(&domain("A")).is_some_and(|found| found.record.sequence >= 2);
    until("all learnt again", || has_newest() && third.knows("B")).await;
    assert_eq!(number_of(&asker.resolve("A").await), 2);
}

#[tokio::test]
async fn who_is_not_admitted_is_refused_and_nothing_is_learnt() {
    let (root, foreign, namesake) = (Root::new("A"), Root::new("B"), Root::new("A"));
    let [one] = directories(&[&root]);
    let running = one.start(&[&one]);
    let mut stranger = root.representative();
    stranger.chain = None;
    for (mut client, expected) in [
        (stranger.start(&one).await, "certificate"),
        (foreign.representative().start(&one).await, "B"),
        (namesake.representative().start(&one).await, "root"),
    ] {
        let reason = client.unwelcome().await;
        assert!(reason.contains(expected), "{reason}");
        let outcome = client.ask(&Question::Resolve(domain("A"))).await;
        assert!(matches!(outcome, Err(AskError::Open { .. })), "{outcome:?}");
    }
    assert!(running.table.domains().is_empty());
    let member = root.representative();
    let control = member.start(&one).await.ready().await;
    assert_eq!(control.state(member.statement(1, 1)).await, Stated::Primary);
    assert!(running.knows("A"));
}

#[tokio::test]
async fn what_one_may_not_say_is_refused_and_nothing_is_learnt() {
    let (root, other) = (Root::new("A"), Root::new("B"));
    let [one] = directories(&[&root, &other]);
    let running = one.start(&[&one]);
    let (member, neighbour, viewer) = (root.representative(), other.representative(), root.viewer());
    let near = member.start(&one).await.ready().await;
    let second = root.representative();
    let check = |stated: Stated, expected: &str| {
        assert!(matches!(&stated, Stated::Refused(reason) if reason.contains(expected)), "{stated:?}");
        assert!(running.table.domains().is_empty(), "{expected}");
    };
    // Correctly signed, but sent by another peer: of its own domain, and of another.
    check(near.state(second.statement(1, 1)).await, "from its signer alone");
    check(near.state(neighbour.statement(1, 1)).await, "from its signer alone");
    // Signed by another key than the chain's.
    let mut forged = member.statement(1, 1);
    forged.record = second.statement(1, 1).record;
    check(near.state(forged).await, "certificate");
    let looking = viewer.start(&one).await.ready().await;
    for question in [
        Question::State(Box::new(viewer.statement(1, 1))),
        Question::State(Box::new(member.statement(1, 1))),
        Question::Leave(Box::new(member.farewell(1, 1))),
    ] {
        let outcome = looking.ask(&question).await;
        assert!(
            matches!(&outcome, Err(AskError::Refused { reason, .. }) if reason.contains("representative")),
            "{outcome:?}"
        );
    }
    let fetch = Question::Replica(ReplicaQuestion::Fetch(vec![domain("A")]));
    let outcome = near.ask(&fetch).await;
    assert!(
        matches!(&outcome, Err(AskError::Refused { reason, .. }) if reason.contains("directory")),
        "{outcome:?}"
    );
    assert!(running.table.domains().is_empty());
    assert_eq!(looking.resolve("A").await, Resolved::NotYet, "a viewer may ask");
    assert_eq!(near.state(member.statement(1, 1)).await, Stated::Primary, "the control");
    assert!(matches!(looking.resolve("A").await, Resolved::Known { .. }));
}

#[tokio::test]
async fn a_leave_and_a_list_of_denied_reach_every_directory() {
    let root = Root::new("A");
    let [one, two] = directories(&[&root]);
    let running = [one.start(&[&one, &two]), two.start(&[&one, &two])];
    let (member, bad) = (root.representative(), root.representative());
    let near = member.start(&one).await.ready().await;
    let far = bad.start(&two).await.ready().await;
    linked(&[&running[0], &running[1]], &near, member.statement(2, 1)).await;
    assert!(matches!(far.state(bad.statement(1, 1)).await, Stated::Partial { .. }), "before it is denied");
    let outcome = near.ask(&Question::Deny(Box::new(root.denial(bad.key.peer())))).await.expect("answered");
    assert_eq!(outcome, Answer::Stated(Stated::Taken));
    until("the list at the other", || running[1].table.denials(&domain("A")).len() == 1).await;
    let outcome = far.ask(&Question::State(Box::new(bad.statement(1, 2)))).await;
    assert!(outcome.is_err(), "revoked at the directory that received no order itself: {outcome:?}");

    let outcome = near.ask(&Question::Leave(Box::new(member.farewell(2, 2)))).await.expect("answered");
    assert_eq!(outcome, Answer::Stated(Stated::Primary));
    until("the leave at the other", || !running[1].knows("A")).await;
    let expected = Number { term: 2, peer: member.key.peer(), sequence: 2 };
    let looking = root.viewer().start(&two).await.ready().await;
    let outcome = looking.resolve("A").await;
    assert!(matches!(outcome, Resolved::Left { number, .. } if number == expected), "{outcome:?}");
}

#[tokio::test]
async fn the_gate_follows_the_list_of_admitted_domains() {
    let (root, late) = (Root::new("A"), Root::new("B"));
    let [one] = directories(&[&root]);
    let running = one.start(&[&one]);
    let newcomer = late.representative();
    newcomer.start(&one).await.unwelcome().await;
    one.admit(&[&late]);
    until("the list to be read again", || running.table.admitted(None, 9).len() == 1).await;
    let mut client = newcomer.start(&one).await.ready().await;
    assert_eq!(client.state(newcomer.statement(1, 1)).await, Stated::Primary);
    let gone = root.representative();
    let reason = gone.start(&one).await.unwelcome().await;
    assert!(reason.contains('A'), "{reason}");
    // Existing connections are closed, too.
    one.admit(&[&root]);
    until("the domain to be forgotten", || !running.knows("B")).await;
    let outcome = client.ask(&Question::State(Box::new(newcomer.statement(1, 2)))).await;
    assert!(matches!(outcome, Err(_) | Ok(Answer::Stated(Stated::Refused(_)))), "{outcome:?}");
    let resolve = Question::Resolve(domain("B"));
    // The gatekeeper follows shortly after the table.
    while client.ask(&resolve).await.is_ok() {}
    client = gone.start(&one).await.ready().await;
    assert_eq!(client.resolve("B").await, Resolved::NotYet);
}
