//! Painting of the map: domains, edges, places, marks, from back to front.
//!
//! Rule: shapes that are drawn by the thousand go into one mesh; text only where there is room for it
//! (`labels`).

use super::{MapView, Target, are_cards, labels};
use crate::app::mesh::{Ink, around};
use crate::app::theme::Colors;
use crate::grid::place::{DomainId, HostState, Part, Place, PlaceId, Report};
use crate::layout::{Point, ROW_PITCH};
use crate::model::Selection;
use crate::scene::course::Leg;
use crate::scene::curve::{Curve, eased};
use crate::scene::{Edge, PlaceStatus, Scene, Tone};
use egui::{Color32, CornerRadius, Pos2, Rect, Stroke, StrokeKind, Ui};

/// Radius of a server, in points at zoom 1.
const SERVER: f32 = 6.0;
/// Radius of a client.
const CLIENT: f32 = 5.0;
/// Radius of a scheduler.
const SCHEDULER: f32 = 15.0;
/// Running calls drawn around a host; its explanation has the number of all.
const ORBIT_MAX: u32 = 10;
/// Dots of the tail of a mark.
const TAIL: u32 = 6;
/// Calls drawn in a scheduler's queue: rows of ten.
const QUEUE_MAX: u32 = 50;

pub(super) fn paint(map: MapView<'_>, ui: &Ui, view: Rect, target: Option<Target>) {
    let scene = map.model.scene();
    let colors = Colors::of(ui.ctx());
    let painter = ui.painter_at(view);
    painter.rect_filled(view, 0.0, colors.ground);
    if are_cards(map.camera.zoom()) {
        return labels::cards(map, &painter, colors, scene, target);
    }
    panels(map, &painter, colors, target);
    let mut ink = Ink::new(view, ui.pixels_per_point());
    // Where there are many, each is fainter, so that places stay visible.
    #[allow(clippy::cast_precision_loss)]
    let strength = (80.0 / scene.edges.len().max(1) as f32).sqrt().clamp(0.4, 1.0);
    for edge in &scene.edges {
        route(map, &mut ink, colors, edge, strength);
    }
    for (id, status) in (0..).map(PlaceId).zip(&scene.places) {
        place(map, &mut ink, colors, id, status);
    }
    marks(map, &mut ink, colors, scene);
    painter.add(ink.shape());
    let mut front = Ink::new(view, ui.pixels_per_point());
    rings(map, &mut front, colors, target);
    painter.add(front.shape());
    labels::labels(map, &painter, colors, scene);
}

