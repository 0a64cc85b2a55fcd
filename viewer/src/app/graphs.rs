//! A host's graphs: CPU, disk, network, memory and load, one below the other over one axis of time.
//!
//! Rule: what is drawn is reduced to the width there is by least and greatest, so that no spike is lost; what went
//! wrong on the host is marked on the axis. Not here: where the figures come from (`live`).

use super::App;
use super::text::{moment, span};
use super::theme::{self, Colors};
use crate::feed::HostSeries;
use crate::live::rates::GRAPHS;
use crate::scene::Tone;
use egui::{Color32, Frame, Margin, RichText, ScrollArea, Ui, Vec2b, vec2};
use egui_plot::{Corner, GridMark, Legend, Line, Plot, PlotPoints, VLine};
use std::time::Duration;
use wire::event::Outcome;
use wire::time::Time;

/// How much of the past is seen, until somebody zooms.
const WINDOW: Duration = Duration::from_secs(300);
/// Height of a graph, in points, where there is no room for all.
const HEIGHT_MIN: f32 = 110.0;
/// Marks of calls on one graph.
const MARKS_MAX: usize = 200;

/// Draw them.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    let colors = Colors::of(ui.ctx());
    let frame = Frame::new().fill(colors.ground).inner_margin(Margin::symmetric(12, 8));
    frame.show(ui, |ui| {
        ui.take_available_space();
        let Some(host) = app.graphs_of.clone() else {
            return nothing(ui, colors, "Double click a host to see its graphs.");
        };
        let series = app.series.clone().filter(|(of, _)| *of == host).map(|(_, series)| series);
        ui.horizontal(|ui| {
            ui.label(RichText::new(&*host.host).strong().size(15.0));
            let newest = series
                .as_ref()
                .and_then(|series| series.values().filter_map(|one| one.newest()).map(|(at, _)| at).max());
            if let Some(newest) = newest {
                let age = span(app.now.since(newest).as_secs_f64());
                ui.label(RichText::new(format!("{age} old")).size(theme::SMALL).color(colors.weak));
            }
        });
        match series {
            Some(series) if series.values().any(|one| one.newest().is_some()) => {
                graphs(app, ui, colors, &series)
            }
            _ if !matches!(app.source, super::Source::Daemon(_)) => {
                nothing(
                    ui,
                    colors,
                    "A log tells of calls, not of load: connect to a daemon to see graphs of hosts.",
                );
            }
            _ => nothing(ui, colors, "Asking for its figures …"),
        }
    });
}

fn nothing(ui: &mut Ui, colors: Colors, words: &str) {
    ui.add_space(16.0);
    ui.label(RichText::new(words).color(colors.weak));
}

fn graphs(app: &App, ui: &mut Ui, colors: Colors, series: &HostSeries) {
    let to = app.timeline.time();
    let from = to.minus(WINDOW);
    let there: Vec<_> = GRAPHS
        .iter()
        .filter(|(_, names)| {
            names.iter().any(|name| series.get(*name).is_some_and(|one| one.newest().is_some()))
        })
        .collect();
    let free = ui.available_height() / there.len().max(1) as f32 - 26.0;
    let height = free.clamp(HEIGHT_MIN, 260.0);
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        for (title, names) in there {
            ui.label(RichText::new(*title).size(theme::SMALL).color(colors.weak));
            graph(app, ui, colors, (title, names, height), series, (from, to));
        }
    });
}

fn graph(
    app: &App,
    ui: &mut Ui,
    colors: Colors,
    (title, names, height): (&str, &[&str], f32),
    series: &HostSeries,
    (from, to): (Time, Time),
) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let columns = ui.available_width().max(1.0) as usize;
    let tones = [Tone::Asking, Tone::Working, Tone::Over(Outcome::Timeout)];
    let width = to.since(from).as_secs_f64();
    let zone = app.zone.clone();
    let at_begin = |secs: f64| {
        #[allow(clippy::cast_possible_truncation)]
        let micros = (secs * 1e6).round() as i64;
        Time::from_micros(from.micros().saturating_add(micros))
    };
    let (axis_zone, hover_zone) = (zone.clone(), zone);
    Plot::new(title)
        .height(height)
        .show_background(false)
        .show_axes(Vec2b::TRUE)
        .include_y(0.0)
        .include_y(1.0)
        .include_x(0.0)
        .include_x(width)
        .set_margin_fraction(vec2(0.0, 0.08))
        .allow_scroll(false)
        .link_axis(egui::Id::new("graphs"), Vec2b::new(true, false))
        .link_cursor(egui::Id::new("graphs"), Vec2b::new(true, false))
        .legend(Legend::default().position(Corner::LeftTop).background_alpha(0.6))
        .y_axis_min_width(58.0)
        .grid_color(colors.line)
        .x_grid_spacer(move |input| time_marks(from, input.bounds))
        .y_grid_spacer(|input| round_marks(input.bounds))
        .x_axis_formatter(move |mark, _| moment(at_begin(mark.value), &axis_zone, false))
        .y_axis_formatter(|mark, _| short(mark.value))
        .coordinates_formatter(
            Corner::RightTop,
            egui_plot::CoordinatesFormatter::new(move |point, _| {
                format!("{}  {}", moment(at_begin(point.x), &hover_zone, false), short(point.y))
            }),
        )
        .show(ui, |plot| {
            for (name, tone) in names.iter().zip(tones) {
                let Some(one) = series.get(*name) else { continue };
                let points = PlotPoints::from(one.reduced(from, to, columns));
                plot.line(Line::new(*name, points).color(colors.tone(tone)).width(1.4));
            }
            for (secs, color) in marks(app, colors, from, to) {
                plot.vline(VLine::new("", secs).color(color).width(1.0));
            }
        });
}

