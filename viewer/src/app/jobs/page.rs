//! Page of a job: findings, then who, when and where, what each host used, runs, events and curves.
//!
//! Rule: parts that have not arrived are absent; errors are shown beside what is there. Not here: texts (`facts`),
//! findings (`findings`), plots (`curves`).

use super::{JobsPanel, facts, state_color};
use crate::app::command::{Command, Commands};
use crate::app::details;
use crate::app::served::{lines_of, title_of};
use crate::app::tab::Tab;
use crate::app::text::{count, moment};
use crate::app::theme::{self, Colors};
use crate::grid::text::shown;
use crate::jobs::page::JobPage;
use crate::model::{Change, FlockChange, JobsChange, Model, Selection, TimeChange};
use egui::{Align, Button, Grid, Label, Layout, RichText, ScrollArea, Ui, UiBuilder, vec2};
use std::time::Duration;
use wire::api::jobs::{Job, JobRecord};
use wire::call::State;
use wire::time::Time;

/// Wider pages have the curves beside the texts, in points.
const BESIDE_FROM: f32 = 860.0;
/// Share of the width that the texts have then.
const TEXTS_SHARE: f32 = 0.46;
/// A run is replayed in about so many seconds.
const REPLAYED_IN_SECS: f64 = 30.0;
/// Most hosts in the table of usage, and runs in that of runs.
const ROWS_MAX: usize = 64;

impl JobsPanel {
    pub(super) fn page(
        &mut self,
        model: &Model,
        ui: &mut Ui,
        colors: Colors,
        page: &JobPage,
        commands: &mut Commands,
    ) {
        title(model, ui, colors, page, commands);
        if let Some(error) = &page.error {
            let remains = if page.record.is_some() { " What was loaded is shown." } else { "" };
            let text = format!("The job could not be queried: {error}.{remains} Trying again.");
            ui.add(Label::new(RichText::new(text).size(theme::SMALL).color(colors.failed())).wrap());
        }
        let Some(record) = page.record.as_deref() else {
            if page.error.is_none() {
                ui.label(RichText::new("Asking for the job …").color(colors.weak));
            }
            return;
        };
        ScrollArea::vertical().id_salt(("page", &page.key.id)).auto_shrink(false).show(ui, |ui| {
            // The scroll bar does not cover what is at the right.
            ui.set_max_width(ui.available_width() - 10.0);
            ui.add_space(4.0);
            self.findings(model, ui, colors, (page, record));
            ui.add_space(6.0);
            if ui.available_width() < BESIDE_FROM {
                texts(model, ui, colors, (page, record));
                ui.add_space(8.0);
                self.curves(model, ui, colors, page);
                tables(model, ui, colors, (page, record));
                return;
            }
            let width = ui.available_width();
            ui.horizontal_top(|ui| {
                let column = |ui: &mut Ui, width: f32, draw: &mut dyn FnMut(&mut Ui)| {
                    ui.scope_builder(UiBuilder::new().layout(Layout::top_down(Align::LEFT)), |ui| {
                        ui.set_width(width);
                        draw(ui);
                    });
                };
                column(ui, TEXTS_SHARE * width - 16.0, &mut |ui| {
                    texts(model, ui, colors, (page, record));
                    tables(model, ui, colors, (page, record));
                });
                ui.add_space(8.0);
                let rest = ui.available_width();
                column(ui, rest, &mut |ui| self.curves(model, ui, colors, page));
            });
        });
    }
}

/// Id, name, state, and links to the other tabs.
fn title(model: &Model, ui: &mut Ui, colors: Colors, page: &JobPage, commands: &mut Commands) {
    ui.horizontal_wrapped(|ui| {
        if ui.add(Button::new("⏴ Jobs")).on_hover_text("Esc").clicked() {
            commands.push(JobsChange::Close);
        }
        let record = page.record.as_deref();
        let id = record.map_or(page.key.id.as_str(), |record| record.job.id.as_str());
        ui.label(RichText::new(shown(id).text).strong().size(15.0));
        let Some(record) = record else { return };
        let job = &record.job;
        ui.label(RichText::new(shown(&job.name).text).size(15.0));
        let color = state_color(job.state, job.outcome, colors);
        ui.label(RichText::new(facts::state(job)).color(color));
        ui.label(RichText::new(facts::how(job)).color(colors.weak));
        links(model, ui, page, job, commands);
    });
}

