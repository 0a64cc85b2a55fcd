//! Table of sensors: those that are watched by their addresses first, then the hosts by domain.
//!
//! Rule: only the visible rows are drawn, and only their sensors are queried. Not here: contents of rows
//! (`model::sensor_rows`).

use crate::app::cells;
use crate::app::command::Commands;
use crate::app::text::span;
use crate::app::theme::{self, Colors, ROW_HEIGHT};
use crate::graphs::axis::short;
use crate::model::sensor_rows::{self, Line};
use crate::model::{Model, SensorsChange};
use crate::sensors::Row;
use egui::{Color32, Rect, RichText, ScrollArea, Sense, Stroke, Ui, pos2, vec2};

/// Columns: name, share of the width, whether figures are in it, and explanation.
const COLUMNS: [(&str, f32, bool, &str); 11] = [
    ("sensor", 0.18, false, "Its host; with an address, one that is asked itself"),
    ("domain", 0.10, false, ""),
    ("state", 0.075, false, "Silent: nothing came of it for three seconds"),
    ("heard", 0.075, true, "How long ago something came of it"),
    ("lag", 0.075, true, "Bytes of its logs that it has not read yet"),
    ("behind", 0.07, true, "Events that it has, and its representative has not"),
    ("dropped", 0.085, true, "Events that were lost beyond its disk budget, or refused"),
    ("thinned", 0.08, true, "Samples that it took and did not send, for want of room"),
    ("slipped", 0.075, true, "Sweeps over processes that were due and not made"),
    ("term", 0.055, true, "The term of who represents its domain"),
    ("trouble", 0.13, false, "What is wrong, in its own words"),
];
/// Narrower tables scroll, in points.
const WIDTH_MIN: f32 = 700.0;
/// Between two columns, in points.
const GAP: f32 = 10.0;

pub(super) fn show(
    model: &Model,
    ui: &mut Ui,
    colors: Colors,
    (lines, only_troubled): (&[Line], bool),
    commands: &mut Commands,
) {
    let mut rows_shown = Vec::new();
    ScrollArea::horizontal().auto_shrink(false).show(ui, |ui| {
        ui.set_min_width(WIDTH_MIN.max(ui.available_width()));
        head(ui, colors);
        ui.spacing_mut().item_spacing.y = 0.0;
        if lines.is_empty() {
            ui.add_space(12.0);
            let words = match only_troubled {
                true => "None is in trouble.",
                false if !model.filter().text().is_empty() => "No sensor fits the search.",
                false => "No sensor is known: connect to a daemon (visperf up).",
            };
            ui.label(RichText::new(words).color(colors.weak));
        }
        ScrollArea::vertical().auto_shrink(false).show_rows(ui, ROW_HEIGHT, lines.len(), |ui, seen| {
            for &line in lines.get(seen).unwrap_or_default() {
                if let Line::Host(id) = line {
                    rows_shown.push(model.placed().host_name(id));
                }
                row(model, ui, colors, line, commands);
            }
        });
    });
    commands.push(SensorsChange::ShowRows(rows_shown));
}

/// The cells of a row.
fn cells_of(row: Rect) -> impl Iterator<Item = Rect> {
    let row = row.with_min_x(row.left() + 18.0);
    cells::cells(row, COLUMNS.into_iter().map(|(_, share, ..)| share), GAP)
}

fn head(ui: &mut Ui, colors: Colors) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    for ((name, _, is_figure, means), cell) in COLUMNS.into_iter().zip(cells_of(rect)) {
        text(ui, cell, name, colors.weak, is_figure, false);
        if !means.is_empty() {
            ui.interact(cell, ui.id().with(("head", name)), Sense::hover()).on_hover_text(means);
        }
    }
    ui.painter().hline(rect.x_range(), rect.bottom(), Stroke::new(1.0, colors.line));
}

fn text(ui: &Ui, cell: Rect, text: &str, color: Color32, is_right: bool, is_figure: bool) {
    let font = if is_figure { theme::figures() } else { theme::small() };
    cells::text(ui, cell, text, font, color, is_right);
}

fn row(model: &Model, ui: &mut Ui, colors: Colors, line: Line, commands: &mut Commands) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    let at = sensor_rows::at(model, line);
    let is_selected = model.sensors().selected() == Some(&at);
    cells::background(ui, colors, &response, is_selected);
    let row = sensor_rows::row(model, line);
    let (name, domain) = sensor_rows::names(model, line);
    let state = row.state.map(|state| (state.word(), colors.state(state)));
    let state_color = state.map_or(colors.weak, |(_, color)| color);
    ui.painter().circle_filled(pos2(rect.left() + 8.0, rect.center().y), 3.2, state_color);
    let values = values(&row, &name, &domain, colors, state);
    for (((_, _, is_figure, _), cell), (value, color)) in COLUMNS.into_iter().zip(cells_of(rect)).zip(&values)
    {
        text(ui, cell, value, *color, is_figure, is_figure);
    }
    response.widget_info(|| {
        let words = format!("{name} {}", state.map_or("–", |(word, _)| word));
        egui::WidgetInfo::labeled(egui::WidgetType::Button, true, words.as_str())
    });
    let is_clicked = response.clicked();
    if !row.troubles.is_empty() {
        response.on_hover_text(row.troubles.join("\n"));
    }
    if is_clicked {
        commands.push(SensorsChange::Select((!is_selected).then_some(at)));
    }
}

type Value = (String, Color32);

fn values(
    row: &Row,
    name: &str,
    domain: &str,
    colors: Colors,
    state: Option<(&'static str, Color32)>,
) -> [Value; 11] {
    // Good values are faint, others are not.
    #[allow(clippy::cast_precision_loss)]
    let number = |number: Option<u64>, is_trouble: bool| match number {
        None => ("–".to_owned(), colors.weak),
        Some(0) => ("0".to_owned(), colors.weak),
        Some(number) => (short(number as f64), if is_trouble { colors.warned() } else { colors.text }),
    };
    let heard = row.heard_secs.map_or_else(|| "–".to_owned(), span);
    let is_old = row.heard_secs.is_some_and(|secs| secs > crate::sensors::SILENT_AFTER_SECS);
    let (word, color) = state.unwrap_or(("–", colors.weak));
    let trouble = row.troubles.first().cloned().unwrap_or_default();
    [
        (name.to_owned(), colors.text),
        (domain.to_owned(), colors.weak),
        (word.to_owned(), color),
        (heard, if is_old { colors.warned() } else { colors.text }),
        match number(row.lag_bytes, false) {
            (lag, color) if row.lag_bytes.is_some_and(|lag| lag > 0) => (format!("{lag}B"), color),
            none => none,
        },
        number(row.behind, false),
        number(row.dropped, true),
        number(row.thinned, false),
        number(row.slipped, true),
        (row.term.map_or_else(|| "–".to_owned(), |term| term.to_string()), colors.weak),
        (trouble, colors.warned()),
    ]
}
