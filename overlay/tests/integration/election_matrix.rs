//! Rows R1 to R6 of the reliability matrix, simulated, each with a control: the same scenario with the
//! mechanism switched off, which must fail. Figures are printed (`--nocapture`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use overlay::election::{Config, Role};
use overlay::simulator::Domain;
use overlay::simulator::scenario::{Expected, Partial, Step, Story, Who};
use std::time::Duration;

const HOSTS: usize = 20;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Twenty sensors that agreed on a representative some time ago; clocks up to 3 % apart.
fn calm(seed: u64, adjust: impl FnOnce(&mut Config)) -> Story {
    let mut domain = Domain::new(HOSTS, seed, adjust);
    for host in 0..HOSTS {
        let ppm = i64::try_from(host).unwrap() * 3_000 - 30_000;
        domain.world.set_rate(host, ppm);
    }
    let mut story = Story::new(domain);
    story
        .run(&[Step::StartAll, Step::Expect(secs(20), Expected::One), Step::Wait(secs(15)), Step::Note])
        .unwrap_or_else(|why| panic!("{why}"));
    story
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * percent / 100]
}

/// Kill the representative. Returns how long until another serves, and until all obey it.
fn kill_once(seed: u64, adjust: impl FnOnce(&mut Config)) -> Option<(Duration, Duration)> {
    let mut story = calm(seed, adjust);
    // Not always at the same time within an interval of heartbeats.
    story.domain.run(millis(seed * 37 % 500));
    story.run(&[Step::Kill(Who::Representative)]).unwrap();
    let serving = story.domain.run_until(secs(30), |domain| !domain.serving().is_empty())?;
    let agreed = story.domain.run_until(secs(30), |domain| domain.agreed_by_all().is_some())?;
    story.domain.run(secs(20));
    story.domain.assert_by_the_rules();
    let since = story.domain.promotions().iter().rev().take_while(|p| p.at > secs(15)).count();
    assert!(since <= 2, "{}", story.domain.picture());
    Some((serving, serving + agreed))
}

#[test]
fn r1_a_killed_representative_is_replaced_in_time() {
    let trials: Vec<_> = (0..60).map(|seed| kill_once(seed, |_| {}).expect("one serves again")).collect();
    let mut serving: Vec<_> = trials.iter().map(|trial| trial.0).collect();
    let mut agreed: Vec<_> = trials.iter().map(|trial| trial.1).collect();
    println!(
        "R1: 60 kills of 20 sensors: serving p50 {:?} max {:?}; heard by all p50 {:?} max {:?}",
        percentile(&mut serving, 50),
        percentile(&mut serving, 100),
        percentile(&mut agreed, 50),
        percentile(&mut agreed, 100),
    );
    assert!(percentile(&mut serving, 50) <= secs(3), "p50");
    assert!(percentile(&mut serving, 100) <= secs(5), "max");
    assert!(percentile(&mut agreed, 100) <= secs(5), "heard by all");
}

#[test]
fn r1_control_with_heartbeats_as_rare_as_pings_it_takes_too_long() {
    let slow = (0..5).filter(|seed| {
        let rare = |config: &mut Config| {
            config.heartbeat = secs(5);
            config.suspicion = secs(10);
        };
        kill_once(*seed, rare).is_none_or(|(serving, _)| serving > secs(5))
    });
    assert_eq!(slow.count(), 5);
}

/// Loss and delay for `span`, with three starved sensors, the representative among them.
fn starved(seed: u64, span: Duration, adjust: impl FnOnce(&mut Config)) -> (usize, Story) {
    let mut story = calm(seed, adjust);
    let since = story.domain.world.now();
    let starved = [Who::Representative, Who::Standby(0), Who::Member(3)].map(|who| story.find(who).unwrap());
    story.run(&[Step::Delay(millis(20), millis(80)), Step::Lose(100)]).unwrap();
    // The load rises within seconds; in the end they have 5 % of a processor, in slices of about 75 ms.
    for stop in [400, 800, 1425] {
        let starve = starved.map(|host| Step::Starve(Who::Host(host), millis(75), millis(stop)));
        story.run(&starve).unwrap();
        story.run(&[Step::Wait(secs(5))]).unwrap();
    }
    story.domain.run(span);
    (story.domain.promotions_since(since), story)
}

