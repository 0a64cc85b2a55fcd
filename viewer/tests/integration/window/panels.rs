//! Panels of the window, operated through their labels.

use egui::Key;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use viewer::app::settings::Settings;
use viewer::app::{App, Source};
use viewer::feed::{Status, Update};
use viewer::grid::Grid;
use viewer::model::{Change, TimeChange};
use viewer::synthetic;
use viewer::timeline::Mode;

fn app(source: Source, grid: Grid) -> App {
    let now = synthetic::latest();
    let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::grid(grid));
    app
}

fn window(app: App) -> Harness<'static, App> {
    crate::window::window(app, synthetic::latest())
}

fn two_hosts() -> Grid {
    let mut failed = synthetic::call("slurm:2", "bob", &["wn02"]);
    failed.outcome = Some(wire::event::Outcome::Failed);
    synthetic::one_domain(&[synthetic::call("slurm:1", "ada", &["wn01"]), failed])
}

#[test]
fn a_host_is_chosen_by_a_click_and_described() {
    let mut window = window(app(synthetic::window::log(), two_hosts()));
    assert!(window.query_by_label("Close").is_none());
    window.get_by_label("wn02").click();
    window.run_steps(3);
    assert!(window.query_by_label("not monitored").is_some(), "its state is shown");
    window.key_press(Key::Escape);
    window.run_steps(3);
    assert!(window.query_by_label("Close").is_none(), "nothing is chosen any more");
}

#[test]
fn calls_are_listed_in_their_tab_and_found_by_the_search() {
    let mut app = app(synthetic::window::log(), two_hosts());
    app.apply(TimeChange::StopAt(synthetic::time_f(1e6)));
    let mut window = window(app);
    window.key_press(Key::Num2);
    window.run_steps(3);
    assert!(window.query_by_label("slurm:1").is_some() && window.query_by_label("slurm:2").is_some());
    window.state_mut().apply(Change::Search("user:bob".into()));
    window.run_steps(3);
    assert!(window.query_by_label("slurm:1").is_none() && window.query_by_label("slurm:2").is_some());
    window.get_by_label("slurm:2").click();
    window.run_steps(3);
    assert!(window.query_by_label("To its end").is_some());
}

#[test]
fn keys_play_pause_and_jump() {
    let mut window = window(app(synthetic::window::log(), two_hosts()));
    assert_eq!(window.state().model().timeline().mode(), Mode::Playing);
    window.key_press(Key::Space);
    window.run_steps(2);
    assert_eq!(window.state().model().timeline().mode(), Mode::Paused);
    window.key_press(Key::N);
    window.run_steps(2);
    let ended = synthetic::time_f(60.0);
    assert_eq!(window.state().model().timeline().time(), ended, "it is seen to have failed");
    assert!(window.query_by_label("slurm:2").is_some(), "what fails is chosen");
    let before = window.state().model().timeline().speed();
    window.key_press(Key::CloseBracket);
    window.run_steps(2);
    assert!(window.state().model().timeline().speed() > before);
}

#[test]
fn the_wheel_over_the_line_of_time_moves_along_it() {
    let mut window = window(app(synthetic::window::log(), two_hosts()));
    let middle = synthetic::time_f(35.0);
    window.state_mut().apply(TimeChange::StopAt(middle));
    let turn = |window: &mut Harness<'_, App>, at: egui::Pos2, points: f32| {
        window.hover_at(at);
        window.event(egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Point,
            delta: egui::vec2(0.0, points),
            modifiers: egui::Modifiers::NONE,
            phase: egui::TouchPhase::Move,
        });
        window.run_steps(20);
        window.state().model().timeline().time()
    };
    let line = egui::pos2(600.0, 780.0);
    assert_eq!(turn(&mut window, egui::pos2(600.0, 400.0), 50.0), middle, "that enlarges the map");
    let later = turn(&mut window, line, 50.0);
    assert!(later > middle);
    assert!(turn(&mut window, line, -90.0) < middle);
}

#[test]
fn a_lost_daemon_is_said_and_what_is_known_stays() {
    let mut app = app(Source::Daemon("127.0.0.1:7317".into()), two_hosts());
    let now = synthetic::latest();
    app.take(now, Update::Status(Status::Lost { what: "no daemon answers".into() }));
    let window = window(app);
    assert!(window.query_by_label_contains("no connection").is_some());
    assert!(window.query_by_label("wn01").is_some());
}

#[test]
fn a_host_that_says_nothing_for_three_seconds_is_silent() {
    let mut app = App::new(
        Source::Daemon("127.0.0.1:7317".into()),
        None,
        Settings::default(),
        jiff::tz::TimeZone::UTC,
        synthetic::time_f(100.0),
    );
    let mut builder = viewer::grid::builder::Builder::new(synthetic::latest());
    let domain = builder.domain("Alpha").expect("there is room");
    let report = viewer::grid::place::Report { age_secs: Some(0.5), ..Default::default() };
    builder.host(domain, "wn01", viewer::grid::place::HostState::Live, report);
    app.take(synthetic::time_f(100.0), Update::grid(builder.build()));
    let id = viewer::grid::place::PlaceId(0);
    app.apply(Change::Select(Some(viewer::app::Selection::of_place(app.model().grid(), id))));
    let drawn_at = |app: App, secs: f64| {
        let mut harness = Harness::builder().with_size(egui::vec2(1280.0, 800.0)).build_ui_state(
            move |ui, app: &mut App| {
                app.update(synthetic::time_f(secs), 0.0);
                app.ui(ui);
            },
            app,
        );
        harness.run_steps(3);
        let is_silent = harness.query_by_label("silent").is_some();
        (is_silent, harness.into_state())
    };
    let (early, app) = drawn_at(app, 102.4);
    let (late, _) = drawn_at(app, 102.6);
    assert_eq!((early, late), (false, true));
}

