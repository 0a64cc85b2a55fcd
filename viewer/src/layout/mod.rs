//! Layout of the map: each domain is a panel with its clients on the left, schedulers in the middle and
//! servers on the right; the panels are arranged in rows.
//!
//! Pure. Rule: the same grid and the same moves give the same positions, in whatever order the grid was
//! built; nothing overlaps except what the user moved. Units are points at zoom 1. Not here: which details
//! are drawn at which zoom (`app::map`).

use crate::grid::Grid;
use crate::grid::place::{Domain, DomainId, Part, PlaceId};
use std::collections::BTreeMap;

/// Between the border of a panel and its contents.
const PADDING: f32 = 22.0;
/// Height of the line with the domain's name.
pub const HEADER: f32 = 34.0;
/// Gap between two panels.
const PANEL_GAP: f32 = 48.0;
/// Distance of two rows of places where there are many.
pub const ROW_PITCH: f32 = 28.0;
/// Distance of two rows where there are few.
const FEW_ROW_PITCH: f32 = 44.0;
/// Distance of two columns of servers where there are many.
const MANY_PITCH: f32 = 96.0;
/// Minimum and maximum width of a column of clients, or of few servers: space for their names.
const FEW_PITCH: std::ops::RangeInclusive<f32> = 84.0..=210.0;
/// Estimated width of a letter in a name, since no font is known here.
const LETTER: f32 = 9.0;
/// Part of a column that names cannot use: the mark and a gap.
const NO_NAME: f32 = 40.0;
/// Minimum height of a panel's contents: space for return curves.
const INNER_MIN: f32 = 190.0;
/// With more servers than this they are arranged in a square.
const FEW_MAX: u32 = 14;
/// Maximum number of clients in one column.
const CLIENT_ROWS_MAX: u32 = 28;
/// Space on either side of the schedulers, in which marks move.
const WAY: f32 = 150.0;
/// Minimum height between two schedulers: space for their queues.
const SCHEDULER_PITCH: f32 = 120.0;
/// Desired ratio of width to height: that of a screen beside its list.
const ASPECT: f32 = 1.55;
/// Maximum number of panels in a row.
const COLUMNS_MAX: usize = 48;
/// Maximum number of stored moves; no user makes more by hand.
pub const MOVES_MAX: usize = 2_000;

/// A point of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f32,
    /// Down.
    pub y: f32,
}

impl Point {
    #[must_use]
    pub const fn new(x: f32, y: f32) -> Point {
        Point { x, y }
    }

    #[must_use]
    pub fn plus(self, by: Point) -> Point {
        Point::new(self.x + by.x, self.y + by.y)
    }
}

/// A rectangle of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    /// Its upper left corner.
    pub min: Point,
    /// Its lower right corner.
    pub max: Point,
}

impl Area {
    #[must_use]
    pub fn width(self) -> f32 {
        self.max.x - self.min.x
    }

    #[must_use]
    pub fn height(self) -> f32 {
        self.max.y - self.min.y
    }

    #[must_use]
    pub fn center(self) -> Point {
        Point::new((self.min.x + self.max.x) / 2.0, (self.min.y + self.max.y) / 2.0)
    }

    /// Whether the two overlap.
    #[must_use]
    pub fn meets(self, other: Area) -> bool {
        self.min.x < other.max.x
            && other.min.x < self.max.x
            && self.min.y < other.max.y
            && other.min.y < self.max.y
    }

    fn with(self, other: Area) -> Area {
        Area {
            min: Point::new(self.min.x.min(other.min.x), self.min.y.min(other.min.y)),
            max: Point::new(self.max.x.max(other.max.x), self.max.y.max(other.max.y)),
        }
    }
}

/// Moves made by the user, stored by name, so that they apply when the grid is rebuilt.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Moves(BTreeMap<String, (f32, f32)>);

impl Moves {
    /// Move the panel of a domain.
    pub fn domain(&mut self, grid: &Grid, id: DomainId, by: Point) {
        self.add(domain_name(grid, id), by);
    }

    pub fn place(&mut self, grid: &Grid, id: PlaceId, by: Point) {
        self.add(place_name(grid, id), by);
    }

