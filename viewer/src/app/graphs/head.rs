//! The rows over the graphs: arrangement, hosts, metrics and span; and the legend.
//!
//! Not here: the plots (`together`, `cells`).

use super::together::host_color;
use super::{GraphsPanel, Pointer, color_of, counted};
use crate::app::command::Commands;
use crate::app::text::{elided, span};
use crate::app::theme::{self, Colors};
use crate::flock::sweep::HostName;
use crate::graphs::metric::{Metric, Shows};
use crate::graphs::{Arrangement, HOSTS_MAX, METRICS_MAX, Scale};
use crate::model::{GRAPHS_HOSTS_USUAL, GraphsChange, Model};
use egui::{Align, Button, Color32, Key, Layout, RichText, ScrollArea, Sense, TextEdit, Ui, pos2, vec2};
use std::time::Duration;

/// Most hosts in the menu; others are found by the search.
const HOSTS_LISTED: usize = 200;
/// Spans that can be chosen, in seconds.
const SPANS_SECS: [f64; 11] = [
    60.0,
    300.0,
    900.0,
    HOUR,
    6.0 * HOUR,
    DAY,
    7.0 * DAY,
    30.0 * DAY,
    90.0 * DAY,
    366.0 * DAY,
    5.0 * 366.0 * DAY,
];
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;
/// Earlier times that can be compared, in hours.
const COMPARED: [(u64, &str); 4] = [
    (1, "an hour earlier"),
    (24, "a day earlier"),
    (7 * 24, "a week earlier"),
    (28 * 24, "four weeks earlier"),
];
/// Least room for the age beside the errors, in points.
const AGE_ROOM_MIN: f32 = 170.0;
/// Widest name in the legend, in points.
const NAME_MAX: f32 = 150.0;

impl GraphsPanel {
    /// The row of menus.
    pub(super) fn head(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        ui.horizontal(|ui| {
            arrangements(model, ui, commands);
            ui.separator();
            hosts(model, ui, commands);
            self.metrics(model, ui, colors, commands);
            spans(model, ui, commands);
            compared(model, ui, commands);
            age(model, ui, colors);
        });
    }

    /// Which metrics are shown, and a field for any other.
    fn metrics(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        let chosen = model.graphs().choice().metrics();
        let title = match &chosen[..] {
            [only] => only.short_title().to_owned(),
            many => counted(many.len(), "metric"),
        };
        theme::choosing_menu(title).ui(ui, |ui| {
            let others = chosen.iter().filter(|metric| !Metric::USUAL.contains(metric));
            for metric in Metric::USUAL.iter().chain(others) {
                let mut is_in = chosen.contains(metric);
                let has_room = is_in || chosen.len() < METRICS_MAX;
                ui.horizontal(|ui| {
                    let check = egui::Checkbox::new(&mut is_in, metric.title());
                    if ui.add_enabled(has_room, check).changed() {
                        commands.push(GraphsChange::ToggleMetric(metric.clone()));
                    }
                    if chosen.len() > 1 && ui.small_button("only").clicked() {
                        commands.push(GraphsChange::SetMetrics(vec![metric.clone()]));
                    }
                });
            }
            ui.separator();
            self.metric_field(&chosen, ui, commands);
            if let Some(error) = &self.error {
                ui.set_max_width(250.0);
                ui.label(RichText::new(error).size(theme::SMALL).color(colors.failed()));
            }
        });
    }

    fn metric_field(&mut self, chosen: &[Metric], ui: &mut Ui, commands: &mut Commands) {
        let edit = TextEdit::singleline(&mut self.typed).hint_text("Any metric: node_load5, module.*");
        let response = ui.add(edit.desired_width(230.0));
        if !(response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter))) {
            return;
        }
        match Metric::parse(self.typed.trim()) {
            Ok(metric) if chosen.len() < METRICS_MAX || chosen.contains(&metric) => {
                if !chosen.contains(&metric) {
                    commands.push(GraphsChange::ToggleMetric(metric));
                }
                self.typed.clear();
                self.error = None;
            }
            Ok(_) => self.error = Some(format!("expected at most {METRICS_MAX} metrics")),
            Err(error) => self.error = Some(error),
        }
    }
}

