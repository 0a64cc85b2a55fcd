//! The tab of jobs: the search and its completions, the table of many rows, and the page of a job.
//!
//! Rule: what the window requests is taken out of its feed and answered by synthetic jobs.

use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use std::time::Duration;
use viewer::app::settings::Settings;
use viewer::app::{App, Selection, Source};
use viewer::feed::{Feed, JobsRequest, JobsUpdate, Request, Update, WakeReason};
use viewer::jobs::SeriesRequest;
use viewer::model::JobsChange;
use viewer::timeline::Mode;
use viewer::{feed, synthetic};
use wire::time::Time;

const NOW_SECS: f64 = 3_000.0;

fn now() -> Time {
    synthetic::time_f(NOW_SECS)
}

fn app(source: Source) -> App {
    let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now());
    app.take(now(), Update::grid(synthetic::one_domain(&[synthetic::call("slurm:7", "ada", &["wn01"])])));
    app
}

/// A window with this many jobs, and the feed of its requests.
fn window(count: u32) -> (Harness<'static, App>, Feed) {
    let mut app = app(synthetic::window::daemon());
    let feed = synthetic::window::show_jobs(&mut app, count, now());
    (crate::window::window(app, now()), feed)
}

/// Rows that are laid out.
fn rows(window: &Harness<'_, App>) -> usize {
    window.query_all_by_label_contains("job slurm:").count()
}

/// The curves of rows that are requested.
fn series(feed: &Feed) -> Vec<SeriesRequest> {
    let mut found = Vec::new();
    while let WakeReason::Requested(request) = feed.rest(Duration::ZERO) {
        if let Request::Jobs(JobsRequest::Series(requests)) = request {
            found = requests;
        }
    }
    found
}

fn search(window: &mut Harness<'_, App>, text: &str) {
    window.state_mut().apply(viewer::app::Command::FocusSearch);
    window.run_steps(2);
    window.event(egui::Event::Text(text.to_owned()));
    window.run_steps(2);
}

fn press(window: &mut Harness<'_, App>, key: egui::Key) {
    window.key_press(key);
    window.run_steps(2);
}

#[test]
fn of_a_hundred_thousand_jobs_the_visible_ones_alone_are_laid_out() {
    let (mut window, feed) = window(100_000);
    assert!(window.query_by_label("100000 jobs").is_some());
    let visible = rows(&window);
    assert!((10..50).contains(&visible), "{visible} rows");
    let requested = series(&feed);
    assert!((5..50).contains(&requested.len()), "curves of {} rows", requested.len());
    window.hover_at(egui::pos2(700.0, 400.0));
    window.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: egui::vec2(0.0, -1e7),
        modifiers: egui::Modifiers::NONE,
        phase: egui::TouchPhase::Move,
    });
    window.run_steps(40);
    assert!(window.query_by_label_contains("job slurm:1 ").is_some(), "the oldest is at the end");
    let visible = rows(&window);
    assert!((10..50).contains(&visible), "{visible} rows");
}

#[test]
fn a_click_on_a_head_sorts() {
    let (mut window, _feed) = window(300);
    let first = |window: &Harness<'_, App>| window.state().model().jobs().rows().at(0).map(|row| row.number);
    assert_eq!(first(&window), Some(300), "the newest first");
    for expected in [300, 1] {
        window.get_by_label("sort by job").click();
        window.run_steps(2);
        assert_eq!(first(&window), Some(expected));
    }
}

#[test]
fn the_search_is_completed_and_searched_by_enter() {
    let (mut window, feed) = window(50);
    search(&mut window, "user:mro");
    assert!(window.query_by_label("user:mrossi").is_some(), "a user that the rows have");
    press(&mut window, egui::Key::Tab);
    search(&mut window, "outcome:fa");
    press(&mut window, egui::Key::ArrowDown);
    press(&mut window, egui::Key::Enter);
    search(&mut window, "ran > 1h");
    press(&mut window, egui::Key::Enter);
    assert_eq!(window.state().model().jobs().text(), "user:mrossi outcome:failed ran > 1h");
    let query = synthetic::window::jobs_query(&feed).expect("it is searched");
    assert_eq!(query.params.user.as_deref(), Some("mrossi"));
    assert_eq!((query.params.outcome.len(), query.params.conditions.len()), (1, 1));
    assert!(query.params.since.is_some(), "of the last day");
}

