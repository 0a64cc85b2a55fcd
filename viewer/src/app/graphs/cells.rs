//! Small multiples: one plot for each host and metric, in a grid that fills the tab, over one axis of time at
//! the bottom.
//!
//! Rule: only the visible plots are drawn. Not here: their size (`crate::graphs::cells`), one plot (`plot`).

use super::marks::{self, Mark};
use super::plot::{self, AXIS, Line, Plot};
use super::together::of_host;
use super::{Drawing, line_colors};
use crate::app::text::elided;
use crate::app::theme::{self, Colors};
use crate::flock::sweep::HostName;
use crate::graphs::axis::Tick;
use crate::graphs::metric::{Metric, Shows};
use crate::graphs::{Scale, axis, cells};
use crate::model::{Change, GraphLine, Model, Selection};
use egui::{Color32, Rect, ScrollArea, Sense, Stroke, StrokeKind, Ui, UiBuilder, pos2, vec2};
use wire::time::Time;

/// Height of the name over a plot, in points.
const TITLE: f32 = 17.0;
/// Room for the scroll bar.
const BAR: f32 = 12.0;

/// What all plots have in common.
struct Common<'a> {
    range: (Time, Time),
    metrics: Vec<Metric>,
    hosts: &'a [HostName],
    /// The lines of each plot, until it is drawn; those that do not share their scale are found when they are visible.
    lines: Vec<Option<Vec<GraphLine>>>,
    /// Lowest and highest figure of each metric, where its plots share them.
    reaches: Vec<Option<(f64, f64)>>,
    /// Marks of calls, by the order of hosts.
    marks: Vec<Vec<Mark>>,
    ticks: Vec<Tick>,
    width: f32,
    colors: Colors,
}

pub(super) fn show(graphs: &mut Drawing<'_>, ui: &mut Ui) {
    let (model, colors) = (graphs.model, graphs.colors);
    let rect = ui.available_rect_before_wrap();
    let (metrics, hosts) = (model.graphs().choice().metrics(), model.graphs().hosts());
    // The metrics of one host are side by side, where there are other hosts to compare it with.
    let group = if hosts.len() > 1 { metrics.len() } else { 1 };
    let room = vec2(rect.width() - BAR, (rect.height() - AXIS).max(1.0));
    let cells = cells::Cells::fit(hosts.len() * metrics.len(), group, room.x, room.y);
    let range = model.graph_range();
    let marks = marks::of_hosts(model, range, colors);
    let mut common = Common {
        range,
        metrics,
        hosts,
        lines: Vec::new(),
        reaches: Vec::new(),
        marks,
        ticks: plot::ticks(cells.width, range, model.zone()),
        width: cells.width,
        colors,
    };
    common.share(model);
    let above = Rect::from_min_max(rect.min, pos2(rect.right(), rect.bottom() - AXIS));
    ui.scope_builder(UiBuilder::new().max_rect(above).id_salt("cells"), |ui| {
        ScrollArea::vertical().auto_shrink(false).show_viewport(ui, |ui, seen| {
            ui.set_min_size(vec2(room.x, cells.whole_height()));
            let origin = ui.min_rect().min;
            for at in cells.visible(seen.top(), seen.bottom()) {
                let area = cells.area(at);
                let cell = Rect::from_min_max(pos2(area.min.x, area.min.y), pos2(area.max.x, area.max.y));
                one(graphs, ui, &mut common, at, cell.translate(origin.to_vec2()));
            }
        });
    });
    for column in 0..cells.columns {
        let area = cells.area(column);
        let left = rect.left() + area.min.x;
        let below = Rect::from_min_max(pos2(left, above.bottom()), pos2(left + area.width(), rect.bottom()));
        plot::moments(ui, below, range, &common.ticks, colors);
    }
}

