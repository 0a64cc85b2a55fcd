//! One plot: lines over time, with round figures at the left. A drag moves all plots, a pinch or the wheel
//! with Ctrl zooms them, a double click resets them.
//!
//! Rule: nothing is painted outside of the given rectangle. Not here: arrangement of plots (`together`,
//! `cells`).

use super::Drawing;
use super::marks::{Kind, Mark};
use crate::app::theme::{self, Colors};
use crate::graphs::axis::{self, Tick};
use crate::model::{GraphLine, GraphsChange};
use egui::epaint::TextShape;
use egui::text::{LayoutJob, TextFormat};
use egui::{
    Align2, Color32, Id, Mesh, Painter, Pos2, Rangef, Rect, Response, Sense, Shape, Stroke, Ui, Vec2, pos2,
    vec2,
};
use jiff::tz::TimeZone;
use wire::time::Time;

/// Room for figures left of a plot, in points.
pub(in crate::app) const GUTTER: f32 = 44.0;
/// Room for times below it.
pub(in crate::app) const AXIS: f32 = 18.0;
/// Least distance of two figures, and of two times.
const FIGURES_APART: f32 = 26.0;
/// Most figures at one plot.
const FIGURES_MAX: usize = 6;
const MOMENTS_APART: f32 = 96.0;
/// The same in small plots.
const MOMENTS_APART_SMALL: f32 = 52.0;
/// Height of the mark of a call that started or ended, in points.
const MARK_HEIGHT: f32 = 5.0;
/// Narrower plots are small.
const SMALL_BELOW: f32 = 320.0;
/// Length of the dashes of an earlier time, in points.
const DASH: f32 = 4.0;

/// A line of a plot.
pub(in crate::app) struct Line {
    pub(in crate::app) name: String,
    pub(in crate::app) line: GraphLine,
    pub(in crate::app) color: Color32,
    pub(in crate::app) width: f32,
}

/// Contents of a plot.
pub(in crate::app) struct Plot<'a> {
    /// Start and end.
    pub(in crate::app) range: (Time, Time),
    /// Lowest and highest figure.
    pub(in crate::app) reach: (f64, f64),
    pub(in crate::app) lines: &'a [Line],
    pub(in crate::app) marks: &'a [Mark],
    pub(in crate::app) cursor: Option<Time>,
    /// Times of the vertical lines.
    pub(in crate::app) ticks: &'a [Tick],
}

impl Line {
    /// The visible figures: without the one before the start, from which the line comes.
    pub(in crate::app) fn figures(&self) -> impl Iterator<Item = f64> {
        figures(&self.line)
    }

    /// Its parts, divided where two samples are more than `farthest` seconds apart: nothing was measured
    /// there.
    fn pieces(&self, farthest: f64) -> impl Iterator<Item = &[[f64; 2]]> {
        self.line.points.chunk_by(move |one, next| next[0] - one[0] <= farthest)
    }

    /// Paint the values between the least and the greatest of each step, where they differ.
    fn paint_bounds(&self, painter: &Painter, pos: impl Fn([f64; 2]) -> Pos2, farthest: f64) {
        if self.line.is_earlier {
            return;
        }
        let color = self.color.gamma_multiply(0.22);
        for piece in self.line.bounds.chunk_by(|one, next| next[0] - one[0] <= farthest) {
            if piece.iter().all(|[_, least, greatest]| least >= greatest) {
                continue;
            }
            let mut mesh = Mesh::default();
            mesh.reserve_vertices(2 * piece.len());
            mesh.reserve_triangles(2 * piece.len());
            for &[secs, least, greatest] in piece {
                mesh.colored_vertex(pos([secs, least]), color);
                mesh.colored_vertex(pos([secs, greatest]), color);
            }
            for first in (0_u32..).step_by(2).take(piece.len().saturating_sub(1)) {
                mesh.add_triangle(first, first + 1, first + 2);
                mesh.add_triangle(first + 1, first + 2, first + 3);
            }
            painter.add(Shape::mesh(mesh));
        }
    }
}

/// The values of a line within its plot, the extremes of steps among them.
pub(super) fn figures(line: &GraphLine) -> impl Iterator<Item = f64> {
    let points = line.points.iter().filter(|point| point[0] >= 0.0).map(|point| point[1]);
    points.chain(line.bounds.iter().filter(|bound| bound[0] >= 0.0).flat_map(|bound| [bound[1], bound[2]]))
}

