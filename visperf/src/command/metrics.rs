//! `visperf metrics`: the metrics that sensors measure on their hosts.
//!
//! Not here: sampling (`sensor::sample`).

mod history;

use crate::client::items;
use crate::command::query::{self, LIMIT_MAX};
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::{Between, OfDomain, Query};
use crate::output::figures::metric_value;
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now, shown, to_second};
use crate::output::{Color, Output, note};
use ::client::typed::Answered;
use compact_str::CompactString;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::api::domain::{Host, HostState, HostsParams};
use wire::api::metrics::{DomainMetricsParams, Metric, MetricsParams, Sample, SensorMetricsParams, Value};
use wire::api::{Named, UnixTime};
use wire::near_names;
use wire::shown::bytes;
use wire::time::Time;

/// Values that are so much older than the newest of the domain are those of a host that does not report.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// Print metrics of the domain's hosts: CPU, load, memory, disks, network, pressure
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf metrics
  visperf metrics 'node_memory_*' --host wn01
  visperf metrics node_load1 --since 1d
  visperf metrics node_load1 --since yesterday --until today --plot
  visperf metrics 'node_network_*_bytes_total' --since 7d --step 1h --top 5
  visperf metrics node_cpu_seconds_total --since 1h --by mode
  visperf metrics --json node_cpu_seconds_total --label mode=idle")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    whose: OfDomain,
    /// Name of the metric, or a glob such as 'node_cpu_*' [default: all metrics]
    #[arg(value_name = "NAME-GLOB")]
    name: Option<String>,
    /// Only metrics of this host
    #[arg(long, value_name = "HOST", conflicts_with = "local")]
    host: Option<String>,
    /// Only metrics with this label, such as device=sda; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(CompactString, CompactString)>,
    /// Print all values of the last minutes, as the representative has them, not just the newest
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    between: Between,
    #[command(flatten)]
    past: history::Past,
    /// Query only the connected sensor, not its whole domain
    #[arg(long, conflicts_with = "domain")]
    local: bool,
}

/// Value parser for a label to select by.
///
/// # Errors
/// States what was expected.
pub(crate) fn label(text: &str) -> Result<(CompactString, CompactString), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.into(), value.into()))
        .ok_or_else(|| format!("expected NAME=VALUE such as device=sda, found {text:?}"))
}

/// Print the metrics.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.between.check()?;
    let is_past = args.between.since.is_some() || args.between.until.is_some() || args.past.is_given();
    if is_past && history::print(args)? {
        return Ok(());
    }
    let wanted = MetricsParams {
        name: args.name.clone(),
        labels: Named(args.label.clone()),
        history: args.history,
        since: args.between.since.map(UnixTime),
        until: args.between.until.map(UnixTime),
        ..MetricsParams::default()
    };
    let is_of_history = wanted.is_of_history();
    let Answered { raw, typed: metrics } = ask(args, MetricsParams { history: is_of_history, ..wanted })?;
    if let (true, Some(name)) = (metrics.is_empty(), &args.name) {
        check_name(args, name)?;
    }
    let raw = items(&raw, "metrics");
    query::print_typed(&args.query, &raw, &metrics, "no metric fits", |metrics, output| {
        table(metrics, is_of_history, output)
    })?;
    // Programs read the times of the values, and need not wait for another query.
    if !is_of_history && !args.local && args.host.is_none() && !args.query.json {
        stale_hosts(&metrics).iter().chain(&silent_hosts(args, &metrics)).for_each(|text| note(text));
    }
    Ok(())
}

/// Notes on hosts without any value here: they have not reported to this representative.
fn silent_hosts(args: &Args, metrics: &[Metric]) -> Vec<String> {
    // Nothing but a note depends on it.
    let Ok(known) = query::request(&args.query, &HostsParams {}, &args.whose.about()) else {
        return Vec::new();
    };
    let has_values =
        |host: &Host| metrics.iter().any(|metric| metric.host.as_deref() == Some(host.host.as_str()));
    let silent =
        known.typed.hosts.into_iter().filter(|host| host.state != HostState::Live && !has_values(host));
    let text = |host: Host| {
        format!("{}: it does not report; --since shows what it measured before", clean(&host.host))
    };
    silent.map(text).collect()
}

