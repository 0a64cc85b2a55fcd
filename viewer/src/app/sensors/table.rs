//! All sensors in rows, those that are asked at their addresses first, then the hosts by domain.
//!
//! Rule: only the rows that are seen are drawn, and only of them more is asked. Not here: what stands in a row
//! (`crate::sensors`).

use super::{Line, names};
use crate::app::App;
use crate::app::text::{elided, span};
use crate::app::theme::{self, Colors, ROW_HEIGHT};
use crate::graphs::axis::short;
use crate::sensors::Row;
use egui::{Color32, Rect, RichText, ScrollArea, Sense, Stroke, Ui, pos2, vec2};

/// A column: its name, its share of the width, whether it is of figures, and what it means.
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
/// Narrower tables are scrolled, in points.
const WIDTH_MIN: f32 = 700.0;
/// Between two columns, in points.
const GAP: f32 = 10.0;

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors) {
    let lines = std::mem::take(&mut app.sensors.lines);
    let mut rows_seen = Vec::new();
    ScrollArea::horizontal().auto_shrink(false).show(ui, |ui| {
        ui.set_min_width(WIDTH_MIN.max(ui.available_width()));
        head(ui, colors);
        ui.spacing_mut().item_spacing.y = 0.0;
        if lines.is_empty() {
            ui.add_space(12.0);
            let words = match app.sensors.only_troubled {
                true => "None is in trouble.",
                false if !app.search.is_empty() => "No sensor fits the search.",
                false => "No sensor is known: connect to a daemon (visperf up).",
            };
            ui.label(RichText::new(words).color(colors.weak));
        }
        ScrollArea::vertical().auto_shrink(false).show_rows(ui, ROW_HEIGHT, lines.len(), |ui, seen| {
            for &line in lines.get(seen).unwrap_or_default() {
                if let Line::Host(id) = line {
                    rows_seen.push(app.host_name(id));
                }
                row(app, ui, colors, line);
            }
        });
    });
    app.sensors.lines = lines;
    app.sensors.rows_seen = rows_seen;
}

/// The room of each column of a row.
fn cells(row: Rect) -> impl Iterator<Item = Rect> {
    let mut left = row.left() + 18.0;
    let width = row.width() - 18.0;
    COLUMNS.into_iter().map(move |(_, share, ..)| {
        let cell = Rect::from_min_max(pos2(left, row.top()), pos2(left + share * width - GAP, row.bottom()));
        left += share * width;
        cell
    })
}

fn head(ui: &mut Ui, colors: Colors) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    for ((name, _, is_figure, means), cell) in COLUMNS.into_iter().zip(cells(rect)) {
        text(ui, cell, name, colors.weak, is_figure, false);
        if !means.is_empty() {
            ui.interact(cell, ui.id().with(("head", name)), Sense::hover()).on_hover_text(means);
        }
    }
    ui.painter().hline(rect.x_range(), rect.bottom(), Stroke::new(1.0, colors.line));
}

fn text(ui: &Ui, cell: Rect, text: &str, color: Color32, is_right: bool, is_figure: bool) {
    let font = if is_figure { theme::figures() } else { theme::small() };
    let galley = elided(ui.painter(), text, font, color, cell.width());
    let x = if is_right { cell.right() - galley.size().x } else { cell.left() };
    ui.painter().galley(pos2(x, cell.center().y - galley.size().y / 2.0), galley, color);
}

fn row(app: &mut App, ui: &mut Ui, colors: Colors, line: Line) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    let at = app.at_of(line);
    let is_chosen = app.sensors.chosen.as_ref() == Some(&at);
    let fill = match (is_chosen, response.hovered()) {
        (true, _) => Some(colors.accent.gamma_multiply(0.22)),
        (false, true) => Some(colors.hover),
        (false, false) => None,
    };
    if let Some(fill) = fill {
        ui.painter().rect_filled(rect, 3.0, fill);
    }
    let row = app.sensor_row(line);
    let (name, domain) = names(app, line);
    let state = row.state.map(|state| (state.word(), colors.state(state)));
    let state_color = state.map_or(colors.weak, |(_, color)| color);
    ui.painter().circle_filled(pos2(rect.left() + 8.0, rect.center().y), 3.2, state_color);
    let values = values(&row, &name, &domain, colors, state);
    for (((_, _, is_figure, _), cell), (value, color)) in COLUMNS.into_iter().zip(cells(rect)).zip(&values) {
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
        app.sensors.chosen = (!is_chosen).then_some(at);
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
    // What is well stands back, what is not is seen.
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
