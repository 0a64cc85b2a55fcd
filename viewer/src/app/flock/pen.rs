//! Drawing of marks: on a screen as instances of one square, sixteen bytes each; without a graphics card that
//! can do that, and in pictures, as one mesh of four corners each.
//!
//! Pure. Rule: both look alike. Not here: positions of marks (`chart`), instances on the screen
//! (`instances`).

use super::glyphs::{Glyphs, SIZE};
use super::instances::Engine;
use crate::flock::measure::Measure;
use egui::{Color32, Mesh, Painter, Pos2, Rect, Shape};

/// Bytes of an instance: two coordinates in points, the colour, the measure, the size, two to round it up.
pub(super) const INSTANCE_LEN_BYTES: usize = 16;
/// Sizes are written in these parts of the usual one.
pub(super) const SCALE_PARTS: f32 = 64.0;

/// Marks of a frame.
pub(super) enum Pen<'a> {
    /// Four corners each.
    Mesh(&'a Glyphs, Mesh),
    /// Sixteen bytes each.
    Instances(&'a Engine, Vec<u8>),
}

impl<'a> Pen<'a> {
    /// For about so many marks.
    pub(super) fn new(engine: Option<&'a Engine>, glyphs: &'a Glyphs, marks: usize) -> Pen<'a> {
        match engine.filter(|engine| engine.is_able()) {
            Some(engine) => Pen::Instances(engine, engine.buffer(marks * INSTANCE_LEN_BYTES)),
            None => {
                let mut mesh = Mesh::with_texture(glyphs.id());
                mesh.vertices.reserve(marks * 4);
                mesh.indices.reserve(marks * 6);
                Pen::Mesh(glyphs, mesh)
            }
        }
    }

    /// Add a mark, `scale` times as large as usual.
    pub(super) fn mark(&mut self, measure: Measure, at: Pos2, scale: f32, color: Color32) {
        match self {
            Pen::Mesh(glyphs, mesh) => glyphs.mark(mesh, measure, at, scale, color),
            Pen::Instances(_, bytes) => bytes.extend_from_slice(&instance(measure, at, scale, color)),
        }
    }

    /// Have them drawn within `rect`.
    pub(super) fn draw(self, painter: &Painter, rect: Rect) {
        match self {
            Pen::Mesh(_, mesh) => painter.add(Shape::mesh(mesh)),
            Pen::Instances(engine, bytes) => painter.add(engine.shape(rect, bytes)),
        };
    }
}

/// A mark as the graphics card reads it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Scales are from 1 to 2, measures from 0 to 3.
fn instance(measure: Measure, at: Pos2, scale: f32, color: Color32) -> [u8; INSTANCE_LEN_BYTES] {
    let mut bytes = [0; INSTANCE_LEN_BYTES];
    bytes[..4].copy_from_slice(&at.x.to_ne_bytes());
    bytes[4..8].copy_from_slice(&at.y.to_ne_bytes());
    bytes[8..12].copy_from_slice(&color.to_array());
    bytes[12] = measure.at() as u8;
    bytes[13] = (scale * SCALE_PARTS).clamp(0.0, 255.0) as u8;
    bytes
}

/// Half of the width of a usual mark, in points.
pub(super) const fn radius() -> f32 {
    SIZE / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::pos2;

    #[test]
    fn an_instance_says_where_which_how_large_and_in_what_colour() {
        let color = Color32::from_rgba_premultiplied(1, 2, 3, 4);
        let bytes = instance(Measure::Faults, pos2(1.5, -2.0), 1.25, color);
        assert_eq!(bytes[..4], 1.5_f32.to_ne_bytes());
        assert_eq!(bytes[4..8], (-2.0_f32).to_ne_bytes());
        assert_eq!(bytes[8..], [1, 2, 3, 4, 3, 80, 0, 0]);
    }
}
