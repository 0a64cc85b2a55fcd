//! The lab's network: hosts reach each other, and each fault works and heals.
//!
//! Rule: a fault is measured by what hosts send each other, before, during and after it, so that neither a
//! fault without effect nor a network without traffic passes the test.
//! Not here: entering the lab (`lab_entry`), daemons (`lab_daemons`).

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use system_tests::lab::{self, Delay, Host, Network, Trials};
use system_tests::random::Random;
use system_tests::wait::{self, Seen};

/// Timeout for traffic that should arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time without traffic after which none is expected.
const SILENCE: Duration = Duration::from_millis(400);
/// How long a measurement that a busy machine disturbed is repeated.
const ANEW_MAX: Duration = Duration::from_secs(60);
/// Port on which every host listens.
const PORT: u16 = 7000;
const MS: Duration = Duration::from_millis(1);

/// Whether one host can connect to another, which listens at `at`.
fn connects(from: &Host, at: SocketAddr) -> bool {
    from.run(|| Ok(TcpStream::connect_timeout(&at, SILENCE)?)).is_ok()
}

/// Wait until one host can connect to another.
fn connects_at_last(from: &Host, at: SocketAddr) {
    undisturbed(&format!("a connection of {} to {at}", from.name()), || (connects(from, at), ()));
}

/// Open a listener on each host.
fn listeners(network: &Network) -> Vec<TcpListener> {
    network.each(|host| host.run(|| Ok(TcpListener::bind((host.ipv4(), PORT))?))).unwrap()
}

/// Send numbered packets; returns those received, in the order of arrival, with the delay of each.
fn packets(from: &Host, to: &Host, count: usize) -> Result<Vec<(usize, Duration)>> {
    let receiver = to.run(|| Ok(UdpSocket::bind((to.ipv4(), 0))?))?;
    let at = receiver.local_addr()?;
    let sender = from.run(|| Ok(UdpSocket::bind((from.ipv4(), 0))?))?;
    receiver.set_read_timeout(Some(SILENCE))?;
    // The sender may be suspended for a while.
    let is_sent = AtomicBool::new(false);
    // One packet ahead, so that none of the counted ones waits for address resolution.
    let _ = sender.send_to(&usize::MAX.to_be_bytes(), at);
    let _ = receiver.recv(&mut [0; 8]);
    let receive = || {
        let mut came: Vec<(usize, Instant)> = Vec::new();
        let mut packet = [0; 8];
        let mut silent = 0;
        while silent < 5 {
            match receiver.recv(&mut packet) {
                Ok(8) => came.push((usize::from_be_bytes(packet), wait::now())),
                Ok(_) | Err(_) => silent += usize::from(is_sent.load(Ordering::Relaxed)),
            }
        }
        came.retain(|(number, _)| *number < count);
        came
    };
    std::thread::scope(|scope| {
        let receiving = scope.spawn(receive);
        let mut sent = Vec::new();
        for number in 0..count {
            sent.push(wait::now());
            // A pending error of an earlier packet may be reported with this one.
            let _ = sender.send_to(&number.to_be_bytes(), at);
            // A pace at which no buffer fills, and at which packets of a jittery link overtake each other.
            std::thread::sleep(MS / 4);
        }
        is_sent.store(true, Ordering::Relaxed);
        let came = receiving.join().expect("it only receives");
        Ok(came.into_iter().map(|(number, at)| (number, at - sent[number])).collect())
    })
}

/// Number of packets received of 100.
fn of_100(network: &Network, from: &str, to: &str) -> usize {
    packets(network.host(from), network.host(to), 100).unwrap().len()
}

/// Send bytes from a seed by TCP; returns the time until all of them were received correctly.
fn transfer(from: &Host, to: &Host, length: usize) -> Result<Duration> {
    let mut random = Random::new(length as u64);
    let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
    let listener = to.run(|| Ok(TcpListener::bind((to.ipv4(), 0))?))?;
    let at = listener.local_addr()?;
    let mut sending = from.run(|| Ok(TcpStream::connect_timeout(&at, PATIENCE)?))?;
    let (mut receiving, _) = listener.accept()?;
    receiving.set_read_timeout(Some(PATIENCE))?;
    sending.set_write_timeout(Some(PATIENCE))?;
    let began = wait::now();
    let received = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut received = Vec::new();
            receiving.read_to_end(&mut received).map(|_| received)
        });
        sending.write_all(&bytes)?;
        drop(sending);
        Ok::<_, anyhow::Error>(reader.join().expect("it only reads")?)
    })?;
    ensure!(received == bytes, "expected the bytes that were sent, found {} others", received.len());
    Ok(wait::now() - began)
}