#[test]
fn r2_loss_delay_and_starved_sensors_cause_no_failover() {
    for seed in 0..2 {
        let (changes, story) = starved(seed, secs(1800), |_| {});
        let figures: Vec<_> = (0..HOSTS)
            .map(|host| story.domain.node(host).unwrap().figures(story.domain.world.clock(host)))
            .collect();
        let suspicions: u64 = figures.iter().map(|figures| figures.suspicions_total).sum();
        println!("R2: seed {seed}: {changes} failovers in 30 min, {suspicions} suspicions");
        assert_eq!(changes, 0, "{}", story.domain.picture());
        story.domain.assert_by_the_rules();
    }
}

#[test]
fn r2_control_without_local_health_it_fails_over() {
    let (changes, _) = starved(0, secs(300), |config| config.mechanisms.local_health = false);
    println!("R2 control: {changes} failovers in 5 min without local health");
    assert!(changes > 0);
}

/// Suspend the representative. Returns the promotions, whether it would have served an old term when it
/// resumed, and how long until it yielded.
fn pause(seed: u64, span: Duration, adjust: impl FnOnce(&mut Config)) -> (usize, bool, Option<Duration>) {
    pause_of(calm(seed, adjust), span)
}

fn pause_of(mut story: Story, span: Duration) -> (usize, bool, Option<Duration>) {
    let old = story.find(Who::Representative).unwrap();
    let since = story.domain.world.now();
    story.domain.world.pause(old, span);
    story.domain.run(span - millis(1));
    // Its answer if a query were its next input.
    let replaced = story.domain.serving().iter().any(|host| *host != old);
    let mut stale = replaced && story.domain.would_serve(old);
    let yields = story.domain.run_until(secs(10), |domain| {
        let others = domain.serving().iter().any(|host| *host != old);
        stale |= others && domain.would_serve(old);
        let state = domain.state(old).unwrap();
        domain.world.is_running(old) && (!replaced || state.role != Role::Representative)
    });
    let took = story.domain.run_until(secs(20), |domain| domain.agreed_by_all().is_some());
    took.unwrap_or_else(|| panic!("one again\n{}", story.domain.picture()));
    story.domain.run(secs(20));
    story.domain.assert_by_the_rules();
    (story.domain.promotions_since(since), stale, yields)
}

#[test]
fn r3_a_paused_representative_yields_and_never_serves_an_old_term() {
    let mut slowest = Duration::ZERO;
    let mut changed = 0;
    for trial in 0..40 {
        let span = millis(1000 + trial * 29_000 / 39);
        let (changes, stale, yields) = pause(trial, span, |_| {});
        assert!(changes <= 1, "pause of {span:?}: {changes} changes");
        assert!(!stale, "pause of {span:?}: served an old term");
        let yields = yields.unwrap_or_else(|| panic!("pause of {span:?}: it never yielded"));
        assert!(yields <= secs(1), "pause of {span:?}: yielded after {yields:?}");
        slowest = slowest.max(yields);
        changed += changes;
    }
    println!("R3: 40 pauses of 1 to 30 s: {changed} changes, yields at most {slowest:?} after resuming");
}

/// Its connections were closed meanwhile, and new ones take time: there is no peer to ask when it resumes.
#[test]
fn r3_one_that_lost_its_links_meanwhile_serves_no_old_term() {
    for trial in 0..12 {
        let mut story = calm(trial, |_| {});
        story.run(&[Step::Delay(millis(60), millis(240)), Step::Wait(secs(5))]).unwrap();
        let span = millis(20_000 + trial * 2_500);
        let (_, stale, yields) = pause_of(story, span);
        assert!(!stale, "pause of {span:?}: served an old term");
        assert!(yields.is_some(), "pause of {span:?}: it never yielded");
    }
}

#[test]
fn r3_control_without_the_recheck_an_old_term_is_served() {
    let stale = (0..5).filter(|seed| pause(*seed, secs(8), |config| config.mechanisms.recheck = false).1);
    assert_eq!(stale.count(), 5);
}