/// Marks at whole moments of the clock, some six of them, in seconds after `from`.
fn time_marks(from: Time, (left, right): (f64, f64)) -> Vec<GridMark> {
    let steps =
        [0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0];
    let step = steps.into_iter().find(|step| (right - left) / step <= 8.0).unwrap_or(604_800.0);
    // Seconds of the moment of `from` that are beyond the last whole step.
    let beyond = from.secs_f64().rem_euclid(step);
    spaced(left + beyond, right + beyond, step)
        .map(|value| GridMark { value: value - beyond, step_size: step })
        .collect()
}

/// Marks at round figures, some four of them.
fn round_marks((low, high): (f64, f64)) -> Vec<GridMark> {
    let rough = ((high - low) / 4.0).max(1e-12);
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|by| by * power).find(|step| *step >= rough).unwrap_or(rough);
    spaced(low, high, step).map(|value| GridMark { value, step_size: step }).collect()
}

/// The multiples of `step` from `low` to `high`, not more than a graph has room for.
fn spaced(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let first = (low / step).ceil();
    (0_u32..24).map(move |number| (first + f64::from(number)) * step).take_while(move |value| *value <= high)
}

/// When calls failed on the host, in seconds after `from`.
fn marks(app: &App, colors: Colors, from: Time, to: Time) -> Vec<(f64, Color32)> {
    let Some(host) = &app.graphs_of else { return Vec::new() };
    let grid = &app.drawn.grid;
    let on_host =
        |call: &&crate::grid::call::Call| call.hosts.iter().any(|&id| grid.place(id).name == *host.host);
    let failed = grid.calls.iter().filter(|call| call.has_failed()).filter(on_host);
    let ends = failed.filter_map(|call| Some((call.ended?, Tone::Over(call.outcome?))));
    ends.filter(|(at, _)| *at >= from && *at <= to)
        .take(MARKS_MAX)
        .map(|(at, tone)| (at.since(from).as_secs_f64(), colors.tone(tone).gamma_multiply(0.6)))
        .collect()
}

/// A figure in four signs.
pub(super) fn short(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.iter().find(|(unit, _)| value.abs() >= *unit) {
        Some((unit, word)) => {
            format!("{:.3}", value / unit)
                .chars()
                .take(4)
                .collect::<String>()
                .trim_end_matches('.')
                .to_owned()
                + word
        }
        None if value.fract() == 0.0 => format!("{value:.0}"),
        None => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{round_marks, short, time_marks};
    use wire::time::Time;

    #[test]
    fn marks_stand_at_whole_moments_and_round_figures() {
        let from = Time::from_micros(1_000_000_007_500_000);
        let marks = time_marks(from, (0.0, 300.0));
        assert_eq!(marks.len(), 5);
        let whole = |value: f64| ((from.secs_f64() + value) / 60.0).fract() < 1e-6;
        assert!(marks.iter().all(|mark| whole(mark.value) && (0.0..=300.0).contains(&mark.value)));
        let figures: Vec<f64> = round_marks((0.0, 270.0)).iter().map(|mark| mark.value).collect();
        assert_eq!(figures, [0.0, 100.0, 200.0]);
        assert!(round_marks((0.0, 0.0)).len() <= 24 && time_marks(from, (0.0, 1e12)).len() <= 24);
    }

    #[test]
    fn figures_are_short() {
        let shown = [0.0, 0.25, 12.0, 1_000.0, 123_456.0, 1.5e9].map(short);
        assert_eq!(shown, ["0", "0.25", "12", "1.00k", "123k", "1.50G"]);
    }
}