/// Notes on hosts whose newest values are much older than those of the others: they do not report.
fn stale_hosts(metrics: &[Metric]) -> Vec<String> {
    let mut newest = BTreeMap::<&str, UnixTime>::new();
    for metric in metrics {
        let (Some(host), Some(time)) = (&metric.host, metric.time) else { continue };
        newest.entry(host).and_modify(|known| *known = time.max(*known)).or_insert(time);
    }
    let Some(latest) = newest.values().max().copied() else { return Vec::new() };
    let zone = TimeZone::system();
    let is_stale = |time: &UnixTime| time.0.plus(STALE_AFTER) < latest.0;
    let stale = newest.iter().filter(|(_, time)| is_stale(time));
    stale
        .map(|(host, time)| format!("{}: its values are of {}", clean(host), to_second(time.0, &zone)))
        .collect()
}

fn ask(args: &Args, metrics: MetricsParams) -> Result<Answered<Vec<Metric>>, Failure> {
    let about = args.whose.about();
    if args.local {
        let Answered { raw, typed } = query::request(&args.query, &SensorMetricsParams(metrics), &about)?;
        return Ok(Answered { raw, typed: typed.metrics });
    }
    let params = DomainMetricsParams { metrics, host: args.host.clone() };
    let Answered { raw, typed } = query::request(&args.query, &params, &about)?;
    Ok(Answered { raw, typed: typed.metrics })
}

/// Refuse a name that no metric has; a glob is always accepted.
fn check_name(args: &Args, name: &str) -> Result<(), Failure> {
    if name.contains(['*', '?', '[', '{']) {
        return Ok(());
    }
    let all = ask(args, MetricsParams { limit: LIMIT_MAX, ..MetricsParams::default() })?.typed;
    let known = || all.iter().map(|metric| metric.name.as_str());
    if all.is_empty() || known().any(|known| known == name) {
        return Ok(());
    }
    Err(Failure::Usage(format!("no metric is named {name}{}", near_names::suggestion(name, known()))))
}

fn table(metrics: &[Metric], is_of_history: bool, output: &mut Output) -> Result<(), Failure> {
    let heads = ["HOST", "METRIC", "TIME", "VALUE", "UNIT", "LABELS"];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads).spares(&["HOST"]).offset(offset_now(&zone));
    for metric in metrics {
        let newest = metric.value.map(|value| Sample { time: metric.time.unwrap_or_default(), value });
        for sample in metric.samples.iter().flatten().copied().chain(newest) {
            let time = if is_of_history { in_table(sample.time.0, &zone, output) } else { String::new() };
            table.row(vec![
                Cell::text(metric.host.as_deref().unwrap_or_default()),
                Cell::text(&metric.name).color(Color::Name),
                Cell::time(time),
                Cell::figure(shown_value(sample.value, &metric.name, &metric.unit, &zone)),
                Cell::whole(&metric.unit).color(Color::Dim),
                Cell::text(metric.labels.to_string()),
            ]);
        }
    }
    table.print(output)
}

fn shown_value(value: Value, name: &str, unit: &str, zone: &TimeZone) -> String {
    if unit == "bytes" {
        return bytes(value.as_f64());
    }
    // The value is a time, not a duration.
    match name.ends_with("_time_seconds") {
        true => shown(Time::from_secs_f64(value.as_f64()), zone),
        false => metric_value(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::sample::Number;

    #[test]
    fn counters_keep_all_their_digits() {
        let check = |number: Number, name: &str, unit: &str, expected: &str| {
            assert_eq!(shown_value(Value(number), name, unit, &TimeZone::UTC), expected);
        };
        check(Number::Whole(u64::MAX), "x_total", "", "18446744073709551615");
        check(Number::Whole(1024), "x_bytes", "bytes", "1.0 KiB");
        check(Number::Real(0.25), "x", "1", "0.25");
        check(Number::Whole(60), "node_boot_time_seconds", "seconds", "1970-01-01T00:01:00.000Z");
    }

    #[test]
    fn values_of_a_host_that_does_not_report_are_said_to_be_old() {
        let metric = |host: &str, secs: i64| {
            let value = serde_json::json!({"name": "x", "labels": {}, "unit": "", "semantics": "gauge", "host": host,
                "value": 1, "time": secs});
            serde_json::from_value::<Metric>(value).expect("a metric")
        };
        let metrics = [metric("wn01", 1000), metric("wn02", 970), metric("wn03", 930), metric("wn03", 925)];
        let stale = stale_hosts(&metrics);
        assert!(
            matches!(stale.as_slice(), [one] if one.starts_with("wn03: its values are of ")),
            "{stale:?}"
        );
        assert_eq!(stale_hosts(&metrics[..2]), Vec::<String>::new());
    }

    #[test]
    fn labels_are_pairs() {
        assert_eq!(label("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(label("a").is_err() && label("=b").is_err());
    }
}