fn arrangements(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let choice = model.graphs().choice();
    let hint = "All hosts in one plot, or a small one for each (G)";
    for (arrangement, name) in [(Arrangement::Together, "Together"), (Arrangement::Each, "Small multiples")] {
        let label = ui.selectable_label(choice.arrangement == arrangement, name);
        if label.on_hover_text(hint).clicked() {
            commands.push(GraphsChange::Arrange(arrangement));
        }
    }
    if choice.arrangement == Arrangement::Each {
        ui.separator();
        let hint = "As high in every plot, so that they can be compared; or each as high as it needs";
        for (scale, name) in [(Scale::Shared, "Same scale"), (Scale::Own, "Own scale")] {
            let label = ui.selectable_label(choice.scale == scale, name);
            if label.on_hover_text(hint).clicked() {
                commands.push(GraphsChange::Scale(scale));
            }
        }
    }
}

/// Menu of hosts.
fn hosts(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let graphs = model.graphs();
    let title = match graphs.hosts() {
        [only] => graphs.title_of(only),
        many => counted(many.len(), "host"),
    };
    theme::choosing_menu(title).ui(ui, |ui| {
        let usual = Button::new(format!("The first {GRAPHS_HOSTS_USUAL} that are live"));
        let is_chosen = graphs.is_visit() || graphs.choice().hosts().is_some();
        if ui.add_enabled(is_chosen, usual).clicked() {
            commands.push(GraphsChange::SetHosts(None));
        }
        if ui.button(format!("All, up to {HOSTS_MAX}")).clicked() {
            let all = model.placed().server_names().map(|(_, name)| name).take(HOSTS_MAX).collect();
            commands.push(GraphsChange::SetHosts(Some(all)));
        }
        if let Some(id) = model.selected().place()
            && ui.button("Only the chosen one").clicked()
        {
            commands.push(GraphsChange::SetHosts(Some(vec![model.placed().host_name(id)])));
        }
        ui.separator();
        ScrollArea::vertical().max_height(320.0).show(ui, |ui| listed(model, ui, commands));
    });
    if graphs.is_visit()
        && ui.button("All chosen").on_hover_text("Back to the hosts that were shown before").clicked()
    {
        commands.push(GraphsChange::LeaveVisit);
    }
}

/// The hosts, each with a tick where it is shown; beyond the listed ones those that are shown too.
fn listed(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let shown = model.graphs().choice().hosts().unwrap_or_else(|| model.graphs().hosts().to_vec());
    let servers = model.placed().server_names();
    let mut listed: Vec<HostName> = servers.map(|(_, name)| name).take(HOSTS_LISTED).collect();
    let beyond: Vec<HostName> = shown.iter().filter(|host| !listed.contains(host)).cloned().collect();
    listed.extend(beyond);
    let left_out = model.placed().servers().count().saturating_sub(listed.len());
    for name in &listed {
        let mut is_in = shown.contains(name);
        let has_room = is_in || shown.len() < HOSTS_MAX;
        let words = match name.domain.is_empty() {
            true => name.host.to_string(),
            false => format!("{} · {}", name.host, name.domain),
        };
        if ui.add_enabled(has_room, egui::Checkbox::new(&mut is_in, words)).changed() {
            commands.push(GraphsChange::SetHost(name.clone(), is_in));
        }
    }
    if left_out > 0 {
        let words = format!("{left_out} more: search for one, choose it, and add it to the graphs");
        ui.label(RichText::new(words).size(theme::SMALL));
    }
}

/// Menu of spans.
fn spans(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let chosen = model.graphs().choice().span;
    let title = span(chosen.secs());
    ui.menu_button(title, |ui| {
        for secs in SPANS_SECS {
            if ui.button(span(secs)).clicked() {
                commands.push(GraphsChange::SetSpan(secs));
                ui.close();
            }
        }
    })
    .response
    .on_hover_text(
        "A drag on a plot moves all of them, the wheel with Ctrl widens, a double click puts back",
    );
    let back = chosen.back_secs();
    if back > 0.0
        && ui.button(format!("back by {}", span(back))).on_hover_text("Go on with the time").clicked()
    {
        commands.push(GraphsChange::SetSpan(chosen.secs()));
    }
}

