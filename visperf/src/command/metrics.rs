//! `visperf metrics`: what the sensors measure of their hosts.
//!
//! Not here: sampling (`sensor::sample`).

use crate::cli::{Between, Query};
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::figures::{bytes, number, number_of, plain, text_of};
use crate::output::table::{Cell, Table};
use crate::output::times::shown;
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use wire::time::Time;

/// Print metrics of the domain's hosts: CPU, load, memory, disks, network, pressure
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf metrics
  visperf metrics 'node_memory_*' --host wn01
  visperf metrics node_load1 --history --since 10m
  visperf metrics --json node_cpu_seconds_total --label mode=idle")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// A metric's name, or a glob such as 'node_cpu_*'
    #[arg(value_name = "NAME-GLOB")]
    name: Option<String>,
    /// Only metrics of this host
    #[arg(long, value_name = "HOST", conflicts_with = "local")]
    host: Option<String>,
    /// Only metrics with this label, such as device=sda; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Every value kept, not just the newest
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    between: Between,
    /// Ask only the sensor that is connected to, not its whole domain
    #[arg(long)]
    local: bool,
}

fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("expected NAME=VALUE such as device=sda, found {text:?}"))
}

/// Print the metrics.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let labels: Map<String, Value> =
        args.label.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let params = Params::default()
        .with("name", args.name.clone())
        .with("labels", (!labels.is_empty()).then_some(labels))
        .with("host", args.host.clone())
        .with("since", args.between.since.map(Time::secs_f64))
        .with("until", args.between.until.map(Time::secs_f64))
        .with("history", args.history.then_some(true));
    let method = if args.local { "sensor.metrics" } else { "domain.metrics" };
    let answer = query::ask(&args.query, method, params)?;
    let metrics = query::items(&answer, "metrics");
    query::print(&args.query, metrics, "no metric fits", |metrics, output| {
        table(metrics, args.history, output)
    })
}

fn table(metrics: &[Value], history: bool, output: &mut Output) -> Result<(), Failure> {
    let mut table = Table::new(&["HOST", "METRIC", "TIME", "VALUE", "UNIT"]);
    let zone = TimeZone::system();
    for metric in metrics {
        let one = [metric.clone()];
        let samples = metric.get("samples").and_then(Value::as_array);
        for sample in samples.map_or(one.as_slice(), Vec::as_slice) {
            let time = number_of(sample, "time").filter(|_| history);
            table.row(vec![
                Cell::text(text_of(metric, "host")),
                Cell::text(named(metric)).color(Color::Name),
                Cell::text(time.map_or(String::new(), |secs| shown(Time::from_secs_f64(secs), &zone))),
                Cell::figure(value(sample, text_of(metric, "unit"))),
                Cell::text(text_of(metric, "unit")).color(Color::Dim),
            ]);
        }
    }
    table.print(output)
}

/// `name{label="value"}`.
fn named(metric: &Value) -> String {
    let labels = metric.get("labels").and_then(Value::as_object);
    let labels: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={:?}", plain(Some(value))))
        .collect();
    match labels.is_empty() {
        true => text_of(metric, "name").to_owned(),
        false => format!("{}{{{}}}", text_of(metric, "name"), labels.join(",")),
    }
}

fn value(sample: &Value, unit: &str) -> String {
    match (sample.get("value"), number_of(sample, "value")) {
        (Some(_), Some(value)) if unit == "bytes" => bytes(value),
        (Some(Value::Number(exact)), _) if !exact.is_f64() => exact.to_string(),
        (_, Some(value)) => number(value),
        (other, None) => plain(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metrics_are_named_with_their_labels() {
        assert_eq!(named(&json!({"name": "a", "labels": {}})), "a");
        assert_eq!(named(&json!({"name": "a", "labels": {"x": "1", "y": "b"}})), "a{x=\"1\",y=\"b\"}");
    }

    #[test]
    fn counters_keep_all_their_digits() {
        assert_eq!(value(&json!({"value": 18_446_744_073_709_551_615_u64}), "total"), "18446744073709551615");
        assert_eq!(value(&json!({"value": 1024}), "bytes"), "1.0 KiB");
        assert_eq!(value(&json!({"value": 0.25}), "1"), "0.25");
    }

    #[test]
    fn labels_are_pairs() {
        assert_eq!(label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(label("a").is_err() && label("=b").is_err());
    }
}
