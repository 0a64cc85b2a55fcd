//! SVG writer for egui's output: shapes and text that can be edited and printed at any size.
//!
//! Pure. Rule: the input is shapes only, and every text is escaped. Soft borders, which egui draws as fading
//! triangles, are left out, since SVG viewers smooth borders themselves. Not here: glyphs of a font.

use crate::flock::measure::Measure;
use egui::epaint::{
    CircleShape, ClippedShape, ColorMode, CubicBezierShape, EllipseShape, Mesh, PathShape, PathStroke,
    QuadraticBezierShape, RectShape, TextShape,
};
use egui::{Color32, Pos2, Rect, Shape, Stroke, TextureId, Vec2};
use std::fmt::Write as _;
use wire::harmless::is_harmless;

/// A triangle with a corner whose alpha is below this is a soft border.
const SOFT_BELOW: u8 = 8;

/// Convert shapes to a picture of `size` points.
#[must_use]
pub fn svg(shapes: &[ClippedShape], size: Vec2, ground: Color32) -> String {
    let mut svg = Svg::default();
    let (width, height) = (size.x, size.y);
    let _ = writeln!(
        svg.text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">"
    );
    svg.rect(Rect::from_min_size(Pos2::ZERO, size), 0.0, ground, Stroke::NONE);
    for (number, clipped) in shapes.iter().enumerate() {
        let clip = clipped.clip_rect.intersect(Rect::from_min_size(Pos2::ZERO, size));
        if !clip.is_positive() || matches!(clipped.shape, Shape::Noop) {
            continue;
        }
        let begun = svg.text.len();
        let (min, clip_size) = (clip.min, clip.size());
        let _ = writeln!(
            svg.text,
            "<clipPath id=\"c{number}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath><g clip-path=\"url(#c{number})\">",
            min.x, min.y, clip_size.x, clip_size.y
        );
        let within = svg.text.len();
        svg.shape(&clipped.shape);
        match svg.text.len() == within {
            true => svg.text.truncate(begun),
            false => svg.text.push_str("</g>\n"),
        }
    }
    svg.text.push_str("</svg>\n");
    svg.text
}

#[derive(Default)]
struct Svg {
    text: String,
}

