//! Text of the map, where there is room for it; and domains as cards where they are small.
//!
//! Rule: no label overlaps another: each has room of its own on the map, is shortened to it, and is left out
//! where too little of it could be read.

use super::paint::{rows_have_names, server_fill};
use super::{MapView, Target};
use crate::app::mesh::Ink;
use crate::app::text::{count, elided, percent};
use crate::app::theme::{self, Colors};
use crate::grid::place::{DomainId, HostState, Part, PlaceId};
use crate::layout::{HEADER, name_is_left};
use crate::scene::{Counts, Scene, Tone};
use egui::{Align2, Color32, CornerRadius, FontId, Painter, Rect, Stroke, StrokeKind, pos2, vec2};
use wire::event::Outcome;

/// Names drawn in one frame: more than a screen has room for.
const NAMES_MAX: usize = 3_000;
/// Smallest and largest tile of a host on a card, in points.
const TILE_MIN: f32 = 2.5;
const TILE_MAX: f32 = 9.0;
/// Zoom below which names are small, and their size then.
const SMALL_NAMES_BELOW: f32 = 0.8;
const NAME_SIZE_MIN: f32 = 9.5;
/// Least room for a name that has to be shortened, in points: too little of a shorter one could be read.
const ELIDED_ROOM_MIN: f32 = 38.0;
/// Least room for a name, in points.
const NAME_ROOM_MIN: f32 = 26.0;

/// Names of domains and places.
pub(super) fn labels(map: MapView<'_>, painter: &Painter, colors: Colors, scene: &Scene) {
    for (id, &panel) in (0..).map(DomainId).zip(&map.model.layout().panels) {
        let rect = map.camera.area_on_screen(panel);
        if rect.intersects(map.camera.view()) {
            domain_name(map, painter, colors, id, rect, scene);
        }
    }
    if !rows_have_names(map.camera.zoom()) {
        return;
    }
    let view = map.camera.view();
    let mut left = NAMES_MAX;
    for (id, place) in (0..).map(PlaceId).zip(&map.model.grid().places) {
        let at = map.camera.on_screen(map.model.layout().places[id.at()]);
        if !view.expand2(vec2(260.0, 60.0)).contains(at) {
            continue;
        }
        if left == 0 {
            return;
        }
        left -= 1;
        if place.part == Part::Scheduler {
            scheduler_name(map, painter, colors, id, at, scene);
        } else {
            place_name(map, painter, colors, id, at);
        }
    }
}

fn place_name(map: MapView<'_>, painter: &Painter, colors: Colors, id: PlaceId, at: egui::Pos2) {
    let place = map.model.grid().place(id);
    let zoom = map.camera.zoom();
    let room = map.model.layout().name_room[id.at()] * zoom;
    if room < NAME_ROOM_MIN {
        return;
    }
    let font = FontId::proportional(if zoom < SMALL_NAMES_BELOW { NAME_SIZE_MIN } else { theme::SMALL });
    let galley = elided(painter, &place.name, font, colors.text, room);
    if galley.elided && room < ELIDED_ROOM_MIN {
        return;
    }
    let top = at.y - galley.size().y / 2.0;
    let x = match name_is_left(place.part) {
        true => at.x - 11.0 * zoom - galley.size().x,
        false => at.x + 14.5 * zoom,
    };
    painter.galley(pos2(x, top), galley, colors.text);
}

fn scheduler_name(
    map: MapView<'_>,
    painter: &Painter,
    colors: Colors,
    id: PlaceId,
    at: egui::Pos2,
    scene: &Scene,
) {
    let place = map.model.grid().place(id);
    let zoom = map.camera.zoom();
    let galley = elided(
        painter,
        &place.name,
        theme::small(),
        colors.text,
        map.model.layout().name_room[id.at()] * zoom,
    );
    let above = at.y - 22.0 * zoom - galley.size().y;
    painter.galley(pos2(at.x - galley.size().x / 2.0, above), galley, colors.text);
    let waiting = scene.places[id.at()].queued;
    if waiting > 50 {
        let below = pos2(at.x, at.y + (15.0 + 24.0 + 5.0 * 8.0) * zoom);
        let text = format!("and {} more", waiting - 50);
        painter.text(below, Align2::CENTER_TOP, text, theme::small(), colors.weak);
    }
}

