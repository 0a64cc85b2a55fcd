//! Tables of figures of the simulated grid, printed to standard output.
#![allow(clippy::print_stdout)]

use crate::count::{Count, Flow};
use crate::grid::World;
use crate::inside::{self, Inside};
use crate::machine::Shape;
use crate::speaker::Role;
use overlay::election::Role as Elected;
use overlay::simulator::Traffic;
use overlay::{resolve::asker, revocation_sync};
use std::collections::BTreeMap;
use std::time::Duration;

/// Conversion for printing, which needs no more digits than a float has.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn real(number: u64) -> f64 {
    number as f64
}

/// Print what a host of each role in a domain sent and received since its start.
pub(crate) fn print_start(inside: &Inside, roles: &[Elected]) {
    for role in roles {
        let hosts = inside.hosts_of(*role);
        let sum = inside.traffic(&hosts);
        let each = |of: u64| real(of) / real(hosts.len() as u64);
        println!(
            "  {:<15} in {:>8.0} messages {:>9.1} kB  out {:>8.0} messages {:>9.1} kB  longest {} bytes",
            role.as_str(),
            each(sum.got),
            each(sum.got_bytes) / 1e3,
            each(sum.sent),
            each(sum.sent_bytes) / 1e3,
            sum.longest_bytes
        );
    }
}

/// Print what a host of each role sends and receives over `span` from now on.
pub(crate) fn print_inside(inside: &mut Inside, what: &str, roles: &[Elected], span: Duration) {
    println!("{what}, each host:");
    let before: Vec<Traffic> = (0..inside.domain.world.len()).map(|at| inside.traffic(&[at])).collect();
    inside.run(span);
    for role in roles {
        // The hosts that have the role at the end.
        let hosts = inside.hosts_of(*role);
        let before = hosts.iter().map(|at| before[*at]).fold(Traffic::default(), inside::plus);
        let after = inside.traffic(&hosts);
        let secs = span.as_secs_f64() * real(hosts.len() as u64);
        println!(
            "  {:<15} in {:>8.1}/s {:>8.2} kB/s  out {:>8.1}/s {:>8.2} kB/s  longest ever {} bytes",
            role.as_str(),
            real(after.got - before.got) / secs,
            real(after.got_bytes - before.got_bytes) / secs / 1e3,
            real(after.sent - before.sent) / secs,
            real(after.sent_bytes - before.sent_bytes) / secs / 1e3,
            after.longest_bytes
        );
    }
}

/// Print messages and bytes of each directory and each role.
pub(crate) fn print_flows(world: &World, span: Duration) {
    for (at, machine) in world.machines.iter().enumerate() {
        let busy = machine.busy.as_secs_f64() / span.as_secs_f64() * 100.0;
        print_flow(&format!("directory {at}"), &machine.flow, span, 1.0);
        let (messages, bytes) = busiest(&machine.flow);
        println!(
            "    busiest second {messages} messages {:.1} kB; its table took {busy:.2} % of a core",
            real(bytes) / 1e3
        );
    }
    for (role, flow) in &world.flows {
        let count = match role {
            Role::Plain => u64::from(world.shape.domains) * u64::from(world.shape.hosts.saturating_sub(3)),
            Role::Representative | Role::Standby => {
                let living = world.speakers.iter().filter(|it| it.role == *role && !it.is_dead);
                living.count() as u64
            }
        };
        print_flow(&format!("each of {count} {role:?}"), flow, span, real(count));
    }
}

fn print_flow(who: &str, flow: &Flow, span: Duration, among: f64) {
    let (got, sent) = flow.totals();
    println!("  {who:<32} in {}  out {}", rate(got, span, among), rate(sent, span, among));
    let mut kinds: Vec<&str> = flow.got.keys().chain(flow.sent.keys()).copied().collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let of = |all: &BTreeMap<&str, Count>| all.get(kind).copied().unwrap_or_default();
        let (got, sent) = (of(&flow.got), of(&flow.sent));
        let longest = got.longest.max(sent.longest);
        let (got, sent) = (rate(got, span, among), rate(sent, span, among));
        println!("    {kind:<30} in {got}  out {sent}  longest {longest} bytes");
    }
}

/// Print the number of connections at a directory, computed from the lasting connections and the visits.
pub(crate) fn print_places(shape: Shape) {
    let lasting = u64::from(shape.domains) * 3 + shape.directories as u64 - 1;
    let plain = u64::from(shape.domains) * u64::from(shape.hosts.saturating_sub(3));
    let visits = real(plain) / revocation_sync::SELDOM.as_secs_f64() / real(shape.directories as u64);
    println!(
        "connections at a directory: {lasting} that last, {visits:.0} visits a second of other members; \
         who was asked for another domain asks each {:?} who is admitted",
        asker::ASKED_FOR
    );
}

/// Resident memory of this process in KiB.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux system");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of it");
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Messages and bytes of the busiest second, both directions.
fn busiest(flow: &Flow) -> (u64, u64) {
    flow.seconds.values().copied().max_by_key(|(_, bytes)| *bytes).unwrap_or_default()
}

/// A rate such as `1234/s 56.7 kB/s`, over `span` and divided by `among`.
fn rate(count: Count, span: Duration, among: f64) -> String {
    let secs = span.as_secs_f64() * among;
    format!("{:>9.2}/s {:>10.2} kB/s", real(count.messages) / secs, real(count.bytes) / secs / 1e3)
}