impl Plot<'_> {
    /// Greatest distance of samples that a line joins, in seconds: two samples are left of each column.
    fn farthest(&self, inside: Rect, line: &Line) -> f64 {
        let column = self.range.1.since(self.range.0).as_secs_f64() / f64::from(inside.width().max(1.0));
        line.line.joined_secs.max(3.0 * column)
    }

    /// Paint it into the rectangle, figures at its left.
    pub(in crate::app) fn paint(&self, ui: &Ui, rect: Rect, colors: Colors) {
        let inside = plot_rect(rect);
        let painter = ui.painter();
        painter.rect_filled(inside, 2.0, colors.card);
        self.figures(ui, inside, colors);
        let within = painter.with_clip_rect(inside.intersect(painter.clip_rect()));
        for tick in self.ticks {
            within.vline(self.x(inside, tick.time), inside.y_range(), faint(colors));
        }
        for mark in self.marks {
            let foot = Rangef::new(inside.bottom() - MARK_HEIGHT, inside.bottom());
            let x = self.x(inside, mark.at);
            match mark.kind {
                Kind::Call => {
                    within.vline(x, foot, Stroke::new(1.0, mark.color));
                }
                Kind::FailedCall => {
                    within.vline(x, inside.y_range(), Stroke::new(1.0, mark.color.gamma_multiply(0.6)));
                }
                Kind::Sensor => {
                    let line = [pos2(x, inside.top()), pos2(x, inside.bottom())];
                    within.extend(Shape::dashed_line(&line, Stroke::new(1.0, mark.color), DASH, DASH));
                }
            }
        }
        for line in self.lines {
            let farthest = self.farthest(inside, line);
            line.paint_bounds(&within, |point| self.pos(inside, point), farthest);
            for piece in line.pieces(farthest) {
                let points: Vec<Pos2> = piece.iter().map(|point| self.pos(inside, *point)).collect();
                let stroke = Stroke::new(line.width, line.color);
                match points[..] {
                    [only] => {
                        within.circle_filled(only, 1.6, line.color);
                    }
                    _ if line.line.is_earlier => {
                        within.extend(Shape::dashed_line(&points, stroke, DASH, DASH));
                    }
                    _ => {
                        within.add(Shape::line(points, stroke));
                    }
                }
            }
        }
        if let Some(at) = self.cursor.filter(|at| *at >= self.range.0 && *at <= self.range.1) {
            within.vline(self.x(inside, at), inside.y_range(), Stroke::new(1.0, colors.weak));
        }
    }

    fn figures(&self, ui: &Ui, inside: Rect, colors: Colors) {
        let (low, high) = self.reach;
        for figure in axis::round(low, high, count(inside.height() / FIGURES_APART).min(FIGURES_MAX)) {
            let y = self.y(inside, figure);
            ui.painter().hline(inside.x_range(), y, faint(colors));
            let text = axis::short(figure);
            let half = theme::SMALL / 2.0;
            let at = pos2(inside.left() - 6.0, y.clamp(inside.top() + half, inside.bottom() - half));
            ui.painter().text(at, Align2::RIGHT_CENTER, text, theme::small(), colors.weak);
        }
    }

    fn x(&self, inside: Rect, at: Time) -> f32 {
        self.x_after(inside, at.since(self.range.0).as_secs_f64())
    }

    #[allow(clippy::cast_possible_truncation)]
    fn x_after(&self, inside: Rect, secs: f64) -> f32 {
        let width = self.range.1.since(self.range.0).as_secs_f64().max(1e-6);
        inside.left() + (secs / width) as f32 * inside.width()
    }

    #[allow(clippy::cast_possible_truncation)]
    fn y(&self, inside: Rect, figure: f64) -> f32 {
        let (low, high) = self.reach;
        inside.bottom() - ((figure - low) / (high - low).max(1e-12)) as f32 * inside.height()
    }

    fn pos(&self, inside: Rect, [secs, figure]: [f64; 2]) -> Pos2 {
        pos2(self.x_after(inside, secs), self.y(inside, figure))
    }
}

/// The part of a plot's rectangle where lines are.
pub(in crate::app) fn plot_rect(rect: Rect) -> Rect {
    Rect::from_min_max(pos2(rect.left() + GUTTER, rect.top()), rect.max)
}

/// Round times of plots of this width: the same for all of them, as calendars take time.
pub(in crate::app) fn ticks(width: f32, (from, to): (Time, Time), zone: &TimeZone) -> Vec<Tick> {
    let inside = width - GUTTER;
    let apart = if inside < SMALL_BELOW { MOMENTS_APART_SMALL } else { MOMENTS_APART };
    axis::ticks(from, to, count(inside / apart), zone)
}

