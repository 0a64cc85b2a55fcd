//! The window itself: eframe's, with the contents of [`App`].
//!
//! The shell of the desktop: it reads the clock, requests the next frame, and has files written. Rule: a
//! frame waits for no disk (`files`). Not here: what is drawn (`app`).

mod files;

use crate::app::settings::Settings;
use crate::app::{App, Engine, text, theme};
use crate::model::Change;
use crate::picture::headless::Size;
use files::{File, Files};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval of frames while nothing moves, so that ages are right.
const IDLE_FRAME: Duration = Duration::from_millis(250);
/// Interval at which changed settings are saved.
const SAVE_INTERVAL: Duration = Duration::from_secs(3);
/// Default and least size of the window, in points.
const SIZE: (f32, f32) = (1280.0, 800.0);
const SIZE_MIN: [f32; 2] = [560.0, 360.0];

/// The window could not be opened.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot open a window: {error}; the viewer needs a desktop (DISPLAY or WAYLAND_DISPLAY) with OpenGL 2 or later; \
     --screenshot FILE makes a picture without one"
)]
pub struct Error {
    error: String,
}

/// Open the window, and return when it is closed; settings are saved in `file`, which contains `saved`.
///
/// # Errors
/// If there is no desktop, or no OpenGL.
pub fn run(mut app: App, file: Option<PathBuf>, saved: Settings) -> Result<(), Error> {
    let at_start = app.settings();
    let (width, height) = at_start.window.unwrap_or(SIZE);
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
        let files = Files::start(move || ctx.request_repaint())?;
        let (last_saved, now) = (saved.clone(), crate::clock::instant());
        let on_disk_at_start = saved;
        let window = Window {
            app,
            engine,
            files,
            file,
            at_start,
            on_disk_at_start,
            last_saved,
            last_frame: now,
            last_check: now,
        };
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
    /// The settings at the start, with those of the command line.
    at_start: Settings,
    on_disk_at_start: Settings,
    /// The settings that are in the file, or soon will be.
    last_saved: Settings,
    last_frame: Instant,
    /// When it was checked whether settings changed.
    last_check: Instant,
}

impl Window {
    /// Write what is shown into a file in the current folder; a notice names it afterwards.
    fn export(&mut self, ctx: &egui::Context, extension: &str) {
        let now = crate::clock::now();
        let stamp = text::moment(now, &jiff::tz::TimeZone::UTC, true).replace(' ', "T").replace(':', "");
        let path = PathBuf::from(format!("visperf-{stamp}Z.{extension}"));
        let scale = ctx.pixels_per_point();
        let size = ctx.content_rect().size() * scale;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let size = Size { width: size.x as u32, height: size.y as u32, scale };
        let text = format!("Writing {}", path.display());
        let app = Box::new(self.app.still());
        let text = match self.files.write(File::Contents { app, size, now, path }) {
            true => text,
            false => "Not written: files before it are not done yet".to_owned(),
        };
        self.app.apply(Change::Notify(text));
    }

    /// The settings to save, where they differ from those in the file.
    fn changed_settings(&self) -> Option<Settings> {
        let settings = self.app.settings().to_save(&self.at_start, &self.on_disk_at_start);
        (settings != self.last_saved).then_some(settings)
    }

    fn save(&mut self) {
        let Some(settings) = self.changed_settings() else { return };
        let is_saved = self
            .file
            .as_ref()
            .is_none_or(|file| self.files.write(File::Settings(Box::new(settings.clone()), file.clone())));
        if is_saved {
            self.last_saved = settings;
        }
    }
}

impl eframe::App for Window {
    fn logic(&mut self, ctx: &egui::Context, _: &mut eframe::Frame) {
        let now = crate::clock::instant();
        let secs = now.saturating_duration_since(self.last_frame).as_secs_f64();
        self.last_frame = now;
        self.app.update(crate::clock::now(), secs);
        ctx.set_theme(theme::preference(self.app.look()));
        if let Some(extension) = self.app.take_export() {
            self.export(ctx, extension);
        }
        for text in self.files.drain_notices() {
            self.app.apply(Change::Notify(text));
        }
        match self.app.model().moves() {
            true => ctx.request_repaint(),
            false => ctx.request_repaint_after(IDLE_FRAME),
        }
        let size = ctx.input(|input| input.viewport().inner_rect.map(|rect| (rect.width(), rect.height())));
        if let Some(size) = size {
            self.app.set_size(size);
        }
        if now.saturating_duration_since(self.last_check) > SAVE_INTERVAL {
            self.last_check = now;
            self.save();
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
