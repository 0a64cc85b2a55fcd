//! The bar at the bottom: the timeline under all tabs, with the calls that ended drawn over it.
//!
//! Not here: how time passes on it (`timeline`).

use super::command::Commands;
use super::text::{moment, span};
use super::theme::{self, Colors};
use crate::flock::past::Span;
use crate::graphs::axis;
use crate::model::{Model, TimeChange};
use crate::scene::Tone;
use crate::timeline::{Mode, SPEED_MAX, SPEED_MIN};
use egui::{
    Align, Align2, Button, Color32, Frame, Layout, Margin, Panel, Rect, RichText, Sense, Slider, Stroke, Ui,
    pos2, vec2,
};
use wire::event::Outcome;
use wire::time::Time;

/// Width of a column of the calls drawn over the line, in points.
const COLUMN: f32 = 4.0;
/// Height of the line with what is drawn over it, in points.
const HEIGHT: f32 = 34.0;
/// Spans that can be on the line, in seconds.
const WINDOWS: [(f64, &str); 6] = [
    (3_600.0, "An hour"),
    (86_400.0, "A day"),
    (7.0 * 86_400.0, "A week"),
    (30.0 * 86_400.0, "30 days"),
    (366.0 * 86_400.0, "A year"),
    (5.0 * 366.0 * 86_400.0, "Five years"),
];
/// Least distance of two ticks, and room for the times at the ends, in points.
const TICKS_APART: f32 = 90.0;
const ENDS_WIDTH: f32 = 160.0;
/// How strongly times are marked whose calls were not requested.
const UNLOADED: f32 = 0.45;
/// Height of the band under the line where sweeps of the flock are stored, in points.
const BAND: f32 = 4.0;

pub(super) fn show(model: &Model, ui: &mut Ui) -> Commands {
    let mut commands = Commands::default();
    let colors = Colors::of(ui.ctx());
    let frame = Frame::new().fill(colors.panel).inner_margin(Margin::symmetric(12, 8));
    Panel::bottom("time").frame(frame).show(ui, |ui| {
        ui.horizontal(|ui| {
            buttons(model, ui, colors, &mut commands);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                counts(model, ui, colors);
            });
        });
        line(model, ui, colors, &mut commands);
    });
    commands
}

fn buttons(model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
    let timeline = model.timeline();
    let is_paused = timeline.mode() == Mode::Paused;
    let text = if is_paused { "Play" } else { "Pause" };
    if ui.add(Button::new(text).min_size(vec2(58.0, 0.0))).on_hover_text("Space").clicked() {
        commands.push(if is_paused { TimeChange::Play } else { TimeChange::Pause });
    }
    if timeline.can_be_live() {
        let is_live = timeline.mode() == Mode::Live;
        let color = if is_live { colors.tone(Tone::Over(Outcome::Failed)) } else { colors.weak };
        let button = Button::new(RichText::new("Live").color(color)).selected(is_live);
        if ui.add(button).on_hover_text("Be where it happens (L)").clicked() {
            commands.push(TimeChange::GoLive);
        }
    }
    let failures = !model.grid().failures.is_empty();
    let button = ui.add_enabled(failures, Button::new("Next failure"));
    if button.on_hover_text("Jump to where the next call or host fails (N)").clicked() {
        commands.push(TimeChange::NextFailure);
    }
    speed(model, ui, commands);
    window(model, ui, commands);
    let time = moment(timeline.time(), model.zone(), true);
    ui.label(RichText::new(time).monospace().size(theme::BODY));
    if timeline.mode() != Mode::Live && timeline.can_be_live() {
        let behind = timeline.span().1.since(timeline.time()).as_secs_f64();
        if behind >= 1.0 {
            ui.label(RichText::new(format!("{} ago", span(behind))).color(colors.weak).size(theme::SMALL));
        }
    }
}

