//! Table of jobs: a row for each that is loaded, sorted by the column whose head was clicked.
//!
//! Rule: only the visible rows are laid out. Not here: columns (`columns`), the order of rows (`crate::jobs::sort`).

use super::columns::{self, Shown, Spec};
use super::{JobsPanel, state_color};
use crate::app::cells;
use crate::app::command::Commands;
use crate::app::text::{moment, percent};
use crate::app::theme::{self, Colors, ROW_HEIGHT};
use crate::jobs::Row;
use crate::jobs::curves::Spark;
use crate::jobs::sort::{Column, state_word};
use crate::model::{JobsChange, Model};
use crate::scene::Tone;
use egui::{Color32, Mesh, Rect, RichText, ScrollArea, Sense, Shape, Stroke, Ui, pos2, vec2};
use wire::call::State;
use wire::shown::{age, whole_bytes};
use wire::time::Time;

/// Between two columns, in points.
const GAP: f32 = 12.0;
/// Times farther from now have their date.
const DATE_FROM_SECS: f64 = 43_200.0;

impl JobsPanel {
    pub(super) fn table(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        let rows = model.jobs().rows();
        let has_own = rows.is_empty() || rows.reduced() < rows.len();
        let columns = columns::fitting(ui.available_width(), has_own);
        head(model, ui, colors, &columns, commands);
        ui.spacing_mut().item_spacing.y = 0.0;
        if rows.is_empty() {
            ui.add_space(12.0);
            let text =
                if model.jobs().awaits_rows() { "Asking for jobs …" } else { "No job fits the search." };
            if model.jobs().error().is_none() && model.jobs().text_error().is_none() {
                ui.label(RichText::new(text).color(colors.weak));
            }
            return;
        }
        let mut shown = 0..0;
        let area = self.scrolled(model, ui.available_height());
        area.show_rows(ui, ROW_HEIGHT, rows.len(), |ui, seen| {
            shown = seen.clone();
            for row in seen.filter_map(|position| rows.at(position)) {
                self.row(model, ui, colors, (row, &columns), commands);
            }
        });
        commands.push(JobsChange::ShowRows(shown));
    }

    /// The area of the rows, scrolled once to a row that was chosen by a key.
    fn scrolled(&mut self, model: &Model, height: f32) -> ScrollArea {
        let area = ScrollArea::vertical().id_salt("jobs").auto_shrink(false);
        let chosen = model.jobs().chosen();
        if chosen == self.shown.as_ref() {
            return area;
        }
        self.shown = chosen.cloned();
        #[allow(clippy::cast_precision_loss)]
        match chosen.and_then(|key| model.jobs().rows().position(key)) {
            Some(row) => area.vertical_scroll_offset((row as f32 * ROW_HEIGHT - height / 2.0).max(0.0)),
            None => area,
        }
    }

    fn row(
        &mut self,
        model: &Model,
        ui: &mut Ui,
        colors: Colors,
        (row, columns): (&Row, &[(Spec, f32)]),
        commands: &mut Commands,
    ) {
        let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
        cells::background(ui, colors, &response, model.jobs().chosen() == Some(&row.key));
        let shares = columns.iter().map(|(_, share)| *share);
        for ((spec, _), cell) in columns.iter().zip(cells::cells(rect, shares, GAP)) {
            match spec.shown {
                Shown::Curve => match model.jobs().spark(&row.key) {
                    Some(spark) => curve(ui, cell, (row, spark), colors),
                    None if model.jobs().awaits_spark(row) => {
                        cells::text(ui, cell, "…", theme::small(), colors.weak, false);
                    }
                    None => {}
                },
                Shown::Value(column) => {
                    let (text, color) = value(model, row, column, colors);
                    let font = if spec.is_figure { theme::figures() } else { theme::small() };
                    cells::text(ui, cell, &text, font, color, spec.is_figure);
                }
            }
        }
        let name = format!("job {} {}", row.key.id, state_word(row));
        response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, name.as_str()));
        if response.clicked() {
            self.shown = Some(row.key.clone());
            commands.push(JobsChange::Open(row.key.clone()));
        }
        response.on_hover_ui(|ui| hint(ui, colors, row));
    }
}

