//! The selected sensor: its sweeps, its channels with their rates and filters, and its collectors.
//!
//! Rule: a channel that the sensor made for itself is shown, and cannot be changed. Not here: the table
//! (`table`).

use super::{SensorsPanel, confirm};
use crate::app::command::{Command, Commands};
use crate::app::text::{count, span};
use crate::app::theme::{self, Colors};
use crate::graphs::axis::short;
use crate::model::sensor_rows;
use crate::model::{Model, SensorsChange};
use crate::sensors::health::{Channel, Health, Module};
use crate::sensors::{At, Order};
use egui::{Align, Button, DragValue, Frame, Label, Layout, Margin, RichText, ScrollArea, TextEdit, Ui};

/// Samples a second that a channel may have (docs/channels.md).
const RATES_HZ: std::ops::RangeInclusive<f64> = 0.1..=1_000.0;

impl SensorsPanel {
    /// Draw the selected sensor.
    pub(super) fn selected(&mut self, model: &Model, ui: &mut Ui, colors: Colors, commands: &mut Commands) {
        let Some(at) = model.sensors().selected() else { return };
        let frame = Frame::new().fill(colors.panel).inner_margin(Margin::symmetric(12, 8));
        frame.show(ui, |ui| {
            ui.take_available_space();
            let Some(line) = sensor_rows::line(model, at) else {
                ui.label(RichText::new("It is not there any more.").color(colors.weak));
                return;
            };
            let (name, domain) = sensor_rows::names(model, line);
            title_row(ui, &name, commands);
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                for trouble in &sensor_rows::row(model, line).troubles {
                    let text = RichText::new(trouble).size(theme::SMALL).color(colors.warned());
                    ui.add(Label::new(text).wrap());
                }
                drop_button(model, ui, at, &domain, commands);
                let has_error = error_of_host(model, ui, colors, at);
                match model.sensors().health(at) {
                    None if has_error => {}
                    Some(health) => {
                        sweeps(ui, colors, health);
                        self.channels(model, ui, colors, (at, &health.channels), commands);
                        modules(ui, colors, at, health, commands);
                    }
                    None => {
                        ui.add_space(8.0);
                        let is_live = model.source().is_daemon();
                        let text = if is_live { "Asking it …" } else { "Only a daemon can be asked more." };
                        ui.label(RichText::new(text).color(colors.weak));
                    }
                }
            });
        });
    }

    fn channels(
        &mut self,
        model: &Model,
        ui: &mut Ui,
        colors: Colors,
        (at, channels): (&At, &[Channel]),
        commands: &mut Commands,
    ) {
        let number = u32::try_from(channels.len()).unwrap_or(u32::MAX);
        title(ui, colors, &count(number, "channel"));
        for channel in channels {
            Frame::new().fill(colors.card).corner_radius(4.0).inner_margin(Margin::same(8)).show(ui, |ui| {
                ui.set_width(ui.available_width());
                let own = model.sensors().channels();
                let is_own = channel.subscription.is_some()
                    && match at {
                        At::Host(host) => own.get(host) == channel.subscription.as_ref(),
                        At::Address(_) => own.values().any(|own| Some(own) == channel.subscription.as_ref()),
                    };
                channel_text(ui, colors, channel, is_own);
                if let Some(subscription) = &channel.subscription {
                    let key = (at.clone(), subscription.clone());
                    self.channel_fields(model, ui, channel, (key, is_own), commands);
                }
            });
        }
    }

    /// Rate and filter of a channel, which can be changed while it runs.
    fn channel_fields(
        &mut self,
        model: &Model,
        ui: &mut Ui,
        channel: &Channel,
        (key, is_own): ((At, String), bool),
        commands: &mut Commands,
    ) {
        let now = (channel.rate_hz, channel.filter.clone());
        let mut typed = self.edited.get(&key).cloned().unwrap_or_else(|| now.clone());
        ui.horizontal(|ui| {
            let speed = (typed.0 * 0.02).max(0.05);
            let rate =
                DragValue::new(&mut typed.0).range(RATES_HZ).speed(speed).max_decimals(1).suffix(" Hz");
            ui.add(rate).on_hover_text("Samples a second");
            let edit = TextEdit::singleline(&mut typed.1).hint_text("filter: cpu > 0.5 top 5 by cpu");
            ui.add(edit.desired_width(ui.available_width()));
        });
        let is_other = (typed.0 - now.0).abs() > 1e-9 || typed.1.trim() != now.1;
        let order = |of: Vec<(At, String)>| {
            Command::Order(Order::Alter { of, rate_hz: typed.0, filter: typed.1.trim().to_owned() })
        };
        ui.horizontal(|ui| {
            if ui.add_enabled(is_other, Button::new("Apply")).clicked() {
                commands.push(order(vec![key.clone()]));
            }
            let own = model.sensors().channels();
            let own: Vec<(At, String)> =
                own.iter().map(|(host, id)| (At::Host(host.clone()), id.clone())).collect();
            if is_own && own.len() > 1 && ui.button(format!("Apply to all {}", own.len())).clicked() {
                commands.push(order(own));
            }
            if ui.button("End").clicked() {
                let (at, subscription) = key.clone();
                commands.push(Command::Ask(confirm::order(Order::End { at, subscription })));
            }
        });
        // What is typed stays until the sensor reports it: it may refuse it.
        match is_other {
            true => self.edited.insert(key, typed),
            false => self.edited.remove(&key),
        };
    }
}