fn speed(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let mut speed = model.timeline().speed();
    ui.spacing_mut().slider_width = 90.0;
    let is_live = model.timeline().mode() == Mode::Live;
    let slider = Slider::new(&mut speed, SPEED_MIN..=SPEED_MAX)
        .logarithmic(true)
        .max_decimals(1)
        .custom_formatter(
            |speed, _| if speed < 9.95 { format!("{speed:.1}×") } else { format!("{speed:.0}×") },
        )
        .custom_parser(|text| text.trim_end_matches(['×', 'x']).trim().parse().ok());
    let response = ui.add_enabled(!is_live, slider).on_hover_text("Speed ([ and ])");
    if response.changed() {
        commands.push(TimeChange::SetSpeed(speed));
    }
    ui.add_space(6.0);
}

/// Menu of how much is on the line.
fn window(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let timeline = model.timeline();
    let (first, last) = timeline.shown();
    let (oldest, newest) = timeline.span();
    let whole = newest.since(oldest).as_secs_f64();
    let title = span(last.since(first).as_secs_f64());
    ui.menu_button(title, |ui| {
        let mut entry = |ui: &mut Ui, name: &str, secs: Option<f64>| {
            if ui.button(name).clicked() {
                commands.push(TimeChange::Show(secs));
                ui.close();
            }
        };
        entry(ui, "The calls that are shown", None);
        for (secs, name) in WINDOWS.into_iter().filter(|(secs, _)| *secs < whole) {
            entry(ui, name, Some(secs));
        }
        entry(ui, &format!("All that is stored: {}", span(whole)), Some(whole));
    })
    .response
    .on_hover_text("How much time is on the line; the wheel with Ctrl over it zooms");
}

/// Calls by their state, each with its colour.
fn counts(model: &Model, ui: &mut Ui, colors: Colors) {
    let counts = model.scene().counts;
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
    if model.scene().left_out > 0 {
        ui.label(RichText::new(format!("{} marks not drawn", model.scene().left_out)).size(theme::SMALL));
    }
}

/// The line with the calls that ended over it; a press or a drag goes to that time.
fn line(model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
    let (rect, response) =
        ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::click_and_drag());
    let (first, last) = model.timeline().shown();
    if let Some(pointer) = response.interact_pointer_pos() {
        commands.push(TimeChange::GoTo(time_at(rect, first, last, pointer.x)));
    }
    wheel(model, ui, &response, commands);
    let painter = ui.painter_at(rect.expand(2.0));
    let base = rect.bottom() - 13.0;
    painter.hline(rect.x_range(), base, Stroke::new(1.0, colors.line));
    let above = Rect::from_min_max(rect.min, pos2(rect.right(), base));
    let unloaded = model.grid().unloaded.iter().copied();
    spans(unloaded, &painter, colors.line.gamma_multiply(UNLOADED), above, (first, last));
    let band = Rect::from_x_y_ranges(rect.x_range(), base + 1.0..=base + BAND);
    spans(model.flock_spans(), &painter, colors.accent.gamma_multiply(0.55), band, (first, last));
    columns(model, &painter, colors, above, (first, last));
    let (font, with_date) = (theme::small(), last.since(first).as_secs() > 86_400);
    let ends = [(rect.left(), Align2::LEFT_BOTTOM, first), (rect.right(), Align2::RIGHT_BOTTOM, last)];
    for (x, align, time) in ends {
        painter.text(
            pos2(x, rect.bottom()),
            align,
            moment(time, model.zone(), with_date),
            font.clone(),
            colors.weak,
        );
    }
    ticks(model, &painter, colors, rect, (first, last));
    let x = x_at(rect, first, last, model.time());
    painter.vline(x, rect.top()..=base + 3.0, Stroke::new(1.5, colors.accent));
    painter.circle_filled(pos2(x, base), 4.0, colors.accent);
    if let Some(pointer) = response.hover_pos() {
        painter.vline(pointer.x, rect.top()..=base, Stroke::new(1.0, colors.weak.gamma_multiply(0.6)));
        let time = time_at(rect, first, last, pointer.x);
        let is_unloaded = model.grid().unloaded.iter().any(|(from, to)| (*from..*to).contains(&time));
        let text = if is_unloaded { "\nCalls of this time are requested when it is shown" } else { "" };
        response.on_hover_text_at_pointer(moment(time, model.zone(), true) + text);
    }
}

