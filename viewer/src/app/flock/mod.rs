//! The tab of the flock: the chart of marks, and the list of programs beside it.
//!
//! Not here: where marks are (`crate::flock`), what is requested for them (`model::flock`), the chart
//! (`chart`), the list (`list`), the question before a signal (`kill`), the past (`back`).

mod back;
mod chart;
mod glyphs;
mod head;
mod instances;
pub(super) mod kill;
mod list;
mod pen;

pub(super) use back::why_empty;
pub(crate) use instances::Engine;

use super::command::Commands;
use super::theme::Colors;
use crate::flock::Member;
use crate::flock::lasso::Lasso;
use crate::model::Model;
use egui::{Rect, Ui, UiBuilder, pos2};
use list::List;

/// Narrower tabs have no list, in points.
const LIST_FROM: f32 = 560.0;
/// Width of the list, in points.
const LIST_WIDTH: f32 = 268.0;

/// The tab.
#[derive(Default)]
pub(super) struct FlockPanel {
    lasso: Option<Lasso>,
    /// The process of the mark at the pointer.
    hovered: Option<Member>,
    hides_trails: bool,
    glyphs: Option<glyphs::Glyphs>,
    /// Where there is a graphics card that can draw instances.
    engine: Option<Engine>,
    list: List,
}

impl FlockPanel {
    /// A copy for a picture: textures belong to one window.
    pub(super) fn still(&self) -> FlockPanel {
        FlockPanel {
            lasso: self.lasso.clone(),
            hovered: self.hovered,
            hides_trails: self.hides_trails,
            glyphs: None,
            engine: None,
            list: self.list.still(),
        }
    }

    /// Draw marks with trails, or without.
    pub(super) fn show_trails(&mut self, shows: bool) {
        self.hides_trails = !shows;
    }

    /// Draw marks as instances by this engine.
    pub(super) fn draw_instances(&mut self, engine: Option<Engine>) {
        self.engine = engine;
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui, commands: &mut Commands) {
        let colors = Colors::of(ui.ctx());
        let rect = ui.available_rect_before_wrap();
        ui.allocate_rect(rect, egui::Sense::hover());
        ui.painter().rect_filled(rect, 0.0, colors.ground);
        let has_list = rect.width() >= LIST_FROM;
        let right = if has_list { rect.right() - LIST_WIDTH } else { rect.right() };
        let head = Rect::from_min_max(rect.min, pos2(right, rect.top() + head::HEIGHT));
        let chart = Rect::from_min_max(pos2(rect.left(), head.bottom()), pos2(right, rect.bottom()));
        let head = head.shrink2(egui::vec2(12.0, 4.0));
        inside(ui, head, "flock head", |ui| self.head(model, ui, colors, commands));
        inside(ui, chart, "flock chart", |ui| self.chart(model, ui, colors, commands));
        if has_list {
            let list = Rect::from_min_max(pos2(right, rect.top()), rect.max);
            inside(ui, list, "flock list", |ui| self.list.show(model, ui, colors, self.hovered, commands));
        }
    }
}

fn inside(ui: &mut Ui, rect: Rect, name: &str, draw: impl FnOnce(&mut Ui)) {
    ui.scope_builder(UiBuilder::new().max_rect(rect).id_salt(name), |ui| {
        ui.set_clip_rect(rect.intersect(ui.clip_rect()));
        draw(ui);
    });
}
