//! Software rasterizer for egui's output: triangles with colours and textures.
//!
//! Pure. Colours are premultiplied and blended in gamma space, textures are sampled bilinearly; a pixel
//! belongs to one of two triangles that share an edge, never to both (the top-left rule), so that half
//! transparent borders have no seams. Not here: tessellation (egui).

use egui::epaint::{ClippedPrimitive, ImageData, Mesh, Primitive, Vertex};
use egui::{Color32, TextureId, TexturesDelta};
use std::collections::HashMap;

/// Maximum width or height of a picture, in pixels: four 4K screens side by side.
pub const SIDE_MAX: usize = 16_384;
/// Maximum size of a picture, in pixels: 128 MiB of them.
pub const PIXELS_MAX: usize = 1 << 25;
/// Subpixel resolution of triangle corners; more would overflow at the largest side.
const SUBPIXELS: f32 = 256.0;

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 4]>,
}

/// The textures of egui.
#[derive(Debug, Default)]
pub struct Textures(HashMap<TextureId, Texture>);

#[derive(Debug, Default)]
struct Texture {
    size: [usize; 2],
    texels: Vec<Color32>,
}

impl Textures {
    /// Apply changes; textures that are no longer used are dropped.
    pub fn apply(&mut self, delta: TexturesDelta) {
        for (id, change) in delta.set {
            let ImageData::Color(image) = &change.image;
            let texture = self.0.entry(id).or_default();
            match change.pos {
                None => *texture = Texture { size: image.size, texels: image.pixels.clone() },
                Some(corner) => texture.patch(corner, image.size, &image.pixels),
            }
        }
        for id in delta.free {
            self.0.remove(&id);
        }
    }
}

impl Texture {
    fn patch(&mut self, corner: [usize; 2], size: [usize; 2], texels: &[Color32]) {
        if size[0] == 0 || corner[0] + size[0] > self.size[0] || corner[1] + size[1] > self.size[1] {
            return;
        }
        for (row, line) in texels.chunks(size[0]).take(size[1]).enumerate() {
            let at = (corner[1] + row) * self.size[0] + corner[0];
            self.texels[at..at + line.len()].copy_from_slice(line);
        }
    }

    /// The colour at a position from 0 to 1 on each axis, interpolated between the four nearest texels.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn at(&self, u: f32, v: f32) -> [f32; 4] {
        let [width, height] = self.size;
        if width == 0 || height == 0 {
            return [255.0; 4];
        }
        let x = (u * width as f32 - 0.5).clamp(0.0, (width - 1) as f32);
        let y = (v * height as f32 - 0.5).clamp(0.0, (height - 1) as f32);
        let (left, top) = (x as usize, y as usize);
        let (right, bottom) = ((left + 1).min(width - 1), (top + 1).min(height - 1));
        let (fx, fy) = (x - left as f32, y - top as f32);
        let texel = |x: usize, y: usize| self.texels[y * width + x].to_array();
        if fx < 1e-3 && fy < 1e-3 {
            return texel(left, top).map(f32::from);
        }
        let corners = [texel(left, top), texel(right, top), texel(left, bottom), texel(right, bottom)];
        let weights = [(1.0 - fx) * (1.0 - fy), fx * (1.0 - fy), (1.0 - fx) * fy, fx * fy];
        let mut mixed = [0.0; 4];
        for (corner, weight) in corners.iter().zip(weights) {
            for (sum, &part) in mixed.iter_mut().zip(corner) {
                *sum += f32::from(part) * weight;
            }
        }
        mixed
    }
}

/// A rectangle of pixels; right and bottom are exclusive.
#[derive(Clone, Copy)]
struct Clip {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

/// A corner in subpixels, see [`SUBPIXELS`].
#[derive(Clone, Copy)]
struct Corner {
    x: i64,
    y: i64,
}

impl Canvas {
    /// A picture of one colour, at most [`SIDE_MAX`] and [`PIXELS_MAX`] large.
    #[must_use]
    pub fn new(width: usize, height: usize, color: Color32) -> Canvas {
        let width = width.clamp(1, SIDE_MAX);
        let height = height.clamp(1, SIDE_MAX).min((PIXELS_MAX / width).max(1));
        Canvas { width, height, pixels: vec![color.to_array(); width * height] }
    }

    /// Width in pixels.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Red, green and blue of a pixel; black outside.
    #[must_use]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let inside = x < self.width && y < self.height;
        let [red, green, blue, _] = if inside { self.pixels[y * self.width + x] } else { [0; 4] };
        [red, green, blue]
    }

    /// Red, green and blue of all pixels, line by line.
    #[must_use]
    pub fn rgb(&self) -> Vec<u8> {
        self.pixels.iter().flat_map(|&[red, green, blue, _]| [red, green, blue]).collect()
    }

