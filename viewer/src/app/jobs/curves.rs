//! Curves of a job: CPUs and memory of all its hosts as lines, and a heat map with a row for each host.
//!
//! Rule: they have one axis of time, from the start of the last run to its end or until now. Not here: how lines are
//! painted (`graphs::plot`), shares of the heat map (`crate::jobs::curves`).

use super::JobsPanel;
use crate::app::cells;
use crate::app::graphs::plot::{self, AXIS, GUTTER, Line, Plot};
use crate::app::text::moment;
use crate::app::theme::{self, Colors};
use crate::graphs::axis::{self, Tick};
use crate::jobs::curves::{HeatRow, HostCurve, greatest_cpus, heat};
use crate::jobs::page::JobPage;
use crate::model::{GraphLine, Model};
use egui::{Color32, Label, Mesh, Pos2, Rect, RichText, Sense, Shape, Ui, pos2, vec2};
use wire::time::Time;

/// Height of a plot, in points.
const HEIGHT: f32 = 120.0;
/// Height of a row of the heat map: of few hosts and of many.
const ROW: f32 = 16.0;
const ROW_SMALL: f32 = 7.0;
/// More hosts have small rows without names.
const NAMED_MAX: usize = 24;
/// Width of a column of the heat map, in points.
const COLUMN: f32 = 4.0;
/// Most hosts in the legend.
const LEGEND_MAX: usize = 12;
/// Points that are farther apart than so many steps are not joined, nor those that are farther than some seconds more.
const GAP_STEPS: f64 = 3.0;
const GAP_SECS: f64 = 3.0;

/// What the plots have in common.
struct Common<'a> {
    range: (Time, Time),
    ticks: Vec<Tick>,
    curves: Vec<&'a HostCurve>,
    cursor: Option<Time>,
    colors: Colors,
}

impl JobsPanel {
    pub(super) fn curves(&mut self, model: &Model, ui: &mut Ui, colors: Colors, page: &JobPage) {
        let curves: Vec<&HostCurve> = page.curves.values().flatten().collect();
        let small = |text: String| RichText::new(text).size(theme::SMALL).color(colors.weak);
        if let Some(range) = page.range(model.now()).filter(|_| !curves.is_empty()) {
            let ticks = plot::ticks(ui.available_width(), range, model.zone());
            let common = Common { range, ticks, curves, cursor: self.pointer.take(), colors };
            legend(ui, &common);
            self.pointer = lines(model, ui, &common, "CPUs in use", |curve| &curve.cpus);
            let memory = lines(model, ui, &common, "memory, bytes", |curve| &curve.memory_bytes);
            let heat = heat_map(model, ui, &common, page);
            self.pointer = self.pointer.or(memory).or(heat);
        }
        for (host, archive) in archived(page) {
            ui.add(Label::new(small(format!("{host}: from the archive on {archive}."))).wrap());
        }
        for (host, error) in &page.missing {
            ui.add(Label::new(small(format!("{host}: {error}; its curves are missing."))).wrap());
        }
    }
}

/// Hosts whose curves are from an archive, and the archive.
fn archived(page: &JobPage) -> impl Iterator<Item = (&str, &str)> {
    let all = page.curves.iter();
    all.filter_map(|(host, curves)| Some((host.as_str(), curves.first()?.archive.as_deref()?)))
}

/// The hosts in their colours, where there are few.
fn legend(ui: &mut Ui, common: &Common<'_>) {
    let names = hosts(&common.curves);
    if names.len() < 2 || names.len() > LEGEND_MAX {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        for (number, name) in names.into_iter().enumerate() {
            let (rect, _) = ui.allocate_exact_size(vec2(8.0, 12.0), Sense::hover());
            ui.painter().circle_filled(rect.center(), 3.2, common.colors.distinct(number));
            ui.label(RichText::new(name).size(theme::SMALL));
        }
    });
}

/// The different hosts, in order.
fn hosts<'a>(curves: &[&'a HostCurve]) -> Vec<&'a str> {
    let mut names: Vec<&str> = curves.iter().map(|curve| curve.host.as_str()).collect();
    names.dedup();
    names
}

/// A plot with a line for each host; returns the time at the pointer.
fn lines(
    model: &Model,
    ui: &mut Ui,
    common: &Common<'_>,
    title: &str,
    values: fn(&HostCurve) -> &Vec<f64>,
) -> Option<Time> {
    let colors = common.colors;
    ui.label(RichText::new(title).size(theme::SMALL).color(colors.weak));
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::hover());
    let names = hosts(&common.curves);
    let of_host = |curve: &&HostCurve| {
        let number = names.iter().position(|name| *name == curve.host).unwrap_or(0);
        Line {
            name: curve.host.clone(),
            line: graph_line(curve, values(curve), common.range.0),
            color: colors.distinct(number),
            width: 1.3,
        }
    };
    let lines: Vec<Line> = common.curves.iter().map(of_host).collect();
    let reach = axis::reach(lines.iter().flat_map(Line::figures), 0.0);
    let plot = Plot {
        range: common.range,
        reach,
        lines: &lines,
        marks: &[],
        cursor: common.cursor,
        ticks: &common.ticks,
    };
    plot.paint(ui, rect, colors);
    below(ui, rect, common);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Label, true, title));
    let at = response.hover_pos()?;
    let time = time_at(rect, at, common.range)?;
    let mut texts = vec![(moment(time, model.zone(), false), colors.weak)];
    if let Some(line) = plot::nearest(&plot, rect, at) {
        let value = value_at(&line.line, common.range.0, time).map_or_else(String::new, axis::short);
        texts.push((format!("{} {value}", line.name), line.color));
    }
    plot::readout(ui, rect, &texts, colors);
    Some(time)
}

