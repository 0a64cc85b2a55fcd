//! The bar at the top: what is shown and how the source is, the search, dark and light, the keys.
//!
//! Rule: how old what is shown is stands here always; a source that is lost is said in red, not in a box in the way.

use super::settings::Look;
use super::text::{count, span};
use super::theme::{self, Colors};
use super::{App, Source, keys};
use crate::feed::Status;
use crate::scene::Tone;
use egui::{Align, Button, Color32, Frame, Layout, Margin, Panel, RichText, TextEdit, Ui, vec2};
use wire::event::Outcome;

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    let colors = Colors::of(ui.ctx());
    let frame = Frame::new().fill(colors.panel).inner_margin(Margin::symmetric(12, 7));
    Panel::top("top").frame(frame).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.label(RichText::new("visperf").strong().size(15.0));
            ui.label(RichText::new(source_words(app)).color(colors.weak));
            status(app, ui, colors);
            refused(app, ui, colors);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                help(ui);
                export(app, ui);
                look(app, ui);
                search(app, ui, colors);
            });
        });
    });
}

fn source_words(app: &App) -> String {
    match &app.source {
        Source::Log(name) | Source::File(name) => name.clone(),
        Source::Daemon(address) => address.clone(),
        Source::Invented => "an invented grid".to_owned(),
    }
}

/// How the source is, and how old what is shown.
fn status(app: &App, ui: &mut Ui, colors: Colors) {
    let age = |at: Option<wire::time::Time>| at.map(|at| app.now.since(at).as_secs_f64());
    let (color, text, hint) = match &app.status {
        Status::Beginning if matches!(app.source, Source::Invented | Source::File(_)) => return,
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
            let old = age(app.status_at).unwrap_or(0.0);
            // Asked each second: an answer that is this old is late.
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
            let old =
                age(app.grid_at).map_or("nothing came yet".to_owned(), |old| format!("{} old", span(old)));
            (
                colors.tone(Tone::Over(Outcome::Failed)),
                format!("no connection, {old}"),
                format!("{what}. Trying again."),
            )
        }
    };
    pill(ui, color, &text, &hint);
}

/// What was not taken, where something was not.
fn refused(app: &App, ui: &mut Ui, colors: Colors) {
    let refused = &app.drawn.grid.refused;
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

fn search(app: &mut App, ui: &mut Ui, colors: Colors) {
    let mut text = app.search.clone();
    let wrong = !app.filter.wrong.is_empty();
    let color = if wrong { colors.tone(Tone::Over(Outcome::Failed)) } else { colors.text };
    let width = (ui.available_width() - 20.0).clamp(90.0, 280.0);
    let edit = TextEdit::singleline(&mut text)
        .hint_text("Search: user:ada outcome:failed wn01")
        .desired_width(width);
    let response = ui.add(edit.text_color(color)).on_hover_text(
        "Words are joined by and: user:ada  job:17  host:wn01  kind:parallel  outcome:failed  state:running  \
         product:slurm, or any part of a name.\nCalls that do not fit are not drawn and not listed.",
    );
    if std::mem::take(&mut app.focus_search) {
        response.request_focus();
    }
    if response.has_focus() && ui.input(|input| input.key_pressed(egui::Key::Escape)) {
        text.clear();
        response.surrender_focus();
    }
    if text != app.search {
        app.search(&text);
    }
    if !app.filter.is_empty() {
        let fits = app.fits.iter().filter(|&&fits| fits).count();
        let text = match app.filter.wrong.first() {
            Some(word) => format!("{word} means nothing"),
            None => format!("{fits} of {}", count(u32::try_from(app.fits.len()).unwrap_or(0), "call")),
        };
        let label = ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak));
        if let Some(expected) = app.filter.expected() {
            label.on_hover_text(expected);
        }
    }
}

fn look(app: &mut App, ui: &mut Ui) {
    let is_dark = ui.ctx().theme() == egui::Theme::Dark;
    let text = if is_dark { "Light" } else { "Dark" };
    if ui.add(Button::new(text).frame(false)).on_hover_text("Dark or light (T)").clicked() {
        app.settings.look = if is_dark { Look::Light } else { Look::Dark };
    }
}

/// What is shown, as a file in the folder where the viewer was started.
fn export(app: &mut App, ui: &mut Ui) {
    let forms = [
        ("Picture (PNG)", "png"),
        ("Picture (SVG)", "svg"),
        ("Table of what is chosen, or of the tab (CSV)", "csv"),
        ("Table of what is chosen, or of the tab (JSON)", "json"),
        ("The whole grid, for another viewer", "visperf"),
    ];
    ui.menu_button("Export", |ui| {
        for (name, ending) in forms {
            let key =
                keys::FILES.iter().find(|(_, known)| *known == ending).map_or("", |(key, _)| key.name());
            if ui.add(Button::new(name).shortcut_text(key)).clicked() {
                app.wanted_file = Some(ending);
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
