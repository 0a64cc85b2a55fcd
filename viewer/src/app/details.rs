//! Details of the selection, at the right.
//!
//! Rule: what a log says is shown as the log's word; a figure has its age.

use super::command::{Command, Commands};
use super::served;
use super::text::{moment, percent, span};
use super::theme::{self, Colors};
use crate::grid::call::Call;
use crate::grid::place::{HostState, Part, Place, PlaceId};
use crate::model::{Change, Model, Selection, TimeChange};
use crate::scene::Tone;
use crate::scene::course::Leg;
use egui::{Color32, Frame, Grid, Label, Margin, Panel, RichText, ScrollArea, Ui, vec2};
use std::time::Duration;
use wire::call::State;
use wire::time::Time;

/// Most calls of a place that are listed.
const CALLS_LISTED: usize = 40;
/// Most hosts of a call that are listed.
const HOSTS_LISTED: usize = 64;

/// Draw them, where something is selected.
pub(super) fn show(model: &Model, ui: &mut Ui) -> Commands {
    let mut commands = Commands::default();
    let Some(selection) = model.selection() else { return commands };
    let colors = Colors::of(ui.ctx());
    let frame = Frame::new().fill(colors.panel).inner_margin(Margin::same(12));
    Panel::right("details").frame(frame).default_size(264.0).size_range(200.0..=460.0).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.label(RichText::new(kind(selection)).color(colors.weak).size(theme::SMALL));
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                if ui.add(egui::Button::new("Close").frame(false)).on_hover_text("Esc").clicked() {
                    commands.push(Change::Select(None));
                }
            });
        });
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| match selection {
            Selection::Call(id) => call(model, ui, colors, id, &mut commands),
            Selection::Place { name, .. } => match model.selected().place() {
                Some(id) => place(model, ui, colors, id, &mut commands),
                None => gone(ui, colors, name),
            },
            Selection::Domain(name) => domain(model, ui, colors, name, &mut commands),
        });
    });
    commands
}

fn kind(selection: &Selection) -> &'static str {
    match selection {
        Selection::Place { part, .. } => part.word(),
        Selection::Call(_) => "call",
        Selection::Domain(_) => "domain",
    }
}

fn gone(ui: &mut Ui, colors: Colors, name: &str) {
    title(ui, name);
    ui.label(RichText::new("It is not there any more.").color(colors.weak));
}

fn title(ui: &mut Ui, name: &str) {
    ui.add(Label::new(RichText::new(name).size(15.0).strong()).wrap());
    ui.add_space(4.0);
}

/// Names and values in two columns.
pub(super) fn table(ui: &mut Ui, colors: Colors, id: &str, rows: &[(&str, String, Option<Color32>)]) {
    Grid::new(id).num_columns(2).spacing(vec2(12.0, 4.0)).show(ui, |ui| {
        for (name, value, color) in rows.iter().filter(|(_, value, _)| !value.is_empty()) {
            ui.label(RichText::new(*name).color(colors.weak).size(theme::SMALL));
            let value = RichText::new(value).color(color.unwrap_or(colors.text));
            ui.add(Label::new(value).wrap());
            ui.end_row();
        }
    });
}

fn call(model: &Model, ui: &mut Ui, colors: Colors, id: &str, commands: &mut Commands) {
    let Some(call) = model.selected_call() else { return gone(ui, colors, id) };
    title(ui, &call.id);
    call_table(model, ui, colors, call);
    let steps = call.steps(model.time());
    let parties: Vec<PlaceId> = [Some(call.client), call.scheduler].into_iter().flatten().collect();
    links(model, ui, colors, ("asked by, chosen by", &parties), commands);
    if steps.started.is_some() {
        links(model, ui, colors, ("hosts", &call.hosts), commands);
    }
    if steps.offered.is_some() {
        links(model, ui, colors, ("offered", &call.offers), commands);
    }
    if let Some(process) = served::show(model, ui, colors, call) {
        commands.push(Command::ShowProcesses(call.id.clone(), Some(process)));
    }
    ui.add_space(6.0);
    ui.horizontal_wrapped(|ui| call_buttons(model, ui, call, commands));
}

fn call_buttons(model: &Model, ui: &mut Ui, call: &Call, commands: &mut Commands) {
    let hint = "The graphs of its hosts over its life";
    let has_graphs = call.hosts.iter().any(|host| model.has_graphs(*host));
    if has_graphs && ui.button("Graphs").on_hover_text(hint).clicked() {
        commands.push(Command::ShowGraphsOfCall(call.id.clone()));
    }
    let hint = "Its processes as marks, over its life";
    let has_processes = model.has_processes() && call.started.or(call.assigned).is_some();
    if has_processes && ui.button("In the flock").on_hover_text(hint).clicked() {
        commands.push(Command::ShowProcesses(call.id.clone(), None));
    }
    for (name, time) in [("To its begin", call.first()), ("To its end", call.ended)] {
        if let Some(time) = time
            && ui.button(name).clicked()
        {
            commands.push(TimeChange::GoTo(time));
        }
    }
}

