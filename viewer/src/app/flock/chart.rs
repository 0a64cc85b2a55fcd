//! The chart: marks on their axes with trails, the explanation at the pointer, the lasso.
//!
//! Rule: all marks are drawn at once, again in each frame. Not here: where marks are (`crate::flock`), their
//! shapes (`glyphs`), what draws them (`pen`).

use super::glyphs::Glyphs;
use super::instances::Engine;
use super::pen::Pen;
use super::{FlockPanel, back};
use crate::app::command::Commands;
use crate::app::mesh::Ink;
use crate::app::text::{elided, percent, span};
use crate::app::theme::{self, Colors};
use crate::flock::Member;
use crate::flock::lasso::Lasso;
use crate::flock::measure::{Measure, Spot, Spots, scaled, share};
use crate::flock::spread::{BAND, spread};
use crate::model::{FlockChange, Model, Source};
use egui::{
    Align2, Color32, PointerButton, Pos2, Rect, Response, RichText, Sense, Shape, Stroke, Ui, pos2, vec2,
};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::time::Time;

/// Shares that the horizontal axis names.
const TICKS: [f64; 6] = [0.0, 0.01, 0.05, 0.2, 0.5, 1.0];
/// Room for a row of text above and below the chart, in points.
const WORDS: f32 = 20.0;
/// Distance within which the pointer is at a mark, in points.
const NEAR: f32 = 9.0;
/// Most trails: more would be a cloud.
const TRAILS_MAX: usize = 1_500;
/// Time that a trail reaches back, and its points.
const TRAIL: Duration = Duration::from_millis(1_200);
const TRAIL_POINTS: u32 = 6;
/// Least motion that has a trail, as a share of the chart.
const TRAIL_FROM: f32 = 0.012;
/// Opacity of marks that are not selected, where others are.
const UNSELECTED: f32 = 0.16;

/// The axes on the screen.
#[derive(Clone, Copy)]
struct Axes {
    /// From 0 to 1 both ways.
    inner: Rect,
}

impl Axes {
    fn within(rect: Rect) -> Axes {
        let right = rect.right() - 18.0;
        let left = rect.left() + 16.0;
        // The band of those that use nothing is left of 0.
        let zero = left + (right - left) * BAND / (1.0 + BAND);
        Axes {
            inner: Rect::from_min_max(
                pos2(zero, rect.top() + WORDS),
                pos2(right, rect.bottom() - 12.0 - 2.0 * WORDS),
            ),
        }
    }

    fn on_screen(&self, spot: Spot) -> Pos2 {
        pos2(
            self.inner.left() + spot.x * self.inner.width(),
            self.inner.bottom() - spot.y * self.inner.height(),
        )
    }

    fn on_chart(&self, pos: Pos2) -> Spot {
        Spot {
            x: (pos.x - self.inner.left()) / self.inner.width().max(1.0),
            y: (self.inner.bottom() - pos.y) / self.inner.height().max(1.0),
        }
    }

    fn band(&self) -> Rect {
        let left = self.inner.left() - BAND * self.inner.width();
        Rect::from_min_max(pos2(left, self.inner.top()), self.inner.left_bottom())
    }
}

impl FlockPanel {
    pub(super) fn chart(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        let rect = ui.available_rect_before_wrap();
        let response = ui.allocate_rect(rect, Sense::click_and_drag());
        let axes = Axes::within(rect);
        let glyphs = match self.glyphs.take().filter(|glyphs| glyphs.fit(ui.ctx())) {
            Some(glyphs) => glyphs,
            None => Glyphs::new(ui.ctx()),
        };
        let time = model.flock_time();
        ground(model, ui, colors, axes);
        if !self.hides_trails {
            trails(model, ui, colors, axes, time);
        }
        let pen = (self.engine.as_ref(), &glyphs);
        let nearest = marks(model, ui, colors, axes, pen, (time, response.hover_pos()));
        self.glyphs = Some(glyphs);
        self.take_pointer(model, &response, axes, (time, nearest), commands);
        self.draw_lasso(ui, colors, axes);
        self.hovered = nearest.map(|(member, _)| member);
        if let Some((member, measure)) = nearest.filter(|_| self.lasso.is_none()) {
            response.on_hover_ui_at_pointer(|ui| explain(model, ui, colors, member, measure, time));
        }
        if model.flock().flock().is_empty() {
            let wrap = (rect.width() - 60.0).max(80.0);
            let galley = ui.painter().layout(empty_text(model).to_owned(), theme::body(), colors.weak, wrap);
            ui.painter().galley(axes.inner.center() - galley.size() / 2.0, galley, colors.weak);
        } else {
            back::show(model, ui, colors, axes.inner, commands);
        }
    }

