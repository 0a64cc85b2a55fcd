//! One plot for each metric, with all hosts in it, one below the other.
//!
//! Rule: of one host its parts are drawn (user, system), of several the total of each in its colour. Not
//! here: one plot (`plot`).

use super::marks::{self, Mark};
use super::plot::{self, AXIS, Line, Plot};
use super::{Drawing, Pointer, color_of, line_colors};
use crate::app::text::{elided, moment};
use crate::app::theme::{self, Colors};
use crate::flock::sweep::HostName;
use crate::graphs::axis;
use crate::graphs::metric::{Metric, Shows};
use crate::model::Model;
use egui::{Color32, Rect, ScrollArea, Sense, Ui, pos2, vec2};
use wire::time::Time;

/// Least height of a plot, in points; more plots scroll.
const HEIGHT_MIN: f32 = 72.0;
/// Height of the title over a plot.
const TITLE: f32 = 18.0;

pub(super) fn show(graphs: &mut Drawing<'_>, ui: &mut Ui) {
    let model = graphs.model;
    let range = model.graph_range();
    let metrics = model.graphs().choice().metrics();
    let marks = marks::together(model, range, graphs.colors);
    #[allow(clippy::cast_precision_loss)]
    let share =
        ui.available_height() / metrics.len().max(1) as f32 - TITLE - AXIS - ui.spacing().item_spacing.y;
    let height = share.max(HEIGHT_MIN);
    ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        for metric in &metrics {
            let size = vec2(ui.available_width(), TITLE + height + AXIS);
            let (whole, _) = ui.allocate_exact_size(size, Sense::hover());
            if ui.is_rect_visible(whole) {
                one(graphs, ui, metric, whole, range, &marks);
            }
        }
    });
}

fn one(graphs: &mut Drawing<'_>, ui: &Ui, metric: &Metric, whole: Rect, range: (Time, Time), marks: &[Mark]) {
    let (model, colors, pointer) = (graphs.model, graphs.colors, graphs.pointer);
    let hosts = model.graphs().hosts();
    let top = whole.top() + TITLE;
    let rect = Rect::from_min_max(pos2(whole.left(), top), pos2(whole.right(), whole.bottom() - AXIS));
    let title = elided(ui.painter(), metric.title(), theme::small(), colors.weak, whole.width());
    ui.painter().galley(whole.min + vec2(0.0, 1.0), title, colors.weak);
    let lines = lines(graphs, metric, rect.width());
    let figures = lines.iter().flat_map(Line::figures);
    let reach = axis::reach(figures, metric.reaches_at_least());
    let cursor = pointer.time;
    let ticks = plot::ticks(rect.width(), range, model.zone());
    let plot = Plot { range, reach, lines: &lines, marks, cursor, ticks: &ticks };
    plot.paint(ui, rect, colors);
    let has_others =
        |host: &HostName| model.graphs().series_of(host).is_some_and(|series| !series.is_empty());
    if lines.is_empty() && hosts.iter().any(has_others) {
        let words = format!("no figures of {} here", metric.title());
        let words = elided(ui.painter(), &words, theme::small(), colors.weak, rect.width() - plot::GUTTER);
        ui.painter().galley(rect.center() - words.size() / 2.0, words, colors.weak);
    }
    let below = Rect::from_min_max(rect.left_bottom(), whole.right_bottom());
    plot::moments(ui, below, range, &ticks, colors);
    let id = ui.id().with(("together", metric));
    let (_, at) = plot::interact(graphs, ui, rect, id, range);
    let Some(cursor) = cursor else { return };
    let words = match (hosts, at) {
        ([only], _) => of_host(model, metric, only, cursor, colors),
        (_, Some(at)) => {
            let Some(line) = plot::nearest(&plot, rect, at) else { return };
            let words = (format!("{}  {}", moment(cursor, model.zone(), false), line.name), line.color);
            let host = hosts.iter().find(|host| is_line_of(model, host, &line.name));
            graphs.found.host = host.cloned();
            let figures = host.map(|host| of_host(model, metric, host, cursor, colors));
            std::iter::once(words).chain(figures.unwrap_or_default().into_iter().skip(1)).collect()
        }
        _ => return,
    };
    plot::readout(ui, rect, &words, colors);
}

fn is_line_of(model: &Model, host: &HostName, line: &str) -> bool {
    line.strip_prefix(&*model.graphs().title_of(host))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("  "))
}

/// The figures of a host at a moment, in the colours of its lines.
pub(super) fn of_host(
    model: &Model,
    metric: &Metric,
    host: &HostName,
    at: Time,
    colors: Colors,
) -> Vec<(String, Color32)> {
    let mut words = vec![(moment(at, model.zone(), false), colors.weak)];
    for (number, (name, figure)) in model.graph_values(host, metric, Shows::Parts, at).into_iter().enumerate()
    {
        if let Some(figure) = figure {
            words.push((format!("{name} {}", axis::short(figure)), color_of(metric, number, colors)));
        }
    }
    words
}

/// The lines of a metric: of one host its parts, of several the total of each.
fn lines(graphs: &Drawing<'_>, metric: &Metric, width: f32) -> Vec<Line> {
    let (model, colors) = (graphs.model, graphs.colors);
    let hosts = model.graphs().hosts();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let columns = width.max(1.0) as usize;
    let mut lines = Vec::new();
    for host in hosts {
        let (shows, is_alone) = match hosts {
            [_] => (Shows::Parts, true),
            _ => (Shows::Total, false),
        };
        let known = model.graph_lines(host, metric, shows, columns);
        let is_one = known.iter().filter(|line| !line.is_earlier).count() <= 1;
        let of_parts = line_colors(metric, &known, colors);
        for (line, of_part) in known.into_iter().zip(of_parts) {
            let color = match is_alone {
                true => of_part,
                false => host_color(model, graphs.pointer, host, colors),
            };
            let name = match (is_alone, is_one) {
                (true, _) => line.name.clone(),
                (false, true) => model.graphs().title_of(host),
                (false, false) => format!("{}  {}", model.graphs().title_of(host), line.name),
            };
            let is_pointed = graphs.pointer.host.as_ref() == Some(host);
            let width = if is_pointed { 2.4 } else { 1.4 };
            lines.push(Line { name, line, color, width });
        }
    }
    lines
}

/// The colour of a host among others; fainter where the pointer is at another.
pub(super) fn host_color(model: &Model, pointer: &Pointer, host: &HostName, colors: Colors) -> Color32 {
    let number = model.graphs().hosts().iter().position(|known| known == host);
    let color = colors.distinct(number.unwrap_or(0));
    let is_other = pointer.host.as_ref().is_some_and(|pointed| pointed != host);
    if is_other { color.gamma_multiply(0.3) } else { color }
}
