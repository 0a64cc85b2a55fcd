//! `visperf summary`: the domain at a glance.
//!
//! Not here: the summing up (`sensor::representative`).

use crate::cli::Query;
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::figures::{bytes, number, number_of, plain, text_of};
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output, clean, note};
use serde_json::Value;

/// Print the domain at a glance: hosts, calls by state and outcome, sums of metrics, who is busiest
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Every metric, not just load, CPU, memory, file systems and pressure
    #[arg(long)]
    all: bool,
}

/// The metrics of a glance, by the beginnings of their names.
const AT_A_GLANCE: [&str; 8] = [
    "node_load1",
    "node_cpu_used",
    "node_memory_MemTotal",
    "node_memory_MemAvailable",
    "node_memory_SwapFree",
    "node_filesystem_avail",
    "node_pressure_cpu_waiting",
    "node_pressure_memory_waiting",
];

/// Print the summary.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let answer = query::ask(&args.query, "domain.summary", Params::default())?;
    let mut output = Output::stdout();
    match args.query.json {
        true => output.json(&answer)?,
        false => show(&answer, args.all, &mut output)?,
    }
    output.flush()
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
        let top: Vec<String> =
            top.iter().map(|one| format!("{} {}", text_of(one, name), plain(one.get("calls")))).collect();
        if !top.is_empty() {
            line(title, top.join(", "), output)?;
        }
    }
    let all_metrics = query::items(answer, "metrics");
    let at_a_glance =
        |metric: &&Value| AT_A_GLANCE.iter().any(|beginning| text_of(metric, "name").starts_with(beginning));
    let shown: Vec<&Value> =
        all_metrics.iter().filter(|metric| every_metric || at_a_glance(metric)).collect();
    metrics(&shown, output)?;
    if shown.len() < all_metrics.len() {
        note(&format!("{} of {} metrics; --all shows them all", shown.len(), all_metrics.len()));
    }
    Ok(())
}

fn metrics(metrics: &[&Value], output: &mut Output) -> Result<(), Failure> {
    if metrics.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let mut table = Table::new(&["METRIC", "SUM", "MEAN", "LEAST", "MOST", "HOSTS", "UNIT"]);
    for metric in metrics {
        let unit = text_of(metric, "unit");
        let form = if unit == "bytes" { bytes } else { number };
        let figure = |name: &str| Cell::figure(number_of(metric, name).map_or(String::new(), form));
        table.row(vec![
            Cell::text(text_of(metric, "name")).color(Color::Name),
            figure("sum"),
            figure("mean"),
            figure("min"),
            figure("max"),
            Cell::figure(plain(metric.get("count"))),
            Cell::text(unit).color(Color::Dim),
        ]);
    }
    table.print(output)
}
