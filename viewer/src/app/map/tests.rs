//! A drag on the map while a new grid arrives.

use crate::app::App;
use crate::app::settings::Settings;
use crate::feed::Update;
use crate::grid::Grid;
use crate::grid::builder::Builder;
use crate::grid::place::{HostState, PlaceId, Report};
use crate::layout::Point;
use crate::picture::headless::{Headless, Size};
use crate::synthetic;
use egui::{Event, Modifiers, PointerButton, Pos2, vec2};

fn grid(hosts: &[&str]) -> Grid {
    let mut builder = Builder::new(synthetic::latest());
    let domain = builder.domain("demo").expect("there is room");
    for host in hosts {
        builder.host(domain, host, HostState::Live, Report::default());
    }
    builder.build()
}

/// A window on these hosts, in which the one of this number is pressed and moved a little.
fn pressed(hosts: &[&str], number: u32) -> (Headless, App, Pos2) {
    let now = synthetic::latest();
    let mut app = App::new(synthetic::window::log(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::grid(grid(hosts)));
    let mut window = Headless::new(Size { width: 1280, height: 800, scale: 1.0 }, now);
    window.frames(&mut app, 3);
    let place = app.model.layout().places[PlaceId(number).at()];
    let at = app.tabs.map().camera.on_screen(place);
    window.point(at);
    window.frames(&mut app, 1);
    window.event(Event::PointerButton {
        pos: at,
        button: PointerButton::Primary,
        pressed: true,
        modifiers: Modifiers::NONE,
    });
    window.frames(&mut app, 1);
    window.point(at + vec2(30.0, 0.0));
    window.frames(&mut app, 1);
    assert!(app.tabs.map().dragged.is_some() && !app.model.placed().moves().is_empty(), "it is dragged");
    (window, app, at)
}

fn at(app: &App, name: &str) -> Point {
    let place = app.model.grid().places.iter().position(|place| place.name == name).expect("it is there");
    app.model.layout().places[place]
}

#[test]
fn a_drag_goes_on_with_the_same_host_when_another_comes_before_it() {
    let (mut window, mut app, from) = pressed(&["wn02", "wn03"], 0);
    app.take(synthetic::latest(), Update::grid(grid(&["wn01", "wn02", "wn03"])));
    let unmoved = |app: &App, name: &str| {
        let place = app.model.grid().places.iter().position(|place| place.name == name).expect("it is there");
        app.model.placed().drawn().layout.places[place]
    };
    window.point(from + vec2(60.0, 0.0));
    window.frames(&mut app, 1);
    assert_eq!(at(&app, "wn01"), unmoved(&app, "wn01"), "it was not moved");
    assert!(at(&app, "wn02").x > unmoved(&app, "wn02").x + 30.0);
}

#[test]
fn a_drag_of_what_is_there_no_more_moves_nothing() {
    let (mut window, mut app, from) = pressed(&["wn01", "wn02", "wn03"], 2);
    app.take(synthetic::latest(), Update::grid(grid(&["wn01"])));
    let moves = app.model.placed().moves().clone();
    window.point(from + vec2(60.0, 0.0));
    window.frames(&mut app, 2);
    assert_eq!(*app.model.placed().moves(), moves);
}

#[test]
fn tiles_are_as_large_as_their_room_lets_them_be_and_none_is_left_out() {
    for (room, number, pixel) in [
        ((214.0, 45.0), 500.0, 1.0),
        ((214.0, 45.0), 500.0, 0.5),
        ((300.0, 70.0), 37.0, 1.0),
        ((90.0, 31.0), 400.0, 0.5),
    ] {
        let room = egui::vec2(room.0, room.1);
        let size = super::labels::tile_size(room, number, pixel);
        let holds = |size: f32| (room.x / size).floor() * (room.y / size).floor() >= number;
        assert!(holds(size), "{number} of {size} in {room}");
        assert!(!holds(size + pixel) || size + pixel > 9.0, "{number} could be larger than {size} in {room}");
    }
}
