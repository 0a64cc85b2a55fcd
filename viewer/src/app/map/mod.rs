//! The interaction map: view, pointer, and selection.
//!
//! Not here: painting (`paint`, `labels`), positions (`layout`), moving calls (`scene`).

mod explain;
mod labels;
mod paint;

use super::camera::Camera;
use super::command::{Command, Commands};
use super::theme::{self, Colors};
use crate::feed::Status;
use crate::grid::place::{DomainId, Part, PlaceId};
use crate::model::{Change, Model, Selection, Source};
use crate::scene::curve::{Curve, eased};
use egui::{PointerButton, Pos2, Rect, Response, Sense, Ui, Vec2};

/// Distance within which the pointer is at a mark or a place, in points.
const NEAR: f32 = 11.0;
/// Below this height of a row, in points, domains are drawn as cards.
const CARDS_BELOW: f32 = 5.0;

/// What is under the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    /// A moving call, by its number.
    Call(u32),
    Place(PlaceId),
    Domain(DomainId),
}

/// Whether domains are cards at this zoom.
fn are_cards(zoom: f32) -> bool {
    crate::layout::ROW_PITCH * zoom < CARDS_BELOW
}

/// What is painted: the model, as the camera shows it.
#[derive(Clone, Copy)]
struct MapView<'a> {
    model: &'a Model,
    camera: &'a Camera,
}

/// The map.
#[derive(Clone, Default)]
pub(super) struct MapPanel {
    camera: Camera,
    /// What is dragged; nothing where it is the background.
    dragged: Option<Selection>,
}

impl MapPanel {
    /// A copy for a picture.
    pub(super) fn still(&self) -> MapPanel {
        MapPanel { camera: self.camera, dragged: None }
    }

    pub(super) fn show_whole(&mut self) {
        self.camera.show_whole();
    }

    pub(super) fn show_domain(&mut self, model: &Model, id: DomainId) {
        if let Some(&panel) = model.layout().panels.get(id.at()) {
            self.camera.show(panel);
        }
    }

    /// Zoom by a factor, around the middle.
    pub(super) fn zoom(&mut self, factor: f32) {
        self.camera.enlarge(factor, self.camera.view().center());
    }

