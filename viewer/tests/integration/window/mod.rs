//! The window, operated by pointer and keys through its labels.
//!
//! Rule: no daemon and no display; data is put in directly, and requests of the window are taken out. Not
//! here: the picture itself (`tests/system/viewer_picture.rs`), a real window on real daemons
//! (`viewer_window.rs`).

mod calls;
mod flock;
mod graphs;
mod jobs;
mod panels;
mod past;
mod pictures;
mod sensors;

use egui_kittest::Harness;
use viewer::app::{App, theme};
use wire::time::Time;

/// A window on `app`, with a stopped clock.
fn window(app: App, now: Time) -> Harness<'static, App> {
    window_of(egui::vec2(1280.0, 800.0), app, now)
}

/// The same with another size.
fn window_of(size: egui::Vec2, app: App, now: Time) -> Harness<'static, App> {
    let mut harness = Harness::builder().with_size(size).build_ui_state(
        move |ui, app: &mut App| {
            app.update(now, 0.0);
            app.ui(ui);
        },
        app,
    );
    theme::set_up(&harness.ctx);
    harness.run_steps(4);
    harness
}
