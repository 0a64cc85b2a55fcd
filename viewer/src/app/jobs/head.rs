//! The row over the table of jobs: the search with its completions, the span of time, the domain, and what is loaded.
//!
//! Not here: which completions there are (`crate::jobs::completion`), what a text means (`crate::jobs::search`).

use crate::app::command::Commands;
use crate::app::text::count;
use crate::app::theme::{self, Colors};
use crate::jobs::completion::{Completion, complete};
use crate::model::{JobsChange, JobsRange, Model};
use egui::text::{CCursor, CCursorRange};
use egui::{
    Align, Area, Color32, Frame, Id, Key, Label, Layout, Modifiers, Order, RichText, Sense, TextEdit, Ui,
    vec2,
};

/// Widest and narrowest field, in points.
const FIELD_MAX: f32 = 460.0;
const FIELD_MIN: f32 = 160.0;
/// Room for the menus and the number of jobs beside the field.
const BESIDE: f32 = 330.0;
/// Least width of the list of completions.
const LIST_MIN: f32 = 300.0;

/// The row.
#[derive(Clone, Default)]
pub(super) struct Head {
    /// Text of the field.
    typed: String,
    /// Where its cursor is, in characters.
    cursor: usize,
    /// Whether completions are offered, and which of them is chosen.
    offers: bool,
    at: Option<usize>,
    /// Whether the field is to get the focus.
    focuses: bool,
}

impl Head {
    pub(super) fn focus(&mut self) {
        self.focuses = true;
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        ui.horizontal(|ui| {
            self.field(model, ui, colors, commands);
            range(model, ui, commands);
            domain(model, ui, commands);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let text = RichText::new(loaded(model)).size(theme::SMALL).color(colors.weak);
                ui.add(Label::new(text).truncate());
            });
        });
        for (text, hint, color) in notes(model, colors) {
            let label = Label::new(RichText::new(text).size(theme::SMALL).color(color)).wrap();
            let response = ui.add(label);
            if !hint.is_empty() {
                response.on_hover_text(hint);
            }
        }
    }

    fn field(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        let id = Id::new("search of jobs");
        let has_focus = ui.memory(|memory| memory.has_focus(id));
        if !has_focus && self.typed != model.jobs().text() {
            model.jobs().text().clone_into(&mut self.typed);
        }
        let offered = match has_focus && self.offers {
            true => complete(&self.typed, self.cursor, model.jobs().rows().values()),
            false => Vec::new(),
        };
        if has_focus {
            self.keys(ui, id, &offered, commands);
        }
        let color = if model.jobs().text_error().is_some() { colors.failed() } else { colors.text };
        let width = (ui.available_width() - BESIDE).clamp(FIELD_MIN, FIELD_MAX);
        let edit = TextEdit::singleline(&mut self.typed).id(id).lock_focus(true).desired_width(width);
        let edit = edit
            .background_color(colors.panel)
            .hint_text("Search: user:ada outcome:failed ran > 1h")
            .text_color(color)
            .show(ui);
        if let Some(range) = edit.cursor_range {
            self.cursor = range.primary.index.into();
        }
        let response = edit.response.response;
        if std::mem::take(&mut self.focuses) {
            response.request_focus();
        }
        if response.changed() || response.gained_focus() {
            (self.offers, self.at) = (true, None);
        }
        if response.lost_focus() && self.typed != model.jobs().text() {
            commands.push(JobsChange::Search(self.typed.clone()));
        }
        if let Some(accepted) = self.list(ui, colors, &response, &offered) {
            self.accept(ui, id, &accepted);
        }
    }

    /// The keys of the field: up and down choose a completion, Tab and Enter take it; Enter searches where none is
    /// chosen.
    fn keys(&mut self, ui: &Ui, id: Id, offered: &[Completion], commands: &mut Commands) {
        let pressed = |key: Key| ui.input_mut(|input| input.consume_key(Modifiers::NONE, key));
        if !offered.is_empty() {
            let last = offered.len() - 1;
            if pressed(Key::ArrowDown) {
                self.at = Some(self.at.map_or(0, |at| (at + 1).min(last)));
            }
            if pressed(Key::ArrowUp) {
                self.at = self.at.and_then(|at| at.checked_sub(1));
            }
        }
        let chosen = self.at.and_then(|at| offered.get(at));
        if pressed(Key::Tab)
            && let Some(completion) = chosen.or(offered.first())
        {
            return self.accept(ui, id, completion);
        }
        if pressed(Key::Enter) {
            match chosen {
                Some(completion) => self.accept(ui, id, completion),
                None => {
                    self.offers = false;
                    ui.memory_mut(|memory| memory.surrender_focus(id));
                    commands.push(JobsChange::Search(self.typed.clone()));
                }
            }
        }
    }

    /// Put a completion into the field, and the cursor behind it.
    fn accept(&mut self, ui: &Ui, id: Id, completion: &Completion) {
        self.typed.clone_from(&completion.text);
        (self.cursor, self.at, self.offers) = (completion.cursor, None, true);
        let mut state = egui::text_edit::TextEditState::load(ui.ctx(), id).unwrap_or_default();
        state.cursor.set_char_range(Some(CCursorRange::one(CCursor::new(completion.cursor))));
        state.store(ui.ctx(), id);
        ui.memory_mut(|memory| memory.request_focus(id));
    }

    /// The list of completions below the field; returns the one that is clicked.
    fn list(
        &self,
        ui: &Ui,
        colors: Colors,
        field: &egui::Response,
        offered: &[Completion],
    ) -> Option<Completion> {
        if offered.is_empty() {
            return None;
        }
        let area = Area::new(field.id.with("completions")).order(Order::Foreground);
        let area = area.fixed_pos(field.rect.left_bottom() + vec2(0.0, 2.0));
        let shown = area.show(ui.ctx(), |ui| {
            Frame::popup(ui.style()).show(ui, |ui| {
                ui.set_width(field.rect.width().max(LIST_MIN));
                ui.spacing_mut().item_spacing.y = 0.0;
                let mut clicked = None;
                for (number, completion) in offered.iter().enumerate() {
                    if line(ui, colors, completion, self.at == Some(number)) {
                        clicked = Some(completion.clone());
                    }
                }
                clicked
            })
        });
        shown.inner.inner
    }
}

