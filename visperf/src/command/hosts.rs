//! `visperf hosts`: the hosts of the domain and how they are.
//!
//! Not here: the figures (the representative has them).

use crate::cli::{OfDomain, Query};
use crate::command::query::{self, Params};
use crate::exit::{Failure, Kind};
use crate::output::figures::{bytes, number_of, plain, share, text_of};
use crate::output::table::{Cell, Table};
use crate::output::times::age;
use crate::output::{Color, Output, clean};
use serde_json::Value;

/// Print the hosts of the domain: alive or not, load, CPU, memory, calls at work
///
/// Ends with 8 if a host that should report does not (its state is last_seen): all hosts are printed nevertheless.
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
    let answer = query::ask(&args.query, "domain.hosts", Params::default().of(&args.whose))?;
    let hosts = query::items(&answer, "hosts");
    let is_away = hosts.iter().any(|host| text_of(host, "state") == "last_seen");
    query::print(&args.query, hosts, "the domain has no host yet", table)?;
    if is_away { Err(Failure::Told(Kind::HostAway)) } else { Ok(()) }
}

fn table(hosts: &[Value], output: &mut Output) -> Result<(), Failure> {
    let table = Table::new(&[
        "HOST", "STATE", "ROLE", "LOAD", "CPUS", "CPU", "MEMORY", "OF", "UP", "SEEN", "EVENTS", "RUNNING",
    ]);
    let mut table = table.spares(&["ROLE", "EVENTS", "UP", "CPUS", "OF", "SEEN"]);
    for host in hosts {
        let figure = |name: &str, form: fn(f64) -> String| {
            Cell::figure(number_of(host, name).map_or(String::new(), form))
        };
        let state = text_of(host, "state");
        table.row(vec![
            Cell::text(text_of(host, "host")).color(Color::Name),
            Cell::text(state).color(if state == "live" { Color::Good } else { Color::Caution }),
            Cell::text(text_of(host, "role")),
            figure("load1", |load| format!("{load:.2}")),
            Cell::figure(plain(host.get("cpus"))),
            figure("cpu_used", share),
            // A share of the whole or bytes, as the sensor tells it.
            figure("memory_used", |used| if used <= 1.0 { share(used) } else { bytes(used) }),
            figure("memory_total", bytes),
            figure("uptime", age),
            figure("age", |secs| format!("{} ago", age(secs))),
            Cell::figure(plain(host.get("events"))),
            Cell::figure(plain(host.get("calls_running"))),
        ]);
    }
    table.print(output)?;
    // Sentences, which would leave a table no room for anything else.
    for host in hosts {
        for told in host.get("health").and_then(Value::as_array).into_iter().flatten() {
            let told =
                format!("{}: {}", clean(text_of(host, "host")), clean(told.as_str().unwrap_or_default()));
            output.line(&output.paint(Color::Caution, &told))?;
        }
    }
    Ok(())
}
