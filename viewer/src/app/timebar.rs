//! The bar at the bottom: the one timeline under all tabs, with what happened when drawn on it.
//!
//! Not here: how time goes (`timeline`).

use super::App;
use super::text::{moment, span};
use super::theme::{self, Colors};
use crate::live::kept::Span;
use crate::scene::Tone;
use crate::timeline::{Mode, SPEED_MAX, SPEED_MIN};
use egui::{
    Align, Align2, Button, Frame, Layout, Margin, Panel, Rect, RichText, Sense, Slider, Stroke, Ui, pos2,
    vec2,
};
use wire::event::Outcome;
use wire::time::Time;

/// Width of a column of the calls drawn over the line, in points.
const COLUMN: f32 = 4.0;
/// Height of the line with what is drawn over it, in points.
const HEIGHT: f32 = 34.0;
/// Height of the band under the line where sweeps of the flock are kept, in points.
const BAND: f32 = 4.0;

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    let colors = Colors::of(ui.ctx());
    let frame = Frame::new().fill(colors.panel).inner_margin(Margin::symmetric(12, 8));
    Panel::bottom("time").frame(frame).show(ui, |ui| {
        ui.horizontal(|ui| {
            buttons(app, ui, colors);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                counts(app, ui, colors);
            });
        });
        line(app, ui, colors);
    });
}

fn buttons(app: &mut App, ui: &mut Ui, colors: Colors) {
    let is_paused = app.timeline.mode() == Mode::Paused;
    let text = if is_paused { "Play" } else { "Pause" };
    if ui.add(Button::new(text).min_size(vec2(58.0, 0.0))).on_hover_text("Space").clicked() {
        match is_paused {
            true => app.timeline.play(),
            false => app.timeline.pause(),
        }
    }
    if app.timeline.can_be_live() {
        let is_live = app.timeline.mode() == Mode::Live;
        let color = if is_live { colors.tone(Tone::Over(Outcome::Failed)) } else { colors.weak };
        let button = Button::new(RichText::new("Live").color(color)).selected(is_live);
        if ui.add(button).on_hover_text("Be where it happens (L)").clicked() {
            app.timeline.go_live();
        }
    }
    let failures = !app.drawn.grid.failures.is_empty();
    let button = ui.add_enabled(failures, Button::new("Next failure"));
    if button.on_hover_text("Jump to where the next call or host fails (N)").clicked() {
        app.jump_to_failure();
    }
    speed(app, ui);
    let time = moment(app.timeline.time(), &app.zone, true);
    ui.label(RichText::new(time).monospace().size(theme::BODY));
    if app.timeline.mode() != Mode::Live && app.timeline.can_be_live() {
        let behind = app.timeline.span().1.since(app.timeline.time()).as_secs_f64();
        if behind >= 1.0 {
            ui.label(RichText::new(format!("{} ago", span(behind))).color(colors.weak).size(theme::SMALL));
        }
    }
}

fn speed(app: &mut App, ui: &mut Ui) {
    let mut speed = app.timeline.speed();
    ui.spacing_mut().slider_width = 90.0;
    let is_live = app.timeline.mode() == Mode::Live;
    let slider = Slider::new(&mut speed, SPEED_MIN..=SPEED_MAX)
        .logarithmic(true)
        .max_decimals(1)
        .custom_formatter(
            |speed, _| if speed < 9.95 { format!("{speed:.1}×") } else { format!("{speed:.0}×") },
        )
        .custom_parser(|text| text.trim_end_matches(['×', 'x']).trim().parse().ok());
    let response = ui.add_enabled(!is_live, slider).on_hover_text("Speed ([ and ])");
    if response.changed() {
        app.timeline.set_speed(speed);
    }
    ui.add_space(6.0);
}

