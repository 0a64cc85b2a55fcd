//! `visperf metrics --since …`: values that metrics had in the past, of each host from its own sensor.
//!
//! Not here: the newest values ([`super`]), the storage (`store`).

#[cfg(feature = "export")]
mod exported;
mod found;
mod overall;
mod plot;
mod rows;

use super::Args;
use crate::client::NO_METHOD;
use crate::client::{Client, PATIENCE};
use crate::command::query::LIMIT_MAX;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::OfDomain;
use crate::output::note;
use crate::output::times::{self, shown as shown_time};
use ::client::Error;
use ::client::typed::About;
use found::{Found, OfHost};
use jiff::tz::TimeZone;
#[cfg(feature = "export")]
use std::path::PathBuf;
use std::time::Duration;
use wire::api::domain::{Host, HostState, HostsParams};
use wire::api::history::{
    Aggregate, DomainHistory, DomainHistoryParams, GroupBy, HistoryParams, HistorySeries, HostBehind, Limit,
};
use wire::api::{Named, Span, UnixTime};
use wire::near_names;
use wire::time::Time;

/// Code of a fault that the parameters caused.
const INVALID_PARAMS: i64 = wire::fault::INVALID_PARAMS as i64;

/// Options for the past.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Past {
    /// Time between two values, such as 10s, 5m or 1h; 0 for every stored sample [default: at most 300
    /// values]
    #[arg(long, value_name = "SPAN", value_parser = step)]
    step: Option<Duration>,
    /// Summary of the values of a step [default: rate of counters, avg of gauges, last of states]
    #[arg(long, value_name = "AGG")]
    agg: Option<Agg>,
    /// Merge the series of each host, of all hosts, or those with the same value of a label, to one
    #[arg(long, value_name = "host|domain|LABEL")]
    by: Option<String>,
    /// Only the N series with the largest mean
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=LIMIT_MAX))]
    top: Option<u64>,
    /// Print every value in a row, instead of a summary of each series
    #[arg(long)]
    values: bool,
    /// Draw each metric as lines over time, above the summary
    #[arg(long, conflicts_with_all = ["json", "values", "csv"])]
    plot: bool,
    /// Read days that were exported to this place (visperf history export) instead of asking a daemon; a
    /// sensor with `exported` in its configuration reads them by itself for what it does not store any more
    #[cfg(feature = "export")]
    #[arg(long, value_name = "PLACE", value_parser = crate::command::history::exported::place, conflicts_with = "local")]
    from: Option<String>,
    /// Print every value as CSV: host, metric, labels, time, value, unit
    #[arg(long, conflicts_with_all = ["json", "values"])]
    csv: bool,
    /// Write every value to this file as Parquet, with the columns of --csv: for DuckDB, pandas and others
    #[cfg(feature = "export")]
    #[arg(long, value_name = "FILE", value_parser = file, conflicts_with_all = ["json", "values", "csv", "plot"])]
    parquet: Option<PathBuf>,
}

impl Past {
    /// Whether an option for the past is given.
    pub(crate) fn is_given(&self) -> bool {
        let Past { step, agg, by, top, values, plot, csv, .. } = self;
        self.is_exported()
            || self.is_file()
            || step.is_some()
            || agg.is_some()
            || by.is_some()
            || top.is_some()
            || *values
            || *plot
            || *csv
    }
}

impl Past {
    /// Whether exported days are read.
    fn is_exported(&self) -> bool {
        #[cfg(feature = "export")]
        return self.from.is_some();
        #[cfg(not(feature = "export"))]
        false
    }
}

impl Past {
    /// Whether the values go to a file.
    fn is_file(&self) -> bool {
        #[cfg(feature = "export")]
        return self.parquet.is_some();
        #[cfg(not(feature = "export"))]
        false
    }
}

/// Names of summaries.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Agg {
    Avg,
    Min,
    Max,
    Sum,
    Count,
    Last,
    Rate,
    Increase,
    P50,
    P95,
    P99,
}

