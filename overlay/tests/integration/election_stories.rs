//! Election in scenarios: a domain of one, of two, of twenty; clean stops; preferred hosts; restarts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use overlay::simulator::Domain;
use overlay::simulator::scenario::{Expected, Partial, Step, Story, Who};
use std::time::Duration;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[track_caller]
fn play(hosts: usize, seed: u64, steps: &[Step]) -> Story {
    let mut story = Story::new(Domain::new(hosts, seed, |_| {}));
    if let Err(why) = story.run(steps) {
        panic!("{why}");
    }
    story
}

#[test]
fn a_domain_of_one_serves_itself_whole() {
    let story = play(1, 1, &[Step::StartAll, Step::Expect(secs(3), Expected::Is(0)), Step::Wait(secs(60))]);
    assert!(!story.domain.state(0).unwrap().partial);
    assert_eq!(story.domain.promotions().len(), 1);
}

#[test]
fn a_domain_of_one_with_dead_seeds_serves_itself_marked_partial() {
    let mut domain = Domain::new(1, 1, |config| config.has_seeds = true);
    domain.world.network.names_resolve = false;
    let mut story = Story::new(domain);
    story.run(&[Step::StartAll, Step::Expect(secs(10), Expected::Is(0))]).unwrap();
    assert!(story.domain.state(0).unwrap().partial);
}

#[test]
fn of_two_the_other_takes_over_and_keeps_the_role() {
    for seed in 0..20 {
        play(
            2,
            seed,
            &[
                Step::StartAll,
                Step::Expect(secs(10), Expected::One),
                Step::Wait(secs(5)),
                Step::Note,
                Step::Kill(Who::Representative),
                Step::Expect(secs(5), Expected::Another),
                Step::RestartAll,
                Step::Wait(secs(10)),
                Step::Expect(secs(1), Expected::Another),
                Step::Always(secs(30), Expected::PromotionsAtMost(1)),
            ],
        );
    }
}

#[test]
fn a_clean_stop_is_not_waited_for() {
    for seed in 0..10 {
        let story = play(
            8,
            seed,
            &[
                Step::StartAll,
                Step::Expect(secs(10), Expected::One),
                Step::Wait(secs(5)),
                Step::Note,
                Step::Stop(Who::Representative),
                Step::Expect(secs(1), Expected::Another),
                Step::Always(secs(20), Expected::PromotionsAtMost(1)),
            ],
        );
        assert!(story.took[1] < Duration::from_millis(300), "{:?}", story.took);
    }
}

#[test]
fn a_representative_that_restarts_is_replaced_without_waiting() {
    for seed in 0..10 {
        let mut story = Story::new(Domain::new(8, seed, |_| {}));
        story
            .run(&[Step::StartAll, Step::Expect(secs(10), Expected::One), Step::Wait(secs(5)), Step::Note])
            .unwrap();
        let old = story.find(Who::Representative).unwrap();
        story
            .run(&[Step::Kill(Who::Host(old)), Step::Start(old), Step::Expect(secs(4), Expected::One)])
            .unwrap();
        story.run(&[Step::Wait(secs(5)), Step::Always(secs(20), Expected::PromotionsAtMost(1))]).unwrap();
    }
}

/// The representative of so many hosts is killed `after` all obey it.
fn dies_after(hosts: usize, after: Duration, seed: u64) -> Result<(), String> {
    Story::new(Domain::new(hosts, seed, |_| {})).run(&[
        Step::StartAll,
        Step::Expect(secs(20), Expected::One),
        Step::Wait(after),
        Step::Note,
        Step::Kill(Who::Representative),
        Step::Expect(secs(5), Expected::Another),
    ])
}

#[test]
fn a_representative_that_dies_right_after_its_election_is_followed_as_any_other() {
    for (after, seed) in
        [0, 5, 20, 100, 300, 600].into_iter().flat_map(|after| (0..10).map(move |s| (after, s)))
    {
        for hosts in [4, 20] {
            let result = dies_after(hosts, Duration::from_millis(after), seed);
            result.unwrap_or_else(|why| panic!("{hosts} hosts, {after} ms after, seed {seed}: {why}"));
        }
    }
}