fn call_table(model: &Model, ui: &mut Ui, colors: Colors, call: &Call) {
    let now = model.time();
    let (word, color) = state_of_call(call, now, colors);
    let steps = call.steps(now);
    let moment = |time: Option<Time>| time.map_or_else(String::new, |time| moment(time, model.zone(), true));
    let long = |time: Option<Duration>| time.map_or_else(String::new, |time| span(time.as_secs_f64()));
    let is_whole = call.last().is_some_and(|last| last <= now);
    let reason = if is_whole { call.reason.clone() } else { String::new() };
    let rows = [
        ("state", word, Some(color)),
        ("reason", reason, None),
        ("name", call.name.clone(), None),
        ("user", call.user.clone(), None),
        ("submitted", moment(steps.submitted), None),
        ("offered", moment(steps.offered), None),
        ("begun", moment(steps.started), None),
        ("ended", moment(steps.ended), None),
        ("waited", long(steps.waited()), None),
        ("worked", long(steps.worked()), None),
        ("tries", if call.tries > 1 && is_whole { call.tries.to_string() } else { String::new() }, None),
        ("events", call.events.to_string(), None),
    ];
    table(ui, colors, "call", &rows);
}

/// State of a call at a time, and its colour.
pub(super) fn state_of_call(call: &Call, time: Time, colors: Colors) -> (String, Color32) {
    match call.state_at(time) {
        None => ("not yet".to_owned(), colors.weak),
        Some(State::Waiting) => ("waiting".to_owned(), colors.tone(Tone::Asking)),
        Some(State::Running) => ("at work".to_owned(), colors.tone(Tone::Working)),
        Some(State::Ended) => {
            let tone = Tone::of(call, Leg::Return);
            let word = call.outcome.map_or("ended", wire::event::Outcome::as_str);
            (word.replace('_', " "), colors.tone(tone))
        }
    }
}

/// Places that a click selects.
fn links(
    model: &Model,
    ui: &mut Ui,
    colors: Colors,
    (what, places): (&str, &[PlaceId]),
    commands: &mut Commands,
) {
    if places.is_empty() {
        return;
    }
    ui.add_space(8.0);
    ui.label(RichText::new(what).color(colors.weak).size(theme::SMALL));
    for &id in places.iter().take(HOSTS_LISTED) {
        let text = RichText::new(&model.grid().place(id).name).color(colors.accent);
        if ui.add(Label::new(text).truncate().sense(egui::Sense::click())).clicked() {
            commands.push(Change::Select(Some(Selection::of_place(model.grid(), id))));
        }
    }
    if places.len() > HOSTS_LISTED {
        ui.label(RichText::new(format!("and {} more", places.len() - HOSTS_LISTED)).color(colors.weak));
    }
}

fn place(model: &Model, ui: &mut Ui, colors: Colors, id: PlaceId, commands: &mut Commands) {
    let place = model.grid().place(id);
    title(ui, &place.name);
    place_table(model, ui, colors, id);
    if model.has_graphs(id) {
        ui.horizontal(|ui| {
            if ui.button("Graphs").on_hover_text("Also by a double click on the host").clicked() {
                commands.push(Command::ShowGraphs(id));
            }
            let is_shown = model.graphs().has_host(&model.placed().host_name(id));
            if !is_shown && ui.button("Add to the graphs").clicked() {
                commands.push(Command::AddToGraphs(id));
            }
        });
    }
    changes(model, ui, colors, place);
    calls_of(model, ui, colors, id, commands);
}