/// Menu of the earlier times that can be compared.
fn compared(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let chosen = model.graphs().choice().compared();
    let before = |hours: u64| Duration::from_secs(hours * 3_600);
    let name = COMPARED.iter().find(|(hours, _)| chosen == Some(before(*hours))).map(|(_, name)| *name);
    let title = name.map_or_else(|| "Compare".to_owned(), |name| format!("and {name}"));
    ui.menu_button(title, |ui| {
        if ui.add_enabled(chosen.is_some(), Button::new("Nothing")).clicked() {
            commands.push(GraphsChange::Compare(None));
            ui.close();
        }
        for (hours, name) in COMPARED {
            if ui.button(name).clicked() {
                commands.push(GraphsChange::Compare(Some(before(hours))));
                ui.close();
            }
        }
    })
    .response
    .on_hover_text("Dashed lines: the same span of an earlier time");
}

/// Age of the host that is farthest behind, and how many hosts have errors.
fn age(model: &Model, ui: &mut Ui, colors: Colors) {
    if !model.source().is_daemon() {
        return;
    }
    let has_room = ui.available_width() > AGE_ROOM_MIN;
    let newest = |series: &crate::series::HostSeries| {
        series.values().filter_map(|one| one.newest()).map(|(at, _)| at).max()
    };
    let oldest = model.graphs().figures().filter_map(|(_, series)| newest(series)).min();
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
        if let Some(oldest) = oldest.filter(|_| has_room) {
            let age = format!("{} old", span(model.now().since(oldest).as_secs_f64()));
            ui.label(RichText::new(age).size(theme::SMALL).color(colors.weak))
                .on_hover_text("The newest figure of the host that is farthest behind");
        }
        if let Some(step) = model.stored_step().filter(|_| has_room) {
            let text = format!("steps of {}", span(step.as_secs_f64()));
            ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak)).on_hover_text(
                "Each value that is read from the store is the mean of so much time, and the band around it reaches from the least to the greatest",
            );
        }
        let errors = model.graphs().errors();
        if !errors.is_empty() {
            let text = format!("{} in trouble", counted(errors.len(), "host"));
            let color = colors.tone(crate::scene::Tone::Over(wire::event::Outcome::Timeout));
            ui.label(RichText::new(text).size(theme::SMALL).color(color)).on_hover_text(errors.join("\n"));
        }
    });
}

/// The legend: hosts where several share a plot, else the parts of the metrics; returns the host under the
/// pointer.
pub(super) fn legend(model: &Model, ui: &mut Ui, colors: Colors, pointer: &Pointer) -> Option<HostName> {
    let graphs = model.graphs();
    let has_hosts = graphs.choice().arrangement == Arrangement::Together && graphs.hosts().len() > 1;
    let mut hovered = None;
    ScrollArea::horizontal().id_salt("legend").auto_shrink([false, true]).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 12.0;
            if has_hosts {
                for host in graphs.hosts() {
                    let color = host_color(model, pointer, host, colors);
                    if entry(ui, colors, &graphs.title_of(host), color).hovered() {
                        hovered = Some(host.clone());
                    }
                }
                return;
            }
            for metric in graphs.choice().metrics() {
                let lines = lines_of(model, &metric);
                if lines.len() > 1 {
                    ui.label(RichText::new(metric.short_title()).size(theme::SMALL).color(colors.weak));
                }
                for (at, name) in lines.iter().enumerate().filter(|_| lines.len() > 1) {
                    entry(ui, colors, name, color_of(&metric, at, colors));
                }
            }
        });
    });
    hovered
}

/// Names of a metric's lines; of a pattern those of the first host that has any.
fn lines_of(model: &Model, metric: &Metric) -> Vec<String> {
    let usual = metric.usual_lines();
    if !usual.is_empty() {
        return usual.iter().map(|&name| name.to_owned()).collect();
    }
    let lines = |host: &HostName| -> Vec<String> {
        let lines = model.graph_lines(host, metric, Shows::Parts, 1);
        lines.into_iter().filter(|line| !line.is_earlier).map(|line| line.name).collect()
    };
    model.graphs().hosts().iter().map(lines).find(|lines| !lines.is_empty()).unwrap_or_default()
}

fn entry(ui: &mut Ui, colors: Colors, name: &str, color: Color32) -> egui::Response {
    let galley = elided(ui.painter(), name, theme::small(), colors.text, NAME_MAX);
    let (rect, response) = ui.allocate_exact_size(vec2(galley.size().x + 13.0, 16.0), Sense::hover());
    ui.painter().circle_filled(pos2(rect.left() + 4.0, rect.center().y), 3.4, color);
    ui.painter().galley(
        pos2(rect.left() + 13.0, rect.center().y - galley.size().y / 2.0),
        galley,
        colors.text,
    );
    response
}
