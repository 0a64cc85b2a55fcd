//! Encryption between two daemons: which protocol a connection uses, and how connections are counted.

use crate::net::DEADLINE;
use crate::net::daemons::{Daemon, Rules};
use overlay::net::event_loop::Config;
use overlay::net::handle::Answer;
use overlay::net::protocol::Protocol;
use overlay::net::security::Offer;
use std::net::SocketAddr;

/// A daemon with this offer that admits daemon `other`.
async fn start(number: u8, other: u8, offer: Offer) -> Daemon {
    let config = Config { offer, ..Config::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]) };
    Daemon::start_with(number, config, Rules::welcoming(&[other])).await
}

/// Number of connections by TLS and by Noise.
fn encrypted(daemon: &Daemon) -> [u64; 2] {
    let figures = daemon.handle.figures();
    [figures.encrypted_by_tls.get(), figures.encrypted_by_noise.get()]
}

/// Checks the protocol between two daemons: one dials the other, and each sends the other a long question.
async fn check(dialler: (u8, Offer), listener: (u8, Offer), expected: [u64; 2]) {
    let mut one = start(dialler.0, listener.0, dialler.1).await;
    let mut other = start(listener.0, dialler.0, listener.1).await;
    one.dial(&other).await;
    one.ready(&other).await;
    other.ready(&one).await;
    assert_eq!([encrypted(&one), encrypted(&other)], [expected, expected], "{dialler:?} dials {listener:?}");
    for daemon in [&mut one, &mut other] {
        daemon.answer_queries(|question| Answer::Done(question.iter().rev().copied().collect()));
    }
    let question: Vec<u8> = (0..700_000_u32).map(|number| (number % 251) as u8).collect();
    let answer: Vec<u8> = question.iter().rev().copied().collect();
    for (asker, asked) in [(&one, &other), (&other, &one)] {
        let answered = asker.handle.ask(asked.key(), Protocol::Query, &question, DEADLINE).await;
        assert!(
            answered.as_ref() == Ok(&answer),
            "a question through {expected:?} comes back as another answer"
        );
    }
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn the_dialler_chooses_tls_or_noise() {
    check((70, Offer::TlsFirst), (71, Offer::TlsFirst), [1, 0]).await;
    check((70, Offer::TlsFirst), (71, Offer::NoiseFirst), [1, 0]).await;
    check((70, Offer::NoiseFirst), (71, Offer::TlsFirst), [0, 1]).await;
}

#[tokio::test]
async fn one_that_knows_noise_alone_dials_and_is_dialled() {
    check((72, Offer::NoiseAlone), (73, Offer::TlsFirst), [0, 1]).await;
    check((72, Offer::TlsFirst), (73, Offer::NoiseAlone), [0, 1]).await;
}

/// The default offer, which no daemon's configuration changes.
#[tokio::test]
async fn tls_is_used_where_the_processor_has_aes() {
    #[cfg(target_arch = "x86_64")]
    let has_aes = std::arch::is_x86_feature_detected!("aes");
    #[cfg(not(target_arch = "x86_64"))]
    let has_aes = std::arch::is_aarch64_feature_detected!("aes");
    let expected = if has_aes { [1, 0] } else { [0, 1] };
    check((74, Offer::default()), (75, Offer::default()), expected).await;
}

#[tokio::test]
async fn a_connection_is_counted_for_as_long_as_it_is_open() {
    let mut one = start(76, 77, Offer::TlsFirst).await;
    let other = start(77, 76, Offer::TlsFirst).await;
    one.dial(&other).await;
    one.ready(&other).await;
    assert_eq!(encrypted(&one), [1, 0]);
    other.stop().await;
    let counted = async {
        while encrypted(&one) != [0, 0] {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, counted).await.expect("it is no longer counted");
}