#[test]
fn an_error_is_shown_and_what_is_loaded_remains() {
    let (mut window, feed) = window(50);
    window.state_mut().apply(JobsChange::Search("usr:ada".into()));
    window.run_steps(2);
    assert!(window.query_by_label_contains("did you mean user").is_some());
    assert!(rows(&window) > 10, "the rows remain");
    window.state_mut().apply(JobsChange::Search(String::new()));
    window.run_steps(2);
    let query = synthetic::window::jobs_query(&feed).expect("it is searched");
    let page = Err("expected a condition".to_owned());
    window.state_mut().take(now(), Update::Jobs(JobsUpdate::Page { number: query.number, page }));
    window.run_steps(2);
    assert!(window.query_by_label_contains("could not be queried: expected a condition").is_some());
}

#[test]
fn a_click_opens_the_page_of_a_job_and_escape_closes_it() {
    let (mut window, feed) = window(50);
    window.get_by_label_contains("job slurm:48 ").click();
    window.run_steps(3);
    let is_its = |request: &JobsRequest| matches!(request, JobsRequest::Record(key) if key.id == "slurm:48");
    let mut is_requested = false;
    while let WakeReason::Requested(request) = feed.rest(Duration::ZERO) {
        is_requested |= matches!(request, Request::Jobs(request) if is_its(&request));
    }
    assert!(is_requested);
    assert!(window.query_by_label("Asking for the job …").is_some());
    synthetic::window::open_job(window.state_mut(), 48, now());
    window.run_steps(3);
    for label in ["why", "waste", "physics", "used on each host", "3 events", "CPUs in use"] {
        assert!(window.query_all_by_label_contains(label).next().is_some(), "{label:?} is shown");
    }
    assert!(window.query_by_label("kind: failed process").is_none());
    window.get_by_label_contains("Its process python3").click();
    window.run_steps(3);
    assert!(window.query_by_label("kind: failed process").is_some(), "its evidence");
    press(&mut window, egui::Key::Escape);
    assert!(window.state().model().jobs().page().is_none());
    press(&mut window, egui::Key::ArrowDown);
    press(&mut window, egui::Key::Enter);
    assert_eq!(window.state().model().jobs().page().map(|page| page.key.id.as_str()), Some("slurm:47"));
}

#[test]
fn a_job_is_shown_on_the_map_in_the_flock_and_replayed() {
    let (mut window, _feed) = window(50);
    synthetic::window::open_job(window.state_mut(), 48, now());
    window.run_steps(3);
    let (started, ended) = (synthetic::time_f(NOW_SECS - 2_460.0), synthetic::time_f(NOW_SECS - 60.0));
    window.get_by_label("On the map").click();
    window.run_steps(3);
    let model = window.state().model();
    assert_eq!(model.filter().text(), "job:48 product:slurm");
    assert_eq!(model.selection(), Some(&Selection::Call("slurm:48".into())));
    assert!((started..ended).contains(&model.time()), "at a time of its run");
    window.state_mut().open_tab("jobs");
    window.run_steps(3);
    window.get_by_label("Replay the run").click();
    window.run_steps(3);
    let timeline = window.state().model().timeline();
    assert_eq!((timeline.mode(), timeline.time(), timeline.speed()), (Mode::Playing, started, 80.0));
    window.state_mut().open_tab("jobs");
    window.run_steps(3);
    window.get_by_label("In the flock").click();
    window.run_steps(3);
    assert_eq!(window.state().model().flock().followed_call(), Some("slurm:48"));
}

#[test]
fn without_a_daemon_the_tab_says_so() {
    let mut app = app(synthetic::window::log());
    app.open_tab("jobs");
    let (feed, inbox) = feed::feed();
    app.feed_flock(inbox);
    let window = crate::window::window(app, now());
    assert!(window.query_by_label_contains("connect to one").is_some());
    assert_eq!(synthetic::window::jobs_query(&feed), None);
}
