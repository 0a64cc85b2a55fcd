//! The past of metrics as text: a summary of each series, its values, CSV, JSON.
//!
//! Not here: what is asked (the module above), lines over time (`plot`).

use super::OfHost;
use super::overall::{self, Overall};
use crate::exit::Failure;
use crate::output::figures::number;
use crate::output::sparkline::sparkline;
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now, shown as shown_time};
use crate::output::{Color, Output};
#[cfg(feature = "export")]
use crate::{harmless::clean, output::note};
use jiff::tz::TimeZone;
use serde_json::Value as Json;
#[cfg(feature = "export")]
use std::path::Path;
use wire::api::history::HistorySeries;
use wire::sample::Number;
use wire::shown::bytes;
#[cfg(feature = "export")]
use wire::shown::count;

/// Values of a sparkline, at most: neighbours are merged beyond.
const SPARKS: usize = 40;

pub(super) fn json(one: &OfHost) -> Json {
    let mut json = serde_json::to_value(&one.series).unwrap_or_default();
    if let Json::Object(members) = &mut json {
        members.insert("host".to_owned(), one.host.clone().into());
    }
    json
}

/// Prints every value as CSV, with all digits.
///
/// # Errors
/// As [`Output::line`].
pub(super) fn csv(series: &[OfHost], output: &mut Output) -> Result<(), Failure> {
    output.line("host,metric,labels,time,value,unit")?;
    for one in series {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let head =
            [&one.host, one.series.name.as_str(), &one.series.labels.to_string()].map(quoted).join(",");
        for sample in &one.series.samples {
            let value = match sample.value.0 {
                Number::Whole(whole) => whole.to_string(),
                Number::Real(real) => real.to_string(),
            };
            let time = shown_time(sample.time.0, &TimeZone::UTC);
            output.line(&format!("{head},{time},{value},{}", one.series.unit))?;
        }
    }
    Ok(())
}

/// Writes every value to a file.
///
/// # Errors
/// If it cannot be written.
#[cfg(feature = "export")]
pub(super) fn parquet(series: &[OfHost], path: &Path) -> Result<(), Failure> {
    let series: Vec<_> = series.iter().map(|one| (one.host.as_str(), &one.series)).collect();
    let values = history_files::values::write(path, &series);
    let values = values.map_err(|error| Failure::Failed(error.to_string()))?;
    note(&clean(&format!("{} written to {}", count(values, "value"), path.display())));
    Ok(())
}

pub(super) fn figure(series: &HistorySeries, value: f64) -> String {
    match series.unit.as_str() {
        "bytes" | "bytes/s" => bytes(value),
        _ => number(value),
    }
}

/// Prints a row for each series.
///
/// # Errors
/// As [`Output::line`].
pub(super) fn summary(series: &[OfHost], output: &mut Output) -> Result<(), Failure> {
    let heads = ["HOST", "METRIC", "LABELS", "MIN", "AVG", "MAX", "LAST", "UNIT", "TREND"];
    let mut table = Table::new(&heads).spares(&["HOST", "UNIT", "AVG"]);
    for OfHost { host, series, overall } in series {
        let values: Vec<f64> = series.samples.iter().map(|sample| sample.value.as_f64()).collect();
        let Overall { min, avg, max, last } = overall.unwrap_or_else(|| overall::of_values(series));
        let figure = |value| Cell::figure(figure(series, value));
        table.row(vec![
            Cell::text(host),
            Cell::text(&series.name).color(Color::Name),
            Cell::text(series.labels.to_string()),
            figure(min),
            figure(avg),
            figure(max),
            figure(last),
            Cell::whole(&series.unit).color(Color::Dim),
            Cell::whole(sparkline(&values, SPARKS)),
        ]);
    }
    table.print(output)
}

/// Prints every value in a row.
///
/// # Errors
/// As [`Output::line`].
pub(super) fn values(series: &[OfHost], output: &mut Output) -> Result<(), Failure> {
    let zone = TimeZone::system();
    let heads = ["HOST", "METRIC", "TIME", "VALUE", "UNIT", "LABELS"];
    let mut table = Table::new(&heads).spares(&["HOST"]).offset(offset_now(&zone));
    for one in series {
        for sample in &one.series.samples {
            table.row(vec![
                Cell::text(&one.host),
                Cell::text(&one.series.name).color(Color::Name),
                Cell::time(in_table(sample.time.0, &zone, output)),
                Cell::figure(figure(&one.series, sample.value.as_f64())),
                Cell::whole(&one.series.unit).color(Color::Dim),
                Cell::text(one.series.labels.to_string()),
            ]);
        }
    }
    table.print(output)
}