/// Calls by where they stand, each with its colour.
fn counts(app: &App, ui: &mut Ui, colors: Colors) {
    let counts = app.scene.counts;
    let words = [
        (counts.failed, "failed", Tone::Over(Outcome::Failed)),
        (counts.ended, "ended", Tone::Over(Outcome::Cancelled)),
        (counts.ok, "ok", Tone::Over(Outcome::Ok)),
        (counts.running, "at work", Tone::Working),
        (counts.waiting, "waiting", Tone::Asking),
    ];
    for (number, word, tone) in words {
        let color = if number == 0 { colors.weak } else { colors.tone(tone) };
        ui.label(RichText::new(format!("{number} {word}")).size(theme::SMALL).color(color));
    }
    if app.scene.left_out > 0 {
        ui.label(RichText::new(format!("{} marks not drawn", app.scene.left_out)).size(theme::SMALL));
    }
}

/// The line with the calls that ended over it; pressed or dragged it leads there.
fn line(app: &mut App, ui: &mut Ui, colors: Colors) {
    let (rect, response) =
        ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::click_and_drag());
    let (first, last) = app.timeline.span();
    if let Some(pointer) = response.interact_pointer_pos() {
        app.timeline.scrub(time_at(rect, first, last, pointer.x));
    }
    wheel(app, ui, &response, last.since(first));
    let painter = ui.painter_at(rect.expand(2.0));
    let base = rect.bottom() - 13.0;
    painter.hline(rect.x_range(), base, Stroke::new(1.0, colors.line));
    bands(
        app,
        &painter,
        colors,
        Rect::from_x_y_ranges(rect.x_range(), base + 1.0..=base + BAND),
        (first, last),
    );
    columns(app, &painter, colors, Rect::from_min_max(rect.min, pos2(rect.right(), base)), (first, last));
    let (font, with_date) = (theme::small(), last.since(first).as_secs() > 86_400);
    let ends = [(rect.left(), Align2::LEFT_BOTTOM, first), (rect.right(), Align2::RIGHT_BOTTOM, last)];
    for (x, align, time) in ends {
        painter.text(
            pos2(x, rect.bottom()),
            align,
            moment(time, &app.zone, with_date),
            font.clone(),
            colors.weak,
        );
    }
    let x = x_at(rect, first, last, app.timeline.time());
    painter.vline(x, rect.top()..=base + 3.0, Stroke::new(1.5, colors.accent));
    painter.circle_filled(pos2(x, base), 4.0, colors.accent);
    if let Some(pointer) = response.hover_pos() {
        painter.vline(pointer.x, rect.top()..=base, Stroke::new(1.0, colors.weak.gamma_multiply(0.6)));
        let time = moment(time_at(rect, first, last, pointer.x), &app.zone, true);
        response.on_hover_text_at_pointer(time);
    }
}

/// The wheel over the line moves along it: up to what is later.
fn wheel(app: &mut App, ui: &Ui, response: &egui::Response, whole: std::time::Duration) {
    let turned =
        if response.hovered() { ui.input(|input| input.smooth_scroll_delta) } else { egui::Vec2::ZERO };
    let points = turned.x + turned.y;
    if points == 0.0 {
        return;
    }
    let by = whole.mul_f64(f64::from(points.abs() / response.rect.width().max(1.0)));
    let now = app.timeline.time();
    app.timeline.scrub(if points > 0.0 { now.plus(by) } else { now.minus(by) });
}

/// Where sweeps of the flock are kept; each point of the line is painted once, however many spans are there.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn bands(app: &App, painter: &egui::Painter, colors: Colors, rect: Rect, span: (Time, Time)) {
    let count = (rect.width() as usize).clamp(1, 4_000);
    let kept = columns_of(app.spans_of_flock(), span, count);
    let width = rect.width() / count as f32;
    let mut left = rect.left();
    for run in kept.chunk_by(|one, next| one == next) {
        let right = left + run.len() as f32 * width;
        if run[0] {
            let band = Rect::from_x_y_ranges(left..=right, rect.y_range());
            painter.rect_filled(band, 0.0, colors.accent.gamma_multiply(0.55));
        }
        left = right;
    }
}

/// Of so many columns from `first` to `last` those that have something of these spans.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn columns_of(spans: impl Iterator<Item = Span>, (first, last): (Time, Time), count: usize) -> Vec<bool> {
    let whole = last.since(first).as_secs_f64().max(1e-6);
    let column =
        |time: Time| ((time.since(first).as_secs_f64() / whole * count as f64) as usize).min(count - 1);
    let mut has = vec![false; count];
    for (from, to) in spans.filter(|(from, to)| *to > first && *from < last) {
        has[column(from)..=column(to)].fill(true);
    }
    has
}

