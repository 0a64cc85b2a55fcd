//! The list of domains and hosts at the left, each with its state and load.
//!
//! Rule: only the visible rows are drawn, and the rows are found when the grid, the search or the open
//! domains change, so that a frame of ten thousand hosts costs no more than one of forty.

use super::command::{Command, Commands};
use super::text::{count, elided, percent, span};
use super::theme::{self, Colors, ROW_HEIGHT};
use crate::feed::Drawn;
use crate::grid::Grid;
use crate::grid::place::{DomainId, HostState, Part, PlaceId};
use crate::model::{Change, Model, Selection};
use egui::{
    Align2, Frame, Margin, Panel, Rect, Response, ScrollArea, Sense, Stroke, TextEdit, Ui, pos2, vec2,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Room for the field below the list, in points.
const FIELD_HEIGHT: f32 = 32.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Row {
    Domain(DomainId),
    Place(PlaceId),
}

/// All rows, and what they were made from.
#[derive(Clone, Default)]
struct Rows {
    of: Option<(Arc<Drawn>, String, BTreeSet<String>)>,
    rows: Arc<[Row]>,
}

impl Rows {
    /// The rows, found again where the grid, the search or the closed domains changed.
    fn of(&mut self, drawn: &Arc<Drawn>, search: &str, closed: &BTreeSet<String>) -> Arc<[Row]> {
        let is_same = self.of.as_ref().is_some_and(|(known, words, closed_then)| {
            Arc::ptr_eq(known, drawn) && words == search && closed_then == closed
        });
        if !is_same {
            self.rows = rows(&drawn.grid, search, closed).into();
            self.of = Some((Arc::clone(drawn), search.to_owned(), closed.clone()));
        }
        Arc::clone(&self.rows)
    }
}

/// The list.
#[derive(Clone, Default)]
pub(super) struct TreePanel {
    is_hidden: bool,
    closed_domains: BTreeSet<String>,
    rows: Rows,
    /// Text of the field for another domain.
    typed: String,
}

impl TreePanel {
    pub(super) fn new(is_hidden: bool) -> TreePanel {
        TreePanel { is_hidden, ..TreePanel::default() }
    }

    /// A copy for a picture.
    pub(super) fn still(&self) -> TreePanel {
        TreePanel { typed: String::new(), ..self.clone() }
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    pub(super) fn toggle(&mut self) {
        self.is_hidden = !self.is_hidden;
    }

    /// A domain was requested; what was typed stays where the request was not sent.
    pub(super) fn domain_added(&mut self, name: &str, is_sent: bool) {
        if is_sent && self.typed.trim() == name {
            self.typed.clear();
        }
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui) -> Commands {
        let mut commands = Commands::default();
        if self.is_hidden {
            return commands;
        }
        let colors = Colors::of(ui.ctx());
        let margin = Margin { left: 8, right: 4, top: 6, bottom: 4 };
        let frame = Frame::new().fill(colors.panel).inner_margin(margin);
        Panel::left("hosts").frame(frame).default_size(218.0).size_range(140.0..=420.0).show(ui, |ui| {
            let rows = self.rows.of(model.placed().drawn(), model.filter().text(), &self.closed_domains);
            ui.spacing_mut().item_spacing.y = 0.0;
            let left_for_field = if model.source().is_daemon() { FIELD_HEIGHT } else { 0.0 };
            let most = (ui.available_height() - left_for_field).max(0.0);
            ScrollArea::vertical().auto_shrink(false).max_height(most).show_rows(
                ui,
                ROW_HEIGHT,
                rows.len(),
                |ui, seen| {
                    for row in rows.get(seen).unwrap_or_default() {
                        match *row {
                            Row::Domain(id) => self.domain(model, ui, colors, id, &mut commands),
                            Row::Place(id) => place(model, ui, colors, id, &mut commands),
                        }
                    }
                },
            );
            if left_for_field > 0.0 {
                self.domain_field(ui, &mut commands);
            }
        });
        commands
    }

    /// A field for the name of another domain.
    fn domain_field(&mut self, ui: &mut Ui, commands: &mut Commands) {
        ui.add_space(4.0);
        let edit = TextEdit::singleline(&mut self.typed).hint_text("Add a domain of the grid");
        let response = ui.add(edit.desired_width(ui.available_width() - 12.0));
        let is_entered = response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        let name = self.typed.trim();
        if is_entered && !name.is_empty() {
            commands.push(Command::AddDomain(name.to_owned()));
        }
    }

    fn domain(&mut self, model: &Model, ui: &mut Ui, colors: Colors, id: DomainId, commands: &mut Commands) {
        let domain = model.grid().domain(id);
        let is_closed = self.closed_domains.contains(&domain.name);
        let (rect, response) = row(ui, colors, model.selected().is_domain(model.grid(), id));
        let painter = ui.painter();
        let mark = pos2(rect.left() + 8.0, rect.center().y);
        arrow(painter, mark, is_closed, colors);
        let hosts = painter.layout_no_wrap(count(domain.servers, "host"), theme::small(), colors.weak);
        let end = rect.right() - 8.0 - hosts.size().x;
        painter.galley(pos2(end, rect.center().y - hosts.size().y / 2.0), hosts, colors.weak);
        let name = elided(painter, &domain.name, theme::body(), colors.text, end - rect.left() - 26.0);
        painter.galley(pos2(rect.left() + 19.0, rect.center().y - name.size().y / 2.0), name, colors.text);
        let label = domain.name.as_str();
        response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, label));
        if response.clicked() {
            let on_arrow = response.interact_pointer_pos().is_none_or(|pos| pos.x < rect.left() + 20.0);
            match (on_arrow, is_closed) {
                (true, true) => {
                    self.closed_domains.remove(&domain.name);
                }
                (true, false) => {
                    self.closed_domains.insert(domain.name.clone());
                }
                (false, _) => commands.push(Change::Select(Some(Selection::Domain(domain.name.clone())))),
            }
        }
        if response.double_clicked() {
            commands.push(Command::ShowDomainOnMap(id));
        }
    }
}

