//! Cells of tables whose rows are painted: places of columns, texts, and the background of a row.
//!
//! Rule: a text is shortened to its cell. Not here: which rows are drawn (`calls`, `jobs`, `sensors`).

use super::text::elided;
use super::theme::Colors;
use egui::{Color32, FontId, Rect, Response, Ui, pos2};

/// The cells of a row that begins at its left edge: each takes its share of the width, less the gap to the next.
pub(super) fn cells(row: Rect, shares: impl Iterator<Item = f32>, gap: f32) -> impl Iterator<Item = Rect> {
    let mut left = row.left();
    shares.map(move |share| {
        let right = left + share * row.width();
        let cell = Rect::from_min_max(pos2(left, row.top()), pos2(right - gap, row.bottom()));
        left = right;
        cell
    })
}

/// A text in a cell, at its left or its right.
pub(super) fn text(ui: &Ui, cell: Rect, text: &str, font: FontId, color: Color32, is_right: bool) {
    let galley = elided(ui.painter(), text, font, color, cell.width());
    let x = if is_right { cell.right() - galley.size().x } else { cell.left() };
    ui.painter().galley(pos2(x, cell.center().y - galley.size().y / 2.0), galley, color);
}

/// Paint the background of a row that is selected, or under the pointer.
pub(super) fn background(ui: &Ui, colors: Colors, response: &Response, is_selected: bool) {
    let fill = match (is_selected, response.hovered()) {
        (true, _) => colors.accent.gamma_multiply(0.22),
        (false, true) => colors.hover,
        (false, false) => return,
    };
    ui.painter().rect_filled(response.rect, 3.0, fill);
}