#[test]
fn the_representative_and_both_standbys_may_die_together() {
    for seed in 0..10 {
        play(
            12,
            seed,
            &[
                Step::StartAll,
                Step::Expect(secs(15), Expected::One),
                Step::Wait(secs(10)),
                Step::Note,
                Step::Kill(Who::Standby(0)),
                Step::Kill(Who::Standby(0)),
                Step::Kill(Who::Representative),
                Step::Expect(secs(20), Expected::Another),
                Step::RestartAll,
                Step::Wait(secs(10)),
                Step::Expect(secs(1), Expected::Another),
            ],
        );
    }
}

#[test]
fn a_host_that_was_cut_off_does_not_take_the_domain_with_it() {
    for seed in 0..10 {
        let mut story = Story::new(Domain::new(10, seed, |_| {}));
        let begin = [Step::StartAll, Step::Expect(secs(15), Expected::One), Step::Wait(secs(10)), Step::Note];
        story.run(&begin).unwrap();
        let (ruler, cut) = (story.find(Who::Representative).unwrap(), story.find(Who::Member(1)).unwrap());
        let rest: Vec<_> = (0..10).filter(|host| *host != cut).collect();
        let alone = Expected::OneEach(vec![vec![cut]], Partial::Marked);
        story
            .run(&[
                Step::Isolate(Who::Host(cut)),
                Step::Expect(secs(30), alone),
                Step::Expect(secs(1), Expected::OneEach(vec![rest], Partial::Marked)),
                Step::Mend,
                Step::Expect(secs(10), Expected::Is(ruler)),
                Step::Always(secs(20), Expected::Is(ruler)),
            ])
            .unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn the_operators_priority_is_followed_after_ten_calm_minutes() {
    let domain = Domain::with_priorities(&[0, 0, 0, 9, 0], 3, |_| {});
    let mut story = Story::new(domain);
    for host in [0, 1, 2, 4] {
        story.domain.world.start(host);
    }
    story
        .run(&[Step::Expect(secs(10), Expected::One), Step::Wait(secs(30)), Step::Start(3), Step::Note])
        .unwrap();
    story
        .run(&[
            Step::Wait(secs(3)),
            Step::Always(secs(590), Expected::Same),
            Step::Expect(secs(60), Expected::Is(3)),
            Step::Always(secs(60), Expected::PromotionsAtMost(1)),
        ])
        .unwrap_or_else(|why| panic!("{why}"));
}

/// One sensor joins last, and the domain is split right after it obeyed and before it received the table.
fn late_joiner(host: usize, seed: u64) -> Result<(), String> {
    let mut story = Story::new(Domain::new(20, seed, |_| {}));
    let others = (0..20).filter(|other| *other != host);
    others.clone().for_each(|other| story.domain.world.start(other));
    let ready = story.domain.run_until(Duration::from_secs(20), |domain| domain.agreed_by_all().is_some());
    ready.ok_or("no representative")?;
    story.domain.run(Duration::from_secs(15));
    let mut there = story.domain.standbys();
    there.push(story.find(Who::Representative)?);
    // Its own half includes neither the representative nor a standby.
    let rest: Vec<usize> = others.filter(|other| !there.contains(other)).collect();
    let (theirs, ours) = rest.split_at(10 - there.len());
    story.domain.world.set_seeds(host, ours.to_vec());
    story.domain.world.start(host);
    let obeys = story.domain.run_until(Duration::from_secs(20), |domain| {
        domain.node(host).is_some_and(|node| node.accepted().is_some() && node.table().len() <= 1)
    });
    obeys.ok_or("it received the table at once")?;
    let halves = vec![[&there[..], theirs].concat(), [&[host], ours].concat()];
    story.run(&[
        Step::Partition(halves.clone()),
        Step::Expect(Duration::from_secs(60), Expected::OneEach(halves.clone(), Partial::Marked)),
    ])?;
    if story.domain.agreed(&halves[1]) == Some(host) {
        return Err("a sensor without the table stood before those that know the domain".into());
    }
    story.run(&[
        Step::Wait(Duration::from_secs(60)),
        Step::Mend,
        Step::Expect(Duration::from_secs(10), Expected::One),
    ])
}

#[test]
fn a_sensor_without_the_table_does_not_take_a_half_for_the_whole() {
    for (host, seed) in (0..20).flat_map(|host| [(host, 1), (host, 2)]) {
        late_joiner(host, seed).unwrap_or_else(|why| panic!("host {host}, seed {seed}: {why}"));
    }
}
