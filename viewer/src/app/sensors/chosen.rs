//! The sensor that is chosen: how it sweeps, its channels with their rates and filters, and the collectors it runs.
//!
//! Rule: a channel that the sensor made for itself is shown, and not changed. Not here: the table (`table`).

use super::confirm::Asked;
use super::{Line, names};
use crate::app::text::{count, span};
use crate::app::theme::{self, Colors};
use crate::app::{App, Source};
use crate::graphs::axis::short;
use crate::grid::place::{Part, PlaceId};
use crate::sensors::health::{Channel, Health, Module};
use crate::sensors::{At, Order};
use egui::{Align, Button, DragValue, Frame, Label, Layout, Margin, RichText, ScrollArea, TextEdit, Ui};

/// Samples a second that a channel may have (docs/channels.md).
const RATES_HZ: std::ops::RangeInclusive<f64> = 0.1..=1_000.0;

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors) {
    let Some(at) = app.sensors.chosen.clone() else { return };
    let frame = Frame::new().fill(colors.panel).inner_margin(Margin::symmetric(12, 8));
    frame.show(ui, |ui| {
        ui.take_available_space();
        let Some(line) = line_of(app, &at) else {
            ui.label(RichText::new("It is not there any more.").color(colors.weak));
            return;
        };
        let (name, domain) = names(app, line);
        ui.horizontal(|ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if ui.add(Button::new("Close").frame(false)).on_hover_text("Esc").clicked() {
                    app.sensors.chosen = None;
                }
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    ui.add(Label::new(RichText::new(&name).strong().size(15.0)).truncate());
                });
            });
        });
        ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            let row = app.sensor_row(line);
            for trouble in &row.troubles {
                ui.add(Label::new(RichText::new(trouble).size(theme::SMALL).color(colors.warned())).wrap());
            }
            drop_button(app, ui, &at, &domain);
            let trouble = of_host(app, ui, colors, &at);
            match app.sensors.health(&at).cloned() {
                None if trouble => {}
                Some(health) => {
                    sweeps(ui, colors, &health);
                    channels(app, ui, colors, &at, &health.channels);
                    modules(app, ui, colors, &at, &health);
                }
                None => {
                    ui.add_space(8.0);
                    let words = if matches!(app.source, Source::Daemon(_)) {
                        "Asking it …"
                    } else {
                        "Only a daemon can be asked more."
                    };
                    ui.label(RichText::new(words).color(colors.weak));
                }
            }
        });
    });
}

/// Why a host could not be asked more, where that is so, and how old what is known is; what its address says stands in its row.
fn of_host(app: &App, ui: &mut Ui, colors: Colors, at: &At) -> bool {
    let Some(known) = app.sensors.known.get(at).filter(|_| matches!(at, At::Host(_))) else { return false };
    let Some(trouble) = &known.trouble else { return false };
    let since = known.health.as_ref().map(|(_, at)| span(app.now.since(*at).as_secs_f64()));
    let old = since.map_or_else(String::new, |since| format!(" What stands here is {since} old."));
    let words = RichText::new(format!("It cannot be asked: {trouble}.{old}")).size(theme::SMALL);
    ui.add(Label::new(words.color(colors.warned())).wrap());
    true
}

fn line_of(app: &App, at: &At) -> Option<Line> {
    match at {
        At::Address(address) => app.addresses().contains(address).then_some(Line::Address(*address)),
        At::Host(host) => {
            let grid = &app.drawn.grid;
            let places = (0..).map(PlaceId).zip(&grid.places);
            let mut named =
                places.filter(|(_, place)| place.part == Part::Server && *place.name == *host.host);
            named.find(|(id, _)| app.host_name(*id) == *host).map(|(id, _)| Line::Host(id))
        }
    }
}

/// Have it, or its domain, shown no more.
fn drop_button(app: &mut App, ui: &mut Ui, at: &At, domain: &str) {
    let (words, asked) = match at {
        At::Address(address) if app.settings.sensors.contains(address) => {
            ("Drop this sensor", Asked::Sensor(*address))
        }
        At::Host(_) if !domain.is_empty() && app.drawn.grid.domains.len() > 1 => {
            ("Drop its domain", Asked::Domain(domain.to_owned()))
        }
        At::Address(_) | At::Host(_) => return,
    };
    if matches!(app.source, Source::Daemon(_)) && ui.button(words).clicked() {
        app.sensors.asked = Some(asked);
    }
}

fn title(ui: &mut Ui, colors: Colors, words: &str) {
    ui.add_space(10.0);
    ui.label(RichText::new(words).size(theme::SMALL).color(colors.weak));
}

fn sweeps(ui: &mut Ui, colors: Colors, health: &Health) {
    title(ui, colors, "sweeps over processes");
    let every = health.interval_secs.map_or_else(String::new, |secs| format!(", each {}", span(secs)));
    ui.label(format!("{}{every}", health.source));
    #[allow(clippy::cast_precision_loss)]
    let number = |number: Option<u64>| number.map_or_else(|| "–".to_owned(), |number| short(number as f64));
    let words = format!("{} slipped, {} lost", number(health.slipped), number(health.lost));
    ui.label(RichText::new(words).size(theme::SMALL));
    if let Some(uptime) = health.uptime_secs {
        let words = format!("version {}, up for {}", health.version, span(uptime));
        ui.label(RichText::new(words).size(theme::SMALL).color(colors.weak));
    }
}