/// Round times between the two ends.
fn ticks(model: &Model, painter: &egui::Painter, colors: Colors, rect: Rect, (first, last): (Time, Time)) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let most = (rect.width() / TICKS_APART) as usize;
    for tick in axis::ticks(first, last, most, model.zone()) {
        let x = x_at(rect, first, last, tick.time);
        if x - rect.left() > ENDS_WIDTH && rect.right() - x > ENDS_WIDTH {
            let at = pos2(x, rect.bottom());
            painter.text(at, Align2::CENTER_BOTTOM, tick.label, theme::small(), colors.weak);
        }
    }
}

/// The wheel over the line moves along it: up to later times; with Ctrl it zooms.
fn wheel(model: &Model, ui: &Ui, response: &egui::Response, commands: &mut Commands) {
    let (first, last) = model.timeline().shown();
    if let Some(pointer) = response.hover_pos() {
        let factor = f64::from(ui.input(egui::InputState::zoom_delta));
        if (factor - 1.0).abs() > 1e-6 {
            return commands.push(TimeChange::Zoom(factor, time_at(response.rect, first, last, pointer.x)));
        }
    }
    let turned =
        if response.hovered() { ui.input(|input| input.smooth_scroll_delta) } else { egui::Vec2::ZERO };
    let points = turned.x + turned.y;
    if points == 0.0 {
        return;
    }
    let by = last.since(first).mul_f64(f64::from(points.abs() / response.rect.width().max(1.0)));
    let time = model.time();
    commands.push(TimeChange::GoTo(if points > 0.0 { time.plus(by) } else { time.minus(by) }));
}

/// Fill these spans of the line; each point of it is painted once, however many there are.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn spans(
    spans: impl Iterator<Item = Span>,
    painter: &egui::Painter,
    color: Color32,
    rect: Rect,
    shown: (Time, Time),
) {
    let count = (rect.width() as usize).clamp(1, 4_000);
    let filled = columns_of(spans, shown, count);
    let width = rect.width() / count as f32;
    let mut left = rect.left();
    for run in filled.chunk_by(|one, next| one == next) {
        let right = left + run.len() as f32 * width;
        if run[0] {
            painter.rect_filled(Rect::from_x_y_ranges(left..=right, rect.y_range()), 0.0, color);
        }
        left = right;
    }
}

/// Which of `count` columns from `first` to `last` meet one of these spans.
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

/// How many calls ended in each column, the failed ones at its top.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn columns(model: &Model, painter: &egui::Painter, colors: Colors, rect: Rect, (first, last): (Time, Time)) {
    let count = ((rect.width() / COLUMN) as usize).clamp(1, 4_000);
    let mut ends = vec![[0_u32; 2]; count];
    for (number, call) in model.grid().calls.iter().enumerate() {
        let Some(ended) = call.ended.filter(|ended| (first..=last).contains(ended)) else { continue };
        if model.filter().fits(number) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_what_lies_in_them_and_nothing_beyond_the_line() {
        let span = |from: f64, to: f64| (Time::from_secs_f64(from), Time::from_secs_f64(to));
        let check = |spans: &[Span], expected: &str| {
            let has = columns_of(spans.iter().copied(), span(100.0, 200.0), 10);
            let text: String = has.iter().map(|has| if *has { '#' } else { '.' }).collect();
            assert_eq!(text, expected, "{spans:?}");
        };
        check(&[span(120.0, 139.0), span(131.0, 142.0), span(181.0, 182.0)], "..###...#.");
        check(&[span(50.0, 115.0), span(195.0, 300.0)], "##.......#");
        check(&[span(50.0, 99.0), span(200.0, 300.0)], "..........");
    }
}
