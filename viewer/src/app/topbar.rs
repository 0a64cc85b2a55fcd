//! The bar at the top: source and status, search, export, theme, keys.
//!
//! Rule: the age of what is shown is always here; a lost source is shown in red, not in a box over the
//! contents.

use super::command::{Command, Commands};
use super::keys;
use super::settings::Look;
use super::text::{count, span};
use super::theme::{self, Colors};
use crate::feed::Status;
use crate::model::{Change, Model, Source};
use crate::scene::Tone;
use egui::{Align, Button, Color32, Frame, Layout, Margin, Panel, RichText, TextEdit, Ui, vec2};
use wire::event::Outcome;

/// The bar.
#[derive(Default)]
pub(super) struct Topbar {
    /// Whether the search field is to get the focus.
    focuses_search: bool,
}

impl Topbar {
    pub(super) fn focus_search(&mut self) {
        self.focuses_search = true;
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui) -> Commands {
        let mut commands = Commands::default();
        let colors = Colors::of(ui.ctx());
        let frame = Frame::new().fill(colors.panel).inner_margin(Margin::symmetric(12, 7));
        Panel::top("top").frame(frame).show(ui, |ui| {
            ui.horizontal(|ui| {
                ui.label(RichText::new("visperf").strong().size(15.0));
                ui.label(RichText::new(source_name(model.source())).color(colors.weak));
                status(model, ui, colors);
                refused(model, ui, colors);
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    help(ui);
                    export(ui, &mut commands);
                    look(ui, &mut commands);
                    self.search(model, ui, colors, &mut commands);
                });
            });
        });
        commands
    }

    fn search(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        let filter = model.filter();
        let mut text = filter.text().to_owned();
        let is_wrong = filter.unknown_word().is_some();
        let color = if is_wrong { colors.tone(Tone::Over(Outcome::Failed)) } else { colors.text };
        let width = (ui.available_width() - 20.0).clamp(90.0, 280.0);
        let edit = TextEdit::singleline(&mut text)
            .hint_text("Search: user:ada outcome:failed wn01")
            .desired_width(width);
        let response = ui.add(edit.text_color(color)).on_hover_text(
            "Words are joined by and: user:ada  job:17  host:wn01  kind:parallel  outcome:failed  state:running  \
             product:slurm, or any part of a name.\nCalls that do not fit are not drawn and not listed.",
        );
        if std::mem::take(&mut self.focuses_search) {
            response.request_focus();
        }
        if response.has_focus() && ui.input(|input| input.key_pressed(egui::Key::Escape)) {
            text.clear();
            response.surrender_focus();
        }
        if text != filter.text() {
            commands.push(Change::Search(text));
        }
        if !filter.is_empty() {
            let (fitting, all) = filter.counts();
            let text = match filter.unknown_word() {
                Some(word) => format!("{word} means nothing"),
                None => format!("{fitting} of {}", count(u32::try_from(all).unwrap_or(0), "call")),
            };
            let label = ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak));
            if let Some(expected) = filter.expected() {
                label.on_hover_text(expected);
            }
        }
    }
}

fn source_name(source: &Source) -> &str {
    match source {
        Source::Log(name) | Source::File(name) | Source::Daemon(name) => name,
    }
}

/// State of the source, and age of what is shown.
fn status(model: &Model, ui: &mut Ui, colors: Colors) {
    let age = |at: Option<wire::time::Time>| at.map(|at| model.now().since(at).as_secs_f64());
    let (color, text, hint) = match model.connection().status() {
        Status::Beginning if matches!(model.source(), Source::File(_)) => return,
        Status::Beginning => (colors.weak, "beginning".to_owned(), "Nothing came yet.".to_owned()),
        Status::Reading { lines } => {
            let lines = count(u32::try_from(*lines).unwrap_or(u32::MAX), "line");
            (
                colors.tone(Tone::Over(Outcome::Ok)),
                format!("{lines} read"),
                "The log is followed as it grows.".to_owned(),
            )
        }
        Status::Connected { troubles, .. } if !troubles.is_empty() => {
            let what = count(u32::try_from(troubles.len()).unwrap_or(0), "domain");
            let text = format!("connected, but {what} cannot be asked");
            (colors.tone(Tone::Over(Outcome::Timeout)), text, troubles.join("\n"))
        }
        Status::Connected { took_secs, .. } => {
            let old = age(model.connection().updated_at()).unwrap_or(0.0);
            // Queried each second: an answer of this age is late.
            let color = if old < 3.0 {
                colors.tone(Tone::Over(Outcome::Ok))
            } else {
                colors.tone(Tone::Over(Outcome::Timeout))
            };
            (
                color,
                format!("connected, {} old", span(old)),
                format!("The last answer took {}.", span(*took_secs)),
            )
        }
        Status::Lost { what } => {
            let old = age(model.placed().received_at())
                .map_or("nothing came yet".to_owned(), |old| format!("{} old", span(old)));
            (
                colors.tone(Tone::Over(Outcome::Failed)),
                format!("no connection, {old}"),
                format!("{what}. Trying again."),
            )
        }
    };
    pill(ui, color, &text, &hint);
}

/// What of the grid was refused.
fn refused(model: &Model, ui: &mut Ui, colors: Colors) {
    let refused = &model.grid().refused;
    if !refused.is_empty() {
        let lines = refused.lines();
        let text = format!("{} not shown whole", count(u32::try_from(lines.len()).unwrap_or(0), "thing"));
        pill(ui, colors.tone(Tone::Over(Outcome::Timeout)), &text, &lines.join("\n"));
    }
}

fn pill(ui: &mut Ui, color: Color32, text: &str, hint: &str) {
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing.x = 5.0;
        let (rect, _) = ui.allocate_exact_size(vec2(9.0, 12.0), egui::Sense::hover());
        ui.painter().circle_filled(rect.center(), 3.6, color);
        ui.label(RichText::new(text).size(theme::SMALL)).on_hover_text(hint);
    });
}

fn look(ui: &mut Ui, commands: &mut Commands) {
    let is_dark = ui.ctx().theme() == egui::Theme::Dark;
    let text = if is_dark { "Light" } else { "Dark" };
    if ui.add(Button::new(text).frame(false)).on_hover_text("Dark or light (T)").clicked() {
        commands.push(Command::SetLook(if is_dark { Look::Light } else { Look::Dark }));
    }
}

/// Menu of files: what is shown, written into the current folder.
fn export(ui: &mut Ui, commands: &mut Commands) {
    let forms = [
        ("Picture (PNG)", "png"),
        ("Table of what is chosen, or of the tab (CSV)", "csv"),
        ("Table of what is chosen, or of the tab (JSON)", "json"),
        ("The whole grid, for another viewer", "visperf"),
    ];
    ui.menu_button("Export", |ui| {
        for (name, extension) in forms {
            let key =
                keys::FILES.iter().find(|(_, known)| *known == extension).map_or("", |(key, _)| key.name());
            if ui.add(Button::new(name).shortcut_text(key)).clicked() {
                commands.push(Command::Export(extension));
                ui.close();
            }
        }
    });
}

fn help(ui: &mut Ui) {
    ui.menu_button("Keys", |ui| {
        egui::Grid::new("keys").num_columns(2).spacing(vec2(18.0, 4.0)).show(ui, |ui| {
            for (key, what) in keys::KEYS {
                ui.label(RichText::new(*key).monospace().size(theme::SMALL));
                ui.label(*what);
                ui.end_row();
            }
        });
    });
}
