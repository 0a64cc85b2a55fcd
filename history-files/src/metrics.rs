//! Table `metrics`: a row is what a metric of a host was in a minute, or in an hour where minutes are no longer stored.
//!
//! Pure. Rule: names, labels and units are those of the query interface. Numbers are of 64-bit floating point: integers
//! beyond 2^53 lose their last digits. Not here: which rows there are (`domain.history`).

use crate::column::{Column, batch, counts, known_numbers, known_texts, maps, numbers, small, texts, times};
use arrow_array::RecordBatch;
use wire::api::history::{History, HistorySeries, StepSummary, TierPart};
use wire::api::metrics::Semantics;
use wire::time::Time;

/// A row of the table.
struct Row<'a> {
    series: &'a HistorySeries,
    summary: &'a StepSummary,
}

/// The rows of an answer that was asked for summaries, in its order.
#[must_use]
pub fn rows(answer: &History) -> RecordBatch {
    let of_series = |series| move |summary| Row { series, summary };
    let rows: Vec<Row> =
        answer.series.iter().flat_map(|series| series.summaries.iter().map(of_series(series))).collect();
    batch(columns(&rows, &answer.tiers))
}

fn columns(rows: &[Row], tiers: &[TierPart]) -> Vec<Column> {
    let summaries = || rows.iter().map(|row| row.summary);
    let series = || rows.iter().map(|row| row.series);
    vec![
        times("time", summaries().map(|summary| summary.time.0)),
        small("step_seconds", summaries().map(|summary| step_secs(summary.time.0, tiers))),
        texts("host", series().map(|series| series.host.as_deref().unwrap_or_default())),
        texts("name", series().map(|series| series.name.as_str())),
        maps("labels", series().map(|series| series.labels.0.as_slice())),
        known_texts("unit", series().map(|series| series.unit.as_str())),
        texts("type", series().map(|series| type_of(series.semantics))),
        counts("count", summaries().map(|summary| summary.count)),
        numbers("min", summaries().map(|summary| summary.min.as_f64())),
        numbers("max", summaries().map(|summary| summary.max.as_f64())),
        numbers("sum", summaries().map(|summary| summary.sum.as_f64())),
        numbers("last", summaries().map(|summary| summary.last.as_f64())),
        known_numbers("increase", summaries().map(|summary| summary.increase.map(|value| value.as_f64()))),
        known_numbers("increase_seconds", summaries().map(|summary| summary.increase_secs)),
    ]
}

/// Length of the step that begins at this time, in seconds: as long as the buckets from which it was read.
fn step_secs(time: Time, tiers: &[TierPart]) -> u32 {
    let is_in = |part: &&TierPart| part.since.0 <= time && time < part.until.0;
    match tiers.iter().find(is_in).map(|part| part.tier.as_str()) {
        Some("1h") => 3600,
        _ => 60,
    }
}

const fn type_of(semantics: Semantics) -> &'static str {
    match semantics {
        Semantics::Counter => "counter",
        Semantics::Gauge => "gauge",
        Semantics::State => "state",
        Semantics::Unknown => "unknown",
    }
}