impl From<Agg> for Aggregate {
    fn from(agg: Agg) -> Aggregate {
        match agg {
            Agg::Avg => Aggregate::Avg,
            Agg::Min => Aggregate::Min,
            Agg::Max => Aggregate::Max,
            Agg::Sum => Aggregate::Sum,
            Agg::Count => Aggregate::Count,
            Agg::Last => Aggregate::Last,
            Agg::Rate => Aggregate::Rate,
            Agg::Increase => Aggregate::Increase,
            Agg::P50 => Aggregate::P50,
            Agg::P95 => Aggregate::P95,
            Agg::P99 => Aggregate::P99,
        }
    }
}

/// Value parser for the name of a Parquet file.
#[cfg(feature = "export")]
fn file(text: &str) -> Result<PathBuf, String> {
    match text {
        "" | "-" => Err("expected the name of a file; --csv prints the values".to_owned()),
        name => Ok(name.into()),
    }
}

fn step(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    times::span(text)
}

/// Prints the past; false if the daemon is of a version that has none.
///
/// # Errors
/// If no daemon is reached, or none of the hosts answers.
pub(crate) fn print(args: &Args) -> Result<bool, Failure> {
    let mut client = Client::new(&args.query.target);
    let params = params(args);
    let Some(mut found) = found(&mut client, args, &params)? else { return Ok(false) };
    if params.aggregate == Aggregate::Summary {
        for OfHost { series, overall, .. } in &mut found.series {
            *overall = Some(overall::of(series, params.by != GroupBy::Series));
        }
    }
    if let Some(top) = args.past.top {
        found.series.sort_by(|a, b| mean(&b.series).total_cmp(&mean(&a.series)));
        found.series.truncate(usize::try_from(top).unwrap_or(usize::MAX));
    }
    if found.series.is_empty() && !args.past.is_exported() {
        check_name(&mut client, args)?;
    }
    #[cfg(feature = "export")]
    if let Some(path) = args.past.parquet.as_ref().filter(|_| !found.series.is_empty()) {
        rows::parquet(&found.series, path)?;
        return finish(args, &params, found);
    }
    let mut output = args.query.width.output();
    if args.query.json {
        found.series.iter().try_for_each(|one| output.json(&rows::json(one)))?;
    } else if args.past.csv {
        rows::csv(&found.series, &mut output)?;
    } else if found.series.is_empty() {
        note("no value is stored for this time and these metrics");
    } else if args.past.values {
        rows::values(&found.series, &mut output)?;
    } else {
        if args.past.plot {
            plot::print(&found.series, &args.between, &mut output)?;
        }
        rows::summary(&found.series, &mut output)?;
    }
    output.flush()?;
    finish(args, &params, found)
}

/// Says what a user should know of what was found.
///
/// # Errors
/// If exported days could not be read.
fn finish(args: &Args, params: &HistoryParams, found: Found) -> Result<bool, Failure> {
    if !args.query.json && !args.past.csv {
        found.print_notes(params.aggregate);
    }
    found.copied.iter().chain(&found.missing).for_each(|missing| note(&clean(missing)));
    #[cfg(feature = "export")]
    if let Some(exported) = found.exported {
        exported.finish()?;
    }
    Ok(true)
}

fn params(args: &Args) -> HistoryParams {
    let (by, label) = match args.past.by.as_deref() {
        None => (GroupBy::Series, None),
        Some("host") => (GroupBy::Host, None),
        Some("domain") => (GroupBy::Domain, None),
        Some(label) => (GroupBy::Label, Some(label.to_owned())),
    };
    let Past { step, values, csv, .. } = &args.past;
    // Its figures are those of the samples, however long the steps are.
    let is_table =
        !args.query.json && !values && !csv && !args.past.is_file() && *step != Some(Duration::ZERO);
    let aggregate = if is_table { Aggregate::Summary } else { Aggregate::Auto };
    HistoryParams {
        name: args.name.clone(),
        labels: Named(args.label.clone()),
        since: args.between.since.map(UnixTime),
        until: args.between.until.map(UnixTime),
        step: args.past.step.map(Span),
        aggregate: args.past.agg.map_or(aggregate, Aggregate::from),
        by,
        label,
        top: args.past.top,
        limit: Limit(LIMIT_MAX),
        cursor: None,
    }
}