/// Domains, and under each open one its hosts; where the search has a bare word, those that have it in their
/// names.
fn rows(grid: &Grid, search: &str, closed: &BTreeSet<String>) -> Vec<Row> {
    let words: Vec<String> =
        search.split_whitespace().filter(|word| !word.contains(':')).map(str::to_lowercase).collect();
    let fits = |name: &str| {
        let name = name.to_lowercase();
        words.iter().all(|word| name.contains(word.as_str()))
    };
    let any_fits =
        words.is_empty() || grid.places.iter().any(|place| place.part == Part::Server && fits(&place.name));
    let mut rows = Vec::new();
    for (id, domain) in (0..).map(DomainId).zip(&grid.domains) {
        rows.push(Row::Domain(id));
        if closed.contains(&domain.name) {
            continue;
        }
        // A word that no host has is about calls, and hides no host.
        let hosts = domain.ids().filter(|&id| grid.place(id).part == Part::Server);
        rows.extend(hosts.filter(|&id| !any_fits || fits(&grid.place(id).name)).map(Row::Place));
    }
    rows
}

fn row(ui: &mut Ui, colors: Colors, is_selected: bool) -> (Rect, Response) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    let fill = match (is_selected, response.hovered()) {
        (true, _) => Some(colors.accent.gamma_multiply(0.22)),
        (false, true) => Some(colors.hover),
        (false, false) => None,
    };
    if let Some(fill) = fill {
        ui.painter().rect_filled(rect, 4.0, fill);
    }
    (rect, response)
}

fn arrow(painter: &egui::Painter, at: egui::Pos2, is_closed: bool, colors: Colors) {
    let points = match is_closed {
        true => [vec2(-2.0, -4.0), vec2(2.5, 0.0), vec2(-2.0, 4.0)],
        false => [vec2(-4.0, -2.0), vec2(0.0, 2.5), vec2(4.0, -2.0)],
    };
    painter.line(points.map(|way| at + way).to_vec(), Stroke::new(1.4, colors.weak));
}

