//! Small version of the simulated grid of the benchmark `scale`: checks what must hold at any size.

mod count;
mod grid;
mod inside;
mod look_up;
mod machine;
mod records;
mod reports;
mod speaker;
mod stories;

use count::Count;
use grid::World;
use inside::Inside;
use machine::Shape;
use overlay::election::Role as Elected;
use overlay::registrar::schedule::RENEWAL_INTERVAL;
use overlay::revocation_sync;
use speaker::Role;
use std::sync::OnceLock;
use std::time::Duration;
use stories::Domains;

const SHAPE: Shape = Shape { domains: 6, hosts: 8, directories: 3 };

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn simulated() -> &'static Domains {
    static SIMULATED: OnceLock<Domains> = OnceLock::new();
    SIMULATED.get_or_init(|| Domains::simulate(SHAPE.hosts as usize, 2))
}

fn stated(world: &World, at: usize) -> Count {
    world.machines[at].flow.got.get("state a record").copied().unwrap_or_default()
}

/// Statements that a directory receives in a steady minute in a grid of this many domains.
fn steady(domains: u32) -> (Count, World) {
    let mut world = stories::settled(Shape { domains, ..SHAPE }, simulated(), 5);
    world.run(secs(60));
    assert_eq!(world.wrong(), 0);
    (stated(&world, 1), world)
}

#[test]
fn all_directories_know_all_domains_soon_after_a_cold_start_of_everything() {
    let (mut world, right) = stories::cold_start(SHAPE, simulated(), 3);
    assert!(right < secs(20), "{right:?}");
    let sums: Vec<usize> = world.machines.iter().map(|machine| machine.handle.domains().len()).collect();
    assert_eq!(sums, [SHAPE.domains as usize; 3]);
    world.run(secs(30));
    let learners = u64::from(SHAPE.domains) * 3;
    assert!(
        world.tally.live >= learners * u64::from(SHAPE.domains) / 2,
        "names are learnt: {:?}",
        world.tally
    );
}

#[test]
fn every_domain_states_itself_to_every_directory_each_five_seconds_and_twice_as_many_cost_twice_as_much() {
    let (once, world) = steady(SHAPE.domains);
    let expected = u64::from(SHAPE.domains) * 60 / RENEWAL_INTERVAL.as_secs();
    assert!(once.messages.abs_diff(expected) <= u64::from(SHAPE.domains), "{once:?}, not about {expected}");
    let (twice, _) = steady(SHAPE.domains * 2);
    assert!(twice.messages.abs_diff(2 * once.messages) <= u64::from(SHAPE.domains), "{once:?} {twice:?}");
    let each = |count: Count| count.bytes / count.messages;
    assert!(each(once).abs_diff(each(twice)) <= 4, "{once:?} {twice:?}");
    // A directory does not fetch from another one what it received itself.
    let fetched = world.machines[1].flow.sent.get("fetch").copied().unwrap_or_default();
    assert!(fetched.messages <= expected / 4, "{fetched:?}");
}

#[test]
fn a_member_that_holds_no_connection_asks_one_directory_every_ten_minutes_and_nothing_else() {
    let (_, world) = steady(SHAPE.domains);
    let (_, sent) = world.flows[&Role::Plain].totals();
    let plain = u64::from(SHAPE.domains * (SHAPE.hosts - 3));
    let expected = plain * 60 / revocation_sync::SELDOM.as_secs();
    assert!(sent.messages <= expected * 4 + 4, "{sent:?}, about {expected}");
    assert_eq!(world.flows[&Role::Plain].sent.keys().collect::<Vec<_>>(), [&"who is denied"]);
}

#[test]
fn the_next_representative_is_named_everywhere_a_second_after_it_serves() {
    let mut world = stories::settled(SHAPE, simulated(), 7);
    let served = simulated().falls[0].first().expect("a successor").at;
    let right = stories::representatives_die(&mut world, simulated(), 0..1);
    assert!(right < served + secs(1), "{right:?}, it served after {served:?}");
    assert!(right > served, "{right:?} before {served:?}");
}

#[test]
fn a_directory_that_was_away_is_right_again_soon_and_the_others_lose_nothing() {
    let mut world = stories::settled(SHAPE, simulated(), 9);
    let right = stories::directory_restarts(&mut world, 2, secs(5));
    assert!(right < secs(2), "the others send it at once: {right:?}");
    world.run(secs(30));
    let right = stories::directory_is_cut_off(&mut world, 1, secs(60));
    assert!(right < secs(20), "{right:?}");
}

#[test]
fn what_clients_look_up_is_found_live_by_two_directories_that_agree() {
    let mut world = stories::settled(SHAPE, simulated(), 11);
    world.look_up_for_clients(200);
    world.run(secs(5));
    let tally = world.tally;
    assert!(tally.live >= 900, "{tally:?}");
    assert_eq!((tally.last_seen, tally.nothing, tally.disputed * 10 / tally.live), (0, 0, 0), "{tally:?}");
    let asked: u64 = world.machines.iter().map(|it| it.flow.got["look a domain up"].messages).sum();
    assert!(asked >= 2 * tally.live && asked <= 2 * tally.live + 200, "two are asked: {asked} for {tally:?}");
}

#[test]
fn inside_a_domain_each_host_costs_its_representative_five_heartbeats_in_two_seconds() {
    let beats = |hosts: usize| {
        let mut inside = Inside::start(hosts, 3);
        inside.run_until_one(secs(60)).expect("one representative of all");
        inside.run(secs(15));
        let holder = inside.hosts_of(Elected::Representative);
        let before = inside.traffic(&holder);
        inside.run(secs(10));
        inside.traffic(&holder).got - before.got
    };
    let expected = |hosts: u64| (hosts - 1) * 25;
    for hosts in [10, 20] {
        let beats = beats(usize::try_from(hosts).expect("few"));
        assert!(beats.abs_diff(expected(hosts)) <= expected(hosts) / 10, "{hosts} hosts: {beats}");
    }
}

#[test]
fn a_member_reports_each_sample_once_a_second_in_few_bytes() {
    let (first, rest) = reports::run(4, 50, 6);
    assert_eq!((first.samples, rest.samples), (4 * 50, 4 * 50 * 5));
    assert_eq!(rest.batches, 4 * 5);
    assert!(rest.bytes < first.bytes && rest.bytes < 4 * rest.samples, "{first:?} {rest:?}");
}
