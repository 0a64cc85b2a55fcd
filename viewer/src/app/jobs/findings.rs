//! Findings on the page of a job, the causes first, each with its evidence.
//!
//! Rule: a click opens the lines of logs that prove a finding. Not here: which findings there are (the daemon).

use super::JobsPanel;
use crate::app::served::{lines_of, title_of};
use crate::app::text::moment;
use crate::app::theme::{self, Colors};
use crate::grid::text::shown;
use crate::jobs::page::{JobPage, LogLine};
use crate::model::Model;
use egui::{Color32, Label, RichText, Sense, Ui};
use wire::api::findings::{Finding, FindingClass};
use wire::api::jobs::JobRecord;

/// Room for the class of a finding, in points.
const CLASS_WIDTH: f32 = 52.0;

impl JobsPanel {
    pub(super) fn findings(
        &mut self,
        model: &Model,
        ui: &mut Ui,
        colors: Colors,
        (page, record): (&JobPage, &JobRecord),
    ) {
        for (number, finding) in record.job.findings.iter().enumerate() {
            let (class, color) = class_of(finding, &record.explanation, colors);
            let key = (page.key.clone(), number);
            let is_open = self.evidence.as_ref() == Some(&key);
            let is_clicked = ui
                .horizontal_top(|ui| {
                    ui.scope(|ui| {
                        ui.set_width(CLASS_WIDTH);
                        ui.label(RichText::new(class).size(theme::SMALL).color(color));
                    });
                    let text = RichText::new(shown(&finding.text).text).color(colors.text);
                    let label = ui.add(Label::new(text).wrap().sense(Sense::click()));
                    label.on_hover_text("Click for the evidence").clicked()
                })
                .inner;
            if is_clicked {
                self.evidence = (!is_open).then_some(key);
            }
            if is_open {
                ui.indent(("evidence", number), |ui| evidence(model, ui, colors, (page, finding)));
            }
        }
    }
}

/// Word and colour of a finding's class.
fn class_of(finding: &Finding, explanation: &str, colors: Colors) -> (&'static str, Color32) {
    match FindingClass::from_word(&finding.class) {
        Some(FindingClass::Cause) if finding.text == explanation => ("why", colors.failed()),
        Some(FindingClass::Cause) => ("also", colors.failed()),
        Some(FindingClass::Waste) => ("waste", colors.warned()),
        Some(FindingClass::Note) | None => ("note", colors.weak),
    }
}

/// The lines that prove a finding, and its kind, hosts and other jobs.
fn evidence(model: &Model, ui: &mut Ui, colors: Colors, (page, finding): (&JobPage, &Finding)) {
    let small = |text: String| RichText::new(text).size(theme::SMALL).color(colors.weak);
    let about = [
        ("kind", finding.kind.replace('_', " ")),
        ("hosts", finding.hosts.join(", ")),
        ("compared with", finding.jobs.join(", ")),
    ];
    for (label, text) in about.into_iter().filter(|(_, text)| !text.is_empty()) {
        ui.add(Label::new(small(format!("{label}: {}", shown(&text).text))).wrap());
    }
    let lines = page.evidence(finding);
    for line in &lines {
        log_line(model, ui, colors, line);
    }
    if lines.len() < finding.events.len() {
        let text = "Other lines that prove it are not among the last events of the job.";
        ui.label(small(text.to_owned()));
    } else if lines.is_empty() {
        ui.label(small("It follows from the times and the state of the job.".to_owned()));
    }
}

/// A line of a log with all that it states.
fn log_line(model: &Model, ui: &mut Ui, colors: Colors, line: &LogLine) {
    ui.horizontal(|ui| {
        let time = RichText::new(moment(line.event.time, model.zone(), true)).font(theme::figures());
        ui.label(time.color(colors.weak));
        ui.label(RichText::new(title_of(&line.event)).size(theme::SMALL));
    });
    let lines: Vec<String> = lines_of(&line.event).into_iter().filter(|line| !line.is_empty()).collect();
    let text = RichText::new(lines.join("   ")).size(theme::SMALL).color(colors.weak);
    ui.add(Label::new(text).wrap());
}