/// Alternate between `down` and `up` for some minutes. Returns the promotions in the worst minute.
fn flapping(
    mut story: Story,
    minutes: u64,
    down: impl Fn(&mut Story),
    up: impl Fn(&mut Story),
) -> (usize, Story) {
    let since = story.domain.world.now();
    for _ in 0..minutes * 10 {
        down(&mut story);
        story.domain.run(secs(3));
        up(&mut story);
        story.domain.run(secs(3));
    }
    (worst_minute(&story, since, None), story)
}

/// Most promotions within a minute after `since`, those of one host left out.
fn worst_minute(story: &Story, since: Duration, but: Option<usize>) -> usize {
    let counted = story.domain.promotions().iter().filter(|one| one.at >= since && Some(one.host) != but);
    let times: Vec<_> = counted.map(|promotion| promotion.at).collect();
    let in_minute = |from: Duration| times.iter().filter(|at| **at >= from && **at < from + secs(60)).count();
    times.iter().map(|from| in_minute(*from)).max().unwrap_or(0)
}

fn mend(story: &mut Story) {
    story.domain.world.network.mend_all();
}

#[test]
fn r4_flapping_links_and_one_way_cuts_change_little() {
    for seed in 0..3 {
        let story = calm(seed, |_| {});
        let ruler = story.find(Who::Representative).unwrap();
        let standby = story.find(Who::Standby(0)).unwrap();
        let cut = |story: &mut Story| story.domain.world.network.cut(ruler, standby);
        let (worst, story) = flapping(story, 3, cut, mend);
        assert_eq!(worst, 0, "a link between two: {}", story.domain.picture());

        let one_way = |story: &mut Story| story.domain.world.network.cut_one_way(ruler, standby);
        let (worst, story) = flapping(story, 3, one_way, mend);
        assert_eq!(worst, 0, "one way: {}", story.domain.picture());

        let isolate = |story: &mut Story| {
            for other in (0..HOSTS).filter(|other| *other != ruler) {
                story.domain.world.network.cut(ruler, other);
            }
        };
        let (worst, story) = flapping(story, 5, isolate, mend);
        println!(
            "R4: seed {seed}: all links of the representative flap: {worst} changes in the worst minute"
        );
        assert!(worst <= 1, "{}", story.domain.picture());
        story.domain.assert_by_the_rules();
    }
}

/// All links of the representative are cut and mended repeatedly, and messages sent meanwhile arrive then;
/// the `starved` hosts are suspended repeatedly for a part of a second.
fn flapping_while_held(seed: u64, starved: &[Who], adjust: impl FnOnce(&mut Config)) -> (usize, Story) {
    let mut story = calm(seed, adjust);
    story.domain.world.network.holds = true;
    let ruler = story.find(Who::Representative).unwrap();
    for who in starved {
        let still = millis(350 + seed * 97 % 350);
        story.run(&[Step::Starve(*who, millis(75), still), Step::Wait(secs(5))]).unwrap();
    }
    let isolate = |story: &mut Story| {
        for other in (0..HOSTS).filter(|other| *other != ruler) {
            story.domain.world.network.cut(ruler, other);
        }
    };
    flapping(story, 5, isolate, mend)
}

#[test]
fn r4_what_the_network_held_back_is_no_news() {
    for seed in 0..5 {
        let (worst, story) = flapping_while_held(seed, &[], |_| {});
        println!(
            "R4: seed {seed}: the same, and connections hold what is sent: {worst} changes in the worst minute"
        );
        assert!(worst <= 1, "{}", story.domain.picture());
        story.domain.assert_by_the_rules();
    }
}

