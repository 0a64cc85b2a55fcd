//! `visperf summary`: an overview of the domain.
//!
//! Not here: the aggregation (`sensor::representative`).

use crate::command::query;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::{OfDomain, Query};
use crate::output::figures::{number, user};
use crate::output::table::{Cell, Table};
use crate::output::times::{brief, now};
use crate::output::{Color, Output, note};
use jiff::tz::TimeZone;
use wire::api::domain::{CallCounts, MetricSummary, Summary, SummaryParams};
use wire::shown::{age, bytes, share};
use wire::time::Time;

/// Print a summary of the domain: hosts, calls by state and outcome, sums of metrics, busiest users
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Print all metrics, not just CPU, load, processes, memory, swap and uptime
    #[arg(long)]
    all: bool,
}

/// Metrics of the overview, in the order in which they are printed.
const AT_A_GLANCE: [&str; 12] = [
    "cpu_used",
    "node_load1",
    "node_load5",
    "node_load15",
    "node_procs_running",
    "node_procs_blocked",
    "node_memory_MemTotal_bytes",
    "node_memory_MemAvailable_bytes",
    "node_memory_SwapTotal_bytes",
    "node_memory_SwapFree_bytes",
    "node_filesystem_avail_bytes",
    "node_uptime_seconds",
];

/// Print the summary.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let answer = query::request(&args.query, &SummaryParams {}, &args.whose.about())?;
    let mut output = args.query.width.output();
    match args.query.json {
        true => output.json(&answer.raw)?,
        false => show(&answer.typed, args.all, &mut output)?,
    }
    output.flush()?;
    query::note_missing(&answer.typed.unheard);
    Ok(())
}

fn show(summary: &Summary, every_metric: bool, output: &mut Output) -> Result<(), Failure> {
    let line = |name: &str, text: &str, output: &mut Output| {
        let name = output.paint(Color::Head, &format!("{name:<16}")).into_owned();
        output.line(&format!("{name}{}", clean(text)))
    };
    line("domain", &summary.domain, output)?;
    line("representative", &summary.representative, output)?;
    line("hosts", &format!("{}, {} live", summary.hosts, summary.hosts_live), output)?;
    line("calls", &calls(&summary.calls), output)?;
    line("events", &summary.events.to_string(), output)?;
    let users = summary.top.users.iter().map(|one| (user(&one.user).into_owned(), one.calls));
    let hosts = summary.top.hosts.iter().map(|one| (one.host.clone(), one.calls));
    for (title, top) in [("busiest users", users.collect::<Vec<_>>()), ("busiest hosts", hosts.collect())] {
        let top: Vec<String> = top.iter().map(|(name, calls)| format!("{name} {calls}")).collect();
        if !top.is_empty() {
            line(title, &format!("{} (calls running)", top.join(", ")), output)?;
        }
    }
    let all = &summary.metrics;
    let at_a_glance = || AT_A_GLANCE.iter().filter_map(|name| all.iter().find(|metric| metric.name == *name));
    let shown: Vec<&MetricSummary> =
        if every_metric { all.iter().collect() } else { at_a_glance().collect() };
    metrics(&shown, output)?;
    if shown.len() < all.len() {
        output.flush()?;
        note(&format!("{} of {} metrics; --all shows them all", shown.len(), all.len()));
    }
    Ok(())
}

/// The counts that are not zero.
fn calls(counts: &CallCounts) -> String {
    let CallCounts { waiting, running, ended, ok, failed, cancelled, timeout, node_fail, finished } = *counts;
    let all = [
        ("waiting", waiting),
        ("running", running),
        ("ended", ended),
        ("ok", ok),
        ("failed", failed),
        ("cancelled", cancelled),
        ("timeout", timeout),
        ("node_fail", node_fail),
        ("finished", finished),
    ];
    let some: Vec<String> = all
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| format!("{name} {number}"))
        .collect();
    if some.is_empty() { "none".to_owned() } else { some.join(", ") }
}

