//! The result of what the user did last, at the bottom, for a while.
//!
//! Not here: questions and their answers (`question`).

use super::theme::Colors;
use crate::model::Model;
use egui::{Align2, Area, Frame, Id, RichText, Ui, vec2};

/// How long it is shown, in seconds.
const SHOWN_SECS: f64 = 12.0;
/// Longest line, in points.
const WIDTH: f32 = 560.0;

pub(super) fn show(model: &Model, ui: &Ui) {
    let Some((at, text)) = model.notice() else { return };
    if model.now().since(at).as_secs_f64() > SHOWN_SECS {
        return;
    }
    let colors = Colors::of(ui.ctx());
    let area =
        Area::new(Id::new("notice")).anchor(Align2::CENTER_BOTTOM, vec2(0.0, -96.0)).interactable(false);
    area.show(ui.ctx(), |ui| {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_max_width(WIDTH);
            ui.label(RichText::new(text).color(colors.text));
        });
    });
}