fn place_table(model: &Model, ui: &mut Ui, colors: Colors, id: PlaceId) {
    let place = model.grid().place(id);
    let standing = model.scene().places.get(id.at()).copied().unwrap_or_default();
    let number = |count: u32| if count == 0 { String::new() } else { count.to_string() };
    let mut rows = vec![("domain", model.grid().domain(place.domain).name.clone(), None)];
    if place.part == Part::Server {
        let state = model.state_of(place);
        rows.push(("state", state.word().to_owned(), Some(colors.state(state))));
    }
    rows.extend([("at work", number(standing.working), None), ("waiting", number(standing.waiting), None)]);
    if let Some(report) = model.report_of(place) {
        let grid_age = model.grid_age_secs();
        let share = |share: Option<f64>| share.map_or_else(String::new, percent);
        let figure = |figure: Option<f64>| figure.map_or_else(String::new, |figure| format!("{figure:.2}"));
        rows.extend([
            ("role", report.role.clone(), None),
            ("CPU", share(report.cpu_used), None),
            ("memory", share(report.memory_used), None),
            ("load", figure(report.load1), None),
            ("CPUs", report.cpus.map_or_else(String::new, |cpus| format!("{cpus:.0}")), None),
            ("age", report.age_secs.map_or_else(String::new, |age| span(age + grid_age)), None),
        ]);
        rows.extend(
            report.health.iter().map(|line| ("trouble", line.clone(), Some(colors.state(HostState::Down)))),
        );
    }
    if place.report.is_some() && model.report_of(place).is_none() {
        rows.push(("figures", "known live alone; the graphs have those of then".to_owned(), None));
    }
    table(ui, colors, "place", &rows);
}

fn changes(model: &Model, ui: &mut Ui, colors: Colors, place: &Place) {
    if place.changes.is_empty() {
        return;
    }
    ui.add_space(8.0);
    ui.label(RichText::new("state by the log").color(colors.weak).size(theme::SMALL));
    for &(time, state) in place.changes.iter().rev().take(8) {
        ui.horizontal(|ui| {
            ui.label(RichText::new(moment(time, model.zone(), true)).monospace().size(theme::SMALL));
            ui.label(RichText::new(state.word()).color(colors.state(state)));
        });
    }
}

/// The latest calls of a place at the time that is shown.
fn calls_of(model: &Model, ui: &mut Ui, colors: Colors, id: PlaceId, commands: &mut Commands) {
    let now = model.time();
    let has_part = |call: &&Call| {
        let has = call.client == id || call.scheduler == Some(id) || call.hosts.contains(&id);
        has && call.first().is_some_and(|first| first <= now)
    };
    let found: Vec<&Call> = model.grid().calls.iter().rev().filter(has_part).take(CALLS_LISTED + 1).collect();
    if found.is_empty() {
        return;
    }
    ui.add_space(8.0);
    let head = if found.len() > CALLS_LISTED { "latest calls" } else { "calls" };
    ui.label(RichText::new(head).color(colors.weak).size(theme::SMALL));
    for call in found.into_iter().take(CALLS_LISTED) {
        ui.horizontal(|ui| {
            let (word, color) = state_of_call(call, now, colors);
            let (rect, _) = ui.allocate_exact_size(vec2(8.0, 12.0), egui::Sense::hover());
            ui.painter().circle_filled(rect.center(), 3.2, color);
            let text = RichText::new(&call.id).color(colors.accent);
            let label = ui.add(Label::new(text).truncate().sense(egui::Sense::click()));
            if label.on_hover_text(format!("{} {} {word}", call.user, call.name)).clicked() {
                commands.push(Change::Select(Some(Selection::Call(call.id.clone()))));
            }
        });
    }
}

fn domain(model: &Model, ui: &mut Ui, colors: Colors, name: &str, commands: &mut Commands) {
    let Some(id) = model.selection().and_then(|selection| selection.domain(model.grid())) else {
        return gone(ui, colors, name);
    };
    title(ui, name);
    let domain = model.grid().domain(id);
    let counts = model.scene().domains.get(id.at()).copied().unwrap_or_default();
    let mut states = std::collections::BTreeMap::new();
    for id in domain.ids() {
        let place = model.grid().place(id);
        if place.part == Part::Server {
            *states.entry(model.state_of(place)).or_insert(0_u32) += 1;
        }
    }
    let mut rows = vec![
        ("hosts", domain.servers.to_string(), None),
        ("clients", domain.clients.to_string(), None),
        ("waiting", counts.waiting.to_string(), None),
        ("at work", counts.running.to_string(), None),
    ];
    rows.extend(
        states.into_iter().map(|(state, count)| (state.word(), count.to_string(), Some(colors.state(state)))),
    );
    table(ui, colors, "domain", &rows);
    ui.add_space(6.0);
    if ui.button("Show on the map").clicked() {
        commands.push(Command::ShowDomainOnMap(id));
    }
    if model.source().is_daemon()
        && model.grid().domains.len() > 1
        && ui.button("Show it no more").on_hover_text("Its calls and hosts are asked for no more").clicked()
    {
        commands.push(Command::DropDomain(name.to_owned()));
    }
    if !model.placed().moves().is_empty()
        && ui.button("Put everything back").on_hover_text("Undo what was moved").clicked()
    {
        commands.push(Command::ResetMap);
    }
}