/// For one host, print each value; for several, how the values differ, and their sum if it is meaningful (the
/// daemon leaves it out otherwise).
fn metrics(metrics: &[&MetricSummary], output: &mut Output) -> Result<(), Failure> {
    if metrics.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let one_host = metrics.iter().all(|metric| metric.count == 1);
    let heads: &[&str] = if one_host {
        &["METRIC", "VALUE", "UNIT"]
    } else {
        &["METRIC", "SUM", "MEAN", "LEAST", "MOST", "HOSTS", "UNIT"]
    };
    let mut table = Table::new(heads).spares(&["HOSTS", "UNIT"]);
    for MetricSummary { name, unit, mean, min, max, count, sum, .. } in metrics {
        let figure = |value: f64| Cell::figure(shown(value, name, unit));
        let mut row = vec![Cell::text(name).color(Color::Name)];
        if one_host {
            row.push(figure(*mean));
        } else {
            row.push(sum.map_or_else(|| Cell::figure(""), figure));
            row.extend([figure(*mean), figure(*min), figure(*max), Cell::figure(count.to_string())]);
        }
        row.push(Cell::whole(if is_plain(name, unit) { unit } else { "" }).color(Color::Dim));
        table.row(row);
    }
    table.print(output)
}

fn shown(value: f64, name: &str, unit: &str) -> String {
    match unit {
        "bytes" => bytes(value),
        "ratio" => share(value),
        "seconds" if name.ends_with("_time_seconds") => {
            brief(Time::from_secs_f64(value), now(), &TimeZone::system())
        }
        "seconds" if name.ends_with("uptime_seconds") => age(value),
        _ => number(value),
    }
}

/// Whether the value is printed without its unit.
fn is_plain(name: &str, unit: &str) -> bool {
    shown(1.0, name, unit) == number(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;

    fn check(metrics: Vec<MetricSummary>, every_metric: bool, expected: &str) {
        let shared = Capture::default();
        show(
            &Summary { metrics, ..Summary::default() },
            every_metric,
            &mut Output::into_writer(shared.clone(), None),
        )
        .unwrap();
        let printed = shared.text();
        let (_, metrics) = printed.split_once("\n\n").unwrap();
        assert_eq!(metrics, expected);
    }

    fn metric(name: &str, unit: &str, least: f64, most: f64, count: u64) -> MetricSummary {
        let sum = (!["ratio", "seconds"].contains(&unit)).then_some(least + most);
        let (name, unit) = (name.to_owned(), unit.to_owned());
        let (additive, mean) = (sum.is_some(), (least + most) / 2.0);
        MetricSummary { name, unit, additive, mean, min: least, max: most, count, top: Vec::new(), sum }
    }

    #[test]
    fn a_glance_has_the_metrics_one_wants_and_no_sums_that_mean_nothing() {
        let metrics = vec![
            metric("node_memory_Active_bytes", "bytes", 1.0, 2.0, 2),
            metric("node_memory_MemTotal_bytes", "bytes", 1024.0, 3072.0, 2),
            metric("node_uptime_seconds", "seconds", 7200.0, 14400.0, 2),
            metric("node_load1", "", 0.5, 1.5, 2),
            metric("cpu_used", "ratio", 0.25, 0.75, 2),
        ];
        let expected = "METRIC                          SUM     MEAN    LEAST     MOST  HOSTS\n\
             cpu_used                                50 %     25 %     75 %      2\n\
             node_load1                        2        1      0.5      1.5      2\n\
             node_memory_MemTotal_bytes  4.0 KiB  2.0 KiB  1.0 KiB  3.0 KiB      2\n\
             node_uptime_seconds                       3h       2h       4h      2\n";
        check(metrics, false, expected);
    }

    #[test]
    fn one_host_has_one_value() {
        let metrics = vec![
            metric("node_boot_time_seconds", "seconds", 0.0, 0.0, 1),
            metric("node_forks_total", "", 7.0, 7.0, 1),
            metric("node_pressure_cpu_waiting_seconds_total", "seconds", 2.0, 2.0, 1),
        ];
        let expected = "METRIC                                                  VALUE  UNIT\n\
             node_boot_time_seconds                   1970-01-01T00:00:00Z\n\
             node_forks_total                                            7\n\
             node_pressure_cpu_waiting_seconds_total                     2  seconds\n";
        check(metrics, true, expected);
    }
}
