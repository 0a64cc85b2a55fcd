//! `visperf summary`: the domain at a glance.
//!
//! Not here: the summing up (`sensor::representative`).

use crate::cli::{OfDomain, Query};
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::figures::{bytes, number, number_of, plain, share, text_of, user};
use crate::output::table::{Cell, Table};
use crate::output::times::{age, brief, now};
use crate::output::{Color, Output, clean, note};
use jiff::tz::TimeZone;
use serde_json::Value;
use wire::time::Time;

/// Print the domain at a glance: hosts, calls by state and outcome, sums of metrics, who is busiest
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Every metric, not just CPU, load, processes, memory, swap and uptime
    #[arg(long)]
    all: bool,
}

/// The metrics of a glance, in the order in which they are wanted.
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
    let answer = query::ask(&args.query, "domain.summary", Params::default().of(&args.whose))?;
    let mut output = args.query.width.output();
    match args.query.json {
        true => output.json(&answer)?,
        false => show(&answer, args.all, &mut output)?,
    }
    output.flush()?;
    query::note_unheard(&answer);
    Ok(())
}

fn show(answer: &Value, every_metric: bool, output: &mut Output) -> Result<(), Failure> {
    let line = |name: &str, text: String, output: &mut Output| {
        let name = output.paint(Color::Head, &format!("{name:<16}")).into_owned();
        output.line(&format!("{name}{}", clean(&text)))
    };
    line("domain", text_of(answer, "domain").to_owned(), output)?;
    line("representative", text_of(answer, "representative").to_owned(), output)?;
    let (live, all) = (plain(answer.get("hosts_live")), plain(answer.get("hosts")));
    line("hosts", format!("{all}, {live} live"), output)?;
    let calls = answer.get("calls").and_then(Value::as_object);
    let calls: Vec<String> = calls
        .into_iter()
        .flatten()
        .filter(|(_, number)| number.as_f64() != Some(0.0))
        .map(|(name, number)| format!("{name} {}", plain(Some(number))))
        .collect();
    line("calls", if calls.is_empty() { "none".to_owned() } else { calls.join(", ") }, output)?;
    line("events", plain(answer.get("events")), output)?;
    for (list, name, title) in [("users", "user", "busiest users"), ("hosts", "host", "busiest hosts")] {
        let top = answer.get("top").map_or(Vec::new(), |top| query::items(top, list));
        let called = |one: &Value| match (name, text_of(one, name)) {
            ("user", text) => user(text).into_owned(),
            (_, text) => text.to_owned(),
        };
        let top: Vec<String> =
            top.iter().map(|one| format!("{} {}", called(one), plain(one.get("calls")))).collect();
        if !top.is_empty() {
            line(title, format!("{} (calls running)", top.join(", ")), output)?;
        }
    }
    let all_metrics = query::items(answer, "metrics");
    let at_a_glance = || {
        AT_A_GLANCE
            .iter()
            .filter_map(|name| all_metrics.iter().find(|metric| text_of(metric, "name") == *name))
    };
    let shown: Vec<&Value> =
        if every_metric { all_metrics.iter().collect() } else { at_a_glance().collect() };
    metrics(&shown, output)?;
    if shown.len() < all_metrics.len() {
        output.flush()?;
        note(&format!("{} of {} metrics; --all shows them all", shown.len(), all_metrics.len()));
    }
    Ok(())
}

/// Of one host there is one value; of several, how they differ, and their sum where it means anything (the
/// daemon leaves it out elsewhere).
fn metrics(metrics: &[&Value], output: &mut Output) -> Result<(), Failure> {
    if metrics.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let one_host = metrics.iter().all(|metric| number_of(metric, "count") == Some(1.0));
    let heads: &[&str] = if one_host {
        &["METRIC", "VALUE", "UNIT"]
    } else {
        &["METRIC", "SUM", "MEAN", "LEAST", "MOST", "HOSTS", "UNIT"]
    };
    let mut table = Table::new(heads).spares(&["HOSTS", "UNIT"]);
    for metric in metrics {
        let (name, unit) = (text_of(metric, "name"), text_of(metric, "unit"));
        let figure = |of: &str| {
            Cell::figure(number_of(metric, of).map_or(String::new(), |value| shown(value, name, unit)))
        };
        let mut row = vec![Cell::text(name).color(Color::Name)];
        if one_host {
            row.push(figure("mean"));
        } else {
            row.push(figure("sum"));
            row.extend([
                figure("mean"),
                figure("min"),
                figure("max"),
                Cell::figure(plain(metric.get("count"))),
            ]);
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

/// Whether the figure stands without its unit.
fn is_plain(name: &str, unit: &str) -> bool {
    shown(1.0, name, unit) == number(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::kept::Kept;
    use serde_json::json;

    fn check(answer: &Value, every_metric: bool, expected: &str) {
        let shared = Kept::default();
        show(answer, every_metric, &mut Output::into_writer(shared.clone(), None)).unwrap();
        let printed = shared.text();
        let (_, metrics) = printed.split_once("\n\n").unwrap();
        assert_eq!(metrics, expected);
    }

    fn metric(name: &str, unit: &str, least: f64, most: f64, count: u64) -> Value {
        let sum = (!["ratio", "seconds"].contains(&unit)).then_some(least + most);
        json!({"name": name, "unit": unit, "sum": sum, "mean": (least + most) / 2.0, "min": least,
            "max": most, "count": count})
    }

    #[test]
    fn a_glance_has_the_metrics_one_wants_and_no_sums_that_mean_nothing() {
        let answer = json!({"metrics": [
            metric("node_memory_Active_bytes", "bytes", 1.0, 2.0, 2),
            metric("node_memory_MemTotal_bytes", "bytes", 1024.0, 3072.0, 2),
            metric("node_uptime_seconds", "seconds", 7200.0, 14400.0, 2),
            metric("node_load1", "", 0.5, 1.5, 2),
            metric("cpu_used", "ratio", 0.25, 0.75, 2),
        ]});
        let expected = "METRIC                          SUM     MEAN    LEAST     MOST  HOSTS\n\
             cpu_used                                50 %     25 %     75 %      2\n\
             node_load1                        2        1      0.5      1.5      2\n\
             node_memory_MemTotal_bytes  4.0 KiB  2.0 KiB  1.0 KiB  3.0 KiB      2\n\
             node_uptime_seconds                       3h       2h       4h      2\n";
        check(&answer, false, expected);
    }

    #[test]
    fn one_host_has_one_value() {
        let answer = json!({"metrics": [
            metric("node_boot_time_seconds", "seconds", 0.0, 0.0, 1),
            metric("node_forks_total", "", 7.0, 7.0, 1),
            metric("node_pressure_cpu_waiting_seconds_total", "seconds", 2.0, 2.0, 1),
        ]});
        let expected = "METRIC                                                  VALUE  UNIT\n\
             node_boot_time_seconds                   1970-01-01T00:00:00Z\n\
             node_forks_total                                            7\n\
             node_pressure_cpu_waiting_seconds_total                     2  seconds\n";
        check(&answer, true, expected);
    }
}
