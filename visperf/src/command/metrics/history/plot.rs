//! `visperf metrics --plot`: the past of each metric as lines over time.
//!
//! Rule: what has one name, and so one unit, is drawn together. Not here: how lines are drawn (`output::plot`).

use super::rows::figure;
use super::{OfHost, mean};
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::Between;
use crate::output::plot::Plot;
use crate::output::times::to_second;
use crate::output::{Color, Output, note};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use wire::api::metrics::Sample;
use wire::time::Time;

/// Lines of a plot, at most: as many as there are colours that differ enough.
const LINES_MAX: usize = 6;

/// Plots, at most.
const PLOTS_MAX: usize = 8;

/// Draws the series.
///
/// # Errors
/// As [`Output::line`].
pub(super) fn print(series: &[OfHost], between: &Between, output: &mut Output) -> Result<(), Failure> {
    let mut of_name: BTreeMap<&str, Vec<&OfHost>> = BTreeMap::new();
    for one in series {
        of_name.entry(one.series.name.as_str()).or_default().push(one);
    }
    // Without colours two lines in one plot would look alike.
    let lines_max = if output.has_colors() { LINES_MAX } else { 1 };
    let mut drawn = 0;
    for (name, mut lines) in of_name.into_iter().take(PLOTS_MAX) {
        lines.sort_by(|a, b| mean(&b.series).total_cmp(&mean(&a.series)));
        lines.truncate(lines_max);
        drawn += lines.len();
        let unit = &lines[0].series.unit;
        let head = if unit.is_empty() { name.to_owned() } else { format!("{name} in {unit}") };
        let head = output.paint(Color::Head, &clean(&head)).into_owned();
        output.line(&head)?;
        let span = span(&lines, between);
        let zone = TimeZone::system();
        let plot = Plot {
            lines: lines.iter().map(|line| line.series.samples.iter().map(point).collect()).collect(),
            span: span.map(Time::secs_f64),
            times: span.map(|time| to_second(time, &zone)),
            figure: &|value| figure(&lines[0].series, value),
        };
        plot.print(output)?;
        for (place, line) in lines.iter().enumerate() {
            let place = u8::try_from(place).unwrap_or(u8::MAX);
            let mark = output.paint(Color::Series(place), "━━").into_owned();
            let labels = line.series.labels.to_string();
            let text = [line.host.as_str(), labels.as_str()].join(" ");
            // One line of all hosts has neither.
            let text = if text.trim().is_empty() { "all" } else { text.trim() };
            output.line(&format!("{mark} {}", clean(text)))?;
        }
        output.line("")?;
    }
    if drawn < series.len() {
        let why = if output.has_colors() { "" } else { ", one a plot as there are no colours" };
        note(&format!(
            "{drawn} of {} series are drawn{why}, those with the largest means; choose others by name, --host, --label or --by",
            series.len()
        ));
    }
    Ok(())
}

fn point(sample: &Sample) -> (f64, f64) {
    (sample.time.0.secs_f64(), sample.value.as_f64())
}

/// The requested span, as far as it is given, else that of the values.
fn span(lines: &[&OfHost], between: &Between) -> [Time; 2] {
    let times = || lines.iter().flat_map(|line| &line.series.samples).map(|sample| sample.time.0);
    let since = between.since.or(times().min()).unwrap_or_default();
    let until = between.until.or(times().max()).unwrap_or_default();
    [since, until.max(since.plus(std::time::Duration::from_secs(1)))]
}
