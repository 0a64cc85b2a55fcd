//! The calls in rows, the latest first: all that are heard of until the time that is looked at and fit the search.
//!
//! Rule: only the rows that are seen are drawn.

use super::details::standing;
use super::text::{count, elided, moment, span};
use super::theme::{self, Colors, ROW_HEIGHT};
use super::{App, Selection};
use crate::grid::call::Call;
use egui::{Color32, FontId, Frame, Margin, Rect, RichText, ScrollArea, Sense, Stroke, Ui, pos2, vec2};

/// A column: its name, its share of the width, and whether it is of figures.
const COLUMNS: [(&str, f32, bool); 9] = [
    ("call", 0.13, false),
    ("name", 0.12, false),
    ("user", 0.09, false),
    ("state", 0.09, false),
    ("hosts", 0.12, false),
    ("submitted", 0.155, true),
    ("waited", 0.09, true),
    ("worked", 0.09, true),
    ("reason", 0.115, false),
];
/// Narrower tables are scrolled, in points.
const WIDTH_MIN: f32 = 840.0;
/// Between two columns, in points.
const GAP: f32 = 12.0;

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    let colors = Colors::of(ui.ctx());
    let frame = Frame::new().fill(colors.ground).inner_margin(Margin::symmetric(12, 8));
    frame.show(ui, |ui| {
        ui.take_available_space();
        let now = app.timeline.time();
        let grid = &app.drawn.grid;
        let heard = grid.calls.iter().enumerate().filter(|(number, call)| {
            call.first().is_some_and(|first| first <= now) && app.fits.get(*number).copied().unwrap_or(true)
        });
        let mut rows: Vec<usize> = heard.map(|(number, _)| number).collect();
        rows.reverse();
        let told = format!(
            "{} until {}",
            count(u32::try_from(rows.len()).unwrap_or(0), "call"),
            moment(now, &app.zone, true)
        );
        ui.label(RichText::new(told).size(theme::SMALL).color(colors.weak));
        ScrollArea::horizontal().auto_shrink(false).show(ui, |ui| {
            ui.set_min_width(WIDTH_MIN.max(ui.available_width()));
            head(ui, colors);
            ui.spacing_mut().item_spacing.y = 0.0;
            scrolled(app, &rows, ui.available_height()).show_rows(ui, ROW_HEIGHT, rows.len(), |ui, seen| {
                for &number in &rows[seen] {
                    row(app, ui, colors, number);
                }
            });
        });
    });
}

/// The rows; those around a call that was chosen elsewhere, once.
fn scrolled(app: &mut App, rows: &[usize], height: f32) -> ScrollArea {
    let area = ScrollArea::vertical().auto_shrink(false);
    let chosen = app.selected_call().map(|call| call.id.clone());
    if chosen == app.listed_call {
        return area;
    }
    let row = app.selected_call.and_then(|number| rows.iter().position(|row| *row == number as usize));
    if chosen.is_none() || row.is_some() {
        app.listed_call = chosen;
    }
    match row {
        #[allow(clippy::cast_precision_loss)]
        Some(row) => area.vertical_scroll_offset((row as f32 * ROW_HEIGHT - height / 2.0).max(0.0)),
        None => area,
    }
}

/// The room of each column of a row.
fn cells(row: Rect) -> impl Iterator<Item = Rect> {
    let mut left = row.left();
    COLUMNS.into_iter().map(move |(_, share, _)| {
        let cell =
            Rect::from_min_max(pos2(left, row.top()), pos2(left + share * row.width() - GAP, row.bottom()));
        left += share * row.width();
        cell
    })
}

fn head(ui: &mut Ui, colors: Colors) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    for ((name, _, is_figure), cell) in COLUMNS.into_iter().zip(cells(rect)) {
        text(ui, cell, name, theme::small(), colors.weak, is_figure);
    }
    ui.painter().hline(rect.x_range(), rect.bottom(), Stroke::new(1.0, colors.line));
}

fn text(ui: &Ui, cell: Rect, text: &str, font: FontId, color: Color32, is_figure: bool) {
    let galley = elided(ui.painter(), text, font, color, cell.width());
    let x = if is_figure { cell.right() - galley.size().x } else { cell.left() };
    ui.painter().galley(pos2(x, cell.center().y - galley.size().y / 2.0), galley, color);
}

fn row(app: &mut App, ui: &mut Ui, colors: Colors, number: usize) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    let is_selected = app.selected_call.is_some_and(|selected| selected as usize == number);
    let fill = match (is_selected, response.hovered()) {
        (true, _) => Some(colors.accent.gamma_multiply(0.22)),
        (false, true) => Some(colors.hover),
        (false, false) => None,
    };
    if let Some(fill) = fill {
        ui.painter().rect_filled(rect, 3.0, fill);
    }
    let call = &app.drawn.grid.calls[number];
    let (word, color) = standing(call, app.timeline.time(), colors);
    let values = values(app, call, word);
    for (((_, _, is_figure), cell), (at, value)) in
        COLUMNS.into_iter().zip(cells(rect)).zip(values.iter().enumerate())
    {
        let font = if is_figure { theme::figures() } else { theme::small() };
        text(ui, cell, value, font, if at == 3 { color } else { colors.text }, is_figure);
    }
    response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, call.id.as_str()));
    if response.clicked() {
        let id = call.id.clone();
        app.listed_call = Some(id.clone());
        app.select(Some(Selection::Call(id)));
    }
}

/// What stands in the columns: what is known until the time that is looked at.
fn values(app: &App, call: &Call, word: String) -> [String; 9] {
    let now = app.timeline.time();
    let (first, last) = app.timeline.span();
    let with_date = last.since(first).as_secs() > 86_400;
    let steps = call.steps(now);
    let long =
        |time: Option<std::time::Duration>| time.map_or_else(String::new, |time| span(time.as_secs_f64()));
    let hosts = match call.hosts.as_slice() {
        _ if steps.begun.is_none() => String::new(),
        [] => String::new(),
        [only] => app.drawn.grid.place(*only).name.clone(),
        [first, rest @ ..] => format!("{} and {} more", app.drawn.grid.place(*first).name, rest.len()),
    };
    [
        call.id.clone(),
        call.name.clone(),
        call.user.clone(),
        word,
        hosts,
        steps.submitted.map_or_else(String::new, |time| moment(time, &app.zone, with_date)),
        long(steps.waited()),
        long(steps.worked()),
        if steps.ended.is_some() { call.reason.clone() } else { String::new() },
    ]
}