#[test]
fn hosts_reach_each_other_by_address_and_name() {
    let Some(lab) = lab::enter("lab_network::hosts_reach_each_other_by_address_and_name").unwrap() else {
        return;
    };
    let network = lab.network(3).unwrap();
    let _listeners = listeners(&network);
    for from in network.hosts() {
        for to in network.hosts() {
            connects_at_last(from, (to.ipv4(), PORT).into());
        }
    }
    let (one, two) = (network.host("h1"), network.host("h2"));
    if let Some(address) = two.ipv6() {
        let _listening = two.run(|| Ok(TcpListener::bind((address, PORT))?)).unwrap();
        connects_at_last(one, (IpAddr::from(address), PORT).into());
    }
    // Each host has its own loopback.
    let _listening = two.run(|| Ok(TcpListener::bind(("127.0.0.1", PORT + 1))?)).unwrap();
    let loopback = SocketAddr::from(([127, 0, 0, 1], PORT + 1));
    connects_at_last(two, loopback);
    assert!(!connects(one, loopback));

    let resolved = || one.run(|| ("h2", PORT).to_socket_addrs()?.next().context("expected an address"));
    assert_eq!(resolved().unwrap().ip(), two.ipv4());
    network.forget_names().unwrap();
    assert!(resolved().is_err(), "the name is known still");
    network.know_names().unwrap();
    assert_eq!(resolved().unwrap().ip(), two.ipv4());
}

#[test]
fn what_is_cut_is_cut_both_ways_or_one_way_and_heals() {
    let Some(lab) = lab::enter("lab_network::what_is_cut_is_cut_both_ways_or_one_way_and_heals").unwrap()
    else {
        return;
    };
    let network = lab.network(3).unwrap();
    // If no packets are expected, none may ever arrive.
    let both = |expected: (usize, usize)| {
        undisturbed("packets both ways", || {
            let came = (of_100(&network, "h1", "h2"), of_100(&network, "h2", "h1"));
            assert!(came.0 <= expected.0 && came.1 <= expected.1, "{came:?} of {expected:?}");
            (came == expected, ())
        });
    };
    both((100, 100));
    network.cut("h1", "h2").unwrap();
    both((0, 0));
    undisturbed("others are not cut", || (of_100(&network, "h1", "h3") == 100, ()));
    network.heal("h1", "h2").unwrap();
    both((100, 100));
    network.cut_one_way("h1", "h2").unwrap();
    both((0, 100));
    network.heal("h2", "h1").unwrap();
    both((100, 100));
    network.link_down("h2").unwrap();
    both((0, 0));
    network.link_up("h2").unwrap();
    both((100, 100));
    network.cut("h1", "h2").unwrap();
    network.link_down("h1").unwrap();
    network.heal_all().unwrap();
    both((100, 100));
}

#[test]
fn a_partition_parts_groups_and_leaves_each_whole() {
    let Some(lab) = lab::enter("lab_network::a_partition_parts_groups_and_leaves_each_whole").unwrap() else {
        return;
    };
    let network = lab.network(5).unwrap();
    let _listeners = listeners(&network);
    // The hosts that each host reaches.
    let reached = |expected: &str| {
        let reached = network.each(|from| {
            let all = network.hosts().iter().filter(|to| connects(from, (to.ipv4(), PORT).into()));
            Ok(all.map(|host| &host.name()[1..]).collect::<String>())
        });
        let reached = reached.unwrap();
        for (found, expected) in reached.iter().zip(expected.split(' ')) {
            assert!(found.chars().all(|host| expected.contains(host)), "{found} of {expected}");
        }
        reached.join(" ")
    };
    let reach = |expected: &str| undisturbed(expected, || (reached(expected) == expected, ()));
    let whole = "12345 12345 12345 12345 12345";
    reach(whole);
    network.partition(&[&["h1", "h2"], &["h3", "h4"]]).unwrap();
    // h5 is in no group.
    reach("125 125 345 345 12345");
    network.heal_all().unwrap();
    reach(whole);
}

#[test]
fn losses_are_about_as_many_as_were_asked_for() {
    let Some(lab) = lab::enter("lab_network::losses_are_about_as_many_as_were_asked_for").unwrap() else {
        return;
    };
    let network = lab.network(2).unwrap();
    let (one, two) = (network.host("h1"), network.host("h2"));
    let lost = |from, to| 2000 - packets(from, to, 2000).unwrap().len();
    let nothing = |state: &str| undisturbed(state, || (lost(one, two) == 0, ()));
    nothing("nothing lost");
    network.loss("h2", 10).unwrap();
    for (from, to) in [(one, two), (two, one)] {
        let lost = lost(from, to);
        println!("{} to {}: {lost} of 2000 lost", from.name(), to.name());
        // One in ten, plus or minus 4.5 standard deviations.
        assert!((140..=260).contains(&lost), "{lost}");
    }
    network.loss("h2", 0).unwrap();
    nothing("nothing lost any more");
}

