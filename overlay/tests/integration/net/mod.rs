//! Real swarms on loopback: greeting, questions, lasting streams, peers that come and go.

mod daemons;
mod encryption;
mod principal;
mod punching;
mod questions;
mod stranger;
mod visitors;

use daemons::{Daemon, Rules};
use overlay::contacts::{Contacts, Keep};
use overlay::net::connected_peers::STREAMS_MAX;
use overlay::net::event_loop::{CONNECTIONS_OF_PEER_MAX, Event, Question};
use overlay::net::frames::{self, Reader};
use overlay::net::handle::{Answer, AskError};
use overlay::net::protocol::Protocol;
use overlay::net::redial::Target;
use std::sync::Arc;
use std::time::Duration;
use stranger::Stranger;

/// Far longer than anything takes: these tests do not measure time.
const DEADLINE: Duration = Duration::from_secs(60);

fn question(event: Event) -> Option<Question> {
    if let Event::Question(question) = event { Some(question) } else { None }
}

#[tokio::test]
async fn two_that_know_each_other_ask_and_answer() {
    let mut one = Daemon::start(1, Rules::welcoming(&[2])).await;
    let mut other = Daemon::start(2, Rules::welcoming(&[1])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    other.answer_queries(|question| Answer::Done([b"you said ", question].concat()));
    let answer = one.handle.ask(other.key(), Protocol::Query, b"hello", DEADLINE).await;
    assert_eq!(answer, Ok(b"you said hello".to_vec()));
    let answer = one.handle.ask(one.key(), Protocol::Query, b"hello", DEADLINE).await;
    assert!(matches!(answer, Err(AskError::Open { .. })), "no peer is connected to itself: {answer:?}");
}

#[tokio::test]
async fn a_refused_peer_learns_nothing_but_the_reason() {
    let other = Daemon::start(4, Rules::welcoming(&[])).await;
    let mut one = Daemon::start(3, Rules::welcoming(&[4])).await;
    one.dial(&other).await;
    let reason = one.unwelcome(&other).await;
    assert_eq!(reason, "not on the list of this test");
    let answer = one.handle.ask(other.key(), Protocol::Query, b"hello", DEADLINE).await;
    assert!(matches!(answer, Err(AskError::Open { .. })), "{answer:?}");
    assert!(other.handle.figures().hellos_refused_total.get() >= 1);
    assert!(other.handle.principal(one.key()).is_none());
}

#[tokio::test]
async fn of_many_questions_at_once_none_is_lost_without_a_word() {
    let mut one = Daemon::start(5, Rules::welcoming(&[6])).await;
    let mut other = Daemon::start(6, Rules::welcoming(&[5])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    other.answer_queries(|question| Answer::Done(question.to_vec()));
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..60_u32 {
        let (handle, peer) = (one.handle.clone(), other.key());
        asked.spawn(async move {
            let question = number.to_le_bytes();
            (number, handle.ask(peer, Protocol::Query, &question, DEADLINE).await)
        });
    }
    let mut answered = 0;
    while let Some(result) = asked.join_next().await {
        let (number, answer) = result.expect("no panic");
        assert_eq!(answer, Ok(number.to_le_bytes().to_vec()));
        answered += 1;
    }
    assert_eq!(answered, 60);
}

#[tokio::test]
async fn more_streams_than_a_peer_may_have_are_refused_and_counted() {
    let mut one = Daemon::start(7, Rules::welcoming(&[8])).await;
    let mut other = Daemon::start(8, Rules::welcoming(&[7])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (handle, peer) = (one.handle.clone(), other.key());
        asked.spawn(async move { handle.ask(peer, Protocol::Query, b"?", DEADLINE).await });
    }
    // The daemon holds this many questions before the first is answered.
    let mut held = Vec::new();
    while held.len() < STREAMS_MAX {
        held.push(other.next_event(question).await);
    }
    let mut broken = 0;
    while broken < 200 - STREAMS_MAX {
        match asked.join_next().await.expect("all are there").expect("no panic") {
            Err(AskError::Broken { .. } | AskError::Open { .. }) => broken += 1,
            unexpected => panic!("{unexpected:?}"),
        }
    }
    assert_eq!(other.handle.figures().streams_refused_total.get() as usize, broken);
    for question in held {
        let _ = question.reply.send(Answer::Done(b"yes".to_vec()));
    }
    while let Some(answer) = asked.join_next().await {
        assert_eq!(answer.expect("no panic"), Ok(b"yes".to_vec()));
    }
}

#[tokio::test]
async fn a_lasting_stream_carries_frames_both_ways() {
    let mut one = Daemon::start(9, Rules::welcoming(&[10])).await;
    let mut other = Daemon::start(10, Rules::welcoming(&[9])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    let mut near = one.handle.open(other.key(), Protocol::Report, DEADLINE).await.expect("welcome");
    let mut far = other.stream(Protocol::Report).await;
    for number in 0..1000_u32 {
        frames::write(&mut near, &number, 100).await.expect("written");
    }
    let (half, mut back) = tokio::io::split(&mut far);
    let mut reader = Reader::new(half, 100);
    for number in 0..1000_u32 {
        assert_eq!(reader.next::<u32>().await.expect("whole"), Some(number));
    }
    frames::write(&mut back, &"enough", 100).await.expect("written");
    assert_eq!(Reader::new(near, 100).next::<String>().await.expect("whole").as_deref(), Some("enough"));
}

/// A reader would otherwise wait for ever, like a representative for a revoked member.
#[tokio::test]
async fn a_stream_ends_at_both_sides_when_one_closes_the_connection() {
    let mut one = Daemon::start(60, Rules::welcoming(&[61])).await;
    let mut other = Daemon::start(61, Rules::welcoming(&[60])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    let mut near = one.handle.open(other.key(), Protocol::Report, DEADLINE).await.expect("welcome");
    let far = other.stream(Protocol::Report).await;
    frames::write(&mut near, &7_u32, 100).await.expect("written");
    let (mut far, mut near) = (Reader::new(far, 100), Reader::new(near, 100));
    assert_eq!(far.next::<u32>().await.expect("whole"), Some(7));
    // Nothing else wakes this task: a task that is woken for another reason would find the end by itself.
    let waiting = tokio::spawn(async move { far.next::<u32>().await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    other.handle.close(one.key()).await;
    let ended = tokio::time::timeout(DEADLINE, waiting).await.expect("it ends where it was closed");
    let ended = ended.expect("no panic");
    assert!(!matches!(ended, Ok(Some(_))), "{ended:?}");
    let ended = tokio::time::timeout(DEADLINE, near.next::<u32>()).await.expect("it ends at the other side");
    assert!(!matches!(ended, Ok(Some(_))), "{ended:?}");
}

#[tokio::test]
async fn a_daemon_that_comes_back_is_found_again() {
    let mut one = Daemon::start(11, Rules::welcoming(&[12])).await;
    let other = Daemon::start(12, Rules::welcoming(&[11])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    let address = other.address();
    other.stop().await;
    let gone = one.next_event(|event| matches!(event, Event::Gone(_)).then_some(())).await;
    assert_eq!(gone, ());
    let mut other = Daemon::start_at(12, address, Rules::welcoming(&[11])).await;
    one.ready(&other).await;
    other.ready(&one).await;
}

#[tokio::test]
async fn a_port_that_another_program_uses_at_another_address_hinders_no_dialling() {
    let elsewhere = std::net::TcpListener::bind("127.0.0.2:0").expect("an address of loopback");
    let port = elsewhere.local_addr().expect("bound").port();
    let listen = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let one = Daemon::start_at(41, listen, Rules::welcoming(&[42]));
    let (mut one, mut other) = (one.await, Daemon::start(42, Rules::welcoming(&[41])).await);
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
}

#[tokio::test]
async fn a_seed_leads_to_the_peer_that_answers_and_never_to_oneself() {
    let mut one = Daemon::start(13, Rules::welcoming(&[14])).await;
    let mut other = Daemon::start(14, Rules::welcoming(&[13])).await;
    for address in [one.address(), other.address()] {
        let endpoint = address.into();
        one.handle.keep(Target::Seed(address.into()), vec![endpoint]).await;
    }
    one.ready(&other).await;
    other.ready(&one).await;
    assert_eq!(one.handle.ready().len(), 1);
}

#[tokio::test]
async fn whose_certificate_no_longer_holds_is_cut_off() {
    let rules = Rules::welcoming(&[15]);
    let mut one = Daemon::start(15, Rules::welcoming(&[16])).await;
    let mut other = Daemon::start(16, rules.clone()).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    rules.revoke(one.key());
    let answer = one.handle.ask(other.key(), Protocol::Query, b"?", DEADLINE).await;
    assert!(
        matches!(&answer, Err(AskError::Refused { reason, .. }) if reason == "revoked by this test")
            || matches!(answer, Err(AskError::Open { .. } | AskError::Broken { .. })),
        "{answer:?}"
    );
    other.next_event(|event| matches!(event, Event::Gone(_)).then_some(())).await;
}

#[tokio::test]
async fn a_peer_that_finds_no_place_is_refused_and_those_who_are_there_stay() {
    let mut full = Daemon::start_small(17, (1, DEADLINE), Rules::welcoming(&[18, 19])).await;
    let mut first = Daemon::start(18, Rules::welcoming(&[17])).await;
    first.dial(&full).await;
    first.ready(&full).await;
    full.ready(&first).await;
    let mut second = Daemon::start(19, Rules::welcoming(&[17])).await;
    second.dial(&full).await;
    let reason = second.unwelcome(&full).await;
    assert!(reason.starts_with("full: this daemon has 1 connections, the most"), "{reason}");
    assert!(full.handle.figures().connections_refused_total.get() >= 1);
    full.answer_queries(|question| Answer::Done(question.to_vec()));
    let answer = first.handle.ask(full.key(), Protocol::Query, b"still here", DEADLINE).await;
    assert_eq!(answer, Ok(b"still here".to_vec()));
    assert!(!full.handle.is_ready(second.key()));
}

#[tokio::test]
async fn where_most_places_are_taken_who_is_idle_goes_and_who_asks_stays() {
    let idle_max = Duration::from_secs(3);
    let mut crowded = Daemon::start_small(20, (2, idle_max), Rules::welcoming(&[21, 22])).await;
    let mut idle = Daemon::start(21, Rules::welcoming(&[20])).await;
    let mut busy = Daemon::start(22, Rules::welcoming(&[20])).await;
    for one in [&mut idle, &mut busy] {
        one.dial(&crowded).await;
        one.ready(&crowded).await;
    }
    let (handle, at) = (busy.handle.clone(), crowded.key());
    let asking =
        tokio::spawn(async move { handle.ask(at, Protocol::Query, b"what comes next?", DEADLINE).await });
    let asked = crowded.next_event(question).await;
    let gone = |event| if let Event::Gone(peer) = event { Some(peer) } else { None };
    assert_eq!(idle.next_event(gone).await, crowded.key());
    let _ = asked.reply.send(Answer::Done(b"this".to_vec()));
    assert_eq!(asking.await.expect("no panic"), Ok(b"this".to_vec()), "who asks keeps its place");
}

#[tokio::test]
async fn a_stranger_is_closed_in_time_however_often_it_connects() {
    let daemon = Daemon::start(23, Rules::welcoming(&[])).await;
    let mut stranger = Stranger::of(daemon.address());
    assert!(stranger.is_shaken_off(DEADLINE).await, "it is there although it showed nothing");
}

#[tokio::test]
async fn a_peer_without_the_requested_protocol_is_reported_as_such() {
    let daemon = Daemon::start(27, Rules::welcoming(&[])).await;
    let mut stranger = Stranger::of(daemon.address());
    let peer = stranger.key();
    let asking = async {
        loop {
            match daemon.handle.ask(peer, Protocol::Join, b"may I?", DEADLINE).await {
                // The daemon notices the connection a moment later.
                Err(error) if error.reason() == "there is no connection to it" => {
                    tokio::task::yield_now().await
                }
                outcome => return outcome,
            }
        }
    };
    let outcome = stranger.while_connected(asking).await.expect_err("it speaks nothing");
    assert!(matches!(outcome, AskError::Open { .. }), "{outcome:?}");
    assert_eq!(outcome.reason(), format!("it does not speak {}; is it of another version?", Protocol::Join));
}

#[tokio::test]
async fn one_key_has_so_many_connections_and_no_more() {
    let daemon = Daemon::start(24, Rules::welcoming(&[])).await;
    let most = usize::try_from(CONNECTIONS_OF_PEER_MAX).expect("few");
    let refused = || daemon.handle.figures().connections_refused_total.get() as usize;
    let mut stranger = Stranger::of(daemon.address());
    stranger.crowd(4 * most, || refused() >= 3 * most).await;
    assert_eq!((refused(), stranger.standing()), (3 * most, most));
}

#[tokio::test]
async fn while_many_wait_at_one_daemon_another_is_answered() {
    const WAITING: usize = 100;
    let mut asked = Daemon::start(25, Rules::welcoming(&[26])).await;
    let mut asker = Daemon::start(26, Rules::welcoming(&[25])).await;
    asker.dial(&asked).await;
    asker.ready(&asked).await;
    asked.ready(&asker).await;
    let contacts = Arc::new(Contacts::new(asker.handle.clone(), None));
    let ask = |question: &'static [u8]| {
        let (contacts, peer) = (Arc::clone(&contacts), asked.key());
        async move { contacts.ask((peer, &[]), Protocol::Query, question, Keep::ForMore, DEADLINE).await }
    };
    let mut waiting: tokio::task::JoinSet<_> = (0..WAITING).map(|_| ask(b"something new")).collect();
    let another = ask(b"what is now");
    let mut held = Vec::new();
    while held.len() < WAITING {
        held.push(asked.next_event(question).await);
    }
    let answering = async {
        let asked = asked.next_event(question).await;
        assert_eq!(asked.body, b"what is now");
        let _ = asked.reply.send(Answer::Done(b"this".to_vec()));
    };
    let (answer, ()) = tokio::join!(another, answering);
    assert_eq!(answer, Ok(b"this".to_vec()));
    for question in held {
        let _ = question.reply.send(Answer::Done(b"news".to_vec()));
    }
    while let Some(answer) = waiting.join_next().await {
        assert_eq!(answer.expect("no panic"), Ok(b"news".to_vec()));
    }
}