impl Svg {
    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Noop | Shape::Callback(_) => {}
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| self.shape(shape)),
            Shape::Circle(CircleShape { center, radius, fill, stroke, .. }) => {
                self.ellipse(*center, Vec2::splat(*radius), *fill, *stroke);
            }
            Shape::Ellipse(EllipseShape { center, radius, fill, stroke, .. }) => {
                self.ellipse(*center, *radius, *fill, *stroke);
            }
            Shape::LineSegment { points, stroke } => self.path(points, false, Color32::TRANSPARENT, *stroke),
            Shape::Path(PathShape { points, closed, fill, stroke }) => {
                self.path(points, *closed, *fill, plain(stroke));
            }
            Shape::Rect(RectShape { rect, corner_radius, fill, stroke, .. }) => {
                // A stroke of egui's is inside; one of SVG on the border.
                let inner = rect.shrink(stroke.width / 2.0);
                self.rect(inner, f32::from(corner_radius.nw), *fill, *stroke);
            }
            Shape::Text(text) => self.letters(text),
            Shape::Mesh(mesh) => self.mesh(mesh),
            Shape::QuadraticBezier(QuadraticBezierShape { points: [a, b, c], fill, stroke, .. }) => {
                if [a, b, c].iter().all(|point| point.is_finite()) {
                    let way = format!("M{} {}Q{} {} {} {}", a.x, a.y, b.x, b.y, c.x, c.y);
                    self.way(&way, *fill, plain(stroke));
                }
            }
            Shape::CubicBezier(CubicBezierShape { points: [a, b, c, d], fill, stroke, .. }) => {
                if [a, b, c, d].iter().all(|point| point.is_finite()) {
                    let way = format!("M{} {}C{} {} {} {} {} {}", a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y);
                    self.way(&way, *fill, plain(stroke));
                }
            }
        }
    }

    fn rect(&mut self, rect: Rect, radius: f32, fill: Color32, stroke: Stroke) {
        if !rect.is_finite() {
            return;
        }
        let (min, size, look) = (rect.min, rect.size(), look(fill, stroke));
        let _ = writeln!(
            self.text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{radius}\"{look}/>",
            min.x, min.y, size.x, size.y
        );
    }

    fn ellipse(&mut self, center: Pos2, radius: Vec2, fill: Color32, stroke: Stroke) {
        if !(center.is_finite() && radius.is_finite()) {
            return;
        }
        let look = look(fill, stroke);
        let _ = writeln!(
            self.text,
            "<ellipse cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\"{look}/>",
            center.x, center.y, radius.x, radius.y
        );
    }

    fn path(&mut self, points: &[Pos2], is_closed: bool, fill: Color32, stroke: Stroke) {
        if points.len() < 2 || points.iter().any(|point| !point.is_finite()) {
            return;
        }
        let mut way = String::new();
        for (at, point) in points.iter().enumerate() {
            let _ = write!(way, "{}{:.2} {:.2}", if at == 0 { "M" } else { "L" }, point.x, point.y);
        }
        if is_closed {
            way.push('Z');
        }
        self.way(&way, fill, stroke);
    }

    fn way(&mut self, way: &str, fill: Color32, stroke: Stroke) {
        let look = look(fill, stroke);
        let _ = writeln!(self.text, "<path d=\"{way}\"{look}/>");
    }

    /// Each row becomes a text element, scaled to its width in the window whatever font is used.
    fn letters(&mut self, text: &TextShape) {
        for placed in &text.galley.rows {
            let shown: String = placed.row.glyphs.iter().map(|glyph| glyph.chr).collect();
            let (Some(first), Some(last)) = (placed.row.glyphs.first(), placed.row.glyphs.last()) else {
                continue;
            };
            if shown.trim().is_empty() {
                continue;
            }
            let of_mesh = placed.row.visuals.mesh.vertices.first().map(|vertex| vertex.color);
            let told = text.override_text_color.or(of_mesh).unwrap_or(text.fallback_color);
            let color = if told == Color32::PLACEHOLDER { text.fallback_color } else { told };
            let origin = text.pos + placed.pos.to_vec2();
            let (x, y) = (origin.x + first.pos.x, origin.y + first.pos.y);
            let width = last.pos.x + last.advance_width - first.pos.x;
            let size = first.font_height / 1.2;
            let turned = match text.angle {
                0.0 => String::new(),
                angle => format!(" transform=\"rotate({} {x} {y})\"", angle.to_degrees()),
            };
            let (fill, letters) = (fill(color.gamma_multiply(text.opacity_factor)), escaped(&shown));
            let _ = writeln!(
                self.text,
                "<text x=\"{x:.2}\" y=\"{y:.2}\" font-family=\"Ubuntu, sans-serif\" font-size=\"{size:.2}\" \
                 textLength=\"{width:.2}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"{fill}{turned}>{letters}</text>"
            );
        }
    }

    fn mesh(&mut self, mesh: &Mesh) {
        if mesh.texture_id != TextureId::default() {
            return self.marks(mesh);
        }
        for triangle in mesh.indices.chunks_exact(3) {
            let corner = |at: usize| mesh.vertices.get(triangle[at] as usize);
            let (Some(a), Some(b), Some(c)) = (corner(0), corner(1), corner(2)) else { continue };
            let is_soft = [a, b, c].iter().any(|corner| corner.color.a() < SOFT_BELOW);
            if !is_soft {
                self.path(&[a.pos, b.pos, c.pos], true, a.color, Stroke::NONE);
            }
        }
    }

    /// Marks of the flock: four vertices each, with their shape in the texture.
    fn marks(&mut self, mesh: &Mesh) {
        for corners in mesh.vertices.chunks_exact(4) {
            let rect = Rect::from_two_pos(corners[0].pos, corners[3].pos);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let number = (corners[0].uv.x.clamp(0.0, 0.99) * 4.0).round() as usize;
            let measure = Measure::ALL[number.min(3)];
            let (center, radius) = (rect.center(), rect.width() / 3.0);
            let at = |x: f32, y: f32| center + Vec2::new(x, y) * radius;
            let points = match measure {
                Measure::Cpu => vec![at(-0.78, -0.78), at(0.78, -0.78), at(0.78, 0.78), at(-0.78, 0.78)],
                Measure::Memory => {
                    self.ellipse(center, Vec2::splat(0.88 * radius), corners[0].color, Stroke::NONE);
                    continue;
                }
                Measure::Io => vec![at(0.0, -0.95), at(1.0, 0.75), at(-1.0, 0.75)],
                Measure::Faults => vec![at(0.0, -1.0), at(1.0, 0.0), at(0.0, 1.0), at(-1.0, 0.0)],
            };
            self.path(&points, true, corners[0].color, Stroke::NONE);
        }
    }
}