    /// A click selects one, a drag draws a lasso.
    fn take_pointer(
        &mut self,
        model: &Model,
        response: &Response,
        axes: Axes,
        (time, nearest): (Time, Option<(Member, Measure)>),
        commands: &mut Commands,
    ) {
        if response.dragged_by(PointerButton::Primary)
            && let Some(pos) = response.interact_pointer_pos()
        {
            let start = pos - response.total_drag_delta().unwrap_or_default();
            let lasso = self.lasso.get_or_insert_with(|| {
                let mut lasso = Lasso::default();
                lasso.to(axes.on_chart(start));
                lasso
            });
            lasso.to(axes.on_chart(pos));
        }
        let flock = model.flock();
        let mut found: Option<BTreeSet<Member>> = None;
        if response.drag_stopped()
            && let Some(lasso) = self.lasso.take()
        {
            found = Some(lasso.members(flock.flock(), flock.filter(), time, spread));
        }
        if response.clicked() {
            found = Some(nearest.map(|(member, _)| member).into_iter().collect());
        }
        if let Some(mut members) = found {
            if response.ctx.input(|input| input.modifiers.shift) {
                members.extend(flock.selected());
            }
            commands.push(FlockChange::SelectMembers(members));
        }
    }

    fn draw_lasso(&self, ui: &Ui, colors: Colors, axes: Axes) {
        let Some(lasso) = &self.lasso else { return };
        let points: Vec<Pos2> = lasso.points().iter().map(|point| axes.on_screen(*point)).collect();
        ui.painter().add(Shape::closed_line(points, Stroke::new(1.2, colors.accent)));
    }
}

/// Text where there is no mark.
fn empty_text(model: &Model) -> &'static str {
    match model.source() {
        Source::Daemon(_) if model.flock().watched().is_empty() => "No host is live: nothing to sweep.",
        Source::Daemon(_) => "Waiting for the first sweeps …",
        Source::Log(_) => "A log has calls, not processes: connect to a daemon to see their flock.",
        Source::File(_) => "No processes are known of this time.",
    }
}

/// The axes and their labels.
fn ground(model: &Model, ui: &Ui, colors: Colors, axes: Axes) {
    let painter = ui.painter();
    let inner = axes.inner;
    painter.rect_filled(axes.band(), 0.0, colors.card.gamma_multiply(0.6));
    let below = inner.bottom() + 6.0;
    for tick in TICKS {
        let x = axes.on_screen(Spot { x: scaled(tick), y: 0.0 }).x;
        painter.vline(x, inner.y_range(), Stroke::new(1.0, colors.line));
        let align = if tick >= 1.0 { Align2::RIGHT_TOP } else { Align2::CENTER_TOP };
        painter.text(pos2(x, below), align, percent(tick), theme::small(), colors.weak);
    }
    for y in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = axes.on_screen(Spot { x: 0.0, y });
        let strength = if y == 0.0 { 1.0 } else { 0.5 };
        painter.hline(inner.x_range(), at.y, Stroke::new(1.0, colors.line.gamma_multiply(strength)));
    }
    let idle = painter.layout_no_wrap("idle".to_owned(), theme::small(), colors.weak);
    // Only where it is clear of the 0 beside it.
    if axes.band().width() > idle.size().x + 16.0 {
        painter.galley(pos2(axes.band().left(), below), idle, colors.weak);
    }
    let on: Vec<Measure> =
        Measure::ALL.into_iter().filter(|measure| model.flock().filter().has(*measure)).collect();
    let words = |end: fn(Measure) -> &'static str| {
        on.iter()
            .map(|measure| format!("{}: {}", measure.name(), end(*measure)))
            .collect::<Vec<_>>()
            .join("   ")
    };
    let (top, bottom) = (words(|measure| measure.ends().1), words(|measure| measure.ends().0));
    let faint = colors.weak.gamma_multiply(0.8);
    for (text, is_top) in [(top, true), (bottom, false)] {
        let galley = elided(painter, &text, theme::small(), faint, inner.width());
        let y = if is_top { inner.top() - galley.size().y - 4.0 } else { below + WORDS };
        painter.galley(pos2(inner.left(), y), galley, faint);
    }
}

/// Colours of programs by their numbers: computed once a frame.
fn palette(model: &Model, colors: Colors) -> Vec<Color32> {
    model.flock().flock().program_names().map(|name| colors.program(name)).collect()
}

/// Draw all marks; returns the one nearest to the pointer.
fn marks(
    model: &Model,
    ui: &Ui,
    colors: Colors,
    axes: Axes,
    (engine, glyphs): (Option<&Engine>, &Glyphs),
    (time, pointer): (Time, Option<Pos2>),
) -> Option<(Member, Measure)> {
    let (state, flock) = (model.flock(), model.flock().flock());
    let palette = palette(model, colors);
    let on: Vec<Measure> = Measure::ALL.into_iter().filter(|measure| state.filter().has(*measure)).collect();
    let mut pen = Pen::new(engine, glyphs, flock.processes() * on.len());
    let mut nearest: Option<(f32, Member, Measure)> = None;
    let mut raised: Vec<(Pos2, Measure, Color32)> = Vec::new();
    flock.each(time, |member, track, spots| {
        if !state.filter().fits_all()
            && !state.filter().fits(flock, track.name, track.pid, flock.host_of(member))
        {
            return;
        }
        let color = palette.get(track.name.0 as usize).copied().unwrap_or(colors.weak);
        let is_selected = state.selected().contains(&member);
        let is_faint = !is_selected && !state.selected().is_empty();
        let color = if is_faint { color.gamma_multiply(UNSELECTED) } else { color };
        for &measure in &on {
            let spot = spots[measure.at()];
            if spot.x <= 0.0 && state.filter().hides_idle {
                continue;
            }
            let at = axes.on_screen(spread(member, measure, spot));
            if is_selected {
                raised.push((at, measure, color));
            } else {
                // Idle processes are fainter.
                let color = if spot.x <= 0.0 { color.gamma_multiply(0.45) } else { color };
                pen.mark(measure, at, 1.0, color);
            }
            if let Some(pointer) = pointer {
                let distance = at.distance(pointer);
                if distance < nearest.map_or(NEAR, |(known, ..)| known) {
                    nearest = Some((distance, member, measure));
                }
            }
        }
    });
    for (at, measure, color) in raised {
        pen.mark(measure, at, 1.55, colors.text);
        pen.mark(measure, at, 1.2, color);
    }
    pen.draw(ui.painter(), ui.clip_rect());
    nearest.map(|(_, member, measure)| (member, measure))
}