/// The values, from a daemon or from exported days; `None` if the daemon does not know the method.
fn found(client: &mut Client, args: &Args, params: &HistoryParams) -> Result<Option<Found>, Failure> {
    #[cfg(feature = "export")]
    if let Some(place) = &args.past.from {
        let (history, exported) = exported::read(place, args, params)?;
        let mut found = Found::default();
        found.exported = Some(exported);
        found.add_copies(DomainHistory { history, behind: Vec::new() });
        return Ok(Some(found));
    }
    ask(client, args, params)
}

/// Asks every host; `None` if the daemon does not know the method.
fn ask(client: &mut Client, args: &Args, params: &HistoryParams) -> Result<Option<Found>, Failure> {
    let mut found = Found::default();
    if params.by == GroupBy::Domain {
        let answer = of_domain(client, args, params, args.host.clone());
        let copies = answer.map_err(|error| client.explain("domain.history", error))?;
        let late = |behind: &HostBehind| {
            let until = shown_time(behind.until.0, &TimeZone::system());
            format!("{}: the copy of its minutes ends at {until}; later values are not included", behind.host)
        };
        found.copied.extend(copies.behind.iter().map(late));
        found.add_copies(copies);
        return Ok(Some(found));
    }
    for asked in hosts(client, args)? {
        let Asked { host, is_live } = asked;
        let about = about(args, (!host.is_empty()).then_some(host.as_str()));
        let answer = if is_live { Some(client.ask(params, &about, PATIENCE)) } else { None };
        let error = match answer {
            Some(Ok(answer)) => {
                found.add(host, answer);
                continue;
            }
            Some(Err(Error::Fault { code: NO_METHOD, .. })) if found.series.is_empty() => return Ok(None),
            Some(Err(error @ Error::Fault { code: INVALID_PARAMS, .. })) => {
                return Err(client.explain("sensor.history", error));
            }
            Some(Err(error)) if args.local => return Err(client.explain("sensor.history", error)),
            Some(Err(error)) => Some(error),
            None => None,
        };
        let why = error.as_ref().map_or("it does not report".to_owned(), ToString::to_string);
        match of_domain(client, args, params, Some(host.clone())) {
            Ok(copies) => {
                let until = copy_end(&copies).map(|until| shown_time(until, &TimeZone::system()));
                let until = until.map_or(String::new(), |until| format!(", which ends at {until}"));
                found.copied.push(format!("{host}: {why}; shown is the copy of the domain{until}"));
                found.add_copies(copies);
            }
            Err(_) if args.host.is_some() && error.is_some() => {
                let error = error.expect("checked just now");
                return Err(client.explain("sensor.history", error));
            }
            Err(_) => {
                found.missing.push(format!("{host}: {why}; its past is missing"));
                if let Some(error) = error {
                    found.failure.get_or_insert_with(|| client.explain("sensor.history", error));
                }
            }
        }
    }
    match found.failure.take() {
        Some(failure) if found.answered == 0 => Err(failure),
        _ => Ok(Some(found)),
    }
}

/// When the copy of a host ends: with its last value, or the last minute that was copied.
fn copy_end(copies: &DomainHistory) -> Option<Time> {
    let step = Duration::from_secs_f64(copies.history.step_secs.max(0.0));
    let last = |series: &HistorySeries| {
        let sample = series.samples.last().map(|sample| sample.time.0);
        sample.max(series.summaries.last().map(|summary| summary.time.0.plus(step)))
    };
    let values = copies.history.series.iter().filter_map(last);
    values.chain(copies.behind.iter().map(|behind| behind.until.0)).max()
}

