//! Cost of a grid of 1,000 domains of 500 hosts: messages and bytes at a directory, at a representative, at a
//! standby and at any other member, by the real cores on virtual time. `docs/scale.md` has the figures.
//!
//! `cargo bench -p system-tests --bench scale [-- DOMAINS HOSTS DIRECTORIES]`
#![allow(clippy::print_stdout)]

mod count;
mod figures;
mod grid;
mod inside;
mod look_up;
mod machine;
mod records;
mod reports;
mod speaker;
mod stories;

use figures::real;
use inside::Inside;
use machine::Shape;
use overlay::election::Role as Elected;
use std::time::Duration;
use stories::Domains;

/// Domains that are simulated individually; the others repeat one of them.
const SIMULATED: u64 = 3;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let [domains, hosts, directories] = numbers.try_into().unwrap_or([1000, 500, 3]);
    let shape = Shape { domains, hosts, directories: directories as usize };
    println!("{domains} domains of {hosts} hosts, {directories} directories");
    memory(shape);
    inside(shape);
    reports(shape);
    let domains = Domains::simulate(hosts as usize, SIMULATED);
    between(shape, &domains);
}

fn inside(shape: Shape) {
    let roles = [Elected::Representative, Elected::Standby, Elected::Member];
    println!("\n== inside a domain: heartbeats, claims and tables");
    let mut inside = Inside::start(shape.hosts as usize, 7);
    let took = inside.run_until_one(secs(60)).expect("one representative of all");
    println!("cold start: one representative of all after {took:?}, by then in all");
    figures::print_start(&inside, &roles);
    inside.run(secs(15));
    figures::print_inside(&mut inside, "steady", &roles, secs(10));
    for (what, is_process) in [("process", true), ("host", false)] {
        let holder = inside.domain.agreed_by_all().expect("it has settled");
        if is_process {
            inside.domain.world.kill(holder);
        } else {
            inside.domain.world.power_off(holder);
        }
        let died = inside.domain.world.now();
        let took = inside.run_until_one(secs(60)).expect("the next one");
        let next = inside
            .story
            .iter()
            .find(|change| change.at > died && Some(change.host) != u32::try_from(holder).ok());
        let served = next.expect("it was recorded").at.saturating_sub(died);
        println!(
            "the representative's {what} dies: the next one serves after {served:?}, heard by all after {took:?}"
        );
        figures::print_inside(&mut inside, "the 10 s after", &roles, secs(10));
        inside.run(secs(20));
    }
    inside.domain.assert_by_the_rules();
}

fn reports(shape: Shape) {
    const METRICS: u64 = 200;
    const SECONDS: u64 = 61;
    let (first, rest) = reports::run(shape.hosts, METRICS, SECONDS);
    let each = |of: u64| real(of) / real(shape.hosts.into());
    println!("\n== reports: {METRICS} metrics of each host at 1 Hz");
    println!(
        "with names: each member {:.0} bytes; all {:.1} kB at the representative, longest {} bytes",
        each(first.bytes),
        real(first.bytes) / 1e3,
        first.longest
    );
    let secs = real(SECONDS - 1);
    println!(
        "then: each member {:.2}/s {:.2} kB/s; at the representative in {:.1}/s {:.1} kB/s, out {:.1}/s {:.1} kB/s; \
         {:.2} bytes a sample, longest {} bytes",
        each(rest.batches) / secs,
        each(rest.bytes) / secs / 1e3,
        real(rest.batches) / secs,
        real(rest.bytes) / secs / 1e3,
        real(rest.answers) / secs,
        real(rest.answer_bytes) / secs / 1e3,
        real(rest.bytes) / real(rest.samples),
        rest.longest
    );
}

/// Memory of the tables; measured first, so that no memory freed earlier is reused.
fn memory(shape: Shape) {
    let domains = Domains::simulate(8, 1);
    let before = figures::resident_kib();
    let world = stories::settled(shape, &domains, 2);
    let after = figures::resident_kib();
    println!(
        "resident: {} MiB for the tables of {} directories and all that is simulated of {} sensors",
        (after - before) >> 10,
        shape.directories,
        world.speakers.len()
    );
}

fn between(shape: Shape, domains: &Domains) {
    let (mut world, right) = stories::cold_start(shape, domains, 1);
    println!("\n== between domains: cold start of all");
    println!("every directory names every representative after {right:?}");
    figures::print_flows(&world, world.now);
    let learnt = secs(30);
    world.forget_counts();
    world.run(learnt);
    println!("-- the next 30 s, while representatives and standbys learn every name");
    figures::print_flows(&world, learnt);
    drop(world);

    let mut world = stories::settled(shape, domains, 2);
    println!("\n== between domains: steady, a minute");
    world.run(secs(60));
    figures::print_flows(&world, secs(60));
    figures::print_places(shape);

    let tenth = (1..shape.domains).step_by(10).collect();
    for (what, these) in [("one representative dies", vec![0]), ("every tenth representative dies", tenth)] {
        world.forget_counts();
        let right = stories::representatives_die(&mut world, domains, these.into_iter());
        println!("\n== {what}: every directory is right after {right:?}");
        world.run(secs(10).saturating_sub(right));
        figures::print_flows(&world, secs(10).max(right));
        world.run(secs(30));
    }

    world.forget_counts();
    let right = stories::directory_restarts(&mut world, 0, secs(20));
    println!("\n== directory 0 was dead for 20 s: it is right {right:?} after its start");
    figures::print_flows(&world, secs(20) + right);
    world.run(secs(30));
    let right = stories::directory_is_cut_off(&mut world, 0, secs(60));
    println!("\n== directory 0 was cut off for a minute: it is right {right:?} after its return");
    figures::print_flows(&world, right);
    world.run(secs(30));

    let each_second = u64::from(shape.domains) * u64::from(shape.hosts) / 60;
    world.forget_counts();
    world.look_up_for_clients(each_second);
    world.run(secs(10));
    println!("\n== every host looks a domain up each minute ({each_second}/s): {:?}", world.tally);
    figures::print_flows(&world, secs(10));
}