#[test]
fn figures_are_of_now_alone() {
    let now = synthetic::time_f(100.0);
    let source = Source::Daemon("127.0.0.1:7317".into());
    let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now);
    let mut builder = viewer::grid::builder::Builder::new(synthetic::latest());
    let domain = builder.domain("Alpha").expect("there is room");
    let report = viewer::grid::place::Report { cpu_used: Some(0.5), ..Default::default() };
    builder.host(domain, "wn01", viewer::grid::place::HostState::Live, report);
    builder.call(domain, &synthetic::call("slurm:1", "ada", &["wn01"]));
    app.take(now, Update::grid(builder.build()));
    assert!(app.select_named("wn01"));
    let mut window = crate::window::window(app, now);
    assert!(window.query_by_label("50 %").is_some(), "live");
    window.key_press(Key::Space);
    window.run_steps(3);
    assert!(window.query_by_label("50 %").is_some(), "a pause of now is now");
    window.state_mut().apply(TimeChange::StopAt(synthetic::time_f(50.0)));
    window.run_steps(3);
    assert!(window.query_by_label("50 %").is_none() && window.query_by_label("figures").is_some());
    window.key_press(Key::L);
    window.run_steps(3);
    assert!(window.query_by_label("50 %").is_some() && window.query_by_label("figures").is_none());
}

#[test]
fn of_a_call_only_what_was_by_then_is_shown() {
    let mut app = app(synthetic::window::log(), two_hosts());
    app.apply(TimeChange::StopAt(synthetic::time_f(15.0)));
    assert!(app.select_named("slurm:2"));
    let mut window = window(app);
    let mut shown_at = |secs: f64, names: [&str; 4]| {
        window.state_mut().apply(TimeChange::StopAt(synthetic::time_f(secs)));
        window.run_steps(3);
        names.map(|name| window.query_all_by_label(name).count())
    };
    let names = ["hosts", "worked", "ended", "failed"];
    let [waits, works, over] = [15.0, 40.0, 60.0].map(|secs| shown_at(secs, names));
    assert_eq!(waits, [0, 0, 0, 0], "it waits");
    assert_eq!(works, [1, 1, 0, 0], "it is at work");
    assert_eq!(over, [1, 1, 1, 1], "it failed");
}

#[test]
fn a_hostile_grid_is_drawn_and_what_was_refused_is_shown() {
    let mut builder = viewer::grid::builder::Builder::new(synthetic::latest());
    let domain = builder.domain(&"ש\u{202e}\u{7}long ".repeat(60)).expect("there is room");
    for number in 0..30_000 {
        let report = viewer::grid::place::Report { cpu_used: Some(f64::NAN), ..Default::default() };
        let name = format!("{}{number}", "n".repeat(200));
        builder.host(domain, &name, viewer::grid::place::HostState::Live, report);
    }
    let mut call = synthetic::call("x:1", &"u".repeat(300), &["a\u{0}b"]);
    call.ended = Some(wire::time::Time::from_micros(253_402_300_799_000_000));
    builder.call(domain, &call);
    let window = window(app(synthetic::window::log(), builder.build()));
    assert!(window.query_by_label_contains("not shown whole").is_some());
}

#[test]
fn a_name_in_several_domains_is_reported_and_one_of_them_can_be_named() {
    let mut window = window(app(synthetic::window::log(), synthetic::grid(3, 4, 20, 1)));
    let host = window
        .state()
        .model()
        .grid()
        .places
        .iter()
        .find(|place| place.name == "wn003")
        .map(|place| place.name.clone());
    let host = host.expect("each domain has one");
    assert!(window.state_mut().select_named(&host));
    window.run_steps(2);
    assert!(window.query_by_label_contains("is in 3 domains").is_some());
    let last = window.state().model().grid().domains.last().unwrap().name.clone();
    assert!(window.state_mut().select_named(&format!("{last}/{host}")));
    let expected = viewer::app::Selection::Place {
        domain: last,
        part: viewer::grid::place::Part::Server,
        name: host.clone(),
    };
    assert_eq!(window.state().model().selection(), Some(&expected));
    assert!(!window.state_mut().select_named(&format!("nowhere/{host}")));
}

#[test]
fn words_that_mean_nothing_are_reported_with_what_would() {
    let mut app = app(synthetic::window::log(), two_hosts());
    app.apply(Change::Search("kind:paralel".into()));
    assert!(
        app.model()
            .filter()
            .error()
            .is_some_and(|text| text.contains("parallel") && text.contains("kind:paralel"))
    );
    app.apply(Change::Search("kind:parallel".into()));
    assert_eq!(app.model().filter().error(), None);
}

#[test]
fn what_is_shown_is_wished_as_a_file_by_a_key() {
    let mut window = window(app(synthetic::window::log(), two_hosts()));
    for (key, ending) in [(Key::E, "csv"), (Key::P, "png")] {
        window.key_press(key);
        window.run_steps(2);
        assert_eq!(window.state_mut().take_export(), Some(ending));
    }
    assert_eq!(window.state_mut().take_export(), None, "once");
}