/// The heads, which sort.
fn head(model: &Model, ui: &mut Ui, colors: Colors, columns: &[(Spec, f32)], commands: &mut Commands) {
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::hover());
    let sort = model.jobs().rows().sort();
    let shares = columns.iter().map(|(_, share)| *share);
    for ((spec, _), cell) in columns.iter().zip(cells::cells(rect, shares, GAP)) {
        let Shown::Value(column) = spec.shown else {
            cells::text(ui, cell, spec.name, theme::small(), colors.weak, false);
            ui.interact(cell, ui.id().with(spec.name), Sense::hover()).on_hover_text(spec.hint);
            continue;
        };
        let response = ui.interact(cell, ui.id().with(spec.name), Sense::click());
        let (mark, color) = match (sort.column == column, sort.is_falling) {
            (true, true) => (" ⏷", colors.text),
            (true, false) => (" ⏶", colors.text),
            (false, _) if response.hovered() => ("", colors.text),
            (false, _) => ("", colors.weak),
        };
        cells::text(ui, cell, &format!("{}{mark}", spec.name), theme::small(), color, spec.is_figure);
        let name = format!("sort by {}", spec.name);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, name.as_str()));
        if response.clicked() {
            commands.push(JobsChange::Sort(column));
        }
        if !spec.hint.is_empty() {
            response.on_hover_text(spec.hint);
        }
    }
    ui.painter().hline(rect.x_range(), rect.bottom(), Stroke::new(1.0, colors.line));
}

/// Text and colour of a value.
fn value(model: &Model, row: &Row, column: Column, colors: Colors) -> (String, Color32) {
    let now = model.now();
    let so_far = |secs: Option<f64>, is_so_far: bool| {
        secs.map_or_else(String::new, |secs| format!("{}{}", age(secs), if is_so_far { "+" } else { "" }))
    };
    let text = match column {
        Column::Job => row.key.id.to_string(),
        Column::Name => row.name.to_string(),
        Column::User => row.user.to_string(),
        Column::Queue => row.queue.to_string(),
        Column::State => {
            let color = state_color(row.state, row.outcome, colors);
            return (state_word(row).replace('_', " "), color);
        }
        Column::Submitted => row.submitted.map_or_else(String::new, |time| date(model, time)),
        Column::Waited => so_far(row.waited_secs(now), row.state == State::Waiting),
        Column::Ran => so_far(row.ran_secs(now), row.state == State::Running),
        Column::Cpus => row.cpus.map_or_else(String::new, |cpus| cpus.to_string()),
        Column::CpuUsed => match (row.cpu_efficiency, row.cpu_secs) {
            (Some(share), _) => percent(share),
            (None, secs) => secs.map_or_else(String::new, age),
        },
        Column::PeakMemory => row.peak_memory_bytes.map_or_else(String::new, whole_bytes),
        Column::Hosts => match (row.hosts.first(), row.hosts_count) {
            (None, _) => String::new(),
            (Some(only), 1) => only.to_string(),
            (Some(first), many) => format!("{first} +{}", many - 1),
        },
        Column::Findings => row.findings.replace('_', " "),
    };
    (text, colors.text)
}

/// A time of day, with its date where it is not of these hours.
fn date(model: &Model, time: Time) -> String {
    let is_far = model.now().since(time).as_secs_f64() > DATE_FROM_SECS;
    moment(time, model.zone(), is_far)
}

/// What has no room in the row.
fn hint(ui: &mut Ui, colors: Colors, row: &Row) {
    let hosts = row.hosts.join(", ");
    let more = row.hosts_count.saturating_sub(row.hosts.len());
    let hosts = if more > 0 { format!("{hosts} and {more} more") } else { hosts };
    let lines = [
        ("", format!("{} {}", row.key.id, row.name)),
        ("account ", row.account.to_string()),
        ("reason: ", row.reason.to_string()),
        ("on ", hosts),
        ("", row.findings.replace('_', " ")),
    ];
    for (label, text) in lines.into_iter().filter(|(_, text)| !text.trim().is_empty()) {
        ui.label(format!("{label}{}", text.trim_end()));
    }
    if row.is_reduced {
        let text = "a job of another user: the rest is shown to its user, root and operators";
        ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak));
    }
}

/// The curve of CPUs in use, as an area; its height is that of the allocated CPUs, or of the most that were in use.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn curve(ui: &Ui, cell: Rect, (row, spark): (&Row, &Spark), colors: Colors) {
    let area = cell.shrink2(vec2(0.0, 4.0));
    let allocated = row.cpus.map_or(0.0, |cpus| cpus as f64);
    let top = spark.greatest.max(allocated).max(1e-9);
    let color = colors.tone(Tone::Working);
    let width = area.width() / spark.cpus.len().max(1) as f32;
    let mut mesh = Mesh::default();
    for (column, cpus) in spark.cpus.iter().enumerate() {
        let Some(cpus) = cpus else { continue };
        let left = area.left() + column as f32 * width;
        // What is little is seen, too.
        let height = ((cpus / top) as f32 * area.height()).max(1.0);
        let bar = Rect::from_min_max(pos2(left, area.bottom() - height), pos2(left + width, area.bottom()));
        mesh.add_colored_rect(bar, color.gamma_multiply(0.8));
    }
    ui.painter().hline(area.x_range(), area.bottom(), Stroke::new(1.0, colors.line));
    ui.painter().add(Shape::mesh(mesh));
}
