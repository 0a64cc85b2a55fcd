//! What came of something that a person did, at the bottom, for a while.
//!
//! Not here: the answers of dialogs (`flock::kill`).

use super::App;
use super::theme::Colors;
use egui::{Align2, Area, Frame, Id, RichText, Ui, vec2};
use wire::time::Time;

/// How long it is shown, in seconds.
const SHOWN_SECS: f64 = 12.0;
/// Longest line, in points.
const WIDTH: f32 = 560.0;

impl App {
    /// Tell what came of it.
    pub fn notify(&mut self, at: Time, words: String) {
        self.notice = Some((at, words));
    }
}

/// Draw it, where there is something.
pub(super) fn show(app: &App, ui: &Ui) {
    let Some((at, words)) = &app.notice else { return };
    if app.now.since(*at).as_secs_f64() > SHOWN_SECS {
        return;
    }
    let colors = Colors::of(ui.ctx());
    let area =
        Area::new(Id::new("notice")).anchor(Align2::CENTER_BOTTOM, vec2(0.0, -96.0)).interactable(false);
    area.show(ui.ctx(), |ui| {
        Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_max_width(WIDTH);
            ui.label(RichText::new(words).color(colors.text));
        });
    });
}