#[test]
fn a_limited_link_takes_its_time() {
    let Some(lab) = lab::enter("lab_network::a_limited_link_takes_its_time").unwrap() else { return };
    let network = lab.network(2).unwrap();
    let (one, two) = (network.host("h1"), network.host("h2"));
    // A megabit, in each direction.
    let within = |most: Duration, state: &str| {
        undisturbed(state, || {
            let times = [(one, two), (two, one)].map(|(from, to)| transfer(from, to, 125_000).unwrap());
            println!("a megabit, each way, {state}: {times:?}");
            (times.iter().all(|time| *time < most), times)
        })
    };
    within(MS * 600, "free");
    network.rate("h2", 1000).unwrap();
    // About a second: less the burst, plus headers and retransmissions.
    let limited = within(MS * 4000, "at 1 Mbit/s");
    assert!(limited.iter().all(|time| *time > MS * 700), "{limited:?}");
    network.full_rate("h2").unwrap();
    within(MS * 600, "free again");
}

/// Repeat a measurement until it is as expected: a machine that is busy with other work delays everything,
/// and then it is measured again.
fn undisturbed<T>(what: &str, mut measure: impl FnMut() -> (bool, T)) -> T {
    let look = || match measure() {
        (true, found) => Ok(Seen::Done(found)),
        (false, _) => Ok(Seen::NotYet("the measurements are printed above".to_owned())),
    };
    wait::until(ANEW_MAX, what, look).unwrap()
}

/// Distribution of a flow's times; the median must be less than `most`.
fn median_within(most: Duration, what: &str, from: &Host, to: &Host) -> (Trials, usize, usize) {
    undisturbed(what, || {
        let found = measured(from, to);
        (found.0.percentile(50) < most, found)
    })
}

/// Measure a flow and print it: the distribution of times, the number of overtaken packets, and the number
/// received.
#[allow(clippy::print_stdout)] // A test's output is read when it fails.
fn measured(from: &Host, to: &Host) -> (Trials, usize, usize) {
    let came = undisturbed("each packet", || {
        let came = packets(from, to, 400).unwrap();
        let numbers: BTreeSet<_> = came.iter().map(|(number, _)| *number).collect();
        (numbers.len() == 400, came)
    });
    let mut trials = Trials::default();
    came.iter().for_each(|(_, time)| trials.add(*time));
    let overtaken = came.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    println!("{} to {}: {trials}; {overtaken} overtaken, {} came", from.name(), to.name(), came.len());
    (trials, overtaken, came.len())
}

#[test]
fn a_late_link_delays_reorders_and_duplicates() {
    let Some(lab) = lab::enter("lab_network::a_late_link_delays_reorders_and_duplicates").unwrap() else {
        return;
    };
    let network = lab.network(3).unwrap();
    let (one, two) = (network.host("h1"), network.host("h2"));
    median_within(MS * 5, "before", one, two);

    let steady = Delay { time: MS * 50, ..Delay::default() };
    network.delay("h2", steady).unwrap();
    for (from, to) in [(one, two), (two, one)] {
        let (trials, overtaken, came) = median_within(MS * 65, "50 ms late", from, to);
        assert!(trials.percentile(0) >= MS * 50, "{trials}");
        assert_eq!((overtaken, came), (0, 400));
    }
    median_within(MS * 5, "others are not late", one, network.host("h3"));

    network.delay("h2", Delay { jitter: MS * 30, ..steady }).unwrap();
    let (trials, overtaken, _) = undisturbed("20 to 80 ms late", || {
        let found = measured(one, two);
        (found.0.percentile(90) < MS * 100, found)
    });
    assert!(trials.percentile(0) >= MS * 20, "{trials}");
    assert!(trials.max() - trials.percentile(0) > MS * 10, "no jitter: {trials}");
    assert_eq!(overtaken, 0);

    network.delay("h2", Delay { reorder_percent: 25, ..steady }).unwrap();
    assert!(measured(one, two).1 > 10, "none was overtaken");
    network.delay("h2", Delay { duplicate_percent: 25, ..steady }).unwrap();
    let (_, _, came) = measured(one, two);
    assert!((460..=540).contains(&came), "{came}");

    let mixed = Delay { time: MS * 5, jitter: MS * 3, reorder_percent: 5, duplicate_percent: 5 };
    network.delay("h2", mixed).unwrap();
    for (from, to) in [(one, two), (two, one)] {
        println!("a megabyte by TCP: {:?}", transfer(from, to, 1_000_000).unwrap());
    }
    // The other faults also work on a host with a late link.
    network.cut_one_way("h1", "h2").unwrap();
    undisturbed("one way", || (of_100(&network, "h2", "h1") >= 100, ()));
    assert_eq!(of_100(&network, "h1", "h2"), 0);
    network.heal_all().unwrap();
    network.link_down("h2").unwrap();
    assert_eq!(of_100(&network, "h1", "h2"), 0);
    network.link_up("h2").unwrap();
    let (_, _, came) = median_within(MS * 10, "healed", one, two);
    assert_eq!(came, 400, "healed");
}