    pub(super) fn pan(&mut self, by: Vec2) {
        self.camera.drag(by);
    }

    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui, commands: &mut Commands) {
        let rect = ui.available_rect_before_wrap();
        let response = ui.allocate_rect(rect, Sense::click_and_drag());
        self.camera.frame(rect, model.layout().whole);
        self.move_view(ui, &response);
        let target = response.hover_pos().and_then(|pos| self.target(model, pos));
        self.take_drag(model, &response, target, commands);
        self.take_clicks(model, &response, target, commands);
        paint::paint(MapView { model, camera: &self.camera }, ui, rect, target);
        if let Some(target) = target.filter(|_| self.dragged.is_none()) {
            response.on_hover_ui_at_pointer(|ui| explain::explain(model, ui, target));
        }
        if model.grid().places.is_empty() {
            empty(model, ui, rect);
        }
    }

    fn move_view(&mut self, ui: &Ui, response: &Response) {
        if let Some(pointer) = response.hover_pos() {
            let (scroll, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
            self.camera.enlarge(pinch * (scroll * 0.004).exp(), pointer);
        }
        if response.dragged_by(PointerButton::Middle) || response.dragged_by(PointerButton::Secondary) {
            self.camera.drag(response.drag_delta());
        }
    }

    /// A drag of the background moves the view, one of a place or of a domain's name moves that.
    fn take_drag(
        &mut self,
        model: &Model,
        response: &Response,
        target: Option<Target>,
        commands: &mut Commands,
    ) {
        if response.drag_started_by(PointerButton::Primary) {
            let pressed = response
                .interact_pointer_pos()
                .map(|pos| pos - response.total_drag_delta().unwrap_or(Vec2::ZERO));
            let under = pressed.and_then(|pos| self.place_at(model, pos)).map(Target::Place);
            self.dragged = under.or(target).and_then(|target| match target {
                Target::Place(_) | Target::Domain(_) => Some(selection_of(model, target)),
                Target::Call(_) => None,
            });
        }
        if response.dragged_by(PointerButton::Primary) {
            let by = response.drag_delta();
            let on_map = self.camera.vector_on_map(by);
            // By its names: a new grid, with other numbers, may have arrived since the last frame.
            let grid = model.grid();
            let found = self.dragged.as_ref().map(|dragged| (dragged.place(grid), dragged.domain(grid)));
            match found {
                None => self.camera.drag(by),
                Some((Some(id), _)) => commands.push(Change::MovePlace(id, on_map)),
                Some((None, Some(id))) => commands.push(Change::MoveDomain(id, on_map)),
                Some((None, None)) => {}
            }
        }
        if response.drag_stopped() {
            self.dragged = None;
        }
    }

    fn take_clicks(
        &mut self,
        model: &Model,
        response: &Response,
        target: Option<Target>,
        commands: &mut Commands,
    ) {
        if response.double_clicked() {
            match target {
                Some(Target::Place(id)) if model.grid().place(id).part == Part::Server => {
                    commands.push(Command::ShowGraphs(id));
                }
                Some(Target::Domain(id)) => self.show_domain(model, id),
                Some(Target::Place(_) | Target::Call(_)) => {}
                None => self.camera.show_whole(),
            }
        } else if response.clicked() {
            commands.push(Change::Select(target.map(|target| selection_of(model, target))));
        }
    }

    /// What is at a point of the screen: the nearest mark, else the nearest place, else the domain.
    fn target(&self, model: &Model, pos: Pos2) -> Option<Target> {
        let (layout, zoom) = (model.layout(), self.camera.zoom());
        if !are_cards(zoom) {
            let mut nearest: Option<(f32, u32)> = None;
            for mark in &model.scene().marks {
                let (from, to) = (layout.places[mark.from.at()], layout.places[mark.to.at()]);
                let at = Curve::route(from, to, mark.leg).in_lane(eased(mark.share), mark.lane);
                let distance = self.camera.on_screen(at).distance(pos);
                if distance < nearest.map_or(NEAR * 0.8, |(known, _)| known) {
                    nearest = Some((distance, mark.call));
                }
            }
            if let Some((_, call)) = nearest {
                return Some(Target::Call(call));
            }
            if let Some(id) = self.place_at(model, pos) {
                return Some(Target::Place(id));
            }
        }
        let point = self.camera.on_map(pos);
        let is_inside = |panel: &crate::layout::Area| {
            (panel.min.x..=panel.max.x).contains(&point.x) && (panel.min.y..=panel.max.y).contains(&point.y)
        };
        let inside = layout.panels.iter().position(is_inside)?;
        let top = self.camera.area_on_screen(layout.panels[inside]).top();
        let is_of_domain = are_cards(zoom) || pos.y <= top + crate::layout::HEADER * zoom;
        is_of_domain.then(|| u32::try_from(inside).ok().map(|at| Target::Domain(DomainId(at)))).flatten()
    }

    /// The nearest place within reach.
    fn place_at(&self, model: &Model, pos: Pos2) -> Option<PlaceId> {
        if are_cards(self.camera.zoom()) {
            return None;
        }
        let reach = NEAR / self.camera.zoom();
        let point = self.camera.on_map(pos);
        let near = (0..).map(PlaceId).zip(&model.layout().places).filter_map(|(id, place)| {
            let distance = (place.x - point.x).hypot(place.y - point.y);
            (distance <= reach).then_some((distance, id))
        });
        near.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, id)| id)
    }
}

/// What is under the pointer, by its names.
fn selection_of(model: &Model, target: Target) -> Selection {
    let grid = model.grid();
    match target {
        Target::Call(call) => Selection::Call(grid.calls[call as usize].id.clone()),
        Target::Place(id) => Selection::of_place(grid, id),
        Target::Domain(id) => Selection::Domain(grid.domain(id).name.clone()),
    }
}

/// Text where there is nothing to draw.
fn empty(model: &Model, ui: &Ui, rect: Rect) {
    let colors = Colors::of(ui.ctx());
    let (head, hint) = empty_text(model);
    let painter = ui.painter();
    let (head_font, hint_font) = (egui::FontId::proportional(17.0), theme::body());
    let wrap = (rect.width() - 60.0).clamp(80.0, 380.0);
    let head = painter.layout(head, head_font, colors.text, wrap);
    let hint = painter.layout(hint, hint_font, colors.weak, wrap);
    let height = head.size().y + 10.0 + hint.size().y;
    let mut at = egui::pos2(rect.center().x - head.size().x / 2.0, rect.center().y - height / 2.0);
    let below = at.y + head.size().y + 10.0;
    painter.galley(at, head, colors.text);
    at = egui::pos2(rect.center().x - hint.size().x / 2.0, below);
    painter.galley(at, hint, colors.weak);
}

/// Why the grid is empty, and what to do.
fn empty_text(model: &Model) -> (String, String) {
    match (model.source(), model.connection().status()) {
        (_, Status::Lost { what }) => ("No connection".to_owned(), format!("{what}. Trying again.")),
        (Source::Daemon(address), Status::Beginning) => (format!("Asking {address} …"), String::new()),
        (Source::Log(name) | Source::File(name), Status::Beginning) => {
            (format!("Reading {name} …"), String::new())
        }
        (Source::Log(_), _) => (
            "No call in this log".to_owned(),
            "Either nothing happened, or another filter reads it: name one with --filter.".to_owned(),
        ),
        (Source::Daemon(_) | Source::File(_), _) => (
            "No host and no call yet".to_owned(),
            "Hosts appear when their sensors report, calls when middleware writes of them.".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests;