/// How many calls ended in each column, those that failed at the top of it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn columns(app: &App, painter: &egui::Painter, colors: Colors, rect: Rect, (first, last): (Time, Time)) {
    let count = ((rect.width() / COLUMN) as usize).clamp(1, 4_000);
    let mut ends = vec![[0_u32; 2]; count];
    for (number, call) in app.drawn.grid.calls.iter().enumerate() {
        let Some(ended) = call.ended else { continue };
        if app.fits.get(number).copied().unwrap_or(true) {
            let share = (x_at(rect, first, last, ended) - rect.left()) / rect.width().max(1.0);
            let column = ((share * count as f32) as usize).min(count - 1);
            ends[column][usize::from(call.has_failed())] += 1;
        }
    }
    let most = ends.iter().map(|[well, failed]| well + failed).max().unwrap_or(0).max(1) as f32;
    let height = |ends: u32| (ends as f32 / most).sqrt() * (rect.height() - 2.0);
    for (at, &[well, failed]) in ends.iter().enumerate().filter(|(_, ends)| **ends != [0, 0]) {
        let left = rect.left() + at as f32 * COLUMN;
        let whole = height(well + failed).max(2.0);
        let red = if failed == 0 { 0.0 } else { (whole * failed as f32 / (well + failed) as f32).max(2.0) };
        let bar = |from: f32, to: f32| {
            Rect::from_min_max(
                pos2(left, rect.bottom() - to),
                pos2(left + COLUMN - 1.0, rect.bottom() - from),
            )
        };
        painter.rect_filled(
            bar(0.0, whole - red),
            0.0,
            colors.tone(Tone::Over(Outcome::Ok)).gamma_multiply(0.55),
        );
        painter.rect_filled(bar(whole - red, whole), 0.0, colors.tone(Tone::Over(Outcome::Failed)));
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn x_at(rect: Rect, first: Time, last: Time, time: Time) -> f32 {
    let whole = last.since(first).as_secs_f64().max(1e-6);
    let share = (time.since(first).as_secs_f64() / whole).clamp(0.0, 1.0);
    rect.left() + rect.width() * share as f32
}

fn time_at(rect: Rect, first: Time, last: Time, x: f32) -> Time {
    let share = f64::from(((x - rect.left()) / rect.width().max(1.0)).clamp(0.0, 1.0));
    first.plus(last.since(first).mul_f64(share))
}

impl App {
    /// Jump to the next failure, and choose what fails.
    pub(super) fn jump_to_failure(&mut self) {
        use crate::grid::FailureOf;
        let Some(failure) = self.timeline.jump_to_failure(&self.drawn.grid.failures) else {
            let words = if self.drawn.grid.failures.is_empty() {
                "Nothing failed"
            } else {
                "Nothing failed after this"
            };
            return self.notify(self.now, words.to_owned());
        };
        let grid = &self.drawn.grid;
        let selection = match failure.of {
            FailureOf::Call(number) => super::Selection::Call(grid.calls[number as usize].id.clone()),
            FailureOf::Host(id) => super::Selection::of_place(grid, id),
        };
        self.select(Some(selection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_what_lies_in_them_and_nothing_beyond_the_line() {
        let span = |from: f64, to: f64| (Time::from_secs_f64(from), Time::from_secs_f64(to));
        let check = |spans: &[Span], expected: &str| {
            let has = columns_of(spans.iter().copied(), span(100.0, 200.0), 10);
            let told: String = has.iter().map(|has| if *has { '#' } else { '.' }).collect();
            assert_eq!(told, expected, "{spans:?}");
        };
        check(&[span(120.0, 139.0), span(131.0, 142.0), span(181.0, 182.0)], "..###...#.");
        check(&[span(50.0, 115.0), span(195.0, 300.0)], "##.......#");
        check(&[span(50.0, 99.0), span(200.0, 300.0)], "..........");
    }
}
