//! `visperf metrics --since …`: values that metrics had in the past, of each host from its own sensor.
//!
//! Not here: the newest values ([`super`]), the storage (`store`).

#[cfg(feature = "export")]
mod exported;
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
use jiff::tz::TimeZone;
use overall::Overall;
use std::collections::BTreeSet;
#[cfg(feature = "export")]
use std::path::PathBuf;
use std::time::Duration;
use wire::api::domain::{Host, HostState, HostsParams};
use wire::api::history::{
    Aggregate, DomainHistory, DomainHistoryParams, GroupBy, History, HistoryMark, HistoryParams,
    HistorySeries, Limit, MarkKind, TierAge,
};
use wire::api::{Named, Span, UnixTime};
use wire::near_names;
use wire::time::Time;

/// Code of a fault that the parameters caused.
const INVALID_PARAMS: i64 = wire::fault::INVALID_PARAMS as i64;

/// Name of the tier of samples.
const TIER_RAW: &str = "raw";

/// Marks that are noted, the newest.
const MARKS_SHOWN: usize = 3;

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

/// A series and its host.
struct OfHost {
    host: String,
    series: HistorySeries,
    /// Figures of the samples, where their summaries were requested.
    overall: Option<Overall>,
}

/// Answers of all hosts.
#[derive(Default)]
struct Found {
    series: Vec<OfHost>,
    tiers: Vec<String>,
    /// Why values of exported days are missing.
    problems: BTreeSet<String>,
    oldest: Vec<TierAge>,
    total: u64,
    damaged: u64,
    /// Hosts that did not answer, and why.
    missing: Vec<String>,
    /// Why the first of them did not.
    failure: Option<Failure>,
    /// Hosts that did not answer and whose copies are shown, and why.
    copied: Vec<String>,
    /// The exported days that were read instead.
    #[cfg(feature = "export")]
    exported: Option<crate::command::history::exported::Exported>,
    answered: usize,
    /// Host, time and text of what happened meanwhile.
    marks: Vec<(String, UnixTime, String)>,
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
        notes(&found, params.aggregate);
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
        let mut found = Found { exported: Some(exported), ..Found::default() };
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
        found.add_copies(answer.map_err(|error| client.explain("domain.history", error))?);
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
                let until =
                    copies.behind.first().map(|behind| shown_time(behind.until.0, &TimeZone::system()));
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

impl Found {
    /// Adds copies that the representative has.
    fn add_copies(&mut self, copies: DomainHistory) {
        let mut answer = copies.history;
        let series = std::mem::take(&mut answer.series);
        self.add(String::new(), answer);
        self.series.extend(series.into_iter().map(|series| {
            let host = series.host.as_deref().unwrap_or_default().to_owned();
            OfHost { host, series, overall: None }
        }));
    }

    fn add(&mut self, host: String, answer: History) {
        self.answered += 1;
        self.total += answer.total;
        for HistoryMark { time, kind, .. } in answer.marks {
            let text = match kind {
                MarkKind::Started => "the sensor was started",
                MarkKind::ClockSetBack => "the clock was set back",
                MarkKind::Unknown => continue,
            };
            self.marks.push((host.clone(), time, text.to_owned()));
        }
        self.damaged += answer.damaged;
        self.problems.extend(answer.exported_problem);
        for part in answer.tiers {
            if !self.tiers.contains(&part.tier) {
                self.tiers.push(part.tier);
            }
        }
        for age in answer.oldest {
            match self.oldest.iter_mut().find(|known| known.tier == age.tier) {
                Some(known) => known.time = known.time.min(age.time),
                None => self.oldest.push(age),
            }
        }
        self.series.extend(answer.series.into_iter().map(|series| OfHost {
            host: host.clone(),
            series,
            overall: None,
        }));
    }
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

/// What was read, how far back it reaches, and what is missing.
fn notes(found: &Found, aggregate: Aggregate) {
    let zone = TimeZone::system();
    let is_percentile = matches!(aggregate, Aggregate::P50 | Aggregate::P95 | Aggregate::P99);
    if is_percentile && found.tiers.iter().any(|tier| tier != TIER_RAW) {
        note(
            "percentiles are those of the means of minutes or hours; a step below a minute, as --step 30s, gives those of \
             the samples, as far back as these are stored",
        );
    }
    let reach = |age: &TierAge| format!("{} since {}", age.tier, shown_time(age.time.0, &zone));
    let reach: Vec<String> = found.oldest.iter().map(reach).collect();
    if !found.tiers.is_empty() && !reach.is_empty() {
        note(&format!("read from {}; stored: {}", found.tiers.join(" and "), reach.join(", ")));
    }
    let shown = found.series.len() as u64;
    if found.total > shown {
        note(&format!("{shown} of {} series", found.total));
    }
    for (host, time, text) in found.marks.iter().rev().take(MARKS_SHOWN).rev() {
        let time = shown_time(time.0, &zone);
        let host = if host.is_empty() { String::new() } else { format!("{}: ", clean(host)) };
        note(&format!("{time} {host}{text}"));
    }
    for problem in &found.problems {
        note(&format!("values of exported days are missing: {}", clean(problem)));
    }
    if found.damaged > 0 {
        note(&format!("{} damaged pieces of the history are left out", found.damaged));
    }
}