/// Trails of the marks that move.
fn trails(model: &Model, ui: &Ui, colors: Colors, axes: Axes, time: Time) {
    let (state, flock) = (model.flock(), model.flock().flock());
    let palette = palette(model, colors);
    let mut ink = Ink::new(axes.inner.union(axes.band()), ui.pixels_per_point());
    let mut drawn = 0;
    let start = time.minus(TRAIL);
    flock.each(time, |member, track, now| {
        let is_selected = state.selected().is_empty() || state.selected().contains(&member);
        if drawn >= TRAILS_MAX || !is_selected {
            return;
        }
        let then = track.trajectory.behind(start).or_else(|| track.trajectory.behind(start.plus(TRAIL / 2)));
        let Some(then) = then else { return };
        let has_moved = |measure: Measure| has_moved(&then, now, measure);
        let moved =
            Measure::ALL.into_iter().filter(|measure| state.filter().has(*measure) && has_moved(*measure));
        if !state.filter().fits(flock, track.name, track.pid, flock.host_of(member)) {
            return;
        }
        let color = palette.get(track.name.0 as usize).copied().unwrap_or(colors.weak);
        let mut way: Option<Vec<Spots>> = None;
        for measure in moved {
            drawn += 1;
            let times = (0..=TRAIL_POINTS).map(|point| start.plus(TRAIL * point / TRAIL_POINTS));
            let way = way.get_or_insert_with(|| track.trajectory.along(times).collect());
            let on_screen = |spots: &Spots| axes.on_screen(spread(member, measure, spots[measure.at()]));
            let points: Vec<Pos2> = way.iter().map(on_screen).collect();
            trail(&mut ink, &points, color);
        }
    });
    ui.painter().add(ink.shape());
}

/// A line that grows fainter toward its start.
#[allow(clippy::cast_precision_loss)]
fn trail(ink: &mut Ink, points: &[Pos2], color: Color32) {
    for (at, pair) in points.windows(2).enumerate() {
        let strength = (at + 1) as f32 / points.len() as f32;
        ink.line(pair, 0.6 + 1.4 * strength, color.gamma_multiply(0.5 * strength * strength));
    }
}

fn has_moved(then: &Spots, now: &Spots, measure: Measure) -> bool {
    let (then, now) = (then[measure.at()], now[measure.at()]);
    (then.x - now.x).abs() + (then.y - now.y).abs() > TRAIL_FROM
}

/// Explanation of a mark.
fn explain(model: &Model, ui: &mut Ui, colors: Colors, member: Member, measure: Measure, time: Time) {
    let flock = model.flock().flock();
    let Some(track) = flock.track_at(member, time) else { return };
    ui.strong(format!("{} ({})", flock.name(track.name), member.pid));
    let weak = |ui: &mut Ui, text: String| {
        ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak));
    };
    if let Some(host) = flock.host_of(member) {
        weak(ui, host.host.to_string());
    }
    if let Some(spots) = track.trajectory.at(time) {
        let spot = spots[measure.at()];
        let much = share(spot.x);
        let much = if much > 0.0 && much < 0.01 { format!("{:.2} %", much * 100.0) } else { percent(much) };
        ui.label(format!("{} {much}", measure.name()));
        weak(ui, kind_words(measure, spot));
    }
    let threads =
        if track.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", track.threads) };
    weak(ui, format!("{threads}, {:.1} MiB, user {}", track.usage.rss_bytes / 1_048_576.0, track.uid));
    weak(ui, format!("{} of CPU time", span(track.usage.cpu_secs)));
    ui.set_max_width(vec2(320.0, 0.0).x);
}

/// Meaning of the height of a mark.
fn kind_words(measure: Measure, spot: Spot) -> String {
    let part = percent(f64::from(spot.y));
    match measure {
        Measure::Cpu => format!("{part} of it in the program"),
        Measure::Memory => {
            format!("{:.0} page faults a second", share(spot.y) * crate::flock::measure::FAULTS_FULL)
        }
        Measure::Io => format!("{part} of it read"),
        Measure::Faults => format!("{part} of them from disk"),
    }
}
