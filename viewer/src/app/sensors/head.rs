//! The row over the table: how many sensors there are, and a field for another domain or sensor.
//!
//! Not here: the table (`table`).

use super::SensorsPanel;
use crate::app::TOO_MANY_REQUESTS;
use crate::app::command::{Command, Commands};
use crate::app::text::count;
use crate::app::theme::{self, Colors};
use crate::model::{Model, SensorsChange};
use crate::sensors::{ADDRESSES_MAX, Typed};
use egui::{Align, Key, Layout, RichText, TextEdit, Ui};

/// Width of the field, in points.
const FIELD_WIDTH: f32 = 240.0;

impl SensorsPanel {
    pub(super) fn head(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        let counts = self.counts;
        ui.horizontal(|ui| {
            ui.label(RichText::new(count(counts.all, "sensor")).strong());
            if counts.silent > 0 {
                ui.label(RichText::new(format!("{} silent or down", counts.silent)).color(colors.failed()));
            }
            let others = counts.troubled.saturating_sub(counts.silent);
            if others > 0 {
                ui.label(RichText::new(format!("{others} to be looked at")).color(colors.warned()));
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if model.source().is_daemon() {
                    self.field(model, ui, commands);
                }
                ui.checkbox(&mut self.only_troubled, "Only those in trouble");
            });
        });
        if let Some(error) = &self.error {
            ui.label(RichText::new(error).size(theme::SMALL).color(colors.failed()));
        }
    }

    /// A field for a domain, or the address of a sensor.
    fn field(&mut self, model: &Model, ui: &mut Ui, commands: &mut Commands) {
        let edit = TextEdit::singleline(&mut self.typed).hint_text("Add a domain, or 127.0.0.1:PORT");
        let response = ui.add(edit.desired_width(FIELD_WIDTH)).on_hover_text(
            "A domain of the grid by its name, or a sensor of this machine by its address, which is asked itself",
        );
        if !(response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter))) {
            return;
        }
        self.error = None;
        match Typed::parse(&self.typed) {
            Ok(Typed::Domain(name)) => commands.push(Command::AddDomain(name)),
            Ok(Typed::Sensor(address)) if model.sensors().has_room_for(&address) => {
                commands.push(SensorsChange::Add(address));
                self.typed.clear();
            }
            Ok(Typed::Sensor(_)) => {
                commands.push(SensorsChange::Select(None));
                let error = format!("expected at most {ADDRESSES_MAX} sensors by address; drop one first");
                self.error = Some(error);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// A domain was requested; what was typed stays where the request was not sent.
    pub(in crate::app) fn domain_added(&mut self, name: &str, is_sent: bool) {
        if self.typed.trim() != name {
            return;
        }
        match is_sent {
            true => self.typed.clear(),
            false => self.error = Some(TOO_MANY_REQUESTS.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_that_could_not_be_requested_stays_in_the_field() {
        let mut panel = SensorsPanel { typed: " UT-ICL ".into(), ..SensorsPanel::default() };
        panel.domain_added("UT-ICL", false);
        assert_eq!((panel.typed.as_str(), panel.error.as_deref()), (" UT-ICL ", Some(TOO_MANY_REQUESTS)));
        panel.domain_added("other", true);
        assert_eq!(panel.typed, " UT-ICL ", "another field had that");
        panel.domain_added("UT-ICL", true);
        assert_eq!(panel.typed, "");
    }
}
