//! The stored past: the line zooms out to years, and graphs of any time are requested in tiles.

use egui::accesskit::Role;
use egui_kittest::kittest::Queryable as _;
use std::collections::BTreeMap;
use std::time::Duration;
use viewer::app::App;
use viewer::app::settings::Settings;
use viewer::feed::{Feed, Request, Update, WakeReason};
use viewer::flock::sweep::HostName;
use viewer::graphs::metric::Metric;
use viewer::graphs::tiles::{Ages, Lines, Point, TileRequest};
use viewer::model::{GraphsChange, TimeChange};
use viewer::timeline::Mode;
use viewer::{feed, synthetic};
use wire::time::Time;

const NOW_SECS: f64 = 2_400.0;
const DAY_SECS: f64 = 86_400.0;

fn now() -> Time {
    synthetic::time_f(NOW_SECS)
}

fn ago(days: f64) -> Time {
    now().minus(Duration::from_secs_f64(days * DAY_SECS))
}

/// A live grid of two hosts whose domain has stored five years.
fn app() -> (App, Feed) {
    let (source, inbox) = feed::feed();
    let settings = Settings::default();
    let mut app =
        App::new(synthetic::window::daemon(), Some(inbox), settings, jiff::tz::TimeZone::UTC, now());
    app.take(now(), Update::grid(synthetic::grid(1, 2, 40, 3)));
    app.take(now(), Update::Oldest(ago(1_830.0)));
    app.apply(GraphsChange::SetMetrics(vec![Metric::Load]));
    app.open_tab("graphs");
    (app, source)
}

/// The tiles that were requested last.
fn requested(source: &Feed) -> Option<Vec<TileRequest>> {
    let mut last = None;
    while let WakeReason::Requested(request) = source.rest(Duration::ZERO) {
        if let Request::Tiles(tiles) = request {
            last = Some(tiles);
        }
    }
    last
}

/// Answer with a value a step.
fn answer(app: &mut App, tile: TileRequest) {
    let (from, to) = tile.range();
    let times = std::iter::successors(Some(from), |time| Some(time.plus(tile.level.step())));
    let point = |time: Time| Point { time, mean: 2.0, least: 1.0, greatest: 7.0 };
    let points: Vec<Point> = times.take_while(|time| *time < to).map(point).collect();
    let lines = Lines::from([("load of 1 minute".to_owned(), points)]);
    let lines = Ok(BTreeMap::from([(Metric::Load, lines)]));
    app.take(now(), Update::Tile { tile, lines, oldest: None, ages: None, marks: Vec::new() });
}

/// Have everything answered that is requested; the number of tiles.
fn answer_all(app: &mut App, source: &Feed) -> usize {
    let mut count = 0;
    for _ in 0..9 {
        app.watch_graphs();
        app.update(now(), 0.0);
        for tile in requested(source).unwrap_or_default() {
            count += 1;
            answer(app, tile);
        }
    }
    count
}

#[test]
fn the_line_zooms_out_to_all_that_is_stored_and_in_again() {
    let (app, _source) = app();
    let mut window = crate::window::window(app, now());
    let shown = |window: &egui_kittest::Harness<'_, App>| window.state().model().timeline().shown();
    let hours = shown(&window).1.since(shown(&window).0).as_secs_f64() / 3_600.0;
    assert!(hours < 2.0, "the calls at first: {hours}");
    let line = egui::pos2(640.0, 765.0);
    window.hover_at(line);
    window.run_steps(2);
    for _ in 0..9 {
        window.event(egui::Event::Zoom(0.1));
        window.run_steps(2);
    }
    assert!(shown(&window).0 <= ago(1_829.0), "{:?}", shown(&window));
    window.drag_at(line);
    window.run_steps(2);
    window.drop_at(line);
    window.run_steps(2);
    let model = window.state().model();
    let years = now().since(model.time()).as_secs_f64() / 366.0 / DAY_SECS;
    assert!((2.0..3.0).contains(&years) && model.timeline().mode() != Mode::Live, "{years}");
    window.hover_at(line);
    window.run_steps(2);
    for _ in 0..9 {
        window.event(egui::Event::Zoom(10.0));
        window.run_steps(2);
    }
    let (from, to) = shown(&window);
    let time = window.state().model().time();
    assert!(
        to.since(from) <= Duration::from_secs(6) && (from..=to).contains(&time),
        "{from:?} {time:?} {to:?}"
    );
}