    /// Draw egui's output, at `scale` pixels per point.
    pub fn draw(&mut self, primitives: &[ClippedPrimitive], textures: &Textures, scale: f32) {
        for ClippedPrimitive { clip_rect, primitive } in primitives {
            let Primitive::Mesh(mesh) = primitive else { continue };
            let Some(texture) = textures.0.get(&mesh.texture_id) else { continue };
            let clip = self.clip([clip_rect.min.x, clip_rect.min.y, clip_rect.max.x, clip_rect.max.y], scale);
            self.mesh(mesh, texture, clip, scale);
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn clip(&self, [left, top, right, bottom]: [f32; 4], scale: f32) -> Clip {
        let pixel = |at: f32, most: usize| ((at * scale).round() as i32).clamp(0, most as i32);
        Clip {
            left: pixel(left, self.width),
            top: pixel(top, self.height),
            right: pixel(right, self.width),
            bottom: pixel(bottom, self.height),
        }
    }

    fn mesh(&mut self, mesh: &Mesh, texture: &Texture, clip: Clip, scale: f32) {
        for triangle in mesh.indices.chunks_exact(3) {
            let corner = |at: usize| mesh.vertices.get(triangle[at] as usize);
            if let (Some(a), Some(b), Some(c)) = (corner(0), corner(1), corner(2)) {
                self.triangle([a, b, c], texture, clip, scale);
            }
        }
    }

    /// Draw a triangle: every pixel with its centre inside.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
    fn triangle(&mut self, corners: [&Vertex; 3], texture: &Texture, clip: Clip, scale: f32) {
        if corners.iter().any(|vertex| !(vertex.pos.x.is_finite() && vertex.pos.y.is_finite())) {
            return;
        }
        let place = |at: f32| (at * scale).clamp(-1e6, 1e6).mul_add(SUBPIXELS, 0.0).round() as i64;
        let mut vertices = corners;
        let mut at = vertices.map(|vertex| Corner { x: place(vertex.pos.x), y: place(vertex.pos.y) });
        let mut area = edge(at[0], at[1], at[2]);
        if area == 0 {
            return;
        }
        if area < 0 {
            vertices.swap(1, 2);
            at.swap(1, 2);
            area = -area;
        }
        let whole = SUBPIXELS as i64;
        let least = |of: fn(&Corner) -> i64| at.iter().map(of).min().unwrap_or(0).div_euclid(whole) as i32;
        let most = |of: fn(&Corner) -> i64| at.iter().map(of).max().unwrap_or(0).div_euclid(whole) as i32 + 1;
        let (left, right) = (least(|c| c.x).max(clip.left), most(|c| c.x).min(clip.right));
        let (top, bottom) = (least(|c| c.y).max(clip.top), most(|c| c.y).min(clip.bottom));
        let owns = [owned(at[1], at[2]), owned(at[2], at[0]), owned(at[0], at[1])];
        for y in top..bottom {
            for x in left..right {
                let middle =
                    Corner { x: i64::from(x) * whole + whole / 2, y: i64::from(y) * whole + whole / 2 };
                let inside =
                    [edge(at[1], at[2], middle), edge(at[2], at[0], middle), edge(at[0], at[1], middle)];
                if inside.iter().zip(owns).any(|(&side, owns)| side < 0 || (side == 0 && !owns)) {
                    continue;
                }
                let weights = inside.map(|side| side as f32 / area as f32);
                let color = mixed(vertices, weights, texture);
                blend(&mut self.pixels[y as usize * self.width + x as usize], color);
            }
        }
    }
}

/// Edge function: twice the signed area of the triangle `from`, `to`, `point`.
fn edge(from: Corner, to: Corner, point: Corner) -> i64 {
    (to.x - from.x) * (point.y - from.y) - (to.y - from.y) * (point.x - from.x)
}

/// Whether points on this edge belong to its triangle: on top and left edges.
fn owned(from: Corner, to: Corner) -> bool {
    (from.y == to.y && to.x > from.x) || to.y < from.y
}

/// The interpolated colour inside a triangle, in gamma space from 0 to 255.
fn mixed(vertices: [&Vertex; 3], weights: [f32; 3], texture: &Texture) -> [f32; 4] {
    let (mut color, mut u, mut v) = ([0.0_f32; 4], 0.0, 0.0);
    for (vertex, weight) in vertices.iter().zip(weights) {
        for (sum, part) in color.iter_mut().zip(vertex.color.to_array()) {
            *sum += f32::from(part) * weight;
        }
        u += vertex.uv.x * weight;
        v += vertex.uv.y * weight;
    }
    let texel = texture.at(u, v);
    for (part, texel) in color.iter_mut().zip(texel) {
        *part *= texel / 255.0;
    }
    color
}

/// Blend a premultiplied colour over a pixel.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn blend(pixel: &mut [u8; 4], over: [f32; 4]) {
    let through = 1.0 - over[3] / 255.0;
    for (part, over) in pixel.iter_mut().zip(over) {
        *part = (over + f32::from(*part) * through + 0.5) as u8;
    }
}

#[cfg(test)]
mod tests;
