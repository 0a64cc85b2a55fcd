//! A domain of 500 sensors: what it costs its representative, a standby and a member, and how it fails over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use overlay::election::Role;
use overlay::simulator::Domain;
use std::time::Duration;

const HOSTS: usize = 500;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Print and return messages and bytes a second, in and out, of `host` over `span`.
fn measure(domain: &mut Domain, host: usize, span: Duration, what: &str) -> (f64, f64) {
    let before = domain.world.traffic(host);
    domain.run(span);
    let after = domain.world.traffic(host);
    let rate = |from: u64, to: u64| f64::from(u32::try_from(to - from).unwrap()) / span.as_secs_f64();
    println!(
        "{what}: out {:.0} messages/s, {:.1} kB/s; in {:.0} messages/s, {:.1} kB/s",
        rate(before.sent, after.sent),
        rate(before.sent_bytes, after.sent_bytes) / 1e3,
        rate(before.got, after.got),
        rate(before.got_bytes, after.got_bytes) / 1e3,
    );
    (rate(before.sent, after.sent), rate(before.sent_bytes, after.sent_bytes))
}

#[test]
fn five_hundred_sensors_cost_their_representative_some_small_messages_a_second() {
    let mut domain = Domain::new(HOSTS, 7, |_| {});
    domain.world.measures = true;
    domain.start_all();
    let took = domain.run_until(secs(30), |domain| domain.agreed_by_all().is_some()).expect("one view");
    let ruler = domain.agreed_by_all().expect("just seen");
    domain.run(secs(15));
    let sent = domain.world.traffic(ruler);
    println!(
        "cold start of {HOSTS}: one view after {took:?}; the representative sent {} messages, {:.1} MB in {:?}",
        sent.sent,
        Duration::from_millis(sent.sent_bytes / 1000).as_secs_f64(),
        domain.world.now()
    );
    let standby = domain.standbys()[0];
    let of = |host: usize| domain.state(host).unwrap().role;
    let member = (0..HOSTS).find(|host| of(*host) == Role::Member).unwrap();
    let (messages, bytes) = measure(&mut domain, ruler, secs(4), "representative");
    measure(&mut domain, standby, secs(4), "standby");
    let (few, _) = measure(&mut domain, member, secs(4), "member");
    assert!(messages <= 1_300.0 && bytes <= 200_000.0, "{messages} messages/s, {bytes} bytes/s");
    assert!(few <= 10.0, "a member sends {few} messages/s");

    let before = domain.world.traffic(standby).sent_bytes;
    domain.world.kill(ruler);
    let serving = domain.run_until(secs(10), |domain| !domain.serving().is_empty()).expect("a new one");
    let agreed = domain.run_until(secs(10), |domain| domain.agreed_by_all().is_some()).expect("one view");
    domain.run(secs(5));
    let spent = domain.world.traffic(domain.serving()[0]).sent_bytes.saturating_sub(before);
    println!(
        "killed: serving after {serving:?}, heard by all after {:?}; the new one sent {:.1} MB within 5 s",
        serving + agreed,
        Duration::from_millis(spent / 1000).as_secs_f64()
    );
    assert!(serving <= secs(5));
    domain.assert_by_the_rules();
}