/// Name and sums of a domain, in the head of its panel.
fn domain_name(map: MapView<'_>, painter: &Painter, colors: Colors, id: DomainId, rect: Rect, scene: &Scene) {
    let domain = map.model.grid().domain(id);
    let zoom = map.camera.zoom();
    let middle = rect.top() + (HEADER * zoom / 2.0 + 3.0).max(9.0);
    let size = (HEADER * zoom * 0.42).clamp(10.0, 15.0);
    let inset = (16.0 * zoom).clamp(6.0, 18.0);
    let room = rect.width() - 2.0 * inset;
    if room < NAME_ROOM_MIN {
        return;
    }
    let name = elided(painter, &domain.name, FontId::proportional(size), colors.text, room);
    let name_end = rect.left() + inset + name.size().x;
    painter.galley(pos2(rect.left() + inset, middle - name.size().y / 2.0), name, colors.text);
    let sums = Sums::of(map, id, scene);
    let words = sums.words();
    let sums = painter.layout_no_wrap(words, FontId::proportional(size.min(theme::SMALL)), colors.weak);
    let left = rect.right() - inset - sums.size().x;
    if left > name_end + 14.0 {
        painter.galley(pos2(left, middle - sums.size().y / 2.0), sums, colors.weak);
    }
}

/// Sums of a domain.
struct Sums {
    hosts: u32,
    not_live: u32,
    waiting: u32,
    working: u32,
    failing: f32,
    load: Option<f64>,
}

impl Sums {
    #[allow(clippy::cast_precision_loss)]
    fn of(map: MapView<'_>, id: DomainId, scene: &Scene) -> Sums {
        use crate::grid::place::HostState::{Down, Draining, Left, Live, Silent, Unknown};
        let domain = map.model.grid().domain(id);
        // As in the bar at the bottom: with those that move, and each call once, on any number of hosts.
        let Counts { waiting, running: working, .. } = scene.domains[id.at()];
        let hosts = domain.servers;
        let mut sums = Sums { hosts, not_live: 0, waiting, working, failing: 0.0, load: None };
        let (mut load, mut loads) = (0.0, 0_u32);
        for id in domain.ids() {
            let (place, standing) = (map.model.grid().place(id), &scene.places[id.at()]);
            if let Some((Outcome::Failed | Outcome::NodeFail | Outcome::Timeout, fresh)) = standing.over {
                sums.failing = sums.failing.max(fresh);
            }
            match map.model.state_of(place) {
                Unknown | Live => {}
                Silent | Draining | Left | Down => sums.not_live += 1,
            }
            if let Some(used) = map.model.report_of(place).and_then(|report| report.cpu_used) {
                (load, loads) = (load + used, loads + 1);
            }
        }
        sums.load = (loads > 0).then(|| load / f64::from(loads));
        sums
    }

    fn words(&self) -> String {
        let mut words = vec![count(self.hosts, "host")];
        if self.not_live > 0 {
            words.push(format!("{} out", self.not_live));
        }
        if self.waiting > 0 {
            words.push(format!("{} waiting", self.waiting));
        }
        if self.working > 0 {
            words.push(format!("{} at work", self.working));
        }
        words.join("  ·  ")
    }
}

/// Domains as cards: a summary in little room.
pub(super) fn cards(
    map: MapView<'_>,
    painter: &Painter,
    colors: Colors,
    scene: &Scene,
    target: Option<Target>,
) {
    for (id, &panel) in (0..).map(DomainId).zip(&map.model.layout().panels) {
        let rect = map.camera.area_on_screen(panel).shrink(1.0);
        if rect.intersects(map.camera.view()) {
            let is_lit =
                target == Some(Target::Domain(id)) || map.model.selected().is_domain(map.model.grid(), id);
            card(map, painter, colors, scene, (id, rect), is_lit);
        }
    }
}

