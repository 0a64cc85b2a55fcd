//! What is under the pointer, in words.
//!
//! Rule: a few lines; all of it is in the details, by a click.

use super::Target;
use crate::app::App;
use crate::app::details::standing;
use crate::app::text::{count, percent, span};
use crate::app::theme::{self, Colors};
use crate::grid::place::{Part, PlaceId};
use crate::scene::Scene;
use egui::{RichText, Ui};

/// Longest explanation, in points; longer names are broken.
const WIDTH: f32 = 320.0;

/// Say it.
pub(super) fn explain(app: &App, ui: &mut Ui, scene: &Scene, target: Target) {
    let colors = Colors::of(ui.ctx());
    ui.set_max_width(WIDTH);
    match target {
        Target::Call(number) => call(app, ui, colors, number),
        Target::Place(id) => place(app, ui, colors, scene, id),
        Target::Domain(id) => {
            let domain = app.drawn.grid.domain(id);
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

fn call(app: &App, ui: &mut Ui, colors: Colors, number: u32) {
    let Some(call) = app.drawn.grid.calls.get(number as usize) else { return };
    ui.strong(&call.id);
    let (word, color) = standing(call, app.timeline.time(), colors);
    ui.label(RichText::new(word).color(color));
    let who = [call.user.as_str(), call.name.as_str()].into_iter().filter(|text| !text.is_empty());
    weak(ui, colors, &who.collect::<Vec<_>>().join(", "));
    if let (Some(begun), Some(ended)) = (call.started.or(call.assigned), call.ended) {
        weak(ui, colors, &format!("worked {}", span(ended.since(begun).as_secs_f64())));
    }
    if !call.reason.is_empty() {
        weak(ui, colors, &call.reason);
    }
}

fn place(app: &App, ui: &mut Ui, colors: Colors, scene: &Scene, id: PlaceId) {
    let place = app.drawn.grid.place(id);
    ui.strong(&place.name);
    let state = app.state_of(place);
    if place.part == Part::Server {
        ui.label(RichText::new(state.word()).color(colors.state(state)));
    } else {
        weak(ui, colors, place.part.word());
    }
    let standing = scene.places[id.at()];
    if standing.waiting > 0 {
        weak(ui, colors, &format!("{} waiting", count(standing.waiting, "call")));
    }
    if standing.working > 0 {
        weak(ui, colors, &format!("{} at work", count(standing.working, "call")));
    }
    if let Some(report) = app.report_of(place) {
        let came = app.grid_at.map_or(0.0, |at| app.now.since(at).as_secs_f64());
        let figures = [
            report.cpu_used.map(|used| format!("CPU {}", percent(used))),
            report.memory_used.map(|used| format!("memory {}", percent(used))),
        ];
        let age = report.age_secs.map(|age| format!("{} old", span(age + came)));
        let words: Vec<String> = figures.into_iter().flatten().chain(age).collect();
        weak(ui, colors, &words.join(", "));
        report.health.iter().take(3).for_each(|line| weak(ui, colors, line));
    }
}
