//! Dots and curves by the thousand in one mesh, with soft borders.
//!
//! Pure. Rule: a border fades over one pixel, as egui's own shapes do; shapes outside the view are not added.

use egui::epaint::Vertex;
use egui::{Color32, Mesh, Pos2, Rect, Shape, Vec2, pos2, vec2};

/// Corners of a dot, and of a small one.
const CORNERS: usize = 14;
const CORNERS_SMALL: usize = 8;
/// Dots below this radius have few corners.
const SMALL_BELOW: f32 = 3.0;
/// Points of a ring.
const RING_POINTS: usize = 24;
/// Points of a curve.
const CURVE_POINTS: usize = 22;
/// Smaller dots are squares: the difference is not visible.
const SQUARE_BELOW: f32 = 1.6;

/// A mesh that grows.
#[derive(Debug)]
pub(super) struct Ink {
    mesh: Mesh,
    view: Rect,
    /// The size of a pixel, in points.
    pixel: f32,
}

impl Ink {
    /// An empty mesh; `view` is the visible rectangle.
    #[must_use]
    pub(super) fn new(view: Rect, pixels_per_point: f32) -> Ink {
        Ink { mesh: Mesh::default(), view, pixel: 1.0 / pixels_per_point.max(0.1) }
    }

    /// The shape of everything that was added.
    pub(super) fn shape(self) -> Shape {
        Shape::mesh(self.mesh)
    }

    /// Adds a filled dot.
    pub(super) fn dot(&mut self, center: Pos2, radius: f32, color: Color32) {
        if !self.view.expand(radius).contains(center) {
            return;
        }
        if radius < SQUARE_BELOW {
            self.mesh.add_colored_rect(Rect::from_center_size(center, Vec2::splat(2.0 * radius)), color);
            return;
        }
        let half = self.pixel / 2.0;
        let begin = self.count();
        self.vertex(center, color);
        let corners = if radius < SMALL_BELOW { CORNERS_SMALL } else { CORNERS };
        for corner in 0..corners {
            let way = direction(corner, corners);
            self.vertex(center + way * (radius - half), color);
            self.vertex(center + way * (radius + half), Color32::TRANSPARENT);
        }
        for corner in 0..to_u32(corners) {
            let next = (corner + 1) % to_u32(corners);
            let (inner, outer) = (begin + 1 + 2 * corner, begin + 2 + 2 * corner);
            let (inner_next, outer_next) = (begin + 1 + 2 * next, begin + 2 + 2 * next);
            self.mesh
                .indices
                .extend([begin, inner, inner_next, inner, outer, outer_next, inner, outer_next, inner_next]);
        }
    }

    /// A rectangle with hard borders, for very small shapes.
    pub(super) fn square(&mut self, rect: Rect, color: Color32) {
        self.mesh.add_colored_rect(rect, color);
    }

    /// Adds a ring.
    pub(super) fn ring(&mut self, center: Pos2, radius: f32, width: f32, color: Color32) {
        if !self.view.expand(radius + width).contains(center) {
            return;
        }
        let points: Vec<Pos2> = (0..=RING_POINTS)
            .map(|at| {
                let turn = std::f32::consts::TAU * ratio(at, RING_POINTS);
                center + vec2(turn.cos(), turn.sin()) * radius
            })
            .collect();
        self.line(&points, width, color);
    }

    /// Adds a curve; `at` returns its points from 0 to 1.
    pub(super) fn curve(&mut self, at: impl Fn(f32) -> Pos2, bounds: Rect, width: f32, color: Color32) {
        if !self.view.expand(width).intersects(bounds) {
            return;
        }
        let points: Vec<Pos2> = (0..CURVE_POINTS).map(|point| at(ratio(point, CURVE_POINTS - 1))).collect();
        self.line(&points, width, color);
    }

    /// Adds a line through points.
    pub(super) fn line(&mut self, points: &[Pos2], width: f32, color: Color32) {
        // A line thinner than a pixel is one pixel wide and fainter.
        let thin = (width / self.pixel).min(1.0);
        let color = if thin < 1.0 { color.gamma_multiply(thin) } else { color };
        let (core, border) =
            ((width - self.pixel).max(0.0) / 2.0, (width.max(self.pixel) + self.pixel) / 2.0);
        let begin = self.count();
        for (at, &point) in points.iter().enumerate() {
            let before = points[at.saturating_sub(1)];
            let after = points[(at + 1).min(points.len() - 1)];
            let across = (after - before).normalized().rot90();
            self.vertex(point - across * border, Color32::TRANSPARENT);
            self.vertex(point - across * core, color);
            self.vertex(point + across * core, color);
            self.vertex(point + across * border, Color32::TRANSPARENT);
        }
        for at in 1..to_u32(points.len()) {
            let (one, other) = (begin + 4 * (at - 1), begin + 4 * at);
            for strip in 0..3 {
                let (a, b, c, d) = (one + strip, one + strip + 1, other + strip, other + strip + 1);
                self.mesh.indices.extend([a, b, c, c, b, d]);
            }
        }
    }

    fn vertex(&mut self, pos: Pos2, color: Color32) {
        self.mesh.vertices.push(Vertex { pos, uv: egui::epaint::WHITE_UV, color });
    }

    fn count(&self) -> u32 {
        to_u32(self.mesh.vertices.len())
    }
}

#[allow(clippy::cast_precision_loss)]
fn ratio(at: usize, of: usize) -> f32 {
    at as f32 / of as f32
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn direction(corner: usize, of: usize) -> Vec2 {
    let turn = std::f32::consts::TAU * ratio(corner, of);
    vec2(turn.cos(), turn.sin())
}

/// The smallest rectangle around points.
#[must_use]
pub(super) fn around(points: [Pos2; 4]) -> Rect {
    let mut rect = Rect::from_min_max(pos2(f32::MAX, f32::MAX), pos2(f32::MIN, f32::MIN));
    points.iter().for_each(|&point| rect.extend_with(point));
    rect
}
