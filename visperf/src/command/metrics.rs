//! `visperf metrics`: what the sensors measure of their hosts.
//!
//! Not here: sampling (`sensor::sample`).

use crate::cli::{Between, OfDomain, Query};
use crate::command::query::{self, LIMIT_MAX, Params};
use crate::exit::Failure;
use crate::output::figures::{bytes, number, number_of, plain, text_of};
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now, shown};
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use wire::near_names;
use wire::time::Time;

/// Print metrics of the domain's hosts: CPU, load, memory, disks, network, pressure
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf metrics
  visperf metrics 'node_memory_*' --host wn01
  visperf metrics node_load1 --since 10m
  visperf metrics --json node_cpu_seconds_total --label mode=idle")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// A metric's name, or a glob such as 'node_cpu_*'
    #[arg(value_name = "NAME-GLOB")]
    name: Option<String>,
    /// Only metrics of this host
    #[arg(long, value_name = "HOST", conflicts_with = "local")]
    host: Option<String>,
    /// Only metrics with this label, such as device=sda; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,
    /// Every stored value, not just the newest; implied by --since and --until
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    between: Between,
    /// Ask only the sensor that is connected to, not its whole domain
    #[arg(long, conflicts_with = "domain")]
    local: bool,
}

/// A label that is chosen by.
///
/// # Errors
/// Says what was expected.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("expected NAME=VALUE such as device=sda, found {text:?}"))
}

/// Print the metrics.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.between.check()?;
    let history = args.history || args.between.since.is_some() || args.between.until.is_some();
    let labels: Map<String, Value> =
        args.label.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let params = Params::default()
        .of(&args.whose)
        .with("name", args.name.clone())
        .with("labels", (!labels.is_empty()).then_some(labels))
        .with("host", args.host.clone())
        .with("since", args.between.since.map(Time::secs_f64))
        .with("until", args.between.until.map(Time::secs_f64))
        .with("history", history.then_some(true));
    let method = if args.local { "sensor.metrics" } else { "domain.metrics" };
    let answer = query::ask(&args.query, method, params)?;
    let metrics = query::items(&answer, "metrics");
    if let (true, Some(name)) = (metrics.is_empty(), &args.name) {
        check_name(args, method, name)?;
    }
    query::print(&args.query, metrics, "no metric fits", |metrics, output| table(metrics, history, output))
}

/// Refuse a name that no metric has; a glob may fit none.
fn check_name(args: &Args, method: &str, name: &str) -> Result<(), Failure> {
    if name.contains(['*', '?', '[', '{']) {
        return Ok(());
    }
    let params =
        Params::default().of(&args.whose).with("host", args.host.clone()).with("limit", Some(LIMIT_MAX));
    let answer = query::ask(&args.query, method, params)?;
    let all = query::items(&answer, "metrics");
    let known = || all.iter().map(|metric| text_of(metric, "name"));
    if all.is_empty() || known().any(|known| known == name) {
        return Ok(());
    }
    Err(Failure::Usage(format!("no metric is named {name}{}", near_names::suggestion(name, known()))))
}

fn table(metrics: &[Value], history: bool, output: &mut Output) -> Result<(), Failure> {
    let heads = ["HOST", "METRIC", "TIME", "VALUE", "UNIT", "LABELS"];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads).spares(&["HOST"]).offset(offset_now(&zone));
    for metric in metrics {
        let name = text_of(metric, "name");
        let unit = text_of(metric, "unit");
        let one = [metric.clone()];
        let samples = metric.get("samples").and_then(Value::as_array);
        for sample in samples.map_or(one.as_slice(), Vec::as_slice) {
            let time = number_of(sample, "time").filter(|_| history);
            table.row(vec![
                Cell::text(text_of(metric, "host")),
                Cell::text(name).color(Color::Name),
                Cell::time(
                    time.map_or(String::new(), |secs| in_table(Time::from_secs_f64(secs), &zone, output)),
                ),
                Cell::figure(value(sample, name, unit, &zone)),
                Cell::whole(unit).color(Color::Dim),
                Cell::text(labels(metric)),
            ]);
        }
    }
    table.print(output)
}

/// `name=value` of each label.
fn labels(metric: &Value) -> String {
    let labels = metric.get("labels").and_then(Value::as_object).into_iter().flatten();
    labels.map(|(name, value)| format!("{name}={}", plain(Some(value)))).collect::<Vec<_>>().join(" ")
}

fn value(sample: &Value, name: &str, unit: &str, zone: &TimeZone) -> String {
    match (sample.get("value"), number_of(sample, "value")) {
        (Some(_), Some(value)) if unit == "bytes" => bytes(value),
        // A moment, not a span.
        (Some(_), Some(value)) if name.ends_with("_time_seconds") => shown(Time::from_secs_f64(value), zone),
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
    fn labels_stand_by_themselves() {
        assert_eq!(labels(&json!({"name": "a", "labels": {}})), "");
        assert_eq!(labels(&json!({"name": "a", "labels": {"x": "1", "y": "b"}})), "x=1 y=b");
    }

    #[test]
    fn counters_keep_all_their_digits() {
        let check = |sample: Value, name: &str, unit: &str, expected: &str| {
            assert_eq!(value(&sample, name, unit, &TimeZone::UTC), expected);
        };
        check(json!({"value": 18_446_744_073_709_551_615_u64}), "x_total", "", "18446744073709551615");
        check(json!({"value": 1024}), "x_bytes", "bytes", "1.0 KiB");
        check(json!({"value": 0.25}), "x", "1", "0.25");
        check(json!({"value": 60}), "node_boot_time_seconds", "seconds", "1970-01-01T00:01:00.000Z");
    }

    #[test]
    fn labels_are_pairs() {
        assert_eq!(label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(label("a").is_err() && label("=b").is_err());
    }
}