fn title_row(ui: &mut Ui, name: &str, commands: &mut Commands) {
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if ui.add(Button::new("Close").frame(false)).on_hover_text("Esc").clicked() {
                commands.push(SensorsChange::Select(None));
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                ui.add(Label::new(RichText::new(name).strong().size(15.0)).truncate());
            });
        });
    });
}

/// Why a host could not be queried, and the age of what is shown; the error of an address is in its row.
/// Returns whether there is an error.
fn error_of_host(model: &Model, ui: &mut Ui, colors: Colors, at: &At) -> bool {
    let known = model.sensors().known(at).filter(|_| matches!(at, At::Host(_)));
    let Some((known, error)) = known.and_then(|known| Some((known, known.error.as_ref()?))) else {
        return false;
    };
    let since = known.health.as_ref().map(|(_, at)| span(model.now().since(*at).as_secs_f64()));
    let old = since.map_or_else(String::new, |since| format!(" What stands here is {since} old."));
    let text = RichText::new(format!("It cannot be asked: {error}.{old}")).size(theme::SMALL);
    ui.add(Label::new(text.color(colors.warned())).wrap());
    true
}

/// Button to show the sensor, or its domain, no longer.
fn drop_button(model: &Model, ui: &mut Ui, at: &At, domain: &str, commands: &mut Commands) {
    let (text, question) = match at {
        At::Address(address) if model.sensors().added().contains(address) => {
            ("Drop this sensor", confirm::drop_sensor(*address))
        }
        At::Host(_) if !domain.is_empty() && model.grid().domains.len() > 1 => {
            ("Drop its domain", confirm::drop_domain(domain))
        }
        At::Address(_) | At::Host(_) => return,
    };
    if model.source().is_daemon() && ui.button(text).clicked() {
        commands.push(Command::Ask(question));
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

fn channel_text(ui: &mut Ui, colors: Colors, channel: &Channel, is_own: bool) {
    let whose = match (is_own, channel.owner.as_str()) {
        (true, _) => "this viewer's flock".to_owned(),
        (false, "") => "of a caller".to_owned(),
        (false, owner) => format!("of its {owner}"),
    };
    ui.horizontal(|ui| {
        ui.label(&channel.kind);
        ui.label(RichText::new(whose).size(theme::SMALL).color(colors.weak));
    });
    let text = format!("{} missed, {} of CPU time", channel.missed, span(channel.cpu_secs));
    ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak));
    if let Some(why) = &channel.stopped {
        let text = RichText::new(format!("stopped: {why}")).size(theme::SMALL).color(colors.failed());
        ui.add(Label::new(text).wrap());
    }
    if channel.subscription.is_none() {
        let filter = if channel.filter.is_empty() { "all" } else { &channel.filter };
        ui.label(RichText::new(format!("{} Hz, {filter}", short(channel.rate_hz))).size(theme::SMALL));
    }
}

fn modules(ui: &mut Ui, colors: Colors, at: &At, health: &Health, commands: &mut Commands) {
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
                        true => commands.push(Command::Order(order)),
                        false => commands.push(Command::Ask(confirm::order(order))),
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
