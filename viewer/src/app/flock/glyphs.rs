//! Shapes of marks in one texture, so that tens of thousands are one mesh of four corners each, with soft
//! borders at every resolution.
//!
//! Not here: positions of marks (`chart`).

use crate::flock::measure::Measure;
use egui::{
    Color32, ColorImage, Context, Mesh, Pos2, Rect, TextureHandle, TextureId, TextureOptions, Vec2, pos2,
    vec2,
};

/// Size of a mark, in points.
pub(super) const SIZE: f32 = 8.0;
/// Free pixels around each shape, so that no neighbour bleeds in.
const MARGIN: usize = 2;
/// Samples of a pixel in each direction, which are inside of a shape or not.
const SAMPLES: usize = 4;

/// The texture.
#[derive(Clone)]
pub(super) struct Glyphs {
    texture: TextureHandle,
    /// Pixels of one cell in each direction.
    cell: usize,
    pixels_per_point: f32,
    /// The owner of the texture: a picture of the window is drawn in a context of its own.
    ctx: Context,
}

impl Glyphs {
    /// Shapes for a screen of this resolution.
    pub(super) fn new(ctx: &Context) -> Glyphs {
        let pixels_per_point = ctx.pixels_per_point();
        let cell = cell(pixels_per_point);
        let texture = ctx.load_texture("marks", image(cell), TextureOptions::LINEAR);
        Glyphs { texture, cell, pixels_per_point, ctx: ctx.clone() }
    }

    /// Whether they were made for this screen.
    pub(super) fn fit(&self, ctx: &Context) -> bool {
        self.ctx == *ctx && (self.pixels_per_point - ctx.pixels_per_point()).abs() < 1e-3
    }

    pub(super) fn id(&self) -> TextureId {
        self.texture.id()
    }

    /// Add a mark to a mesh of this texture.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn mark(&self, mesh: &mut Mesh, measure: Measure, at: Pos2, scale: f32, color: Color32) {
        let side = self.cell as f32 / self.pixels_per_point * scale;
        let left = measure.at() as f32 / 4.0;
        let uv = Rect::from_min_max(pos2(left, 0.0), pos2(left + 0.25, 1.0));
        mesh.add_rect_with_uv(Rect::from_center_size(at, Vec2::splat(side)), uv, color);
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn cell(pixels_per_point: f32) -> usize {
    (SIZE * pixels_per_point).ceil().clamp(4.0, 256.0) as usize + 2 * MARGIN
}

/// White shapes beside each other.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn image(cell: usize) -> ColorImage {
    let mut pixels = Vec::with_capacity(cell * cell * Measure::ALL.len());
    let radius = (cell - 2 * MARGIN) as f32 / 2.0;
    for y in 0..cell {
        for measure in Measure::ALL {
            for x in 0..cell {
                let mut inside = 0;
                for sample in 0..SAMPLES * SAMPLES {
                    let within = |at: usize| (at as f32 + 0.5) / SAMPLES as f32;
                    let place = vec2(
                        x as f32 + within(sample % SAMPLES) - cell as f32 / 2.0,
                        y as f32 + within(sample / SAMPLES) - cell as f32 / 2.0,
                    );
                    inside += usize::from(is_inside(measure, place / radius));
                }
                let alpha = inside * 255 / (SAMPLES * SAMPLES);
                pixels.push(Color32::from_white_alpha(alpha as u8));
            }
        }
    }
    ColorImage::new([cell * Measure::ALL.len(), cell], pixels)
}

/// Whether a place, from -1 to 1 in both directions, is inside of the shape of a measure. All shapes look
/// about as large.
fn is_inside(measure: Measure, place: Vec2) -> bool {
    match measure {
        Measure::Cpu => place.x.abs().max(place.y.abs()) <= 0.78,
        Measure::Memory => place.length() <= 0.88,
        Measure::Io => place.y <= 0.75 && place.y >= -0.95 + 1.7 * place.x.abs(),
        Measure::Faults => place.x.abs() + place.y.abs() <= 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_is_in_its_own_cell_with_a_free_border() {
        let cell = cell(1.0);
        let image = image(cell);
        assert_eq!(image.size, [4 * cell, cell]);
        for (at, measure) in Measure::ALL.into_iter().enumerate() {
            let alpha = |x: usize, y: usize| image.pixels[y * 4 * cell + at * cell + x].a();
            let filled = (0..cell * cell).filter(|place| alpha(place % cell, place / cell) > 127).count();
            assert!((22..=64).contains(&filled), "{measure:?} has {filled} pixels");
            assert!((0..cell).all(|x| alpha(x, 0) == 0 && alpha(0, x) == 0), "{measure:?}");
        }
    }
}