    /// Undo all moves.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether there are no moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, name: String, by: Point) {
        if !(by.x.is_finite() && by.y.is_finite())
            || (self.0.len() >= MOVES_MAX && !self.0.contains_key(&name))
        {
            return;
        }
        let sum = self.0.entry(name).or_default();
        *sum = ((sum.0 + by.x).clamp(-1e6, 1e6), (sum.1 + by.y).clamp(-1e6, 1e6));
    }

    fn of(&self, name: &str) -> Point {
        self.0.get(name).map_or(Point::default(), |&(x, y)| Point::new(x, y))
    }
}

fn domain_name(grid: &Grid, id: DomainId) -> String {
    grid.domain(id).name.clone()
}

fn place_name(grid: &Grid, id: PlaceId) -> String {
    let place = grid.place(id);
    format!("{}\n{}\n{}", grid.domain(place.domain).name, place.part.word(), place.name)
}

/// Positions of everything on the map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Centre of each place's mark, by number of the place.
    pub places: Vec<Point>,
    /// Space for each place's name beside its mark, by number of the place.
    pub name_room: Vec<f32>,
    /// The panels, by the domain's number.
    pub panels: Vec<Area>,
    /// The bounding box of all panels.
    pub whole: Area,
}

/// Compute the layout of a grid.
#[must_use]
pub fn layout(grid: &Grid, moves: &Moves) -> Layout {
    let shapes: Vec<Shape> = grid.domains.iter().map(|domain| Shape::of(grid, domain)).collect();
    let corners = rows(&shapes);
    let mut layout = Layout {
        places: vec![Point::default(); grid.places.len()],
        name_room: vec![0.0; grid.places.len()],
        panels: Vec::with_capacity(shapes.len()),
        whole: Area::default(),
    };
    for ((at, shape), corner) in (0..).zip(&shapes).zip(corners) {
        let id = DomainId(at);
        let corner = if moves.is_empty() { corner } else { corner.plus(moves.of(&domain_name(grid, id))) };
        shape.stand(grid.domain(id), corner, &mut layout);
        layout.panels.push(Area { min: corner, max: corner.plus(Point::new(shape.width, shape.height)) });
    }
    if !moves.is_empty() {
        for (id, point) in (0..).map(PlaceId).zip(&mut layout.places) {
            *point = point.plus(moves.of(&place_name(grid, id)));
        }
    }
    layout.whole = layout.panels.iter().copied().reduce(Area::with).unwrap_or_default();
    layout
}

/// Arrangement of one domain.
struct Shape {
    client_rows: u32,
    client_columns: u32,
    client_pitch: f32,
    server_rows: u32,
    server_pitch: f32,
    row_pitch: f32,
    schedulers: u32,
    ways: f32,
    width: f32,
    height: f32,
}

impl Shape {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn of(grid: &Grid, domain: &Domain) -> Shape {
        let client_rows = domain.clients.min(CLIENT_ROWS_MAX);
        let client_columns = domain.clients.div_ceil(CLIENT_ROWS_MAX);
        let client_pitch = pitch(grid, domain, Part::Client);
        let (server_columns, server_pitch) = match domain.servers {
            0 => (0, 0.0),
            few if few <= FEW_MAX => (1, pitch(grid, domain, Part::Server)),
            many => {
                let square = (many as f32 * ROW_PITCH / MANY_PITCH * ASPECT).sqrt().ceil();
                ((square as u32).max(2), MANY_PITCH)
            }
        };
        let server_rows = if server_columns == 0 { 0 } else { domain.servers.div_ceil(server_columns) };
        let rows = client_rows.max(server_rows).max(1);
        let row_pitch = if rows <= FEW_MAX { FEW_ROW_PITCH } else { ROW_PITCH };
        let inner = (rows as f32 * row_pitch).max(domain.schedulers as f32 * SCHEDULER_PITCH).max(INNER_MIN);
        let ways = if domain.clients + domain.schedulers > 0 { 2.0 * WAY } else { 0.0 };
        let columns = client_columns as f32 * client_pitch + ways + server_columns as f32 * server_pitch;
        Shape {
            client_rows,
            client_columns,
            client_pitch,
            server_rows,
            server_pitch,
            row_pitch,
            schedulers: domain.schedulers,
            ways,
            width: 2.0 * PADDING + columns.max(*FEW_PITCH.end()),
            height: HEADER + 2.0 * PADDING + inner,
        }
    }

