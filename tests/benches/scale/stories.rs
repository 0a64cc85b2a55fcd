//! Scenarios of the simulated grid: each is run separately, with assertions on its final state.

use crate::grid::{Change, World};
use crate::inside::Inside;
use crate::machine::Shape;
use overlay::election::Role;
use std::time::Duration;

/// Longest time until all directories are right again, in every scenario: three leases.
const RIGHT_MAX: Duration = Duration::from_secs(45);

/// Recorded changes of domains, as their directories receive them: from a cold start, and after the death of
/// the representative.
pub(crate) struct Domains {
    /// Changes after a cold start, of several domains of that size, each with another seed.
    pub(crate) starts: Vec<Vec<Change>>,
    /// Standbys of each domain, once it has settled.
    pub(crate) standbys: Vec<Vec<u32>>,
    /// Changes after the death of the representative, with times relative to it.
    pub(crate) falls: Vec<Vec<Change>>,
    /// Standbys after that.
    pub(crate) heirs: Vec<Vec<u32>>,
}

impl Domains {
    /// Simulate `count` domains of `hosts` hosts each: a cold start, and then the death of the
    /// representative.
    pub(crate) fn simulate(hosts: usize, count: u64) -> Domains {
        let (starts, standbys, falls, heirs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut domains = Domains { starts, standbys, falls, heirs };
        for seed in 1..=count {
            let mut inside = Inside::start(hosts, seed);
            inside.run_until_one(Duration::from_secs(60)).expect("one representative of all");
            inside.run(Duration::from_secs(5));
            let number = |at: usize| u32::try_from(at).expect("few");
            domains.starts.push(std::mem::take(&mut inside.story));
            domains.standbys.push(inside.hosts_of(Role::Standby).into_iter().map(number).collect());
            let died = inside.domain.world.now();
            let holder = inside.domain.agreed_by_all().expect("it has settled");
            inside.domain.world.kill(holder);
            inside.run_until_one(Duration::from_secs(60)).expect("the next one");
            inside.run(Duration::from_secs(5));
            domains.heirs.push(inside.hosts_of(Role::Standby).into_iter().map(number).collect());
            let after = |change: Change| Change { at: change.at - died, ..change };
            let follows = |change: &Change| change.host != number(holder);
            let story = std::mem::take(&mut inside.story);
            domains.falls.push(story.into_iter().filter(follows).map(after).collect());
            inside.domain.assert_by_the_rules();
        }
        domains
    }

    fn of(&self, domain: u32) -> usize {
        domain as usize % self.starts.len()
    }
}

/// Start every host and every directory of the grid within one second, the directories with empty tables.
pub(crate) fn start(shape: Shape, domains: &Domains, seed: u64) -> World {
    let mut world = World::new(shape, seed);
    for domain in 0..shape.domains {
        let of = domains.of(domain);
        // Spread over the second.
        let offset = Duration::from_secs(1) * domain / shape.domains;
        world.schedule(domain, &domains.starts[of], offset);
        for host in &domains.standbys[of] {
            world.add_standby(domain, *host);
        }
    }
    world
}

/// As [`start`], after the grid has settled and without the counts of the start.
pub(crate) fn settled(shape: Shape, domains: &Domains, seed: u64) -> World {
    let mut world = start(shape, domains, seed);
    world.run(Duration::from_secs(90));
    assert_eq!(world.wrong(), 0, "every directory knows every domain");
    world.forget_counts();
    world
}

/// Start everything, and run until every directory names the representative of every domain.
pub(crate) fn cold_start(shape: Shape, domains: &Domains, seed: u64) -> (World, Duration) {
    let mut world = start(shape, domains, seed);
    world.learns = true;
    let right = world.run_until_right(RIGHT_MAX * 2).expect("every directory is right");
    (world, right)
}

/// Kill the representatives of `these` domains at once; returns the time until every directory names their
/// successors.
pub(crate) fn representatives_die(
    world: &mut World,
    domains: &Domains,
    these: impl Iterator<Item = u32>,
) -> Duration {
    for domain in these {
        let of = domains.of(domain);
        world.kill_representative(domain);
        world.schedule(domain, &domains.falls[of], Duration::ZERO);
        for host in domains.heirs[of].iter().filter(|host| !domains.standbys[of].contains(host)) {
            world.add_standby(domain, *host);
        }
    }
    assert!(world.wrong() > 0, "the successors are not known yet");
    world.run_until_right(RIGHT_MAX).expect("every directory is right again")
}

/// Kill a directory and restart it `away` later from its snapshot; returns the time until it is right.
pub(crate) fn directory_restarts(world: &mut World, at: usize, away: Duration) -> Duration {
    world.kill(at);
    world.run(away);
    assert_eq!(world.wrong(), 0, "the others lost nothing");
    world.start(at);
    assert!(world.wrong() > 0, "what a snapshot held is last seen, not live");
    world.run_until_right(RIGHT_MAX).expect("the directory is right again")
}

/// Cut a directory off from all peers for `away`, long enough that its leases expire; returns the time until
/// it is right.
pub(crate) fn directory_is_cut_off(world: &mut World, at: usize, away: Duration) -> Duration {
    world.set_cut_off(at, true);
    world.run(away);
    let all = world.shape.domains as usize;
    assert_eq!(world.wrong(), all, "the one cut off names no peer as live, the others name all");
    world.forget_counts();
    world.set_cut_off(at, false);
    world.run_until_right(RIGHT_MAX).expect("the directory is right again")
}
