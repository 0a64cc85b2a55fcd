//! Rendering of the window's contents without a window.
//!
//! Rule: the picture is what the window would show of the same source at the same time; the clock does not
//! advance.

use super::canvas::{Canvas, Textures};
use crate::app::settings::Look;
use crate::app::{App, theme};
use egui::{Color32, Context, Event, Pos2, RawInput, Rect, pos2, vec2};
use wire::time::Time;

/// Frames until the layout is stable: sizes of panels are known after the first, of texts after the second.
const FRAMES: u32 = 6;
/// Seconds of the window's clock between two frames: animations of opening and hovering have ended at the
/// last.
const FRAME_SECS: f64 = 0.5;
/// Maximum side of a texture, in texels; no graphics card limits it.
const TEXTURE_SIDE_MAX: usize = 8_192;

/// Smallest scale, in pixels per point.
pub const SCALE_MIN: f32 = 0.25;
/// Largest scale, in pixels per point.
pub const SCALE_MAX: f32 = 8.0;

/// Size and scale of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Pixels per point: 2 on a screen of high resolution.
    pub scale: f32,
}

/// A window without a display.
pub struct Headless {
    ctx: Context,
    textures: Textures,
    size: Size,
    now: Time,
    frame: u32,
    events: Vec<Event>,
}

impl Headless {
    /// A window of this size, with the clock at `now`.
    #[must_use]
    pub fn new(size: Size, now: Time) -> Headless {
        let ctx = Context::default();
        theme::set_up(&ctx);
        Headless { ctx, textures: Textures::default(), size, now, frame: 0, events: Vec::new() }
    }

    /// Move the pointer before the next frame; the position is in points.
    pub fn point(&mut self, at: Pos2) {
        self.events.push(Event::PointerMoved(at));
    }

    /// Queue an input event for the next frame.
    pub fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Set the clock for the following frames.
    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Run some frames; returns the triangles of the last.
    pub fn frames(&mut self, app: &mut App, count: u32) -> Vec<egui::ClippedPrimitive> {
        let mut last = Vec::new();
        for left in (0..count.max(1)).rev() {
            let output = self.frame(app);
            self.textures.apply(output.textures_delta);
            if left == 0 {
                last = self.ctx.tessellate(output.shapes, output.pixels_per_point);
            }
        }
        last
    }

    /// The picture once the layout is stable.
    #[must_use]
    pub fn picture(&mut self, app: &mut App) -> Canvas {
        let primitives = self.frames(app, FRAMES);
        let size = [self.size.width, self.size.height].map(|side| usize::try_from(side).unwrap_or(1));
        let mut canvas = Canvas::new(size[0], size[1], Color32::BLACK);
        canvas.draw(&primitives, &self.textures, self.size.scale);
        canvas
    }

    #[allow(clippy::cast_precision_loss)]
    fn frame(&mut self, app: &mut App) -> egui::FullOutput {
        let scale = self.size.scale.clamp(SCALE_MIN, SCALE_MAX);
        let points = vec2(self.size.width as f32, self.size.height as f32) / scale;
        let mut input = RawInput {
            screen_rect: Some(Rect::from_min_size(pos2(0.0, 0.0), points)),
            time: Some(f64::from(self.frame) * FRAME_SECS),
            max_texture_side: Some(TEXTURE_SIDE_MAX),
            focused: true,
            events: std::mem::take(&mut self.events),
            ..RawInput::default()
        };
        input.viewports.entry(input.viewport_id).or_default().native_pixels_per_point = Some(scale);
        self.frame += 1;
        app.update(self.now, 0.0);
        let look = if app.look() == Look::System { Look::Dark } else { app.look() };
        self.ctx.set_theme(theme::preference(look));
        self.ctx.run_ui(input, |ui| app.ui(ui))
    }
}