fn card(
    map: MapView<'_>,
    painter: &Painter,
    colors: Colors,
    scene: &Scene,
    (id, rect): (DomainId, Rect),
    is_lit: bool,
) {
    let sums = Sums::of(map, id, scene);
    let line = if is_lit { colors.accent } else { colors.line };
    let radius = CornerRadius::same(if rect.width() > 60.0 { 7 } else { 2 });
    painter.rect(rect, radius, colors.card, Stroke::new(1.0, line), StrokeKind::Inside);
    let inside = rect.shrink2(vec2(rect.width() * 0.06, rect.height() * 0.08).min(vec2(12.0, 10.0)));
    if inside.width() < NAME_ROOM_MIN || inside.height() < 12.0 {
        let fill = sums.load.map_or(colors.load[0], |load| colors.load(load));
        painter.rect_filled(inside, 1.0, fill);
        return;
    }
    if sums.failing > 0.0 {
        let alarm = colors.tone(Tone::Over(Outcome::Failed)).gamma_multiply(sums.failing);
        painter.circle_filled(pos2(inside.right() - 3.0, inside.top() + 8.0), 3.5, alarm);
    }
    let mut top = inside.top();
    let name = &map.model.grid().domain(id).name;
    let rows: [(String, FontId, Color32); 3] = [
        (name.clone(), FontId::proportional(theme::BODY), colors.text),
        (hosts_words(&sums), theme::small(), colors.weak),
        (calls_words(&sums), theme::small(), colors.tone(Tone::Working)),
    ];
    for (text, font, color) in rows {
        let galley = elided(painter, &text, font, color, inside.width() - 10.0);
        if top + galley.size().y > inside.bottom() {
            return;
        }
        let next = top + galley.size().y + 2.0;
        painter.galley(pos2(inside.left(), top), galley, color);
        top = next;
    }
    tiles(map, painter, colors, scene, id, Rect::from_min_max(pos2(inside.left(), top + 5.0), inside.max));
}

fn hosts_words(sums: &Sums) -> String {
    let mut words = vec![count(sums.hosts, "host")];
    if sums.not_live > 0 {
        words.push(format!("{} out", sums.not_live));
    }
    words.extend(sums.load.map(|load| format!("CPU {}", percent(load))));
    words.join(", ")
}

fn calls_words(sums: &Sums) -> String {
    match sums.waiting {
        0 => format!("{} at work", sums.working),
        waiting => format!("{} at work, {waiting} waiting", sums.working),
    }
}

/// Each host of a domain as a tile, in its colour of the map.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn tiles(map: MapView<'_>, painter: &Painter, colors: Colors, scene: &Scene, id: DomainId, area: Rect) {
    let domain = map.model.grid().domain(id);
    if domain.servers == 0 || area.height() < TILE_MIN || area.width() < TILE_MIN {
        return;
    }
    // Tiles are at whole pixels, so that the gaps between them are alike.
    let pixel = 1.0 / painter.pixels_per_point();
    let whole = |points: f32| (points / pixel).floor() * pixel;
    let area = Rect::from_min_max(pos2(whole(area.left()), whole(area.top())), area.max);
    let size = tile_size(area.size(), domain.servers as f32, pixel);
    let columns = ((area.width() / size) as u32).max(1);
    let mut ink = Ink::new(area, painter.pixels_per_point());
    let servers = domain.ids().filter(|&id| map.model.grid().place(id).part == Part::Server);
    for (number, id) in (0_u32..).zip(servers) {
        let at = area.min + vec2((number % columns) as f32, (number / columns) as f32) * size;
        if at.y + size > area.bottom() + 0.5 {
            break;
        }
        let place = map.model.grid().place(id);
        let state = map.model.state_of(place);
        let color = match state {
            HostState::Down | HostState::Silent | HostState::Draining => colors.state(state),
            HostState::Unknown | HostState::Live | HostState::Left => {
                server_fill(colors, map.model.report_of(place), state, &scene.places[id.at()])
            }
        };
        ink.square(Rect::from_min_size(at, egui::Vec2::splat(size - pixel)), color);
    }
    painter.add(ink.shape());
}

/// The largest size of tiles, in whole pixels, at which `number` of them fit.
pub(super) fn tile_size(room: egui::Vec2, number: f32, pixel: f32) -> f32 {
    let holds = |size: f32| (room.x / size).floor() * (room.y / size).floor();
    let largest = (room.x * room.y / number).sqrt().clamp(TILE_MIN, TILE_MAX);
    let mut size = (largest / pixel).floor() * pixel;
    while size > TILE_MIN && holds(size) < number {
        size -= pixel;
    }
    size.max(2.0 * pixel)
}
