//! Explanation of what is under the pointer.
//!
//! Rule: a few lines; the details have the rest, after a click.

use super::Target;
use crate::app::details::state_of_call;
use crate::app::text::{count, percent, span};
use crate::app::theme::{self, Colors};
use crate::grid::place::{Part, PlaceId};
use crate::model::Model;
use egui::{RichText, Ui};

/// Widest explanation, in points; longer names are broken.
const WIDTH: f32 = 320.0;

pub(super) fn explain(model: &Model, ui: &mut Ui, target: Target) {
    let colors = Colors::of(ui.ctx());
    ui.set_max_width(WIDTH);
    match target {
        Target::Call(number) => call(model, ui, colors, number),
        Target::Place(id) => place(model, ui, colors, id),
        Target::Domain(id) => {
            let domain = model.grid().domain(id);
            ui.strong(&domain.name);
            weak(
                ui,
                colors,
                &format!("{}, {}", count(domain.servers, "host"), count(domain.clients, "client")),
            );
            weak(ui, colors, "Double click to enlarge, drag to move.");
        }
    }
}

fn weak(ui: &mut Ui, colors: Colors, text: &str) {
    ui.label(RichText::new(text).size(theme::SMALL).color(colors.weak));
}

fn call(model: &Model, ui: &mut Ui, colors: Colors, number: u32) {
    let Some(call) = model.grid().calls.get(number as usize) else { return };
    ui.strong(&call.id);
    let (word, color) = state_of_call(call, model.time(), colors);
    ui.label(RichText::new(word).color(color));
    let who = [call.user.as_str(), call.name.as_str()].into_iter().filter(|text| !text.is_empty());
    weak(ui, colors, &who.collect::<Vec<_>>().join(", "));
    if let (Some(started), Some(ended)) = (call.started.or(call.assigned), call.ended) {
        weak(ui, colors, &format!("worked {}", span(ended.since(started).as_secs_f64())));
    }
    if !call.reason.is_empty() {
        weak(ui, colors, &call.reason);
    }
}

fn place(model: &Model, ui: &mut Ui, colors: Colors, id: PlaceId) {
    let place = model.grid().place(id);
    ui.strong(&place.name);
    let state = model.state_of(place);
    if place.part == Part::Server {
        ui.label(RichText::new(state.word()).color(colors.state(state)));
    } else {
        weak(ui, colors, place.part.word());
    }
    let standing = model.scene().places[id.at()];
    if standing.waiting > 0 {
        weak(ui, colors, &format!("{} waiting", count(standing.waiting, "call")));
    }
    if standing.working > 0 {
        weak(ui, colors, &format!("{} at work", count(standing.working, "call")));
    }
    if let Some(report) = model.report_of(place) {
        let figures = [
            report.cpu_used.map(|used| format!("CPU {}", percent(used))),
            report.memory_used.map(|used| format!("memory {}", percent(used))),
        ];
        let age = report.age_secs.map(|age| format!("{} old", span(age + model.grid_age_secs())));
        let words: Vec<String> = figures.into_iter().flatten().chain(age).collect();
        weak(ui, colors, &words.join(", "));
        report.health.iter().take(3).for_each(|line| weak(ui, colors, line));
    }
}