#[test]
fn any_time_of_a_daemon_can_be_opened_before_it_has_answered() {
    let (source, inbox) = feed::feed();
    let settings = Settings::default();
    let mut app =
        App::new(synthetic::window::daemon(), Some(inbox), settings, jiff::tz::TimeZone::UTC, now());
    app.apply(TimeChange::StopAt(ago(300.0)));
    let shown = |app: &App| (app.model().time(), app.model().timeline().mode());
    assert_eq!(shown(&app), (ago(300.0), Mode::Paused));
    app.take(now(), Update::grid(synthetic::grid(1, 2, 40, 3)));
    app.update(now(), 1.0);
    assert_eq!(shown(&app), (ago(300.0), Mode::Paused), "it stays there");
    app.apply(TimeChange::GoLive);
    app.take(now(), Update::grid(synthetic::grid(1, 2, 50, 3)));
    assert!(app.model().timeline().span().0 > ago(1.0), "the line is as long as what is known");
    app.apply(TimeChange::StopAt(Time::from_micros(i64::MIN)));
    assert!(shown(&app).0 > ago(1.0), "that is no time");
    drop(source);
}

#[test]
fn graphs_of_the_past_are_requested_for_what_is_looked_at() {
    let (mut app, source) = app();
    assert!(answer_all(&mut app, &source) == 0, "the last minutes are received");
    app.apply(TimeChange::StopAt(ago(400.0)));
    app.apply(GraphsChange::SetSpan(30.0 * DAY_SECS));
    let count = answer_all(&mut app, &source);
    assert!((4..=12).contains(&count), "{count} tiles of two hosts");
    let host = HostName::new("UT-ICL", "wn001");
    let value = |app: &App, days: f64| {
        app.model().graph_values(&host, &Metric::Load, viewer::graphs::metric::Shows::Parts, ago(days))
    };
    assert_eq!(value(&app, 415.0), [("load of 1 minute".to_owned(), Some(2.0))]);
    assert_eq!(answer_all(&mut app, &source), 0, "once");

    app.apply(GraphsChange::Compare(Some(Duration::from_secs(28 * 86_400))));
    assert!(answer_all(&mut app, &source) > 0, "four weeks earlier, as far as it is not there");
    let lines = app.model().graph_lines(&host, &Metric::Load, viewer::graphs::metric::Shows::Parts, 500);
    assert_eq!(lines.iter().map(|line| line.is_earlier).collect::<Vec<_>>(), [false, true]);
    assert!(lines[1].points.len() > 400 && lines[1].bounds[0][2] == 7.0);
    let mut window = crate::window::window(app, now());
    assert!(window.query_by_role_and_label(Role::Button, "and four weeks earlier").is_some());
    assert!(window.query_by_label("steps of 1 h").is_some(), "720 of 1,200");
    let ages = Ages { samples: Some(ago(14.0)), minutes: Some(ago(90.0)), hours: Some(ago(800.0)) };
    let mut of_host = |ages: Ages| {
        window.state_mut().apply(GraphsChange::SetSpan(300.0));
        window.state_mut().update(now(), 0.0);
        let tile = requested(&source).unwrap_or_default().remove(0);
        let (lines, ages) = (Ok(BTreeMap::new()), Some(ages));
        window.state_mut().take(now(), Update::Tile { tile, lines, oldest: None, ages, marks: Vec::new() });
        window.run_steps(2);
        window.query_by_label("steps of 1 h").is_some()
    };
    assert!(of_host(ages), "no finer ones are stored of that time");
}