    /// Place the domain's contents, with the panel's corner at `corner`.
    #[allow(clippy::cast_precision_loss)]
    fn stand(&self, domain: &Domain, corner: Point, layout: &mut Layout) {
        let middle = corner.y + HEADER + (self.height - HEADER) / 2.0;
        let row_at = |row: u32, rows: u32| middle + (row as f32 - (rows as f32 - 1.0) / 2.0) * self.row_pitch;
        // Names of clients are left of their marks, those of servers right.
        let clients_end = corner.x + PADDING + self.client_columns as f32 * self.client_pitch;
        let servers_begin = clients_end + self.ways + 10.0;
        for (number, id) in (0..).zip(domain.ids()) {
            let (point, room) = if number < domain.clients {
                let column = number / CLIENT_ROWS_MAX;
                let in_column = (domain.clients - column * CLIENT_ROWS_MAX).min(self.client_rows);
                let x = corner.x + PADDING + (column as f32 + 1.0) * self.client_pitch - 10.0;
                (Point::new(x, row_at(number % CLIENT_ROWS_MAX, in_column)), self.client_pitch - 30.0)
            } else if number < domain.clients + domain.schedulers {
                let at = number - domain.clients;
                let y = middle + (at as f32 - (self.schedulers as f32 - 1.0) / 2.0) * SCHEDULER_PITCH;
                (Point::new(clients_end + WAY, y), WAY)
            } else {
                let at = number - domain.clients - domain.schedulers;
                // Fill column by column, so that neighbours by name are neighbours on the map.
                let (column, row) = (at / self.server_rows.max(1), at % self.server_rows.max(1));
                let x = servers_begin + column as f32 * self.server_pitch;
                (Point::new(x, row_at(row, self.server_rows)), self.server_pitch - 30.0)
            };
            layout.places[id.at()] = point;
            layout.name_room[id.at()] = room;
        }
    }
}

/// The width of a column that fits the longest name of this part, within bounds.
#[allow(clippy::cast_precision_loss)]
fn pitch(grid: &Grid, domain: &Domain, part: Part) -> f32 {
    let of_part = domain.ids().map(|id| grid.place(id)).filter(|place| place.part == part);
    let longest = of_part.map(|place| place.name.chars().count()).max().unwrap_or(0);
    (longest as f32 * LETTER + NO_NAME).clamp(*FEW_PITCH.start(), *FEW_PITCH.end())
}

/// The corners of panels in rows, in the order of their domains' names, with the number of columns that fits
/// a screen best.
fn rows(shapes: &[Shape]) -> Vec<Point> {
    let widest = shapes.iter().map(|shape| shape.width).fold(0.0, f32::max);
    let mut best: Option<(f32, Vec<Point>)> = None;
    for columns in (1..=shapes.len().min(COLUMNS_MAX)).rev() {
        #[allow(clippy::cast_precision_loss)]
        let row_width = columns as f32 * (widest + PANEL_GAP) - PANEL_GAP;
        let (corners, size) = in_rows(shapes, row_width);
        let fits = (ASPECT / size.x.max(1.0)).min(1.0 / size.y.max(1.0));
        if best.as_ref().is_none_or(|(known, _)| fits > *known) {
            best = Some((fits, corners));
        }
    }
    best.map_or_else(Vec::new, |(_, corners)| corners)
}

/// The corners in rows of at most this width, and the total size.
fn in_rows(shapes: &[Shape], row_width: f32) -> (Vec<Point>, Point) {
    let (mut corner, mut row_height, mut size) = (Point::default(), 0.0_f32, Point::default());
    let mut corners = Vec::with_capacity(shapes.len());
    for shape in shapes {
        if corner.x > 0.0 && corner.x + shape.width > row_width {
            corner = Point::new(0.0, corner.y + row_height + PANEL_GAP);
            row_height = 0.0;
        }
        corners.push(corner);
        row_height = row_height.max(shape.height);
        size = Point::new(size.x.max(corner.x + shape.width), size.y.max(corner.y + row_height));
        corner.x += shape.width + PANEL_GAP;
    }
    (corners, size)
}

/// Whether the names of this part are left of their marks.
#[must_use]
pub fn name_is_left(part: Part) -> bool {
    part == Part::Client
}

#[cfg(test)]
mod tests;