/// The times below a plot.
fn below(ui: &mut Ui, rect: Rect, common: &Common<'_>) {
    let (below, _) = ui.allocate_exact_size(vec2(rect.width(), AXIS), Sense::hover());
    plot::moments(ui, below, common.range, &common.ticks, common.colors);
}

#[allow(clippy::cast_precision_loss)] // Points are few.
fn graph_line(curve: &HostCurve, values: &[f64], from: Time) -> GraphLine {
    let points: Vec<[f64; 2]> = curve.points(from, values).collect();
    let step = match (points.first(), points.last()) {
        (Some(first), Some(last)) if points.len() > 1 => (last[0] - first[0]) / (points.len() - 1) as f64,
        _ => 0.0,
    };
    let joined_secs = GAP_STEPS * step + GAP_SECS;
    GraphLine { name: curve.host.clone(), points, bounds: Vec::new(), joined_secs, is_earlier: false }
}

/// The value of the point nearest to a time.
fn value_at(line: &GraphLine, from: Time, time: Time) -> Option<f64> {
    let secs = time.since(from).as_secs_f64();
    let distance = |point: &&[f64; 2]| (point[0] - secs).abs();
    let nearest = line.points.iter().min_by(|one, other| distance(one).total_cmp(&distance(other)));
    nearest.map(|point| point[1])
}

fn time_at(rect: Rect, at: Pos2, (from, to): (Time, Time)) -> Option<Time> {
    let inside = plot::plot_rect(rect);
    let share = f64::from((at.x - inside.left()) / inside.width().max(1.0));
    (0.0..=1.0).contains(&share).then(|| from.plus(to.since(from).mul_f64(share)))
}

/// A row for each host, whose colour is the share of its CPUs that are in use; returns the time at the pointer.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn heat_map(model: &Model, ui: &mut Ui, common: &Common<'_>, page: &JobPage) -> Option<Time> {
    let colors = common.colors;
    let greatest = greatest_cpus(common.curves.iter().copied());
    let (allocated, title) = match page.cpus_of_host() {
        Some(cpus) => (cpus, format!("CPUs in use, as a share of the {} of a host", axis::short(cpus))),
        None => {
            (greatest, format!("CPUs in use, as a share of the most, which is {}", axis::short(greatest)))
        }
    };
    ui.horizontal(|ui| {
        ui.label(RichText::new(title).size(theme::SMALL).color(colors.weak));
        scale(ui, colors);
    });
    let width = ui.available_width();
    let columns = ((width - GUTTER) / COLUMN).max(1.0) as usize;
    let rows = heat(common.curves.iter().copied(), common.range, columns, allocated);
    let height = if rows.len() > NAMED_MAX { ROW_SMALL } else { ROW };
    let (rect, response) = ui.allocate_exact_size(vec2(width, height * rows.len() as f32), Sense::hover());
    for (number, row) in rows.iter().enumerate() {
        let top = rect.top() + number as f32 * height;
        let whole = Rect::from_min_max(pos2(rect.left(), top), pos2(rect.right(), top + height - 1.0));
        heat_row(ui, whole, row, rows.len() <= NAMED_MAX, colors);
    }
    below(ui, rect, common);
    let at = response.hover_pos()?;
    let time = time_at(rect, at, common.range)?;
    let row = rows.get(((at.y - rect.top()) / height) as usize)?;
    let inside = plot::plot_rect(rect);
    let column = ((at.x - inside.left()) / inside.width() * columns as f32) as usize;
    let share = row.shares.get(column).copied().flatten();
    let share = share.map_or_else(|| "not measured".to_owned(), crate::app::text::percent);
    response.on_hover_text(format!("{}  {}  {share}", row.host, moment(time, model.zone(), false)));
    Some(time)
}

#[allow(clippy::cast_precision_loss)]
fn heat_row(ui: &Ui, whole: Rect, row: &HeatRow, is_named: bool, colors: Colors) {
    let inside = plot::plot_rect(whole);
    if is_named {
        let name = whole.with_max_x(inside.left() - 6.0);
        cells::text(ui, name, &row.host, theme::small(), colors.weak, true);
    }
    ui.painter().rect_filled(inside, 0.0, colors.card);
    let width = inside.width() / row.shares.len().max(1) as f32;
    let mut mesh = Mesh::default();
    for (column, share) in row.shares.iter().enumerate() {
        let Some(share) = share else { continue };
        let left = inside.left() + column as f32 * width;
        let cell = Rect::from_min_max(pos2(left, inside.top()), pos2(left + width, inside.bottom()));
        mesh.add_colored_rect(cell, colors.load(*share));
    }
    ui.painter().add(Shape::mesh(mesh));
}

/// The colours from nothing to all.
fn scale(ui: &mut Ui, colors: Colors) {
    let small = |text: &str| RichText::new(text).size(theme::SMALL).color(colors.weak);
    ui.label(small("0 %"));
    let (rect, _) = ui.allocate_exact_size(vec2(60.0, 8.0), Sense::hover());
    let mut mesh = Mesh::default();
    let steps: u8 = 12;
    for step in 0..steps {
        let at = |step: u8| rect.left() + rect.width() * f32::from(step) / f32::from(steps);
        let cell = Rect::from_min_max(pos2(at(step), rect.top()), pos2(at(step + 1), rect.bottom()));
        let color: Color32 = colors.load(f64::from(step) / f64::from(steps - 1));
        mesh.add_colored_rect(cell, color);
    }
    ui.painter().add(Shape::mesh(mesh));
    ui.label(small("100 %"));
}
