//! Time without a representative, as the other members see it, when it fails repeatedly, some seconds apart:
//! killed, cut off or suspended.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use overlay::dice::Dice;
use overlay::simulator::Domain;
use std::time::Duration;

/// Longest time without a representative after a fault.
const GAP_MAX: Duration = Duration::from_secs(4);
/// Number of faults in one domain.
const FAULTS: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Cut,
    Pause,
}

const KINDS: [Fault; 3] = [Fault::Kill, Fault::Cut, Fault::Pause];

fn secs(low: u64, high: u64, dice: &mut Dice) -> Duration {
    dice.span(Duration::from_secs(low), Duration::from_secs(high))
}

fn seeds() -> u64 {
    std::env::var("VISPERF_SEEDS").map_or(20, |text| text.parse().expect("VISPERF_SEEDS: expected a number"))
}

/// Whether a question at this host would be answered by a representative now.
fn is_answered(domain: &Domain, host: usize) -> bool {
    let representative = domain.state(host).and_then(|state| state.representative);
    let at = representative.and_then(|key| domain.world.number(&key));
    at.is_some_and(|at| domain.serves(at) && domain.world.network.is_open_both(host, at))
}

/// The host that most others obey, and that serves.
fn representative(domain: &Domain) -> Option<usize> {
    let hosts = 0..domain.world.len();
    let obeyed_by = |at: &usize| {
        let key = Some(domain.world.key(*at));
        hosts
            .clone()
            .filter(|host| domain.state(*host).is_some_and(|state| state.representative == key))
            .count()
    };
    domain.serving().into_iter().max_by_key(obeyed_by)
}

/// Whether this host covers only itself, and reports that as the whole domain.
fn is_false_whole(domain: &Domain, host: usize) -> bool {
    let state = domain.state(host).filter(|_| domain.serves(host));
    state.is_some_and(|state| state.coverage.len() == 1 && !state.partial)
}

/// Fail the representative, wait until all others have one, bring it back. Returns how long they had none.
fn lose(domain: &mut Domain, fault: Fault, dice: &mut Dice) -> Result<Duration, String> {
    let hosts = domain.world.len();
    let Some(lost) = representative(domain) else { return Err("no representative to lose".to_owned()) };
    let others: Vec<usize> = (0..hosts).filter(|host| *host != lost).collect();
    let away = secs(1, 6, dice);
    match fault {
        Fault::Kill => domain.world.kill(lost),
        Fault::Cut => others.iter().for_each(|other| domain.world.network.cut(lost, *other)),
        Fault::Pause => domain.world.pause(lost, away),
    }
    let begin = domain.world.now();
    let (mut gap, mut is_back) = (None, false);
    while gap.is_none() || !is_back {
        domain.run(Duration::from_millis(50));
        let since = domain.world.now() - begin;
        if let Some(alone) = (0..hosts).find(|host| is_false_whole(domain, *host)) {
            return Err(format!("{fault:?} of {lost}: {alone} covers itself alone\n{}", domain.picture()));
        }
        // A representative that is cut off and still serves answers none of the others.
        let is_whole = others.iter().all(|host| is_answered(domain, *host));
        gap = gap.or(is_whole.then_some(since));
        if since >= away && !is_back {
            is_back = true;
            match fault {
                Fault::Kill => domain.world.start(lost),
                Fault::Cut => others.iter().for_each(|other| domain.world.network.mend(lost, *other)),
                Fault::Pause => {}
            }
        }
        if since > Duration::from_secs(30) {
            return Err(format!("{fault:?} of {lost}: none after 30 s\n{}", domain.picture()));
        }
    }
    Ok(gap.expect("the loop ended"))
}

/// All times without a representative in one domain, each with its fault.
fn run(hosts: usize, seed: u64) -> Result<Vec<(Fault, Duration)>, String> {
    let mut dice = Dice::new(seed);
    let mut domain = Domain::new(hosts, seed, |_| {});
    domain.start_all();
    let found = domain.run_until(Duration::from_secs(20), |domain| domain.agreed_by_all().is_some());
    found.ok_or("no representative at the start")?;
    domain.run(Duration::from_secs(5));
    let mut gaps = Vec::new();
    for _ in 0..FAULTS {
        let fault = KINDS[usize::try_from(dice.below(3)).expect("small")];
        gaps.push((fault, lose(&mut domain, fault, &mut dice)?));
        // The next fault may come as soon as this one is repaired.
        domain.run(dice.span(Duration::from_millis(500), Duration::from_secs(8)));
    }
    domain.assert_by_the_rules();
    Ok(gaps)
}

fn check(hosts: usize) {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for seed in 0..seeds() {
        match run(hosts, seed) {
            Ok(gaps) => {
                let late = gaps.iter().filter(|(_, gap)| *gap > GAP_MAX);
                wrong.extend(late.map(|(fault, gap)| format!("seed {seed}: {fault:?}: {gap:?}")));
                all.extend(gaps);
            }
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    for kind in KINDS {
        let mut gaps: Vec<_> = all.iter().filter(|(fault, _)| *fault == kind).map(|(_, gap)| *gap).collect();
        gaps.sort_unstable();
        let at = |permille: usize| gaps[(gaps.len() - 1) * permille / 1000];
        println!(
            "{hosts} hosts, {kind:?}: n {}, min {:?}, p50 {:?}, p90 {:?}, p99 {:?}, max {:?}",
            gaps.len(),
            at(0),
            at(500),
            at(900),
            at(990),
            at(1000)
        );
    }
    println!("{} of {} beyond {GAP_MAX:?}", wrong.len(), all.len());
    assert!(wrong.is_empty(), "{}", wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn five_hosts_are_never_long_without_a_representative() {
    check(5);
}

#[test]
fn thirteen_hosts_are_never_long_without_a_representative() {
    check(13);
}