fn plain(stroke: &PathStroke) -> Stroke {
    let color = match &stroke.color {
        ColorMode::Solid(color) => *color,
        ColorMode::UV(_) => Color32::GRAY,
    };
    Stroke::new(stroke.width, color)
}

/// Attributes for fill and stroke.
fn look(filled: Color32, stroke: Stroke) -> String {
    let mut look = fill(filled);
    if stroke.width > 0.0 && stroke.color.a() > 0 {
        let (color, opacity) = css(stroke.color);
        let _ = write!(
            look,
            " stroke=\"{color}\" stroke-opacity=\"{opacity:.3}\" stroke-width=\"{}\"",
            stroke.width
        );
    }
    look
}

fn fill(color: Color32) -> String {
    if color.a() == 0 {
        return " fill=\"none\"".to_owned();
    }
    let (color, opacity) = css(color);
    format!(" fill=\"{color}\" fill-opacity=\"{opacity:.3}\"")
}

fn css(color: Color32) -> (String, f32) {
    let [red, green, blue, alpha] = color.to_srgba_unmultiplied();
    (format!("#{red:02x}{green:02x}{blue:02x}"), f32::from(alpha) / 255.0)
}

/// Escape a text for XML; characters that XML forbids are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Not among the characters of XML 1.0 (section 2.2).
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            char if !is_harmless(char) => escaped.push(char::REPLACEMENT_CHARACTER),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::pos2;

    #[test]
    fn shapes_become_elements_and_what_is_seen_of_none_is_left_out() {
        let whole = Rect::from_min_size(Pos2::ZERO, Vec2::splat(100.0));
        let clipped = |shape| ClippedShape { clip_rect: whole, shape };
        let shapes = [
            clipped(Shape::circle_filled(pos2(10.0, 20.0), 5.0, Color32::RED)),
            clipped(Shape::line_segment([pos2(0.0, 0.0), pos2(5.0, 5.0)], Stroke::new(2.0, Color32::BLUE))),
            clipped(Shape::Vec(Vec::new())),
            clipped(Shape::line_segment(
                [pos2(0.0, f32::NAN), pos2(5.0, 5.0)],
                Stroke::new(2.0, Color32::BLUE),
            )),
            clipped(Shape::circle_filled(pos2(f32::NAN, 20.0), 5.0, Color32::RED)),
            clipped(Shape::circle_filled(pos2(10.0, 20.0), f32::INFINITY, Color32::RED)),
            clipped(Shape::QuadraticBezier(QuadraticBezierShape::from_points_stroke(
                [pos2(0.0, 0.0), pos2(f32::NAN, 5.0), pos2(9.0, 9.0)],
                false,
                Color32::RED,
                Stroke::NONE,
            ))),
            clipped(Shape::CubicBezier(CubicBezierShape::from_points_stroke(
                [pos2(0.0, 0.0), pos2(1.0, 5.0), pos2(f32::NEG_INFINITY, 9.0), pos2(9.0, 9.0)],
                false,
                Color32::RED,
                Stroke::NONE,
            ))),
        ];
        let text = svg(&shapes, Vec2::splat(100.0), Color32::BLACK);
        assert_eq!(text.matches("<ellipse").count(), 1);
        assert_eq!(text.matches("<path").count(), 1);
        assert_eq!((text.matches("<clipPath").count(), text.matches("</g>").count()), (2, 2));
        assert!(text.contains("#ff0000") && text.contains("stroke=\"#0000ff\"") && !text.contains("NaN"));
        assert!(!text.contains("inf"));
    }

    #[test]
    fn a_text_cannot_become_an_element() {
        assert_eq!(escaped("<a b=\"&\">\u{7}"), "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}");
        assert_eq!(escaped("\u{fffe}x\u{ffff}"), "\u{fffd}x\u{fffd}", "XML forbids them");
    }
}
