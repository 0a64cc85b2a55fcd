//! The interaction map: what is under the pointer, what moves it, what is chosen.
//!
//! Not here: what it looks like (`paint`, `labels`), where things stand (`layout`), what moves (`scene`).

mod explain;
mod labels;
mod paint;

use crate::app::{App, Selection};
use crate::grid::place::{DomainId, Part, PlaceId};
use crate::scene::Scene;
use crate::scene::curve::{Curve, eased};
use egui::{PointerButton, Pos2, Rect, Response, Sense, Ui, Vec2};

/// How near the pointer must be to a mark or a place, in points.
const NEAR: f32 = 11.0;
/// Below this height of a row, in points, domains are drawn as cards.
const CARDS_BELOW: f32 = 5.0;

/// What is under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// A moving call.
    Call(u32),
    /// A client, scheduler or host.
    Place(PlaceId),
    /// A domain.
    Domain(DomainId),
}

/// Whether domains are cards at this zoom.
fn are_cards(zoom: f32) -> bool {
    crate::layout::ROW_PITCH * zoom < CARDS_BELOW
}

/// Draw the map, and take what is done to it.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    let view = ui.available_rect_before_wrap();
    let response = ui.allocate_rect(view, Sense::click_and_drag());
    app.camera.frame(view, app.layout.whole);
    move_view(app, ui, &response);
    let scene = app.scene();
    let target = response.hover_pos().and_then(|pos| target(app, &scene, pos));
    take_drag(app, &response, target);
    take_clicks(app, &response, target);
    paint::paint(app, ui, view, &scene, target);
    if let Some(target) = target.filter(|_| app.dragged.is_none()) {
        response.on_hover_ui_at_pointer(|ui| explain::explain(app, ui, &scene, target));
    }
    if app.drawn.grid.places.is_empty() {
        nothing(app, ui, view);
    }
}

/// What there is to read where there is nothing to draw.
fn nothing(app: &App, ui: &Ui, view: Rect) {
    let colors = super::theme::Colors::of(ui.ctx());
    let (head, hint) = app.empty_words();
    let painter = ui.painter();
    let (head_font, hint_font) = (egui::FontId::proportional(17.0), super::theme::body());
    let wrap = (view.width() - 60.0).clamp(80.0, 380.0);
    let head = painter.layout(head, head_font, colors.text, wrap);
    let hint = painter.layout(hint, hint_font, colors.weak, wrap);
    let height = head.size().y + 10.0 + hint.size().y;
    let mut at = egui::pos2(view.center().x - head.size().x / 2.0, view.center().y - height / 2.0);
    let below = at.y + head.size().y + 10.0;
    painter.galley(at, head, colors.text);
    at = egui::pos2(view.center().x - hint.size().x / 2.0, below);
    painter.galley(at, hint, colors.weak);
}

fn move_view(app: &mut App, ui: &Ui, response: &Response) {
    if let Some(pointer) = response.hover_pos() {
        let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
        app.camera.enlarge(pinch * (scroll * 0.004).exp(), pointer);
    }
    if response.dragged_by(PointerButton::Middle) || response.dragged_by(PointerButton::Secondary) {
        app.camera.drag(response.drag_delta());
    }
}

/// The background moves the view, a place or a domain's name moves that.
fn take_drag(app: &mut App, response: &Response, target: Option<Target>) {
    if response.drag_started_by(PointerButton::Primary) {
        let pressed = response
            .interact_pointer_pos()
            .map(|pos| pos - response.total_drag_delta().unwrap_or(Vec2::ZERO));
        let under = pressed.and_then(|pos| place_at(app, pos)).map(Target::Place);
        app.dragged = under.or(target).and_then(|target| match target {
            Target::Place(_) | Target::Domain(_) => Some(selection_of(app, target)),
            Target::Call(_) => None,
        });
    }
    if response.dragged_by(PointerButton::Primary) {
        let by = response.drag_delta();
        let way = app.camera.way_on_map(by);
        // By its names: the grid may have been put together again, with other numbers, since the last frame.
        let grid = &app.drawn.grid;
        let found = app.dragged.as_ref().map(|dragged| (dragged.place(grid), dragged.domain(grid)));
        match found {
            None => app.camera.drag(by),
            Some((Some(id), _)) => app.move_place(id, way),
            Some((None, Some(id))) => app.move_domain(id, way),
            Some((None, None)) => {}
        }
    }
    if response.drag_stopped() {
        app.dragged = None;
    }
}

fn take_clicks(app: &mut App, response: &Response, target: Option<Target>) {
    if response.double_clicked() {
        match target {
            Some(Target::Place(id)) if app.drawn.grid.place(id).part == Part::Server => app.open_graphs(id),
            Some(Target::Domain(id)) => app.camera.show(app.layout.panels[id.0 as usize]),
            Some(Target::Place(_) | Target::Call(_)) => {}
            None => app.camera.show_whole(),
        }
    } else if response.clicked() {
        app.select(target.map(|target| selection_of(app, target)));
    }
}

/// What is under the pointer, by its names.
fn selection_of(app: &App, target: Target) -> Selection {
    let grid = &app.drawn.grid;
    match target {
        Target::Call(call) => Selection::Call(grid.calls[call as usize].id.clone()),
        Target::Place(id) => Selection::of_place(grid, id),
        Target::Domain(id) => Selection::Domain(grid.domain(id).name.clone()),
    }
}

/// What is at a point of the screen: the nearest mark, else the nearest place, else the domain.
fn target(app: &App, scene: &Scene, pos: Pos2) -> Option<Target> {
    if !are_cards(app.camera.zoom()) {
        let mut nearest: Option<(f32, u32)> = None;
        for mark in &scene.marks {
            let (from, to) = (app.layout.places[mark.from.at()], app.layout.places[mark.to.at()]);
            let at = Curve::way(from, to, mark.leg).in_lane(eased(mark.share), mark.lane);
            let distance = app.camera.on_screen(at).distance(pos);
            if distance < nearest.map_or(NEAR * 0.8, |(known, _)| known) {
                nearest = Some((distance, mark.call));
            }
        }
        if let Some((_, call)) = nearest {
            return Some(Target::Call(call));
        }
        if let Some(id) = place_at(app, pos) {
            return Some(Target::Place(id));
        }
    }
    let point = app.camera.on_map(pos);
    let inside = app.layout.panels.iter().position(|panel| {
        point.x >= panel.min.x && point.x <= panel.max.x && point.y >= panel.min.y && point.y <= panel.max.y
    })?;
    let header = app.camera.area_on_screen(app.layout.panels[inside]).top()
        + crate::layout::HEADER * app.camera.zoom();
    let of_domain = are_cards(app.camera.zoom()) || pos.y <= header;
    of_domain.then(|| u32::try_from(inside).ok().map(|at| Target::Domain(DomainId(at)))).flatten()
}

/// The nearest place within reach.
fn place_at(app: &App, pos: Pos2) -> Option<PlaceId> {
    if are_cards(app.camera.zoom()) {
        return None;
    }
    let reach = NEAR / app.camera.zoom();
    let point = app.camera.on_map(pos);
    let near = (0..).map(PlaceId).zip(&app.layout.places).filter_map(|(id, place)| {
        let distance = (place.x - point.x).hypot(place.y - point.y);
        (distance <= reach).then_some((distance, id))
    });
    near.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, id)| id)
}

#[cfg(test)]
mod tests;
