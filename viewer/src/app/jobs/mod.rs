//! The tab of jobs: the search and the table, or the page of one job.
//!
//! Not here: which jobs are loaded (`model::jobs`), the row over the table (`head`), the table (`table`), the page of a
//! job (`page`).

mod columns;
mod curves;
mod facts;
mod findings;
mod head;
mod page;
mod table;

use super::command::Commands;
use super::theme::Colors;
use crate::jobs::JobKey;
use crate::model::{Model, Source};
use crate::scene::Tone;
use egui::{Color32, Frame, Margin, RichText, Ui};
use wire::call::State;
use wire::event::Outcome;
use wire::time::Time;

/// The tab.
#[derive(Clone, Default)]
pub(super) struct JobsPanel {
    head: head::Head,
    /// The row that the table scrolled to, or that was clicked in it.
    shown: Option<JobKey>,
    /// The finding whose evidence is open, by its number, of this job.
    evidence: Option<(JobKey, usize)>,
    /// The time that the pointer is at in the curves.
    pointer: Option<Time>,
}

impl JobsPanel {
    pub(super) fn focus_search(&mut self) {
        self.head.focus();
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui, commands: &mut Commands) {
        let colors = Colors::of(ui.ctx());
        let frame = Frame::new().fill(colors.ground).inner_margin(Margin::symmetric(12, 8));
        frame.show(ui, |ui| {
            ui.take_available_space();
            if let Some(text) = needs_daemon(model.source()) {
                ui.add_space(16.0);
                ui.label(RichText::new(text).color(colors.weak));
                return;
            }
            match model.jobs().page() {
                Some(page) => self.page(model, ui, colors, page, commands),
                None => {
                    self.head.show(model, ui, colors, commands);
                    self.table(model, ui, colors, commands);
                }
            }
        });
    }
}

/// Why there are no jobs, if so.
fn needs_daemon(source: &Source) -> Option<&'static str> {
    match source {
        Source::Daemon(_) => None,
        Source::Log(_) | Source::File(_) => {
            Some("Jobs are searched by a daemon: connect to one. The tab Calls has those of this log.")
        }
    }
}

/// The colour of a state, or of the outcome of a job that has ended.
fn state_color(state: State, outcome: Option<Outcome>, colors: Colors) -> Color32 {
    match (state, outcome) {
        (State::Waiting, _) => colors.tone(Tone::Asking),
        (State::Running, _) => colors.tone(Tone::Working),
        (State::Ended, Some(outcome)) => colors.tone(Tone::Over(outcome)),
        (State::Ended, None) => colors.weak,
    }
}