fn panels(map: MapView<'_>, painter: &egui::Painter, colors: Colors, target: Option<Target>) {
    let radius = CornerRadius::same(corner(12.0 * map.camera.zoom()));
    for (id, &panel) in (0..).map(DomainId).zip(&map.model.layout().panels) {
        let rect = map.camera.area_on_screen(panel);
        if !rect.intersects(map.camera.view()) {
            continue;
        }
        let is_lit =
            target == Some(Target::Domain(id)) || map.model.selected().is_domain(map.model.grid(), id);
        let line = if is_lit { colors.accent } else { colors.line };
        painter.rect(rect, radius, colors.card, Stroke::new(1.0, line), StrokeKind::Inside);
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn corner(radius: f32) -> u8 {
    radius.clamp(2.0, 14.0) as u8
}

/// An edge; its width grows with the number of calls.
#[allow(clippy::cast_precision_loss)]
fn route(map: MapView<'_>, ink: &mut Ink, colors: Colors, edge: &Edge, strength: f32) {
    let (from, to) = (map.model.layout().places[edge.from.at()], map.model.layout().places[edge.to.at()]);
    let curve = Curve::route(from, to, edge.leg);
    let bounds = around(curve.0.map(|point| map.camera.on_screen(point)));
    let scale = map.camera.zoom().sqrt().clamp(0.35, 1.6);
    let width = (0.9 + 0.8 * (edge.calls as f32).log2()) * scale;
    let strength = match edge.leg {
        Leg::Offer => 0.25,
        Leg::Return => 0.16,
        Leg::Submit | Leg::Assign => 0.36 * strength,
    };
    let color = colors.tone(edge.tone).gamma_multiply(strength * edge.fresh);
    ink.curve(|share| map.camera.on_screen(curve.at(share)), bounds, width, color);
}

fn place(map: MapView<'_>, ink: &mut Ink, colors: Colors, id: PlaceId, status: &PlaceStatus) {
    let place = map.model.grid().place(id);
    let at = map.camera.on_screen(map.model.layout().places[id.at()]);
    let zoom = map.camera.zoom();
    match place.part {
        Part::Client => {
            ink.dot(at, CLIENT * zoom, colors.weak);
            ink.dot(at, (CLIENT - 2.0) * zoom, colors.card);
        }
        Part::Scheduler => {
            ink.dot(at, SCHEDULER * zoom, colors.accent.gamma_multiply(0.22));
            ink.ring(at, SCHEDULER * zoom, 1.4 * zoom.max(0.6), colors.accent);
            ink.dot(at, 4.0 * zoom, colors.accent);
            queue(map, ink, colors, map.model.layout().places[id.at()], status.queued);
        }
        Part::Server => server(map, ink, colors, place, at, status),
    }
}

fn server(map: MapView<'_>, ink: &mut Ink, colors: Colors, place: &Place, at: Pos2, status: &PlaceStatus) {
    let zoom = map.camera.zoom();
    let radius = SERVER * zoom;
    if let Some((outcome, fresh)) = status.over {
        let tone = colors.tone(Tone::Over(outcome));
        // A call that ends is a ring that widens and fades.
        ink.ring(at, radius + (1.0 - fresh) * 11.0 * zoom, 1.6 * zoom, tone.gamma_multiply(fresh));
    }
    let state = map.model.state_of(place);
    let fill = server_fill(colors, map.model.report_of(place), state, status);
    match state {
        HostState::Down => {
            ink.dot(at, radius, colors.state(state));
            ink.dot(at, radius * 0.55, colors.card);
        }
        HostState::Silent | HostState::Draining => {
            ink.dot(at, radius, colors.state(state));
            ink.dot(at, radius * 0.7, fill);
        }
        HostState::Unknown | HostState::Live | HostState::Left => ink.dot(at, radius, fill),
    }
    if status.circling > 0 && zoom > 0.3 {
        orbit(map, ink, colors.tone(Tone::Working), at, status.circling);
    }
}

/// Colour of a server: its load where that is known, else whether calls run there.
pub(super) fn server_fill(
    colors: Colors,
    report: Option<&Report>,
    state: HostState,
    status: &PlaceStatus,
) -> Color32 {
    if state == HostState::Left {
        return colors.line;
    }
    let load = report.and_then(|report| report.cpu_used);
    match load {
        Some(load) => colors.load(load),
        None if status.circling > 0 => colors.tone(Tone::Working).gamma_multiply(0.55),
        None => colors.load[0],
    }
}

/// The running calls of a host, in orbit around it.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn orbit(map: MapView<'_>, ink: &mut Ink, color: Color32, at: Pos2, working: u32) {
    let zoom = map.camera.zoom();
    let count = working.min(ORBIT_MAX);
    // One turn takes six flights, in the grid's time, so that scrubbing back turns it back.
    let turn_micros = map.model.timeline().flight_micros().max(1).saturating_mul(6);
    let turned = map.model.timeline().time().micros().rem_euclid(turn_micros) as f32 / turn_micros as f32;
    for number in 0..count {
        let angle = std::f32::consts::TAU * (turned + number as f32 / count as f32);
        let offset = egui::vec2(angle.cos(), angle.sin()) * 10.5 * zoom;
        ink.dot(at + offset, 2.0 * zoom, color);
    }
}

/// The calls that wait at a scheduler, below it.
#[allow(clippy::cast_precision_loss)]
fn queue(map: MapView<'_>, ink: &mut Ink, colors: Colors, scheduler: Point, waiting: u32) {
    let color = colors.tone(Tone::Asking);
    let shown = waiting.min(QUEUE_MAX);
    for number in 0..shown {
        let (column, row) = (number % 10, number / 10);
        let in_row = (shown - row * 10).min(10);
        let x = scheduler.x + (column as f32 - (in_row as f32 - 1.0) / 2.0) * 8.0;
        let y = scheduler.y + SCHEDULER + 24.0 + row as f32 * 8.0;
        ink.dot(map.camera.on_screen(Point::new(x, y)), 2.6 * map.camera.zoom(), color);
    }
}

#[allow(clippy::cast_precision_loss)]
fn marks(map: MapView<'_>, ink: &mut Ink, colors: Colors, scene: &Scene) {
    let scale = map.camera.zoom().clamp(0.3, 2.2);
    for mark in &scene.marks {
        let (from, to) = (map.model.layout().places[mark.from.at()], map.model.layout().places[mark.to.at()]);
        let curve = Curve::route(from, to, mark.leg);
        let color = colors.tone(mark.tone);
        let at = |behind: f32| {
            let share = eased((mark.share - behind).clamp(0.0, 1.0));
            map.camera.on_screen(curve.in_lane(share, mark.lane))
        };
        let (radius, strength) = if mark.leg == Leg::Offer { (2.0, 0.6) } else { (3.4, 1.0) };
        if map.camera.zoom() > 0.3 {
            for step in (1..=TAIL).rev() {
                let fade = 1.0 - step as f32 / (TAIL + 1) as f32;
                let tail = color.gamma_multiply(0.5 * fade * strength);
                ink.dot(at(0.011 * step as f32), radius * (0.45 + 0.5 * fade) * scale, tail);
            }
        }
        ink.dot(at(0.0), radius * scale, color.gamma_multiply(strength));
    }
}

/// Rings around the selection and what is under the pointer, in front.
fn rings(map: MapView<'_>, ink: &mut Ink, colors: Colors, target: Option<Target>) {
    let zoom = map.camera.zoom();
    let radius = |id: PlaceId| match map.model.grid().place(id).part {
        Part::Client => CLIENT + 3.5,
        Part::Scheduler => SCHEDULER + 4.0,
        Part::Server => SERVER + 3.5,
    };
    let mut ring = |id: PlaceId, color: Color32| {
        let at = map.camera.on_screen(map.model.layout().places[id.at()]);
        ink.ring(at, radius(id) * zoom.max(0.5), 1.6, color);
    };
    if let Some(Target::Place(id)) = target {
        ring(id, colors.weak);
    }
    match map.model.selection() {
        Some(Selection::Place { .. }) => {
            map.model.selected().place().into_iter().for_each(|id| ring(id, colors.accent))
        }
        Some(Selection::Call(_)) => {
            if let Some(call) = map.model.selected_call() {
                let around = [Some(call.client), call.scheduler].into_iter().flatten();
                around.chain(call.hosts.iter().copied()).for_each(|id| ring(id, colors.accent));
            }
        }
        Some(Selection::Domain(_)) | None => {}
    }
}

/// Whether rows are high enough for a name.
pub(super) fn rows_have_names(zoom: f32) -> bool {
    ROW_PITCH * zoom >= 13.5
}
