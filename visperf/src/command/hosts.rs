//! `visperf hosts`: the hosts of the domain and their state.
//!
//! Not here: computing the figures (the representative does).

use crate::client::items;
use crate::command::query;
use crate::exit::{Failure, Kind};
use crate::harmless::clean;
use crate::options::{OfDomain, Query};
use crate::output::table::{Cell, Table};
use crate::output::times::{self};
use crate::output::{Color, Output};
use wire::api::domain::{Host, HostState, HostsParams};
use wire::shown::{age, share, whole_bytes};

/// Print the hosts of the domain: state, load, CPU, memory, running calls
///
/// Exits with 8 if a host that should report does not (state last_seen); all hosts are printed nevertheless.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
}

/// Print the hosts.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault; or if a host does not report.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let answer = query::request(&args.query, &HostsParams {}, &args.whose.about())?;
    let hosts = &answer.typed.hosts;
    let raw = items(&answer.raw, "hosts");
    query::print_typed(&args.query, &raw, hosts, "the domain has no host yet", table)?;
    let is_away = hosts.iter().any(|host| host.state == HostState::LastSeen);
    if is_away { Err(Failure::Printed(Kind::HostAway)) } else { Ok(()) }
}

fn table(hosts: &[Host], output: &mut Output) -> Result<(), Failure> {
    let table = Table::new(&[
        "HOST", "STATE", "ROLE", "LOAD", "CPUS", "CPU", "MEMORY", "OF", "UP", "SEEN", "COPIED", "EVENTS",
        "RUNNING",
    ]);
    let mut table = table.spares(&["COPIED", "ROLE", "EVENTS", "UP", "CPUS", "OF", "SEEN"]);
    let now = times::now();
    for host in hosts {
        let color = if host.state == HostState::Live { Color::Good } else { Color::Caution };
        table.row(vec![
            Cell::text(&host.host).color(Color::Name),
            Cell::text(host.state.as_str()).color(color),
            Cell::text(host.role.as_str()),
            figure(host.load1, |load| format!("{load:.2}")),
            figure(host.cpus, |cpus| cpus.to_string()),
            figure(host.cpu_used, share),
            figure(host.memory_used_bytes, whole_bytes),
            figure(host.memory_total_bytes, whole_bytes),
            figure(host.uptime_secs, age),
            Cell::figure(format!("{} ago", age(host.age_secs))),
            figure(host.copied_until, |until| format!("{} ago", age(now.since(until.0).as_secs_f64()))),
            figure(host.events, |events| events.to_string()),
            figure(host.calls_running, |calls| calls.to_string()),
        ]);
    }
    table.print(output)?;
    // Problems are sentences, which would leave no room in the table for other columns.
    for host in hosts {
        for problem in host.health.iter().flatten() {
            let problem = format!("{}: {}", clean(&host.host), clean(problem));
            output.line(&output.paint(Color::Caution, &problem))?;
        }
    }
    Ok(())
}

fn figure<T>(value: Option<T>, form: impl FnOnce(T) -> String) -> Cell {
    Cell::figure(value.map_or(String::new(), form))
}