/// Asks the representative for the copies of a host's past, or of all hosts.
fn of_domain(
    client: &mut Client,
    args: &Args,
    params: &HistoryParams,
    host: Option<String>,
) -> Result<DomainHistory, Error> {
    let params = DomainHistoryParams { history: params.clone(), host };
    client.ask(&params, &about(args, None), PATIENCE)
}

/// A host to ask.
struct Asked {
    /// Empty for the daemon itself.
    host: String,
    is_live: bool,
}

fn about(args: &Args, host: Option<&str>) -> About {
    let OfDomain { domain } = args.whose.clone();
    About { domain, host: host.map(ToOwned::to_owned) }
}

/// Hosts to ask.
fn hosts(client: &mut Client, args: &Args) -> Result<Vec<Asked>, Failure> {
    if args.host.is_some() || args.local {
        let host = args.host.clone().filter(|_| !args.local).unwrap_or_default();
        return Ok(vec![Asked { host, is_live: true }]);
    }
    let hosts = client.ask(&HostsParams {}, &about(args, None), PATIENCE);
    let hosts = hosts.map_err(|error| client.explain("domain.hosts", error))?.hosts;
    let asked = |host: Host| Asked { is_live: host.state == HostState::Live, host: host.host };
    Ok(hosts.into_iter().map(asked).collect())
}

/// Refuses a name that no metric of the domain has.
fn check_name(client: &mut Client, args: &Args) -> Result<(), Failure> {
    let Some(name) = args.name.as_deref().filter(|name| !name.contains(['*', '?', '[', '{'])) else {
        return Ok(());
    };
    let always = HistoryParams {
        since: Some(UnixTime(Time::from_micros(0))),
        step: Some(Span(Duration::from_secs(3650 * 86_400))),
        aggregate: Aggregate::Count,
        limit: Limit(LIMIT_MAX),
        ..HistoryParams::default()
    };
    let Ok(Some(all)) = ask(client, args, &always) else { return Ok(()) };
    let known = || all.series.iter().map(|one| one.series.name.as_str());
    if all.series.is_empty() || known().any(|known| known == name) {
        return Ok(());
    }
    Err(Failure::Usage(format!("no metric is named {name}{}", near_names::suggestion(name, known()))))
}

#[allow(clippy::cast_precision_loss)]
fn mean(series: &HistorySeries) -> f64 {
    let sum: f64 = series.samples.iter().map(|sample| sample.value.as_f64()).sum();
    sum / series.samples.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn copies(value: Value) -> DomainHistory {
        serde_json::from_value(value).expect("an answer")
    }

    #[test]
    fn a_copy_ends_with_its_last_value_or_the_last_minute_that_was_copied() {
        let series = |values: Value| {
            let mut series =
                json!({"name": "x", "labels": {}, "unit": "", "semantics": "gauge", "host": "wn03"});
            series
                .as_object_mut()
                .expect("an object")
                .extend(values.as_object().cloned().unwrap_or_default());
            series
        };
        let history = |values: Value, step: f64| {
            json!({"series": [series(values)], "total": 1, "step_secs": step, "tiers": [], "oldest": [], "damaged": 0,
                "marks": []})
        };
        let answer = |values: Value, step: f64, behind: Value| {
            let mut answer = history(values, step);
            answer["behind"] = behind;
            copy_end(&copies(answer)).map(|time| time.micros() / 1_000_000)
        };
        let samples = json!({"samples": [{"time": 100, "value": 1}, {"time": 178, "value": 2}]});
        let minute = json!([{"host": "wn03", "until": 120}]);
        assert_eq!(
            answer(samples.clone(), 0.0, minute.clone()),
            Some(178),
            "samples reach further than minutes"
        );
        assert_eq!(answer(samples, 0.0, json!([])), Some(178));
        assert_eq!(answer(json!({}), 0.0, minute), Some(120));
        assert_eq!(answer(json!({}), 0.0, json!([])), None);
    }
}