#[test]
fn r4_what_a_slow_representative_said_is_no_news() {
    let slow = [Who::Representative, Who::Standby(0), Who::Member(3)];
    for (seed, starved) in (0..36).zip([&slow[..1], &slow[1..2], &slow[..]].into_iter().cycle()) {
        let (all, story) = flapping_while_held(seed, starved, |_| {});
        // A host that is cut off for long serves itself, which changes nothing for the others.
        let ruler = story.domain.promotions()[0].host;
        let worst = worst_minute(&story, secs(15), Some(ruler));
        println!(
            "R4: seed {seed}: the same, {starved:?} slow: {worst} changes in the worst minute, {all} with its own"
        );
        assert!(worst <= 1 && all <= 2, "{}", story.domain.picture());
        story.domain.assert_by_the_rules();
    }
}

#[test]
fn r4_control_believing_what_was_held_back_moves_the_domain() {
    let moved =
        (0..5).filter(|seed| flapping_while_held(*seed, &[], |c| c.mechanisms.lateness = false).0 > 1);
    assert!(moved.count() > 0, "stale heartbeats do no harm");
}

#[test]
fn r4_a_bridge_between_two_halves_changes_nothing_more() {
    for seed in 0..3 {
        let mut story = calm(seed, |_| {});
        let ruler = story.find(Who::Representative).unwrap();
        // Two halves; only the bridge reaches both.
        let bridge = (ruler + 1) % HOSTS;
        let half = |host: usize| (host + HOSTS - ruler) % HOSTS < HOSTS / 2;
        for one in 0..HOSTS {
            for other in 0..HOSTS {
                if one != bridge && other != bridge && half(one) != half(other) {
                    story.domain.world.network.cut(one, other);
                }
            }
        }
        let since = story.domain.world.now();
        story.domain.run(secs(300));
        let changes = story.domain.promotions_since(since);
        println!(
            "R4: seed {seed}: bridge: {changes} promotions in 5 min, {:?} serve",
            story.domain.serving()
        );
        assert!(changes <= 1, "{}", story.domain.picture());
        assert_eq!(story.domain.serving().len(), 2, "{}", story.domain.picture());
        mend(&mut story);
        story.run(&[Step::Expect(secs(10), Expected::One)]).unwrap_or_else(|why| panic!("{why}"));
        story.domain.assert_by_the_rules();
    }
}

#[test]
fn r4_one_direction_of_all_links_of_the_representative() {
    for seed in 0..4 {
        for inbound in [true, false] {
            let mut story = calm(seed, |_| {});
            let ruler = story.find(Who::Representative).unwrap();
            for other in (0..HOSTS).filter(|other| *other != ruler) {
                let (from, to) = if inbound { (other, ruler) } else { (ruler, other) };
                story.domain.world.network.cut_one_way(from, to);
            }
            let since = story.domain.world.now();
            story.domain.run(secs(120));
            // The one with half-open links may serve itself once they are closed.
            let others = story.domain.promotions().iter().filter(|p| p.at >= since && p.host != ruler);
            assert_eq!(others.count(), 1, "inbound {inbound}: {}", story.domain.picture());
            mend(&mut story);
            story.run(&[Step::Expect(secs(10), Expected::One)]).unwrap_or_else(|why| panic!("{why}"));
            story.domain.assert_by_the_rules();
        }
    }
}

#[test]
fn r4_control_without_confirmation_one_link_moves_the_domain() {
    let story = calm(0, |config| config.mechanisms.confirmation = false);
    let ruler = story.find(Who::Representative).unwrap();
    let standby = story.find(Who::Standby(0)).unwrap();
    let cut = |story: &mut Story| story.domain.world.network.cut(ruler, standby);
    let (worst, _) = flapping(story, 3, cut, mend);
    assert!(worst > 0);
}

/// Two hosts whose link flaps. Returns the promotions in the worst minute.
fn flapping_pair(cool_off: bool) -> usize {
    let domain = Domain::new(2, 5, |config| {
        config.mechanisms.cool_off = cool_off;
        // Their stretched timers would outlast the flaps.
        config.mechanisms.local_health = false;
    });
    let mut story = Story::new(domain);
    story.run(&[Step::StartAll, Step::Expect(secs(20), Expected::One), Step::Wait(secs(10))]).unwrap();
    flapping(story, 5, |story| story.domain.world.network.cut(0, 1), mend).0
}

