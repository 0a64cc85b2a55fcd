//! The window itself: eframe's, with the contents of [`App`].
//!
//! The shell of the desktop: it reads the clock, asks for the next frame, and has files written. Rule: a frame waits for
//! no disk (`files`). Not here: what is drawn.

use super::files::{File, Files};
use super::flock::Engine;
use super::settings::{Look, Settings};
use super::{App, theme};
use crate::picture::headless::Size;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often a window in which nothing moves is drawn, so that ages are right.
const IDLE_FRAME: Duration = Duration::from_millis(250);
/// How often changed settings are kept.
const KEEP_EVERY: Duration = Duration::from_secs(3);
/// The usual size of the window, in points, and the least.
const SIZE: (f32, f32) = (1280.0, 800.0);
const SIZE_MIN: [f32; 2] = [560.0, 360.0];

/// Why there is no window.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot open a window: {error}; the viewer needs a desktop (DISPLAY or WAYLAND_DISPLAY) with OpenGL 2 or later; \
     --screenshot FILE makes a picture without one"
)]
pub struct Error {
    error: String,
}

/// Open the window, and stay until it is closed; settings are kept in `file`, in which stood `before`.
///
/// # Errors
/// If there is no desktop, or no OpenGL.
pub fn run(mut app: App, file: Option<PathBuf>, before: Settings) -> Result<(), Error> {
    app.remember_tabs();
    let begun = app.settings.clone();
    let (width, height) = app.settings.window.unwrap_or(SIZE);
    let viewport = egui::ViewportBuilder::default()
        .with_title("visperf")
        .with_app_id("visperf-viewer")
        .with_inner_size([width.clamp(SIZE_MIN[0], 16_384.0), height.clamp(SIZE_MIN[1], 16_384.0)])
        .with_min_inner_size(SIZE_MIN);
    let options = eframe::NativeOptions { viewport, ..eframe::NativeOptions::default() };
    let create = |context: &eframe::CreationContext<'_>| {
        theme::set_up(&context.egui_ctx);
        let ctx = context.egui_ctx.clone();
        let waker = ctx.clone();
        app.wake_by(move || waker.request_repaint());
        let engine = context.gl.as_deref().and_then(Engine::of);
        app.draw_instances(engine.clone());
        let files = Files::begin(move || ctx.request_repaint())?;
        let (kept, last) = (before.clone(), crate::clock::instant());
        let window = Window { app, engine, files, file, begun, before, kept, last, looked: last };
        Ok(Box::new(window) as Box<dyn eframe::App>)
    };
    eframe::run_native("visperf", options, Box::new(create))
        .map_err(|error| Error { error: error.to_string() })
}

struct Window {
    app: App,
    engine: Option<Engine>,
    files: Files,
    file: Option<PathBuf>,
    /// The settings at the begin, of which some are the command line's, and those that stood in the file then.
    begun: Settings,
    before: Settings,
    /// The settings as they stand in the file, or soon will.
    kept: Settings,
    last: Instant,
    looked: Instant,
}

impl Window {
    /// Have what is shown written into a file in the folder where the viewer was started; its name is told when it is.
    fn export(&mut self, ctx: &egui::Context, ending: &str) {
        let now = crate::clock::now();
        let stamp =
            super::text::moment(now, &jiff::tz::TimeZone::UTC, true).replace(' ', "T").replace(':', "");
        let path = PathBuf::from(format!("visperf-{stamp}Z.{ending}"));
        let scale = ctx.pixels_per_point();
        let size = ctx.content_rect().size() * scale;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let size = Size { width: size.x as u32, height: size.y as u32, scale };
        let words = format!("Writing {}", path.display());
        let app = Box::new(self.app.still());
        let words = match self.files.write(File::Contents { app, size, now, path }) {
            true => words,
            false => "Not written: files before it are not done yet".to_owned(),
        };
        self.app.notify(now, words);
    }

    /// The settings that are to be kept, where they are others than those that are.
    fn changed_settings(&mut self) -> Option<Settings> {
        self.app.remember_tabs();
        let settings = self.app.lasting_settings().to_keep(&self.begun, &self.before);
        (settings != self.kept).then_some(settings)
    }

    fn keep(&mut self) {
        let Some(settings) = self.changed_settings() else { return };
        let is_kept = self
            .file
            .as_ref()
            .is_none_or(|file| self.files.write(File::Settings(Box::new(settings.clone()), file.clone())));
        if is_kept {
            self.kept = settings;
        }
    }
}

impl eframe::App for Window {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        let now = crate::clock::instant();
        let secs = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = now;
        self.app.update(crate::clock::now(), secs);
        ctx.set_theme(preference(self.app.settings.look));
        if let Some(ending) = self.app.take_wanted_file() {
            self.export(ctx, ending);
        }
        for words in self.files.told() {
            self.app.notify(crate::clock::now(), words);
        }
        match self.app.moves() {
            true => ctx.request_repaint(),
            false => ctx.request_repaint_after(IDLE_FRAME),
        }
        let size = ctx.input(|input| input.viewport().inner_rect.map(|rect| (rect.width(), rect.height())));
        self.app.settings.window = size.or(self.app.settings.window);
        if now.saturating_duration_since(self.looked) > KEEP_EVERY {
            self.looked = now;
            self.keep();
        }
    }

    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        self.app.ui(ui);
    }

    fn on_exit(&mut self, gl: Option<&eframe::glow::Context>) {
        if let (Some(engine), Some(gl)) = (&self.engine, gl) {
            engine.end(gl);
        }
        if let (Some(settings), Some(file)) = (self.changed_settings(), self.file.take()) {
            self.files.write_at_last(File::Settings(Box::new(settings), file));
        }
    }

    fn clear_color(&self, visuals: &egui::Visuals) -> [f32; 4] {
        visuals.panel_fill.to_normalized_gamma_f32()
    }
}

/// What egui calls it.
#[must_use]
pub fn preference(look: Look) -> egui::ThemePreference {
    match look {
        Look::System => egui::ThemePreference::System,
        Look::Dark => egui::ThemePreference::Dark,
        Look::Light => egui::ThemePreference::Light,
    }
}