fn place(model: &Model, ui: &mut Ui, colors: Colors, id: PlaceId, commands: &mut Commands) {
    let is_selected = model.selected().place() == Some(id);
    let (rect, response) = row(ui, colors, is_selected);
    let place = model.grid().place(id);
    let state = model.state_of(place);
    let painter = ui.painter();
    painter.circle_filled(pos2(rect.left() + 24.0, rect.center().y), 3.2, colors.state(state));
    // What a host that is gone used is no load.
    let is_there = !matches!(state, HostState::Down | HostState::Left);
    let load = model.report_of(place).and_then(|report| report.cpu_used).filter(|_| is_there);
    let end = match load {
        Some(load) => load_bar(painter, colors, rect, load),
        None => {
            let working = model.scene().places.get(id.at()).map_or(0, |standing| standing.working);
            if working > 0 {
                let at = pos2(rect.right() - 8.0, rect.center().y);
                let color = colors.tone(crate::scene::Tone::Working);
                painter
                    .text(at, Align2::RIGHT_CENTER, format!("{working} at work"), theme::small(), color)
                    .left()
            } else {
                rect.right() - 8.0
            }
        }
    };
    let name = elided(painter, &place.name, theme::small(), colors.text, end - rect.left() - 42.0);
    painter.galley(pos2(rect.left() + 34.0, rect.center().y - name.size().y / 2.0), name, colors.text);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, place.name.as_str()));
    if response.clicked() {
        commands.push(Change::Select(Some(Selection::of_place(model.grid(), id))));
    }
    if response.double_clicked() {
        commands.push(Command::ShowGraphs(id));
    }
    response.on_hover_text(hint(model, id));
}

#[allow(clippy::cast_possible_truncation)]
fn load_bar(painter: &egui::Painter, colors: Colors, row: Rect, load: f64) -> f32 {
    let bar = Rect::from_min_max(
        pos2(row.right() - 54.0, row.center().y - 2.5),
        pos2(row.right() - 8.0, row.center().y + 2.5),
    );
    painter.rect_filled(bar, 2.0, colors.line);
    let used = Rect::from_min_size(bar.min, vec2(bar.width() * load.clamp(0.0, 1.0) as f32, bar.height()));
    painter.rect_filled(used, 2.0, colors.load(load.max(0.3)));
    bar.left()
}

/// State, figures and their age, in a line.
fn hint(model: &Model, id: PlaceId) -> String {
    let place = model.grid().place(id);
    let mut words = vec![format!("{}: {}", place.name, model.state_of(place).word())];
    if let Some(report) = model.report_of(place) {
        words.extend(report.cpu_used.map(|used| format!("CPU {}", percent(used))));
        words.extend(report.memory_used.map(|used| format!("memory {}", percent(used))));
        let grid_age = model.grid_age_secs();
        words.extend(report.age_secs.map(|age| format!("{} old", span(age + grid_age))));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn rows_are_found_again_when_what_they_are_made_of_changes() {
        let grid = |hosts: &[&str]| {
            Arc::new(Drawn::new(synthetic::one_domain(&[synthetic::call("x:1", "ada", hosts)])))
        };
        let (mut rows, none, first) = (Rows::default(), BTreeSet::new(), grid(&["wn01", "wn02"]));
        let all = rows.of(&first, "", &none);
        assert_eq!(all.len(), 3, "a domain and its hosts");
        assert!(Arc::ptr_eq(&all, &rows.of(&first, "", &none)), "nothing changed");
        assert_eq!(rows.of(&first, "wn02", &none).len(), 2);
        assert_eq!(rows.of(&first, "user:ada", &none).len(), 3, "words of calls hide no host");
        let closed: BTreeSet<String> = first.grid.domains.iter().map(|domain| domain.name.clone()).collect();
        assert_eq!(rows.of(&first, "", &closed).len(), 1);
        assert_eq!(rows.of(&grid(&["wn01", "wn02", "wn03"]), "", &none).len(), 4);
    }
}
