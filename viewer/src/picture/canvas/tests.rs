//! Rasterizer: half transparent triangles have no seams; textures and clips are respected; invalid meshes
//! draw nothing.

use super::*;
use egui::epaint::ColorImage;
use egui::{Pos2, Rect, TextureOptions, pos2};

fn textures(image: ColorImage) -> Textures {
    let mut textures = Textures::default();
    let mut delta = TexturesDelta::default();
    let change = egui::epaint::ImageDelta::full(image, TextureOptions::LINEAR);
    delta.set.push((TextureId::default(), change));
    textures.apply(delta);
    textures
}

fn white() -> Textures {
    textures(ColorImage::new([1, 1], vec![Color32::WHITE]))
}

fn drawn(mesh: Mesh, clip: Rect, textures: &Textures) -> Canvas {
    let mut canvas = Canvas::new(8, 8, Color32::BLACK);
    let primitive = ClippedPrimitive { clip_rect: clip, primitive: Primitive::Mesh(mesh) };
    canvas.draw(&[primitive], textures, 1.0);
    canvas
}

fn quad(rect: Rect, color: Color32) -> Mesh {
    let mut mesh = Mesh::default();
    mesh.add_colored_rect(rect, color);
    mesh
}

const EVERYWHERE: Rect = Rect { min: Pos2::ZERO, max: Pos2 { x: 8.0, y: 8.0 } };

#[test]
fn a_rectangle_of_two_triangles_has_no_seam() {
    let half = Color32::from_rgba_premultiplied(64, 64, 64, 128);
    let canvas = drawn(quad(Rect::from_min_max(pos2(1.0, 1.0), pos2(6.0, 7.0)), half), EVERYWHERE, &white());
    for y in 0..8 {
        for x in 0..8 {
            let inside = (1..6).contains(&x) && (1..7).contains(&y);
            assert_eq!(canvas.pixel(x, y), if inside { [64; 3] } else { [0; 3] }, "{x} {y}");
        }
    }
}

#[test]
fn neighbours_share_no_pixel_and_leave_none() {
    let half = Color32::from_rgba_premultiplied(64, 64, 64, 128);
    let mut mesh = quad(Rect::from_min_max(pos2(0.0, 0.0), pos2(3.5, 8.0)), half);
    mesh.append(quad(Rect::from_min_max(pos2(3.5, 0.0), pos2(8.0, 8.0)), half));
    let canvas = drawn(mesh, EVERYWHERE, &white());
    assert!((0..8).all(|x| canvas.pixel(x, 4) == [64; 3]));
}

#[test]
fn nothing_is_drawn_outside_the_clip() {
    let clip = Rect::from_min_max(pos2(2.0, 2.0), pos2(4.0, 99.0));
    let canvas = drawn(quad(EVERYWHERE, Color32::WHITE), clip, &white());
    let lit =
        (0..8).flat_map(|y| (0..8).map(move |x| (x, y))).filter(|&(x, y)| canvas.pixel(x, y) == [255; 3]);
    assert_eq!(lit.count(), 2 * 6);
}

#[test]
fn textures_are_read_and_patched() {
    let colors = vec![Color32::RED, Color32::GREEN, Color32::BLUE, Color32::WHITE];
    let mut textures = textures(ColorImage::new([2, 2], colors));
    let mesh = || {
        let mut mesh = Mesh::default();
        mesh.add_rect_with_uv(EVERYWHERE, Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0)), Color32::WHITE);
        mesh
    };
    let canvas = drawn(mesh(), EVERYWHERE, &textures);
    let corners = [canvas.pixel(0, 0), canvas.pixel(7, 0), canvas.pixel(0, 7), canvas.pixel(7, 7)];
    assert_eq!(corners, [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]);
    let mut delta = TexturesDelta::default();
    let patch = ColorImage::new([1, 1], vec![Color32::BLACK]);
    let change = egui::epaint::ImageDelta::partial([1, 1], patch, TextureOptions::LINEAR);
    delta.set.push((TextureId::default(), change));
    textures.apply(delta);
    assert_eq!(drawn(mesh(), EVERYWHERE, &textures).pixel(7, 7), [0; 3]);
}

#[test]
fn odd_meshes_draw_nothing() {
    let mut mesh = quad(EVERYWHERE, Color32::WHITE);
    mesh.vertices[0].pos.x = f32::NAN;
    mesh.vertices[2].pos = mesh.vertices[1].pos;
    mesh.indices.extend([0, 1, 900]);
    let canvas = drawn(mesh, EVERYWHERE, &white());
    assert_eq!(canvas, Canvas::new(8, 8, Color32::BLACK));
    let unknown = Mesh { texture_id: TextureId::User(7), ..quad(EVERYWHERE, Color32::WHITE) };
    assert_eq!(drawn(unknown, EVERYWHERE, &white()), Canvas::new(8, 8, Color32::BLACK));
    assert_eq!(Canvas::new(1 << 40, 1 << 40, Color32::BLACK).width(), SIDE_MAX);
}
