//! Running reports: links of members and workers of representatives over real loopback connections.

#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub)]

mod network;

use network::{Representative, Running, Slow, until};
use sensor::representative::service::Duty;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wire::id::PeerKey;

/// Number of samples received from a member, and number of those that it says it omitted.
async fn samples(representative: &Representative, host: &str) -> Option<(u64, u64)> {
    let rows = representative.handle.ask(|domain, now| domain.hosts(now.moment)).await.ok()?;
    let row = rows.iter().find(|row| row.host.as_str() == host)?;
    Some((row.samples, row.samples_thinned))
}

/// Representatives follow each other, the first one returns; members write and report all the time.
#[tokio::test(flavor = "multi_thread")]
async fn each_representative_of_the_domain_holds_every_event_once() {
    let first = Representative::start().await;
    let second = Representative::start().await;
    let mut members: Vec<Running> = (0..3).map(|nth| Running::start(nth, None)).collect();
    for (round, next) in [&first, &second, &first, &second].into_iter().enumerate() {
        next.serve(round as u64 + 1);
        members.iter().for_each(|member| member.go_to(Some(next)));
        for _ in 0..10 {
            for member in &mut members {
                member.write(37);
            }
            tokio::task::yield_now().await;
        }
        // For some members the change comes in the middle of a report.
        let some = members[0].written();
        until("some events", async || next.stored_of(&members[0]).await >= some / 2).await;
        if round < 3 {
            members.iter().for_each(|member| member.go_to(None));
            next.handle.set_duty(Duty::Rest);
        }
    }
    let all: u64 = members.iter().map(Running::written).sum();
    until("every event", async || second.stored().await.len() as u64 >= all).await;
    let stored = second.stored().await;
    assert_eq!((stored.len() as u64, stored.values().max()), (all, Some(&1)), "lost or stored twice");
    for member in &members {
        until("the last acknowledgement", async || member.acknowledged() == Some(member.written())).await;
    }
    assert!(second.handle.figures().counts.duplicates_total < all, "they are not sent again each time");
}

/// A member waits for durable events from its journal while its report is connected and everything durable is
/// sent, and only then.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_waits_for_what_is_not_durable_yet() {
    let representative = Representative::start().await;
    let mut member = Running::start(0, None);
    member.write(10);
    assert!(!member.waits(), "there is no peer to send it to");
    member.go_to(Some(&representative));
    representative.serve(1);
    until("the waiting", async || member.waits()).await;
    member.write(1);
    until("the event", async || representative.stored_of(&member).await == 11).await;
    until("the waiting for another", async || member.waits()).await;
    representative.handle.set_duty(Duty::Rest);
    until("the end of the waiting", async || !member.waits()).await;
}

/// A store may have hundreds of thousands of events to read before it can be served: a fail-over must not
/// wait for that.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_represented_the_domain_before_has_its_store_ready() {
    let representative = Representative::start().await;
    assert!(!representative.handle.figures().is_ready, "it never represented the domain");
    representative.serve(1);
    let mut member = Running::start(0, Some(&representative));
    member.write(10);
    until("the events", async || representative.stored_of(&member).await == 10).await;
    representative.handle.set_duty(Duty::Rest);
    until("the store that is ready", async || representative.handle.figures().is_ready).await;
    // It does not read again what it has read already.
    representative.remove_store();
    representative.serve(2);
    until("the events", async || representative.stored_of(&member).await == 10).await;
    assert!(!representative.handle.figures().is_ready, "it serves");
}

/// Without a valid lease nothing is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_lease_nothing_is_acknowledged() {
    static LEASE: AtomicBool = AtomicBool::new(true);
    let representative = Representative::start().await;
    representative.handle.set_lease(Box::new(|| LEASE.load(Ordering::SeqCst)));
    representative.serve(1);
    let mut member = Running::start(0, Some(&representative));
    member.write(10);
    until("an acknowledgement", async || member.acknowledged() == Some(10)).await;
    LEASE.store(false, Ordering::SeqCst);
    member.write(10);
    until("the events", async || representative.stored_of(&member).await == 20).await;
    assert_eq!(member.acknowledged(), Some(10), "it is on the disk, and may be another's to say");
    LEASE.store(true, Ordering::SeqCst);
    until("the acknowledgement", async || member.acknowledged() == Some(20)).await;
}

/// A representative that reads slowly gets fewer samples and the count of the missing ones, and it gets every
/// event.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_representative_gets_every_event_and_is_notified_of_missing_samples() {
    let representative = Representative::start().await;
    representative.serve(1);
    let slow = Slow::before(&representative).await;
    let mut member = Running::start(0, None);
    member.go_through(&slow);
    until("the report", async || samples(&representative, "h0").await.is_some()).await;
    slow.hold();
    let mut swept = 0;
    // Sweeps are omitted once the buffers of the connection and of the member are full.
    until("thinning", async || {
        swept += member.sweep();
        member.figures().counts.thinned_total > 0
    })
    .await;
    member.write(500);
    slow.go_on();
    until("every event", async || representative.stored_of(&member).await == 500).await;
    until("every sample is accounted for", async || {
        // What was left out is stated with the next sweep, which takes a while on a busy machine.
        swept += member.sweep();
        for _ in 0..100 {
            match samples(&representative, "h0").await {
                Some((came, thinned)) if thinned > 0 && came + thinned == swept => return true,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        false
    })
    .await;
}

/// The control: if the representative reads fast, nothing is omitted.
#[tokio::test(flavor = "multi_thread")]
async fn a_fast_representative_gets_every_sample() {
    let representative = Representative::start().await;
    representative.serve(1);
    let member = Running::start(0, Some(&representative));
    until("the report", async || samples(&representative, "h0").await.is_some()).await;
    // The representative knows the host before the member knows that it may send.
    until("an open link", async || member.figures().is_open).await;
    let mut swept = 0;
    for _ in 0..50 {
        swept += member.sweep();
        until("the sweep", async || samples(&representative, "h0").await == Some((swept, 0))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemons_new_stream_takes_the_place_of_its_old_one() {
    let representative = Representative::start().await;
    representative.serve(1);
    let peer = PeerKey([9; 32]);
    let old = representative.visit_when_open(peer, "h9").await;
    until("the first stream", async || representative.links().await == 1).await;
    let _new = representative.visit(peer, "h9");
    until("the end of the first", async || old.is_ended().await).await;
    assert_eq!(representative.links().await, 1);
    let _other = representative.visit(PeerKey([8; 32]), "h8");
    until("another daemon's stream", async || representative.links().await == 2).await;
}

/// A worker that does not serve the domain accepts no stream and answers no query.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_represent_the_domain_takes_and_answers_nothing() {
    let representative = Representative::start().await;
    let visit = representative.visit(PeerKey([9; 32]), "h9");
    assert!(visit.is_ended().await);
    assert!(representative.handle.ask(|domain, _| domain.links_len()).await.is_err());
    representative.serve(1);
    let visit = representative.visit_when_open(PeerKey([9; 32]), "h9").await;
    until("the stream", async || representative.links().await == 1).await;
    representative.handle.set_duty(Duty::Rest);
    until("the end of the stream", async || visit.is_ended().await).await;
    assert!(representative.handle.feed().await.is_err());
}
