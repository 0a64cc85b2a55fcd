//! Table of calls, the latest first: all that are known at the time that is shown and fit the search.
//!
//! Rule: only the visible rows are drawn.

use super::cells;
use super::command::Commands;
use super::details::state_of_call;
use super::text::{count, moment, span};
use super::theme::{self, Colors, ROW_HEIGHT};
use crate::grid::call::Call;
use crate::model::{Change, Model, Selection};
use egui::{Frame, Margin, Rect, RichText, ScrollArea, Sense, Stroke, Ui, vec2};

/// Columns: name, share of the width, and whether figures are in it.
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
/// Narrower tables scroll, in points.
const WIDTH_MIN: f32 = 840.0;
/// Between two columns, in points.
const GAP: f32 = 12.0;

/// The table.
#[derive(Clone, Default)]
pub(super) struct CallsPanel {
    /// The call that the table scrolled to, or that was clicked in it.
    shown_call: Option<String>,
}

impl CallsPanel {
    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui, commands: &mut Commands) {
        let colors = Colors::of(ui.ctx());
        let frame = Frame::new().fill(colors.ground).inner_margin(Margin::symmetric(12, 8));
        frame.show(ui, |ui| {
            ui.take_available_space();
            let shown = model.grid().calls.iter().enumerate();
            let shown = shown.filter(|(number, call)| model.is_shown(*number, call));
            let mut rows: Vec<usize> = shown.map(|(number, _)| number).collect();
            rows.reverse();
            let number = count(u32::try_from(rows.len()).unwrap_or(0), "call");
            let text = format!("{number} until {}", moment(model.time(), model.zone(), true));
            ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak));
            ScrollArea::horizontal().auto_shrink(false).show(ui, |ui| {
                ui.set_min_width(WIDTH_MIN.max(ui.available_width()));
                head(ui, colors);
                ui.spacing_mut().item_spacing.y = 0.0;
                let area = self.scrolled(model, &rows, ui.available_height());
                area.show_rows(ui, ROW_HEIGHT, rows.len(), |ui, seen| {
                    for &number in &rows[seen] {
                        self.row(model, ui, colors, number, commands);
                    }
                });
            });
        });
    }

    /// The area of the rows, scrolled once to a call that was selected elsewhere.
    fn scrolled(&mut self, model: &Model, rows: &[usize], height: f32) -> ScrollArea {
        let area = ScrollArea::vertical().auto_shrink(false);
        let selected = model.selected_call().map(|call| call.id.clone());
        if selected == self.shown_call {
            return area;
        }
        let number = model.selected().call_number();
        let row = number.and_then(|number| rows.iter().position(|row| *row == number));
        if selected.is_none() || row.is_some() {
            self.shown_call = selected;
        }
        match row {
            #[allow(clippy::cast_precision_loss)]
            Some(row) => area.vertical_scroll_offset((row as f32 * ROW_HEIGHT - height / 2.0).max(0.0)),
            None => area,
        }
    }

    fn row(&mut self, model: &Model, ui: &mut Ui, colors: Colors, number: usize, commands: &mut Commands) {
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
        let is_selected = model.selected().call_number() == Some(number);
        cells::background(ui, colors, &response, is_selected);
        let call = &model.grid().calls[number];
        let (word, color) = state_of_call(call, model.time(), colors);
        let values = values(model, call, word);
        for (((_, _, is_figure), cell), (at, value)) in
            COLUMNS.into_iter().zip(cells_of(rect)).zip(values.iter().enumerate())
        {
            let font = if is_figure { theme::figures() } else { theme::small() };
            cells::text(ui, cell, value, font, if at == 3 { color } else { colors.text }, is_figure);
        }
        response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, call.id.as_str()));
        if response.clicked() {
            self.shown_call = Some(call.id.clone());
            commands.push(Change::Select(Some(Selection::Call(call.id.clone()))));
        }
    }
}

/// The cells of a row.
fn cells_of(row: Rect) -> impl Iterator<Item = Rect> {
    cells::cells(row, COLUMNS.into_iter().map(|(_, share, _)| share), GAP)
}

fn head(ui: &mut Ui, colors: Colors) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    for ((name, _, is_figure), cell) in COLUMNS.into_iter().zip(cells_of(rect)) {
        cells::text(ui, cell, name, theme::small(), colors.weak, is_figure);
    }
    ui.painter().hline(rect.x_range(), rect.bottom(), Stroke::new(1.0, colors.line));
}

/// Texts of the columns: what is known at the time that is shown.
fn values(model: &Model, call: &Call, word: String) -> [String; 9] {
    let now = model.time();
    let (first, last) = model.timeline().shown();
    let with_date = last.since(first).as_secs() > 86_400;
    let steps = call.steps(now);
    let long =
        |time: Option<std::time::Duration>| time.map_or_else(String::new, |time| span(time.as_secs_f64()));
    let hosts = match call.hosts.as_slice() {
        _ if steps.started.is_none() => String::new(),
        [] => String::new(),
        [only] => model.grid().place(*only).name.clone(),
        [first, rest @ ..] => format!("{} and {} more", model.grid().place(*first).name, rest.len()),
    };
    [
        call.id.clone(),
        call.name.clone(),
        call.user.clone(),
        word,
        hosts,
        steps.submitted.map_or_else(String::new, |time| moment(time, model.zone(), with_date)),
        long(steps.waited()),
        long(steps.worked()),
        if steps.ended.is_some() { call.reason.clone() } else { String::new() },
    ]
}