#[test]
fn r4_control_without_cooling_off_two_hosts_swap_the_role_with_every_flap() {
    let (with, without) = (flapping_pair(true), flapping_pair(false));
    println!("R4: a flapping pair: {with} changes in the worst minute, {without} without cooling off");
    assert!(with <= 1, "{with}");
    assert!(without > 1, "{without}");
}

/// Partition ten to ten for `span`. Returns how long until both halves are served, and until they are one
/// again.
fn split(
    seed: u64,
    span: Duration,
    adjust: impl FnOnce(&mut Config),
) -> Result<(Duration, Duration), String> {
    let mut story = calm(seed, adjust);
    let groups = vec![(0..HOSTS).step_by(2).collect::<Vec<_>>(), (1..HOSTS).step_by(2).collect()];
    story.run(&[
        Step::Partition(groups.clone()),
        Step::Expect(secs(25), Expected::OneEach(groups.clone(), Partial::Marked)),
        Step::Wait(span.saturating_sub(secs(25))),
        Step::Expect(secs(1), Expected::OneEach(groups, Partial::Marked)),
        Step::Mend,
        Step::Expect(secs(10), Expected::One),
        Step::Wait(secs(15)),
        Step::Expect(secs(1), Expected::OneEach(vec![(0..HOSTS).collect()], Partial::Whole)),
        Step::Always(secs(10), Expected::One),
    ])?;
    Ok((story.took[1], story.took[3]))
}

#[test]
fn r5_both_halves_of_a_split_are_served_and_heal() {
    let (mut served, mut healed) = (Vec::new(), Vec::new());
    for (seed, span) in [(0, 30), (1, 30), (2, 300), (3, 300), (4, 1800), (5, 30), (6, 60), (7, 90)] {
        let (serve, heal) = split(seed, secs(span), |_| {}).unwrap_or_else(|why| panic!("{why}"));
        served.push(serve);
        healed.push(heal);
    }
    println!(
        "R5: both halves served and marked after p50 {:?} max {:?}; one after healing p50 {:?} max {:?}",
        percentile(&mut served, 50),
        percentile(&mut served, 100),
        percentile(&mut healed, 50),
        percentile(&mut healed, 100),
    );
}

#[test]
fn r5_control_without_redialling_the_halves_stay_apart() {
    let result = split(0, secs(300), |config| config.mechanisms.redial = false);
    let why = result.expect_err("healed without dialling");
    assert!(why.contains("expected within 10s: One"), "{why}");
}

/// Start in a random order, with names that resolve after a minute. Returns how long after that all agree.
fn cold_start(seed: u64, adjust: impl FnOnce(&mut Config)) -> Option<Duration> {
    let mut domain = Domain::new(HOSTS, seed, adjust);
    domain.world.network.names_resolve = false;
    let mut order: Vec<_> = (0..HOSTS).collect();
    let mut dice = overlay::dice::Dice::new(seed);
    for at in (1..HOSTS).rev() {
        order.swap(at, usize::try_from(dice.below(at as u64 + 1)).unwrap());
    }
    for host in order {
        domain.world.start(host);
        domain.run(dice.span(Duration::ZERO, secs(2)));
    }
    domain.run(secs(60).saturating_sub(domain.world.now()));
    domain.world.network.names_resolve = true;
    let took = domain.run_until(secs(60), |domain| domain.agreed_by_all().is_some())?;
    domain.run(secs(30));
    domain.assert_by_the_rules();
    domain.agreed_by_all()?;
    Some(took)
}

#[test]
fn r6_a_cold_start_in_any_order_ends_in_one_view() {
    let mut times: Vec<_> =
        (0..20).map(|seed| cold_start(seed, |_| {}).unwrap_or_else(|| panic!("seed {seed}"))).collect();
    println!(
        "R6: 20 orders, names dead for 60 s: one view after p50 {:?} max {:?}",
        percentile(&mut times, 50),
        percentile(&mut times, 100)
    );
    assert!(percentile(&mut times, 100) <= secs(30));
}

#[test]
fn r6_control_seeds_dialled_once_are_not_enough() {
    assert_eq!(cold_start(0, |config| config.mechanisms.redial = false), None);
}
