//! The row over the chart: measures, hosts, sampling rate, and errors.
//!
//! Not here: the chart (`chart`).

use super::glyphs::{self, Glyphs};
use super::{FlockPanel, back};
use crate::app::command::Commands;
use crate::app::text::{count, span};
use crate::app::theme::{self, Colors};
use crate::feed::Altered;
use crate::flock::HOSTS_MAX;
use crate::flock::measure::Measure;
use crate::flock::sweep::HostName;
use crate::grid::text::shown;
use crate::model::{FLOCK_HOSTS_USUAL, FlockChange, Model, RATES_HZ};
use crate::scene::Tone;
use crate::timeline::Mode;
use egui::{Align, Button, Layout, Mesh, RichText, ScrollArea, Sense, Shape, Ui, pos2, vec2};
use std::collections::BTreeSet;
use wire::event::Outcome;

/// Height of the row, in points.
pub(super) const HEIGHT: f32 = 34.0;
/// Most hosts in the menu; others are found by the search.
const HOSTS_LISTED: usize = 200;

impl FlockPanel {
    pub(super) fn head(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
            for measure in Measure::ALL {
                toggle(model, ui, colors, (measure, self.glyphs.as_ref()), commands);
            }
            ui.separator();
            if model.source().is_daemon() {
                hosts(model, ui, commands);
                rate(model, ui, commands);
            } else {
                ui.label(RichText::new(hosts_title(model)).size(theme::SMALL));
            }
            theme::choosing_menu("View").ui(ui, |ui| {
                let mut hides_idle = model.flock().filter().hides_idle;
                if ui.checkbox(&mut hides_idle, "Only what uses something").changed() {
                    commands.push(FlockChange::HideIdle(hides_idle));
                }
                let mut has_trails = !self.hides_trails;
                ui.checkbox(&mut has_trails, "Trails");
                self.hides_trails = !has_trails;
            });
            state(model, ui, colors);
        });
    }
}

