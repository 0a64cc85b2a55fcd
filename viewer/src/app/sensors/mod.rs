//! The tab of sensors: their state, and orders to them.
//!
//! Rule: a person confirms what stops something first. Not here: contents of rows (`model::sensor_rows`), the
//! table (`table`), the selected sensor (`selected`), questions (`confirm`).

mod confirm;
mod head;
mod selected;
mod table;

use super::command::Commands;
use super::tables;
use super::theme::Colors;
use crate::export::table::Table;
use crate::model::Model;
use crate::model::sensor_rows::{self, Counts, Line};
use crate::sensors::At;
use egui::{Rect, Ui, UiBuilder, pos2};
use std::collections::BTreeMap;
use wire::time::Time;

/// How often the lines are found again, in microseconds.
const LINES_EVERY_MICROS: i64 = 250_000;
/// Narrower tabs have the selected sensor below the table, in points.
const BESIDE_FROM: f32 = 720.0;
/// Width of the selected sensor, in points.
const SELECTED_WIDTH: f32 = 320.0;
/// Its share of the height, where it is below.
const SELECTED_SHARE: f32 = 0.5;

/// What the lines were found from: the grid, the time, the search, whether all are shown, and the number of
/// addresses.
type LinesKey = (Option<Time>, i64, String, bool, usize);

/// The tab.
#[derive(Clone, Default)]
pub(super) struct SensorsPanel {
    /// Typed rates and filters of channels.
    edited: BTreeMap<(At, String), (f64, String)>,
    /// Text of the field for another domain or sensor, and what is wrong with it.
    typed: String,
    error: Option<String>,
    only_troubled: bool,
    lines: Vec<Line>,
    counts: Counts,
    lines_of: Option<LinesKey>,
}

impl SensorsPanel {
    /// All sensors that are listed.
    pub(super) fn table(&self, model: &Model) -> Table {
        let (lines, _) = sensor_rows::lines(model, self.only_troubled);
        tables::sensors(model, &lines)
    }

    /// Find the lines again, four times a second, and when the search changed.
    fn find_lines(&mut self, model: &Model) {
        let moment = model.now().micros().div_euclid(LINES_EVERY_MICROS);
        let search = model.filter().text().to_owned();
        let addresses = model.sensor_addresses().len();
        let key = (model.placed().received_at(), moment, search, self.only_troubled, addresses);
        if self.lines_of.as_ref() != Some(&key) {
            (self.lines, self.counts) = sensor_rows::lines(model, self.only_troubled);
            self.lines_of = Some(key);
        }
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui, commands: &mut Commands) {
        self.find_lines(model);
        let colors = Colors::of(ui.ctx());
        let rect = ui.available_rect_before_wrap();
        ui.allocate_rect(rect, egui::Sense::hover());
        ui.painter().rect_filled(rect, 0.0, colors.ground);
        let (table, beside) = divided(rect, model.sensors().selected().is_some());
        inside(ui, table.shrink2(egui::vec2(12.0, 8.0)), "sensors", |ui| {
            self.head(model, ui, colors, commands);
            table::show(model, ui, colors, (&self.lines, self.only_troubled), commands);
        });
        if let Some(beside) = beside {
            inside(ui, beside, "chosen sensor", |ui| self.selected(model, ui, colors, commands));
        }
    }
}

fn inside(ui: &mut Ui, rect: Rect, name: &str, draw: impl FnOnce(&mut Ui)) {
    ui.scope_builder(UiBuilder::new().max_rect(rect).id_salt(name), |ui| {
        ui.set_clip_rect(rect.intersect(ui.clip_rect()));
        draw(ui);
    });
}

/// The rectangles of the table and of the selected sensor.
fn divided(rect: Rect, has_selected: bool) -> (Rect, Option<Rect>) {
    if !has_selected {
        return (rect, None);
    }
    if rect.width() >= BESIDE_FROM {
        let x = rect.right() - SELECTED_WIDTH;
        let table = Rect::from_min_max(rect.min, pos2(x, rect.bottom()));
        return (table, Some(Rect::from_min_max(pos2(x, rect.top()), rect.max)));
    }
    let y = rect.bottom() - SELECTED_SHARE * rect.height();
    let table = Rect::from_min_max(rect.min, pos2(rect.right(), y));
    (table, Some(Rect::from_min_max(pos2(rect.left(), y), rect.max)))
}
