//! The rows over the graphs: how they are arranged, of which hosts and metrics, over what span; and what the colours mean.
//!
//! Not here: the plots (`together`, `cells`).

use super::together::host_color;
use super::{HOSTS_USUAL, color_of, counted};
use crate::app::App;
use crate::app::text::{elided, span};
use crate::app::theme::{self, Colors};
use crate::flock::sweep::HostName;
use crate::graphs::metric::Metric;
use crate::graphs::{Arrangement, HOSTS_MAX, METRICS_MAX, Scale};
use egui::{Align, Button, Color32, Key, Layout, RichText, ScrollArea, Sense, TextEdit, Ui, pos2, vec2};

/// Hosts in the menu; who has more looks for them by the search.
const HOSTS_LISTED: usize = 200;
/// Spans that can be chosen, in seconds.
const SPANS_SECS: [f64; 4] = [60.0, 300.0, 900.0, 3_600.0];
/// Least room for the age beside what is in trouble, in points.
const AGE_ROOM_MIN: f32 = 170.0;
/// Widest name in the legend, in points.
const NAME_MAX: f32 = 150.0;

/// Draw them.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors) {
    ui.horizontal(|ui| {
        let choice = &mut app.settings.graphs;
        let hint = "All hosts in one plot, or a small one for each (G)";
        for (arrangement, name) in
            [(Arrangement::Together, "Together"), (Arrangement::Each, "Small multiples")]
        {
            ui.selectable_value(&mut choice.arrangement, arrangement, name).on_hover_text(hint);
        }
        if choice.arrangement == Arrangement::Each {
            ui.separator();
            let hint = "As high in every plot, so that they can be compared; or each as high as it needs";
            for (scale, name) in [(Scale::Shared, "Same scale"), (Scale::Own, "Own scale")] {
                ui.selectable_value(&mut choice.scale, scale, name).on_hover_text(hint);
            }
        }
        ui.separator();
        hosts(app, ui);
        metrics(app, ui, colors);
        spans(app, ui);
        age(app, ui, colors);
    });
    legend(app, ui, colors);
}

/// Whose graphs are shown.
fn hosts(app: &mut App, ui: &mut Ui) {
    let title = match &app.graphs.hosts[..] {
        [only] => app.graphs.name_of(only),
        many => counted(many.len(), "host"),
    };
    theme::choosing_menu(title).ui(ui, |ui| {
        let usual = Button::new(format!("The first {HOSTS_USUAL} that are live"));
        let is_chosen = app.graphs.only.is_some() || app.settings.graphs.hosts().is_some();
        if ui.add_enabled(is_chosen, usual).clicked() {
            app.show_graphs_of(None);
        }
        if ui.button(format!("All, up to {HOSTS_MAX}")).clicked() {
            let all: Vec<HostName> = app.servers().map(|(_, name)| name).take(HOSTS_MAX).collect();
            app.show_graphs_of(Some(&all));
        }
        if let Some(id) = app.selected_place()
            && ui.button("Only the chosen one").clicked()
        {
            let name = app.host_name(id);
            app.show_graphs_of(Some(&[name]));
        }
        ui.separator();
        ScrollArea::vertical().max_height(320.0).show(ui, |ui| listed(app, ui));
    });
    if app.graphs.only.is_some()
        && ui.button("All chosen").on_hover_text("Back to the hosts that were shown before").clicked()
    {
        app.leave_only_graphs();
    }
}

/// The hosts, each with a tick where it is shown; of more than are listed those that are shown too.
fn listed(app: &mut App, ui: &mut Ui) {
    let shown = app.settings.graphs.hosts().unwrap_or_else(|| app.graphs.hosts.clone());
    let mut listed: Vec<HostName> = app.servers().map(|(_, name)| name).take(HOSTS_LISTED).collect();
    let beyond: Vec<HostName> = shown.iter().filter(|host| !listed.contains(host)).cloned().collect();
    listed.extend(beyond);
    let left_out = app.servers().count().saturating_sub(listed.len());
    for name in &listed {
        let mut is_in = shown.contains(name);
        let has_room = is_in || shown.len() < HOSTS_MAX;
        let words = match name.domain.is_empty() {
            true => name.host.to_string(),
            false => format!("{} · {}", name.host, name.domain),
        };
        if ui.add_enabled(has_room, egui::Checkbox::new(&mut is_in, words)).changed() {
            let mut hosts = app.chosen_graph_hosts();
            match is_in {
                true => hosts.push(name.clone()),
                false => hosts.retain(|host| host != name),
            }
            app.show_graphs_of(Some(&hosts));
        }
    }
    if left_out > 0 {
        let words = format!("{left_out} more: search for one, choose it, and add it to the graphs");
        ui.label(RichText::new(words).size(theme::SMALL));
    }
}

