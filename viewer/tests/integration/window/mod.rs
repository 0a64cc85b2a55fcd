//! The window, worked as a person works it: by what stands on it, with a pointer and keys.
//!
//! Rule: no daemon and no display; what a daemon would tell is put in, and what the window wishes is taken out.
//! Not here: the picture itself (`tests/system/viewer_picture.rs`), a real window on real daemons (`viewer_window.rs`).

mod calls;
mod flock;
mod graphs;
mod panels;
mod pictures;
mod sensors;

use egui_kittest::Harness;
use viewer::app::{App, theme};
use wire::time::Time;

/// A window on `app`, at a time that stands still.
fn window(app: App, now: Time) -> Harness<'static, App> {
    window_of(egui::vec2(1280.0, 800.0), app, now)
}

/// Likewise, of another size.
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