/// A measure with its shape, on or off.
fn toggle(
    model: &Model,
    ui: &mut Ui,
    colors: Colors,
    (measure, glyphs): (Measure, Option<&Glyphs>),
    commands: &mut Commands,
) {
    let is_on = model.flock().filter().has(measure);
    let color = if is_on { colors.text } else { colors.weak.gamma_multiply(0.7) };
    let galley = ui.painter().layout_no_wrap(measure.name().to_owned(), theme::small(), color);
    let size = vec2(galley.size().x + glyphs::SIZE + 14.0, 22.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    if response.hovered() {
        ui.painter().rect_filled(rect, 4.0, colors.hover);
    }
    if let Some(glyphs) = glyphs {
        let mut mesh = Mesh::with_texture(glyphs.id());
        let at = pos2(rect.left() + 4.0 + glyphs::SIZE / 2.0, rect.center().y);
        glyphs.mark(&mut mesh, measure, at, 1.1, color);
        ui.painter().add(Shape::mesh(mesh));
    }
    let at = pos2(rect.left() + glyphs::SIZE + 9.0, rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(at, galley, color);
    response
        .widget_info(|| egui::WidgetInfo::selected(egui::WidgetType::Checkbox, true, is_on, measure.name()));
    let (low, high) = measure.ends();
    let hint = format!("To the right: how much, 100 % is {}.\nUp: {high}, down: {low}.", measure.whole());
    if response.on_hover_text(hint).clicked() {
        commands.push(FlockChange::ToggleMeasure(measure));
    }
}

fn hosts_title(model: &Model) -> String {
    count(u32::try_from(model.flock().flock().hosts().count()).unwrap_or(0), "host")
}

/// Menu of hosts.
fn hosts(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    theme::choosing_menu(RichText::new(hosts_title(model)).size(theme::SMALL)).ui(ui, |ui| {
        let before = model.flock().chosen_hosts();
        let mut chosen = before.cloned();
        let names: Vec<HostName> = model.placed().server_names().map(|(_, name)| name).collect();
        let usual = Button::new(format!("The first {FLOCK_HOSTS_USUAL} that are live"));
        if ui.add_enabled(chosen.is_some(), usual).clicked() {
            chosen = None;
        }
        if ui.button(format!("All, up to {HOSTS_MAX}")).clicked() {
            chosen = Some(names.iter().take(HOSTS_MAX).cloned().collect());
        }
        if let Some(id) = model.selected().place()
            && ui.button("Only the chosen one").clicked()
        {
            chosen = Some(BTreeSet::from([model.placed().host_name(id)]));
        }
        ui.separator();
        let watched = model.flock().flock().hosts();
        let watched: BTreeSet<HostName> = watched.map(|(name, _)| name.clone()).collect();
        ScrollArea::vertical().max_height(320.0).show(ui, |ui| {
            for name in names.iter().take(HOSTS_LISTED) {
                let mut is_in = watched.contains(name);
                if ui.checkbox(&mut is_in, &*name.host).changed() {
                    let mut hosts = chosen.clone().unwrap_or_else(|| watched.clone());
                    let _ = if is_in { hosts.insert(name.clone()) } else { hosts.remove(name) };
                    chosen = Some(hosts);
                }
            }
        });
        if chosen.as_ref() != before {
            commands.push(FlockChange::Watch(chosen));
        }
    });
}

fn rate(model: &Model, ui: &mut Ui, commands: &mut Commands) {
    let words = |rate: f64| format!("{rate:.0} Hz");
    let altered = altered(model);
    let chosen = model.flock().rate_hz();
    let title = words(chosen) + if altered.is_empty() { "" } else { ", altered" };
    ui.menu_button(RichText::new(title).size(theme::SMALL), |ui| {
        for rate in RATES_HZ {
            let mut rate_hz = chosen;
            if ui.radio_value(&mut rate_hz, rate, words(rate)).changed() {
                commands.push(FlockChange::SetRate(rate));
            }
        }
    })
    .response
    .on_hover_text(
        ["Sweeps of each host a second; sensors do nothing else for it", &altered].join("\n").trim(),
    );
}

/// The hosts whose channels another client altered, a line each.
fn altered(model: &Model) -> String {
    let line = |(host, altered): (&HostName, &Altered)| {
        let filter = shown(&altered.filter).text;
        let passes = if filter.is_empty() { String::new() } else { format!(", where {filter}") };
        format!("{}: {} Hz{passes}", host.host, altered.rate_hz)
    };
    model.flock().altered().map(line).collect::<Vec<_>>().join("\n")
}

/// Age of the newest sweep, and errors.
fn state(model: &Model, ui: &mut Ui, colors: Colors) {
    let flock = model.flock().flock();
    let refused = flock.refused().lines();
    let errors: Vec<String> =
        model.flock().errors().map(|(host, error)| format!("{}: {error}", host.host)).collect();
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
        let warn = colors.tone(Tone::Over(Outcome::Timeout));
        if !errors.is_empty() {
            let number = count(u32::try_from(errors.len()).unwrap_or(0), "host");
            let text = format!("{number} cannot be swept");
            ui.label(RichText::new(text).size(theme::SMALL).color(warn)).on_hover_text(errors.join("\n"));
        }
        if !refused.is_empty() {
            ui.label(RichText::new("not whole").size(theme::SMALL).color(warn))
                .on_hover_text(refused.join("\n"));
        }
        let oldest = flock.hosts().filter_map(|(_, last)| last).min();
        let is_live = model.timeline().mode() == Mode::Live && model.source().is_daemon();
        if let Some(oldest) = oldest.filter(|_| is_live) {
            let old = format!("{} old", span(model.now().since(oldest).as_secs_f64()));
            ui.label(RichText::new(old).size(theme::SMALL).color(colors.weak))
                .on_hover_text("The newest sweep of the host that is farthest behind");
        }
        back::state(model, ui, colors);
    });
}