/// Times in this rectangle, below plots.
pub(in crate::app) fn moments(ui: &Ui, rect: Rect, (from, to): (Time, Time), ticks: &[Tick], colors: Colors) {
    let inside = plot_rect(rect);
    let width = to.since(from).as_secs_f64().max(1e-6);
    for tick in ticks {
        #[allow(clippy::cast_possible_truncation)]
        let x = inside.left() + (tick.time.since(from).as_secs_f64() / width) as f32 * inside.width();
        let galley = ui.painter().layout_no_wrap(tick.label.clone(), theme::small(), colors.weak);
        let half = galley.size().x / 2.0;
        let left = x.clamp(inside.left() + half, (inside.right() - half).max(inside.left() + half)) - half;
        ui.painter().galley(pos2(left, rect.top() + 3.0), galley, colors.weak);
    }
}

/// Move, zoom or reset all plots by this one; returns the position of the pointer, if it is in this one.
pub(super) fn interact(
    graphs: &mut Drawing<'_>,
    ui: &Ui,
    rect: Rect,
    id: Id,
    range: (Time, Time),
) -> (Response, Option<Pos2>) {
    let inside = plot_rect(rect);
    let response = ui.interact(inside, id, Sense::click_and_drag());
    if response.dragged() {
        let share = f64::from(response.drag_delta().x / inside.width().max(1.0));
        graphs.commands.push(GraphsChange::Pan(share));
    }
    if response.double_clicked() {
        graphs.commands.push(GraphsChange::ResetSpan);
    }
    let at = response.hover_pos();
    if let Some(at) = at {
        let share = f64::from((at.x - inside.left()) / inside.width().max(1.0));
        let factor = f64::from(ui.input(egui::InputState::zoom_delta));
        if (factor - 1.0).abs() > 1e-6 {
            graphs.commands.push(GraphsChange::Zoom(factor, share));
        }
        let time = range.0.plus(range.1.since(range.0).mul_f64(share.clamp(0.0, 1.0)));
        graphs.found.time = Some(time);
    }
    (response, at)
}

/// Texts at the upper right of a plot, each in its colour, over the background.
pub(in crate::app) fn readout(ui: &Ui, rect: Rect, words: &[(String, Color32)], colors: Colors) {
    let inside = plot_rect(rect);
    let mut job = LayoutJob::default();
    for (number, (word, color)) in words.iter().enumerate() {
        let before = if number == 0 { 0.0 } else { 10.0 };
        job.append(word, before, TextFormat::simple(theme::small(), *color));
    }
    job.wrap.max_width = (inside.width() - 16.0).max(1.0);
    job.wrap.max_rows = 2;
    job.halign = egui::Align::LEFT;
    let galley = ui.painter().layout_job(job);
    let at = inside.right_top() + vec2(-8.0 - galley.size().x, 5.0);
    let behind = Rect::from_min_size(at, galley.size()).expand2(vec2(5.0, 2.0));
    let painter = ui.painter().with_clip_rect(inside.intersect(ui.clip_rect()));
    painter.rect_filled(behind, 3.0, colors.panel.gamma_multiply(0.9));
    painter.add(TextShape::new(at, galley, colors.text));
}

/// The line nearest to a point, where one is near.
pub(in crate::app) fn nearest<'a>(plot: &'a Plot<'_>, rect: Rect, at: Pos2) -> Option<&'a Line> {
    const NEAR: f32 = 28.0;
    let inside = plot_rect(rect);
    let distance = |line: &&Line| {
        let points = line.line.points.iter().map(|point| plot.pos(inside, *point));
        // Horizontal distance counts more than vertical: the pointer is at a time.
        points.map(|point| ((point - at) * Vec2::new(1.5, 1.0)).length()).fold(f32::MAX, f32::min)
    };
    let lines = plot.lines.iter().map(|line| (distance(&line), line));
    let near = lines.min_by(|one, other| one.0.total_cmp(&other.0))?;
    (near.0 < NEAR).then_some(near.1)
}

fn faint(colors: Colors) -> Stroke {
    Stroke::new(1.0, colors.line.gamma_multiply(0.7))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn count(number: f32) -> usize {
    (number as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_where_nothing_was_measured() {
        let points = [0.0, 1.0, 2.0, 40.0, 41.0].map(|secs| [secs, 0.5]).to_vec();
        let (name, bounds) = (String::new(), Vec::new());
        let line = GraphLine { name, points, bounds, joined_secs: 15.0, is_earlier: false };
        let line = Line { name: String::new(), line, color: Color32::BLACK, width: 1.0 };
        let lens = |farthest: f64| line.pieces(farthest).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!((lens(15.0), lens(38.0)), (vec![3, 2], vec![5]));
    }
}