fn channels(app: &mut App, ui: &mut Ui, colors: Colors, at: &At, channels: &[Channel]) {
    let number = u32::try_from(channels.len()).unwrap_or(u32::MAX);
    title(ui, colors, &count(number, "channel"));
    for channel in channels {
        Frame::new().fill(colors.card).corner_radius(4.0).inner_margin(Margin::same(8)).show(ui, |ui| {
            ui.set_width(ui.available_width());
            one(app, ui, colors, at, channel);
        });
    }
}

fn one(app: &mut App, ui: &mut Ui, colors: Colors, at: &At, channel: &Channel) {
    let is_own = match at {
        At::Host(host) => app.sensors.own.get(host) == channel.subscription.as_ref(),
        At::Address(_) => app.sensors.own.values().any(|own| Some(own) == channel.subscription.as_ref()),
    } && channel.subscription.is_some();
    let whose = match (is_own, channel.owner.as_str()) {
        (true, _) => "this viewer's flock".to_owned(),
        (false, "") => "of a caller".to_owned(),
        (false, owner) => format!("of its {owner}"),
    };
    ui.horizontal(|ui| {
        ui.label(&channel.kind);
        ui.label(RichText::new(whose).size(theme::SMALL).color(colors.weak));
    });
    let told = format!("{} missed, {} of CPU time", channel.missed, span(channel.cpu_secs));
    ui.label(RichText::new(told).size(theme::SMALL).color(colors.weak));
    if let Some(why) = &channel.stopped {
        let words = RichText::new(format!("stopped: {why}")).size(theme::SMALL).color(colors.failed());
        ui.add(Label::new(words).wrap());
    }
    let Some(subscription) = channel.subscription.clone() else {
        let filter = if channel.filter.is_empty() { "all" } else { &channel.filter };
        ui.label(RichText::new(format!("{} Hz, {filter}", short(channel.rate_hz))).size(theme::SMALL));
        return;
    };
    edit(app, ui, at, channel, &subscription, is_own);
}

/// Its rate and filter, which can be changed while it runs.
fn edit(app: &mut App, ui: &mut Ui, at: &At, channel: &Channel, subscription: &str, is_own: bool) {
    let key = (at.clone(), subscription.to_owned());
    let now = (channel.rate_hz, channel.filter.clone());
    let mut typed = app.sensors.edited.get(&key).cloned().unwrap_or_else(|| now.clone());
    ui.horizontal(|ui| {
        let speed = (typed.0 * 0.02).max(0.05);
        let rate = DragValue::new(&mut typed.0).range(RATES_HZ).speed(speed).max_decimals(1).suffix(" Hz");
        ui.add(rate).on_hover_text("Samples a second");
        let edit = TextEdit::singleline(&mut typed.1).hint_text("filter: cpu > 0.5 top 5 by cpu");
        ui.add(edit.desired_width(ui.available_width()));
    });
    let is_other = (typed.0 - now.0).abs() > 1e-9 || typed.1.trim() != now.1;
    let order =
        |of: Vec<(At, String)>| Order::Alter { of, rate_hz: typed.0, filter: typed.1.trim().to_owned() };
    let mut given = None;
    ui.horizontal(|ui| {
        if ui.add_enabled(is_other, Button::new("Apply")).clicked() {
            given = Some(order(vec![key.clone()]));
        }
        let own: Vec<(At, String)> =
            app.sensors.own.iter().map(|(host, id)| (At::Host(host.clone()), id.clone())).collect();
        if is_own && own.len() > 1 && ui.button(format!("Apply to all {}", own.len())).clicked() {
            given = Some(order(own));
        }
        if ui.button("End").clicked() {
            let (at, subscription) = (at.clone(), subscription.to_owned());
            app.sensors.asked = Some(Asked::Order(Order::End { at, subscription }));
        }
    });
    // Until the sensor tells it of itself, what is typed stays: it may be refused.
    match is_other {
        true => app.sensors.edited.insert(key, typed),
        false => app.sensors.edited.remove(&key),
    };
    if let Some(order) = given {
        app.order(order);
    }
}

fn modules(app: &mut App, ui: &mut Ui, colors: Colors, at: &At, health: &Health) {
    title(ui, colors, "collectors and handlers");
    if health.modules.is_empty() {
        let words =
            if health.runs_modules { "none" } else { "none: its configuration names no folder of them" };
        ui.label(RichText::new(words).size(theme::SMALL));
        return;
    }
    for module in &health.modules {
        ui.horizontal(|ui| {
            let color = if module.failures > 0 { colors.warned() } else { colors.text };
            ui.label(RichText::new(&module.name).color(color));
            ui.label(RichText::new(module_words(module)).size(theme::SMALL).color(colors.weak));
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let At::Address(at) = *at else { return };
                let (words, starts) = if module.is_on() { ("Stop", false) } else { ("Start", true) };
                if ui.button(words).clicked() {
                    let order = Order::Module { at, name: module.name.clone(), starts };
                    match starts {
                        true => app.order(order),
                        false => app.sensors.asked = Some(Asked::Order(order)),
                    }
                }
            });
        });
        if !module.last_error.is_empty() {
            let words = RichText::new(&module.last_error).size(theme::SMALL).color(colors.warned());
            ui.add(Label::new(words).wrap());
        }
    }
    if matches!(at, At::Host(_)) {
        let words =
            "A sensor takes orders to its collectors on its own machine alone: add it there by its address.";
        ui.add(Label::new(RichText::new(words).size(theme::SMALL).color(colors.weak)).wrap());
    }
}

fn module_words(module: &Module) -> String {
    let rate = module.rate_hz.map_or_else(String::new, |rate| format!(", {} Hz", short(rate)));
    format!("{} {}{rate}", module.kind, module.state).trim().to_owned()
}