/// Buttons to the other tabs.
fn links(model: &Model, ui: &mut Ui, page: &JobPage, job: &Job, commands: &mut Commands) {
    let select = || Change::Select(Some(Selection::Call(job.id.clone())));
    if ui.button("On the map").on_hover_text("The map with this job alone, at a time when it ran").clicked() {
        commands.push(select());
        commands.push(Change::Search(format!("job:{} product:{}", job.job, job.product)));
        within_run(model, job).into_iter().for_each(|time| commands.push(TimeChange::StopAt(time)));
        commands.push(Command::OpenTab(Tab::Map));
    }
    let Some(started) = job.started.map(|time| time.0) else { return };
    if ui.button("In the flock").on_hover_text("Its processes as marks, at a time when it ran").clicked() {
        commands.push(select());
        commands.push(FlockChange::FollowJob {
            call: job.id.clone(),
            domain: page.key.domain.to_string(),
            hosts: job.hosts.clone(),
            started: Some(started),
            ended: job.ended.map(|time| time.0),
        });
        commands.push(Command::OpenTab(Tab::Flock));
    }
    if ui.button("Replay the run").on_hover_text("The map from its start on, in half a minute").clicked() {
        let secs = job.ended.map_or(model.now(), |time| time.0).since(started).as_secs_f64();
        commands.push(select());
        commands.push(TimeChange::StopAt(started));
        commands.push(TimeChange::SetSpeed((secs / REPLAYED_IN_SECS).max(1.0)));
        commands.push(TimeChange::Play);
        commands.push(Command::OpenTab(Tab::Map));
    }
    let hint = "The graphs of its hosts over its life";
    if model.grid().call_named(&job.id).is_some() && ui.button("Graphs").on_hover_text(hint).clicked() {
        commands.push(Command::ShowGraphsOfCall(job.id.clone()));
    }
}

/// A time when a job ran, unless the shown time is one.
fn within_run(model: &Model, job: &Job) -> Option<Time> {
    let started = job.started.or(job.submitted)?.0;
    let time = model.time();
    match job.ended {
        Some(ended) if !(started..ended.0).contains(&time) => {
            let before = Duration::from_secs(1).min(ended.0.since(started) / 2);
            Some(ended.0.minus(before))
        }
        None if time < started => Some(started),
        Some(_) | None => None,
    }
}

/// Who, when, where and how much.
fn texts(model: &Model, ui: &mut Ui, colors: Colors, (page, record): (&JobPage, &JobRecord)) {
    let facts = facts::facts(record, model.zone(), model.now());
    let rows: Vec<_> = facts.into_iter().map(|(label, text)| (label, text, None)).collect();
    details::table(ui, colors, &format!("facts of {}", page.key.id), &rows);
    if record.job.is_reduced {
        let text = match model.source().is_identified() {
            true => "A job of another user: the rest is shown to its user, root and operators.",
            false => {
                "Over TCP no user is known: the rest is shown by the local socket of a daemon, to the job's user, root and \
                      operators."
            }
        };
        small(ui, colors, text);
    }
    if record.job.state == State::Waiting && record.job.reason.is_empty() {
        small(ui, colors, "No log states why it waits.");
    }
}

/// Usage by host, runs and events.
fn tables(model: &Model, ui: &mut Ui, colors: Colors, (page, record): (&JobPage, &JobRecord)) {
    if !record.usage.is_empty() {
        heading(ui, colors, "used on each host");
        let rows = record.usage.iter().take(ROWS_MAX).map(facts::usage_row);
        grid(ui, colors, ("usage of hosts", &facts::USAGE), rows.map(Vec::from));
    }
    if record.runs.len() > 1 {
        heading(ui, colors, "runs");
        let rows = record.runs.iter().take(ROWS_MAX).map(|run| facts::run_row(run, model.zone()));
        grid(ui, colors, ("runs", &facts::RUNS), rows.map(Vec::from));
    }
    match &page.lines {
        Ok(lines) if lines.is_empty() => {}
        Ok(lines) => {
            let number = count(u32::try_from(lines.len()).unwrap_or(u32::MAX), "event");
            heading(ui, colors, &number);
            events(model, ui, colors, page);
        }
        Err(error) => small(ui, colors, &format!("Its events could not be queried: {error}.")),
    }
}

/// The events by time: more of each under the pointer.
fn events(model: &Model, ui: &mut Ui, colors: Colors, page: &JobPage) {
    Grid::new("events of a job").num_columns(3).spacing(vec2(10.0, 2.0)).show(ui, |ui| {
        for line in page.lines.iter().flatten() {
            let time = RichText::new(moment(line.event.time, model.zone(), true)).font(theme::figures());
            ui.label(time.color(colors.weak));
            let lines = lines_of(&line.event);
            ui.label(RichText::new(title_of(&line.event)).size(theme::SMALL)).on_hover_text(lines.join("\n"));
            let text = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("  ");
            let text = RichText::new(text).size(theme::SMALL).color(colors.weak);
            ui.add(Label::new(text).truncate());
            ui.end_row();
        }
    });
}

fn grid(ui: &mut Ui, colors: Colors, (id, heads): (&str, &[&str]), rows: impl Iterator<Item = Vec<String>>) {
    ScrollArea::horizontal().id_salt(id).show(ui, |ui| {
        Grid::new(id).num_columns(heads.len()).spacing(vec2(9.0, 2.0)).show(ui, |ui| {
            for head in heads {
                ui.label(RichText::new(*head).size(theme::SMALL).color(colors.weak));
            }
            ui.end_row();
            for row in rows {
                for (number, text) in row.into_iter().enumerate() {
                    let text = RichText::new(text).size(theme::SMALL);
                    ui.label(if number == 0 { text } else { text.font(theme::figures()) });
                }
                ui.end_row();
            }
        });
    });
}

fn heading(ui: &mut Ui, colors: Colors, text: &str) {
    ui.add_space(8.0);
    ui.label(RichText::new(text).color(colors.weak).size(theme::SMALL));
}

fn small(ui: &mut Ui, colors: Colors, text: &str) {
    ui.add(Label::new(RichText::new(text).color(colors.weak).size(theme::SMALL)).wrap());
}