/// Which metrics are shown, and a field for any other.
fn metrics(app: &mut App, ui: &mut Ui, colors: Colors) {
    let chosen = app.settings.graphs.metrics();
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
                    app.settings.graphs.toggle(metric);
                }
                if chosen.len() > 1 && ui.small_button("only").clicked() {
                    app.settings.graphs.set_metrics(std::slice::from_ref(metric));
                }
            });
        }
        ui.separator();
        let edit = TextEdit::singleline(&mut app.graphs.typed).hint_text("Any metric: node_load5, module.*");
        let response = ui.add(edit.desired_width(230.0));
        if response.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter)) {
            match Metric::parse(app.graphs.typed.trim()) {
                Ok(metric) if chosen.len() < METRICS_MAX || chosen.contains(&metric) => {
                    if !chosen.contains(&metric) {
                        app.settings.graphs.toggle(&metric);
                    }
                    app.graphs.typed.clear();
                    app.graphs.wrong = None;
                }
                Ok(_) => app.graphs.wrong = Some(format!("expected at most {METRICS_MAX} metrics")),
                Err(wrong) => app.graphs.wrong = Some(wrong),
            }
        }
        if let Some(wrong) = &app.graphs.wrong {
            ui.set_max_width(250.0);
            ui.label(RichText::new(wrong).size(theme::SMALL).color(colors.failed()));
        }
    });
}

/// Over what span.
fn spans(app: &mut App, ui: &mut Ui) {
    let chosen = &mut app.settings.graphs.span;
    let title = span(chosen.secs());
    ui.menu_button(title, |ui| {
        for secs in SPANS_SECS {
            if ui.button(span(secs)).clicked() {
                chosen.set_secs(secs);
                ui.close();
            }
        }
    })
    .response
    .on_hover_text(
        "A drag on a plot moves all of them, the wheel with Ctrl widens, a double click puts back",
    );
    let back = app.settings.graphs.span.back_secs();
    if back > 0.0
        && ui.button(format!("back by {}", span(back))).on_hover_text("Go on with the time").clicked()
    {
        let secs = app.settings.graphs.span.secs();
        app.settings.graphs.span.set_secs(secs);
    }
}

/// How old what is farthest behind is, and of how many hosts something is wrong.
fn age(app: &App, ui: &mut Ui, colors: Colors) {
    if !matches!(app.source, crate::app::Source::Daemon(_)) {
        return;
    }
    let has_room = ui.available_width() > AGE_ROOM_MIN;
    let newest = |series: &crate::feed::HostSeries| {
        series.values().filter_map(|one| one.newest()).map(|(at, _)| at).max()
    };
    let oldest = app.graphs.figures().filter_map(|(_, series)| newest(series)).min();
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
        if let Some(oldest) = oldest.filter(|_| has_room) {
            let age = format!("{} old", span(app.now.since(oldest).as_secs_f64()));
            ui.label(RichText::new(age).size(theme::SMALL).color(colors.weak))
                .on_hover_text("The newest figure of the host that is farthest behind");
        }
        let troubles = app.graphs.told_troubles();
        if !troubles.is_empty() {
            let text = format!("{} in trouble", counted(troubles.len(), "host"));
            let color = colors.tone(crate::scene::Tone::Over(wire::event::Outcome::Timeout));
            ui.label(RichText::new(text).size(theme::SMALL).color(color)).on_hover_text(troubles.join("\n"));
        }
    });
}

/// What the colours mean: hosts where several share a plot, else the parts of the metrics.
fn legend(app: &mut App, ui: &mut Ui, colors: Colors) {
    let has_hosts = app.settings.graphs.arrangement == Arrangement::Together && app.graphs.hosts.len() > 1;
    ScrollArea::horizontal().id_salt("legend").auto_shrink([false, true]).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 12.0;
            if has_hosts {
                for host in app.graphs.hosts.clone() {
                    let name = app.graphs.name_of(&host);
                    if entry(ui, colors, &name, host_color(app, &host, colors)).hovered() {
                        app.graphs.pointed_next = Some(host);
                    }
                }
                return;
            }
            for metric in app.settings.graphs.metrics() {
                let lines = lines_of(app, &metric);
                if lines.len() > 1 {
                    ui.label(RichText::new(metric.short_title()).size(theme::SMALL).color(colors.weak));
                }
                for (at, name) in lines.iter().enumerate().filter(|_| lines.len() > 1) {
                    entry(ui, colors, name, color_of(&metric, at, colors));
                }
            }
        });
    });
}

/// The names of a metric's lines: of one that is called by a pattern, those of the first host that has any.
fn lines_of(app: &App, metric: &Metric) -> Vec<String> {
    let usual = metric.usual_lines();
    if !usual.is_empty() {
        return usual.iter().map(|&name| name.to_owned()).collect();
    }
    let mut hosts = app.graphs.figures().map(|(_, series)| metric.lines(series));
    let lines = hosts.find(|lines| !lines.is_empty()).unwrap_or_default();
    lines.into_iter().map(|(name, _)| name.to_owned()).collect()
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
