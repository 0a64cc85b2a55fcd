//! Questions on a stream: several one after the other, and peers that take one per stream.

use crate::net::DEADLINE;
use crate::net::daemons::{Daemon, Rules};
use overlay::net::event_loop::Config;
use overlay::net::handle::{Answer, AskError};
use overlay::net::protocol::Protocol;
use std::net::SocketAddr;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Ask this many questions, one after the other; returns the number of streams that it took.
async fn ask(asker: &Daemon, asked: &Daemon, questions: u32) -> u64 {
    let streams = || asked.handle.figures().streams_total.get();
    let before = streams();
    for number in 0..questions {
        let question = number.to_le_bytes();
        let answer = asker.handle.ask(asked.key(), Protocol::Query, &question, DEADLINE).await;
        assert_eq!(answer, Ok(question.to_vec()));
    }
    streams() - before
}

#[tokio::test]
async fn one_stream_carries_many_questions() {
    let mut one = Daemon::start(80, Rules::welcoming(&[81])).await;
    let mut other = Daemon::start(81, Rules::welcoming(&[80])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    other.answer_queries(|question| Answer::Done(question.to_vec()));
    let streams = ask(&one, &other, 100).await;
    assert!((1..50).contains(&streams), "{streams}");
}

/// Like a daemon of the previous version, which does not know that protocol.
#[tokio::test]
async fn one_that_takes_a_question_on_each_stream_is_asked_so() {
    const SPOKEN: &[Protocol] =
        &[Protocol::Hello, Protocol::Control, Protocol::Directory, Protocol::Query, Protocol::Report];
    let mut one = Daemon::start(82, Rules::welcoming(&[83])).await;
    let config = Config { spoken: SPOKEN, ..Config::new(vec![LOOPBACK]) };
    let mut other = Daemon::start_with(83, config, Rules::welcoming(&[82])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    other.answer_queries(|question| Answer::Done(question.to_vec()));
    assert_eq!(ask(&one, &other, 20).await, 20);
}

#[tokio::test]
async fn each_question_of_a_stream_is_looked_at() {
    let rules = Rules::welcoming(&[84]);
    let mut one = Daemon::start(84, Rules::welcoming(&[85])).await;
    let mut other = Daemon::start(85, rules.clone()).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    other.answer_queries(|question| Answer::Done(question.to_vec()));
    ask(&one, &other, 1).await;
    rules.revoke(one.key());
    let answer = one.handle.ask(other.key(), Protocol::Query, b"?", DEADLINE).await;
    let is_refused =
        matches!(&answer, Err(AskError::Refused { reason, .. }) if reason == "revoked by this test");
    let is_closed = matches!(answer, Err(AskError::Open { .. } | AskError::Broken { .. }));
    assert!(is_refused || is_closed, "{answer:?}");
}

#[tokio::test]
async fn a_stream_that_ended_while_it_waited_is_not_used() {
    let mut one = Daemon::start(86, Rules::welcoming(&[87])).await;
    let mut other = Daemon::start(87, Rules::welcoming(&[86])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    let address = other.address();
    other.answer_queries(|question| Answer::Done(question.to_vec()));
    ask(&one, &other, 1).await;
    other.stop().await;
    let mut other = Daemon::start_at(87, address, Rules::welcoming(&[86])).await;
    one.ready(&other).await;
    other.ready(&one).await;
    other.answer_queries(|question| Answer::Done(question.to_vec()));
    ask(&one, &other, 1).await;
}

/// So that the peer asks another daemon, which a refusal with a reason would prevent.
#[tokio::test]
async fn a_question_to_a_daemon_that_stops_ends_without_an_answer() {
    let mut one = Daemon::start(88, Rules::welcoming(&[89])).await;
    let mut other = Daemon::start(89, Rules::welcoming(&[88])).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    other.drop_queries();
    let answer = one.handle.ask(other.key(), Protocol::Query, b"?", DEADLINE).await;
    assert!(matches!(answer, Err(AskError::Broken { .. })), "{answer:?}");
}
