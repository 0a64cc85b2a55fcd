//! What keys do.
//!
//! Rule: a key that a field of text takes does nothing else, and while a question stands there only Esc does; every one is told in [`KEYS`], which the help shows.

use super::settings::Look;
use super::{App, tabs};
use crate::timeline::Mode;
use egui::{Key, Modifiers, Ui, Vec2, vec2};

/// Every key, and what it does.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("Space", "play or pause"),
    ("L", "go live"),
    ("N", "jump to the next failure"),
    ("[  ]", "slower, faster"),
    (",  .", "a little back, a little on"),
    ("Home  End", "the beginning, the end"),
    ("F", "show the whole map, or the graphs' usual span"),
    ("+  -", "enlarge, make smaller: the map, or what the graphs show"),
    ("arrows", "move the map, or the graphs' span of time"),
    ("Ctrl F  /", "search"),
    ("1  2  3  4  5", "map, calls, graphs, flock, sensors"),
    ("G", "graphs together, or small multiples"),
    ("K", "end the chosen process of the flock"),
    ("E  P", "a file of what is shown: a table (CSV), a picture (PNG)"),
    ("H", "hide or show the hosts"),
    ("T", "dark or light"),
    ("Esc", "choose nothing"),
];

/// Keys that have a file written, and how its name ends.
pub(super) const FILES: [(Key, &str); 2] = [(Key::E, "csv"), (Key::P, "png")];

/// Take the keys of this frame.
pub(super) fn take(app: &mut App, ui: &Ui) {
    let ctx = ui.ctx().clone();
    if ctx.input_mut(|input| input.consume_key(Modifiers::COMMAND, Key::F)) {
        app.focus_search = true;
    }
    if ctx.egui_wants_keyboard_input() {
        return;
    }
    if egui::Popup::is_any_open(&ctx) {
        // A menu takes the keys, and closes at Esc.
        return;
    }
    let pressed = |key: Key| ctx.input_mut(|input| input.consume_key(Modifiers::NONE, key));
    if app.asks_of_process() || app.asks_of_sensor() {
        if pressed(Key::Escape) && !app.leave_question() {
            app.leave_sensor_question();
        }
        return;
    }
    time(app, &pressed);
    match tabs::front(app) {
        tabs::Tab::Graphs => graphs(app, &pressed),
        tabs::Tab::Map | tabs::Tab::Calls | tabs::Tab::Flock | tabs::Tab::Sensors => map(app, &pressed),
    }
    if pressed(Key::Slash) {
        app.focus_search = true;
    }
    for (key, tab) in [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5].into_iter().zip(tabs::ALL) {
        if pressed(key) {
            tabs::open(app, tab);
        }
    }
    for (key, ending) in FILES {
        if pressed(key) {
            app.wanted_file = Some(ending);
        }
    }
    if pressed(Key::H) {
        app.settings.hides_tree ^= true;
    }
    if pressed(Key::T) {
        app.settings.look = if ctx.theme() == egui::Theme::Dark { Look::Light } else { Look::Dark };
    }
    if pressed(Key::G) {
        app.switch_graphs();
    }
    if pressed(Key::K) {
        app.ask_to_end();
    }
    if pressed(Key::Escape) {
        app.clear_flock_choice();
        app.choose_sensor(None);
        app.select(None);
    }
}

fn time(app: &mut App, pressed: &dyn Fn(Key) -> bool) {
    let timeline = &mut app.timeline;
    if pressed(Key::Space) {
        match timeline.mode() {
            Mode::Paused => timeline.play(),
            Mode::Playing | Mode::Live => timeline.pause(),
        }
    }
    if pressed(Key::L) {
        timeline.go_live();
    }
    if pressed(Key::N) {
        app.jump_to_failure();
    }
    let timeline = &mut app.timeline;
    if pressed(Key::OpenBracket) {
        timeline.set_speed(timeline.speed() / 2.0);
    }
    if pressed(Key::CloseBracket) {
        timeline.set_speed(timeline.speed() * 2.0);
    }
    let step = std::time::Duration::from_micros(u64::try_from(timeline.flight_micros()).unwrap_or(0));
    if pressed(Key::Comma) {
        timeline.scrub(timeline.time().minus(step));
    }
    if pressed(Key::Period) {
        timeline.scrub(timeline.time().plus(step));
    }
    let (first, last) = timeline.span();
    if pressed(Key::Home) {
        timeline.scrub(first);
    }
    if pressed(Key::End) {
        timeline.scrub(last);
    }
}

/// The span of the graphs: a quarter of it at each press, and narrower around its middle.
fn graphs(app: &mut App, pressed: &dyn Fn(Key) -> bool) {
    let span = &mut app.settings.graphs.span;
    if pressed(Key::F) {
        *span = crate::graphs::span::Span::default();
    }
    // One that follows the time goes on following it.
    let middle = if span.back_secs() > 0.0 { 0.5 } else { 1.0 };
    if pressed(Key::Plus) || pressed(Key::Equals) {
        span.zoom(1.25, middle);
    }
    if pressed(Key::Minus) {
        span.zoom(0.8, middle);
    }
    for (key, share) in [(Key::ArrowLeft, 0.25), (Key::ArrowRight, -0.25)] {
        if pressed(key) {
            span.pan(share);
        }
    }
}

fn map(app: &mut App, pressed: &dyn Fn(Key) -> bool) {
    if pressed(Key::F) {
        app.camera.show_whole();
    }
    let middle = app.camera.view().center();
    if pressed(Key::Plus) || pressed(Key::Equals) {
        app.camera.enlarge(1.25, middle);
    }
    if pressed(Key::Minus) {
        app.camera.enlarge(0.8, middle);
    }
    let ways: [(Key, Vec2); 4] = [
        (Key::ArrowLeft, vec2(60.0, 0.0)),
        (Key::ArrowRight, vec2(-60.0, 0.0)),
        (Key::ArrowUp, vec2(0.0, 60.0)),
        (Key::ArrowDown, vec2(0.0, -60.0)),
    ];
    for (key, way) in ways {
        if pressed(key) {
            app.camera.drag(way);
        }
    }
}