impl Common<'_> {
    /// Find all lines and the reach of each metric, where its plots share them.
    fn share(&mut self, model: &Model) {
        let count = self.metrics.len();
        self.lines = vec![None; self.hosts.len() * count];
        self.reaches = vec![None; count];
        if model.graphs().choice().scale != Scale::Shared {
            return;
        }
        for at in 0..self.lines.len() {
            self.lines[at] = Some(self.found(model, at));
        }
        for (number, metric) in self.metrics.iter().enumerate() {
            let lines = self.lines.iter().skip(number).step_by(count).flatten().flatten();
            let extremes = lines.filter_map(extremes);
            self.reaches[number] = Some(axis::reach(extremes.flatten(), metric.reaches_at_least()));
        }
    }

    fn found(&self, model: &Model, at: usize) -> Vec<GraphLine> {
        let count = self.metrics.len();
        model.graph_lines(&self.hosts[at / count], &self.metrics[at % count], Shows::Parts, self.columns())
    }

    /// The lines of a plot that is drawn.
    fn take_lines(&mut self, model: &Model, at: usize) -> Vec<Line> {
        let lines = self.lines[at].take().unwrap_or_else(|| self.found(model, at));
        let colors = line_colors(&self.metrics[at % self.metrics.len()], &lines, self.colors);
        let line =
            |(line, color): (GraphLine, Color32)| Line { name: line.name.clone(), line, color, width: 1.2 };
        lines.into_iter().zip(colors).map(line).collect()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn columns(&self) -> usize {
        self.width.max(1.0) as usize
    }
}

/// The least and the greatest value of a line.
fn extremes(line: &GraphLine) -> Option<[f64; 2]> {
    let values = plot::figures(line).map(|value| [value, value]);
    values.reduce(|[least, greatest], [value, _]| [least.min(value), greatest.max(value)])
}

fn one(graphs: &mut Drawing<'_>, ui: &Ui, common: &mut Common<'_>, at: usize, cell: Rect) {
    let model = graphs.model;
    let lines = common.take_lines(model, at);
    let (colors, range) = (common.colors, common.range);
    let number = at % common.metrics.len();
    let (metric, host) = (&common.metrics[number], &common.hosts[at / common.metrics.len()]);
    let rect = Rect::from_min_max(pos2(cell.left(), cell.top() + TITLE), cell.max);
    let own = || axis::reach(lines.iter().flat_map(Line::figures), metric.reaches_at_least());
    let reach = common.reaches[number].unwrap_or_else(own);
    let cursor = graphs.pointer.time;
    let marks = &common.marks[at / common.metrics.len()];
    Plot { range, reach, lines: &lines, marks, cursor, ticks: &common.ticks }.paint(ui, rect, colors);
    title(graphs, ui, common, (metric, host), cell);
    let id = ui.id().with(("cell", metric, host));
    let (response, pointer) = plot::interact(graphs, ui, rect, id, range);
    let name = format!("graph of {}, {}", model.graphs().title_of(host), metric.short_title());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, name.as_str()));
    if pointer.is_some() {
        let inside = plot::plot_rect(rect);
        ui.painter().rect_stroke(inside, 2.0, Stroke::new(1.0, colors.line), StrokeKind::Inside);
        if let Some(cursor) = cursor {
            plot::readout(ui, rect, &of_host(model, metric, host, cursor, colors), colors);
        }
    }
    if response.clicked()
        && !response.double_clicked()
        && let Some(id) = model.placed().host(host)
    {
        graphs.commands.push(Change::Select(Some(Selection::of_place(model.grid(), id))));
    }
}

/// The host's name over its plot, with its figure at the pointer, or the newest.
fn title(
    graphs: &Drawing<'_>,
    ui: &Ui,
    common: &Common<'_>,
    (metric, host): (&Metric, &HostName),
    cell: Rect,
) {
    let (colors, model) = (common.colors, graphs.model);
    let (left, middle) = (cell.left() + plot::GUTTER, cell.top() + TITLE / 2.0);
    let mut end = cell.right();
    let when = graphs.pointer.time.unwrap_or(common.range.1);
    let lines = model.graph_values(host, metric, Shows::Total, when);
    let figures = lines.iter().filter_map(|(_, figure)| *figure);
    if let Some(figure) = figures.reduce(f64::max) {
        let galley = ui.painter().layout_no_wrap(axis::short(figure), theme::figures(), colors.text);
        end -= galley.size().x;
        ui.painter().galley(pos2(end, middle - galley.size().y / 2.0), galley, colors.text);
    }
    let name = match &common.metrics[..] {
        [_] => model.graphs().title_of(host),
        _ => format!("{}  {}", model.graphs().title_of(host), metric.short_title()),
    };
    let is_there = !lines.is_empty();
    let color: Color32 = if is_there { colors.text } else { colors.weak };
    let galley = elided(ui.painter(), &name, theme::small(), color, end - left - 8.0);
    let is_cut = galley.elided;
    ui.painter().galley(pos2(left, middle - galley.size().y / 2.0), galley, color);
    let over = Rect::from_min_max(pos2(left, cell.top()), pos2(end, cell.top() + TITLE));
    let response = ui.interact(over, ui.id().with(("title", metric, host)), Sense::hover());
    if is_cut {
        response.on_hover_text(name);
    }
}
