//! The row over the chart: which measures are drawn, of which hosts, how often they are swept.
//!
//! Not here: the chart (`chart`).

use super::{HOSTS_USUAL, RATES_HZ, glyphs, past};
use crate::app::text::{count, span};
use crate::app::theme::{self, Colors};
use crate::app::{App, Source};
use crate::feed::Altered;
use crate::flock::HOSTS_MAX;
use crate::flock::measure::Measure;
use crate::flock::sweep::HostName;
use crate::grid::text::shown;
use crate::scene::Tone;
use crate::timeline::Mode;
use egui::{Align, Button, Layout, Mesh, RichText, ScrollArea, Sense, Shape, Ui, pos2, vec2};
use std::collections::BTreeSet;
use wire::event::Outcome;

/// Height of the row, in points.
pub(super) const HEIGHT: f32 = 34.0;
/// Hosts in the menu; who has more looks for them by the search.
const HOSTS_LISTED: usize = 200;

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors) {
    ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
        for measure in Measure::ALL {
            toggle(app, ui, colors, measure);
        }
        ui.separator();
        hosts(app, ui);
        rate(app, ui);
        theme::choosing_menu("View").ui(ui, |ui| {
            ui.checkbox(&mut app.flock.chosen.hides_idle, "Only what uses something");
            let mut has_trails = !app.flock.hides_trails;
            ui.checkbox(&mut has_trails, "Trails");
            app.flock.hides_trails = !has_trails;
        });
        state(app, ui, colors);
    });
}

/// A measure with its shape, on or off.
fn toggle(app: &mut App, ui: &mut Ui, colors: Colors, measure: Measure) {
    let is_on = app.flock.chosen.has(measure);
    let color = if is_on { colors.text } else { colors.weak.gamma_multiply(0.7) };
    let galley = ui.painter().layout_no_wrap(measure.name().to_owned(), theme::small(), color);
    let size = vec2(galley.size().x + glyphs::SIZE + 14.0, 22.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    if response.hovered() {
        ui.painter().rect_filled(rect, 4.0, colors.hover);
    }
    if let Some(glyphs) = &app.flock.glyphs {
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
        app.flock.chosen.measures[measure.at()] ^= true;
    }
}

/// Which hosts are in the flock.
fn hosts(app: &mut App, ui: &mut Ui) {
    let watched = app.flock.flock.hosts().count();
    let title = count(u32::try_from(watched).unwrap_or(0), "host");
    let can_choose = matches!(app.source, Source::Daemon(_));
    if !can_choose {
        ui.label(RichText::new(title).size(theme::SMALL));
        return;
    }
    theme::choosing_menu(RichText::new(title).size(theme::SMALL)).ui(ui, |ui| {
        let mut chosen = app.flock.by_hand.clone();
        let names: Vec<HostName> = app.servers().map(|(_, name)| name).collect();
        if ui
            .add_enabled(chosen.is_some(), Button::new(format!("The first {HOSTS_USUAL} that are live")))
            .clicked()
        {
            chosen = None;
        }
        if ui.button(format!("All, up to {HOSTS_MAX}")).clicked() {
            chosen = Some(names.iter().take(HOSTS_MAX).cloned().collect());
        }
        if let Some(id) = app.selected_place()
            && ui.button("Only the chosen one").clicked()
        {
            chosen = Some(BTreeSet::from([app.host_name(id)]));
        }
        ui.separator();
        let watched: BTreeSet<HostName> = app.flock.flock.hosts().map(|(name, _)| name.clone()).collect();
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
        app.flock.watch_by_hand(chosen);
    });
}

fn rate(app: &mut App, ui: &mut Ui) {
    if !matches!(app.source, Source::Daemon(_)) {
        return;
    }
    let words = |rate: f64| format!("{rate:.0} Hz");
    let altered = altered(app);
    let title = words(app.flock.rate_hz) + if altered.is_empty() { "" } else { ", altered" };
    ui.menu_button(RichText::new(title).size(theme::SMALL), |ui| {
        for rate in RATES_HZ {
            ui.radio_value(&mut app.flock.rate_hz, rate, words(rate));
        }
    })
    .response
    .on_hover_text(
        ["Sweeps of each host a second; sensors do nothing else for it", &altered].join("\n").trim(),
    );
}

/// The hosts whose channels somebody altered, a line each.
fn altered(app: &App) -> String {
    let flock = &app.flock;
    let altered = flock.altered.iter().filter(|(host, _)| flock.wished.hosts.contains(host));
    let line = |(host, altered): (&HostName, &Altered)| {
        let filter = shown(&altered.filter).text;
        let passes = if filter.is_empty() { String::new() } else { format!(", where {filter}") };
        format!("{}: {} Hz{passes}", host.host, altered.rate_hz)
    };
    altered.map(line).collect::<Vec<_>>().join("\n")
}

/// How old the newest sweep is, and what is wrong.
fn state(app: &App, ui: &mut Ui, colors: Colors) {
    let refused = app.flock.flock.refused().lines();
    let troubles: Vec<String> =
        app.flock.troubles.iter().map(|(host, trouble)| format!("{}: {trouble}", host.host)).collect();
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
        let warn = colors.tone(Tone::Over(Outcome::Timeout));
        if !troubles.is_empty() {
            let text =
                format!("{} cannot be swept", count(u32::try_from(troubles.len()).unwrap_or(0), "host"));
            ui.label(RichText::new(text).size(theme::SMALL).color(warn)).on_hover_text(troubles.join("\n"));
        }
        if !refused.is_empty() {
            ui.label(RichText::new("not whole").size(theme::SMALL).color(warn))
                .on_hover_text(refused.join("\n"));
        }
        let oldest = app.flock.flock.hosts().filter_map(|(_, last)| last).min();
        let is_live = app.timeline.mode() == Mode::Live;
        if let (Some(oldest), Source::Daemon(_), true) = (oldest, &app.source, is_live) {
            let old = format!("{} old", span(app.now.since(oldest).as_secs_f64()));
            ui.label(RichText::new(old).size(theme::SMALL).color(colors.weak))
                .on_hover_text("The newest sweep of the host that is farthest behind");
        }
        past::state(app, ui, colors);
    });
}
