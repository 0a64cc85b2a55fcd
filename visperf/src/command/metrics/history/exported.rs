//! `visperf metrics --from PLACE`: the past from exported days, without a daemon.
//!
//! Not here: the files (`history_files`), how steps are merged (`store`, by `sensor::query::history`).

use super::Args;
use crate::command::history::exported::Exported;
use crate::exit::Failure;
use history_files::read::metrics::Wanted;
use history_files::table::Table;
use sensor::query::history::of_buckets;
use sensor::sample::glob::Glob;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wire::api::history::{History, HistoryParams};
use wire::id::HostName;
use wire::near_names;
use wire::time::Time;

/// Characters of a glob.
const GLOB: [char; 4] = ['*', '?', '[', '{'];

/// How much is read unless a time is given.
const SPAN_DEFAULT: Duration = Duration::from_secs(86_400);

/// Reads the days of a place; returns their values, and what is to be said of them at the end.
///
/// # Errors
/// If the place cannot be read, or the parameters make no sense.
pub(super) fn read(place: &str, args: &Args, params: &HistoryParams) -> Result<(History, Exported), Failure> {
    let mut exported = Exported::open(place, args.whose.domain.as_deref())?;
    let until = params.until.map_or(exported.end(), |until| until.0);
    let since = params.since.map_or(until.min(exported.end()).minus(SPAN_DEFAULT), |since| since.0);
    let mut wanted = wanted(args, params)?;
    let history = of_buckets(params, (since, until), |(since, until), merge| {
        (wanted.since, wanted.until) = (since, until);
        exported.choose(Some(since), Some(until.minus(Duration::from_micros(1))));
        let bar = exported.bar();
        for file in exported.files(Table::Metrics) {
            let mut is_full = false;
            let read = exported.destination.metrics(&file, &wanted, &mut |row| {
                is_full =
                    params.labels.fit(row.metric) && !merge.add(row.host, row.metric, row.time, &row.bucket);
                !is_full
            });
            if let Err(error) = read {
                exported.failed(&error);
            }
            if is_full {
                break;
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
    });
    let history = history.map_err(|fault| Failure::Usage(fault.message.into_owned()))?;
    if history.series.is_empty() {
        let names = names(&exported, &wanted);
        let is_known = |name: &String| names.contains(name) || name.contains(GLOB);
        if names.is_empty() {
            exported.notes.insert(0, "the exported days of this time have no metrics".to_owned());
        } else if let Some(name) = params.name.as_ref().filter(|name| !is_known(name)) {
            let near = near_names::suggestion(name, names.iter().map(String::as_str));
            return Err(Failure::Usage(format!("no metric of the exported days is named {name}{near}")));
        }
    }
    Ok((history, exported))
}

/// Names of the metrics of a host, the first of the latest day.
fn names(exported: &Exported, wanted: &Wanted) -> BTreeSet<String> {
    let all = Wanted { host: None, name_start: String::new(), name: Arc::new(|_| true), ..wanted.clone() };
    let (mut names, mut first) = (BTreeSet::new(), None);
    if let Some(file) = exported.files(Table::Metrics).last() {
        // A file that cannot be read was noted.
        let _ = exported.destination.metrics(file, &all, &mut |row| {
            names.insert(row.metric.name.to_string());
            *first.get_or_insert_with(|| row.host.clone()) == *row.host
        });
    }
    names
}

fn wanted(args: &Args, params: &HistoryParams) -> Result<Wanted, Failure> {
    let name = params.name.as_deref().map(Glob::new).transpose();
    let name = name.map_err(|error| Failure::Usage(format!("{error}")))?;
    let host = args.host.as_deref().map(HostName::try_from).transpose();
    let host = host.map_err(|error| Failure::Usage(format!("--host: {error}")))?;
    let name_start = name.as_ref().map(|name| name.start().to_owned()).unwrap_or_default();
    let name = move |text: &str| name.as_ref().is_none_or(|name| name.matches(text));
    Ok(Wanted { since: Time::default(), until: Time::default(), host, name_start, name: Arc::new(name) })
}