/// A completion and what it means; whether it is clicked.
fn line(ui: &mut Ui, colors: Colors, completion: &Completion, is_chosen: bool) -> bool {
    let (rect, response) =
        ui.allocate_exact_size(vec2(ui.available_width(), theme::ROW_HEIGHT), Sense::click());
    crate::app::cells::background(ui, colors, &response, is_chosen);
    let [label, hint] = [0.0, 0.42].map(|share| rect.with_min_x(rect.left() + 6.0 + share * rect.width()));
    crate::app::cells::text(
        ui,
        label.with_max_x(hint.left() - 8.0),
        &completion.label,
        theme::body(),
        colors.text,
        false,
    );
    crate::app::cells::text(ui, hint, completion.hint, theme::small(), colors.weak, false);
    response
        .widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, completion.label.as_str()));
    // The field loses the focus when the pointer is pressed, before a click is over.
    response.is_pointer_button_down_on() || response.clicked()
}

fn range(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let chosen = model.jobs().range();
    let title = RichText::new(chosen.name()).size(theme::SMALL);
    ui.menu_button(title, |ui| {
        for range in JobsRange::ALL {
            let mut value = chosen;
            if ui.radio_value(&mut value, range, range.name()).changed() {
                commands.push(JobsChange::SetRange(range));
            }
        }
    })
    .response
    .on_hover_text("Jobs that ended, started or were submitted in this time, and all that wait or run");
}

/// Menu of domains, where there are several.
fn domain(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let domains: Vec<&str> = model.job_domains().collect();
    if domains.len() < 2 {
        return;
    }
    let chosen = model.jobs().domain();
    ui.menu_button(RichText::new(chosen).size(theme::SMALL), |ui| {
        egui::ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
            for domain in domains {
                if ui.radio(domain == chosen, domain).clicked() && domain != chosen {
                    commands.push(JobsChange::SetDomain(domain.to_owned()));
                }
            }
        });
    });
}

/// How many jobs are loaded, and how many there are.
fn loaded(model: &Model) -> String {
    let (jobs, head) = (model.jobs(), model.jobs().head());
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let count_of = count(number(jobs.rows().len() as u64), "job");
    match (jobs.is_loading(), head.total_is_more) {
        (true, _) if jobs.rows().is_empty() => "loading …".to_owned(),
        (true, false) => format!("{} of {}, loading …", jobs.rows().len(), count(number(head.total), "job")),
        (true, true) => format!("{count_of}, loading …"),
        (false, _) => count_of,
    }
}

/// What is wrong or missing: text, more under the pointer, and colour.
fn notes(model: &Model, colors: Colors) -> Vec<(String, String, Color32)> {
    let (jobs, head) = (model.jobs(), model.jobs().head());
    let none = String::new;
    let mut notes = Vec::new();
    if let Some(error) = jobs.text_error() {
        notes.push((format!("{error}."), none(), colors.failed()));
    }
    if let Some(error) = jobs.error() {
        let remains = if jobs.rows().is_empty() { "" } else { " What was loaded is shown." };
        let text = format!("The jobs could not be queried: {error}.{remains} Trying again.");
        notes.push((text, none(), colors.failed()));
    }
    if head.own_only {
        let text = "Only your own jobs are searched by an account, an amount or a finding.";
        notes.push((text.to_owned(), none(), colors.weak));
    }
    if jobs.rows().reduced() > 0 {
        let text = match model.source().is_identified() {
            true => format!(
                "{} of other users: without account, usage and findings.",
                count(u32::try_from(jobs.rows().reduced()).unwrap_or(u32::MAX), "job")
            ),
            false => "Over TCP no user is known: jobs are shown without account, usage and findings. Connect by the local \
                      socket of a daemon to see those of your own."
                .to_owned(),
        };
        notes.push((text, none(), colors.weak));
    }
    if !head.unheard.is_empty() {
        let hosts = count(u32::try_from(head.unheard.len()).unwrap_or(u32::MAX), "host");
        let text = format!("{hosts} have not reported: their jobs may be missing.");
        notes.push((text, head.unheard.join("\n"), colors.warned()));
    }
    if jobs.rows().is_full() {
        let text =
            format!("The newest {} jobs are loaded: narrow the search to see others.", jobs.rows().len());
        notes.push((text, none(), colors.warned()));
    }
    notes
}
