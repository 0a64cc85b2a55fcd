//! The graphs tab: all hosts together, small multiples, and actions that apply to all plots.

use egui::accesskit::Role;
use egui::{Key, Rect};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use viewer::app::settings::Settings;
use viewer::app::{App, Command};
use viewer::feed::{Figures, Request, Update};
use viewer::flock::sweep::HostName;
use viewer::graphs::Arrangement;
use viewer::graphs::metric::Metric;
use viewer::grid::place::PlaceId;
use viewer::model::{GraphsChange, TimeChange};
use viewer::{feed, synthetic};

const NOW_SECS: f64 = 2_400.0;

fn app(settings: Settings, hosts: u32) -> App {
    let now = synthetic::time_f(NOW_SECS);
    let mut app = App::new(synthetic::window::daemon(), None, settings, jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::grid(synthetic::grid(1, hosts, 40, 3)));
    synthetic::window::show_figures(&mut app, &host_names(1..=hosts), now);
    app.apply(TimeChange::StopAt(now));
    app
}

/// Rectangles of the small plots.
fn plots(window: &Harness<'_, App>) -> Vec<Rect> {
    window.query_all_by_label_contains("graph of ").map(|node| node.rect()).collect()
}

#[test]
fn small_multiples_cover_nothing_and_are_there_again_at_the_next_start() {
    let mut made = app(Settings::default(), 12);
    made.open_tab("graphs");
    made.apply(GraphsChange::SetMetrics(vec![Metric::Cpu]));
    let mut window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    assert!(plots(&window).is_empty(), "together at first");
    window.get_by_label("Small multiples").click();
    window.run_steps(3);
    let rects = plots(&window);
    assert!(rects.len() >= 10, "one for each host: {}", rects.len());
    for (at, rect) in rects.iter().enumerate() {
        assert!(rect.left() > 218.0 && rect.right() <= 1280.0 && rect.bottom() <= 720.0, "{rect:?}");
        assert!(rects.iter().skip(at + 1).all(|other| !rect.intersects(*other)), "{rect:?}");
    }
    let kept = serde_json::to_string(&window.state().settings()).expect("settings can be written");
    let settings: Settings = serde_json::from_str(&kept).expect("and read");
    let mut again = app(settings, 12);
    again.open_tab("graphs");
    let mut window = crate::window::window(again, synthetic::time_f(NOW_SECS));
    assert_eq!(plots(&window).len(), rects.len());
    window.key_press(Key::G);
    window.run_steps(3);
    assert!(plots(&window).is_empty());
    assert_eq!(window.state().model().graphs().choice().arrangement, Arrangement::Together);
}

#[test]
fn what_is_done_to_one_plot_is_done_to_all() {
    let mut made = app(Settings::default(), 6);
    made.open_tab("multiples");
    let mut window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    let from = plots(&window)[0].center();
    window.drag_at(from);
    window.run_steps(2);
    window.hover_at(from + egui::vec2(60.0, 0.0));
    window.run_steps(2);
    window.drop_at(from + egui::vec2(60.0, 0.0));
    window.run_steps(2);
    let back = window.state().model().graphs().choice().span.back_secs();
    assert!(back > 10.0, "the past is seen: {back}");
    window.get_by_label_contains("back by").click();
    window.run_steps(2);
    assert!(window.state().model().graphs().choice().span.back_secs() == 0.0);
    window.hover_at(from);
    window.run_steps(2);
    window.event(egui::Event::Zoom(2.0));
    window.run_steps(2);
    let secs = window.state().model().graphs().choice().span.secs();
    assert!((secs - 150.0).abs() < 1.0, "{secs}");
}

#[test]
fn only_while_graphs_are_seen_figures_are_asked_for() {
    let (source, inbox) = feed::feed();
    let now = synthetic::time_f(NOW_SECS);
    let mut app =
        App::new(synthetic::window::daemon(), Some(inbox), Settings::default(), jiff::tz::TimeZone::UTC, now);
    app.take(now, Update::grid(synthetic::grid(1, 80, 0, 3)));
    app.update(now, 0.0);
    let requested = || match source.rest(std::time::Duration::ZERO) {
        feed::WakeReason::Requested(Request::Figures(figures)) => Some(figures),
        feed::WakeReason::Requested(_) | feed::WakeReason::Timeout | feed::WakeReason::Closed => None,
    };
    assert_eq!(requested(), None);
    app.watch_graphs();
    let Some(Figures { hosts, metrics, rests: false, is_long: false }) = requested() else {
        panic!("figures are requested")
    };
    assert_eq!((hosts.len(), metrics.len()), (16, 5));
    app.update(synthetic::time_f(NOW_SECS + 2.0), 0.0);
    assert_eq!(requested(), None);
    app.update(synthetic::time_f(NOW_SECS + 4.0), 0.0);
    assert!(requested().is_some_and(|figures| figures.rests && figures.hosts == hosts));
}

#[test]
fn sixty_four_small_plots_are_drawn_and_how_long_a_frame_takes_is_reported() {
    let mut made = app(Settings::default(), 64);
    let hosts: Vec<_> = (1..=64)
        .map(|number| viewer::flock::sweep::HostName::new("UT-ICL", &format!("wn{number:03}")))
        .collect();
    made.apply(GraphsChange::SetHosts(Some(hosts)));
    made.apply(GraphsChange::SetMetrics(vec![Metric::Cpu]));
    made.open_tab("multiples");
    let mut window = crate::window::window_of(egui::vec2(3840.0, 2160.0), made, synthetic::time_f(NOW_SECS));
    assert_eq!(plots(&window).len(), 64);
    let watch = system_tests::lab::Stopwatch::start();
    window.run_steps(20);
    eprintln!("64 small plots: {:?} a frame", watch.elapsed() / 20);
}

#[test]
fn who_chooses_no_host_sees_none() {
    let mut made = app(Settings::default(), 3);
    made.open_tab("graphs");
    made.apply(GraphsChange::SetHosts(Some(Vec::new())));
    let window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    assert!(window.query_by_label("No host is chosen.").is_some());
}

fn host_names(numbers: std::ops::RangeInclusive<u32>) -> Vec<HostName> {
    numbers.map(|number| HostName::new("UT-ICL", &format!("wn{number:03}"))).collect()
}

#[test]
fn who_looks_at_one_host_is_a_click_away_from_those_chosen() {
    let mut made = app(Settings::default(), 6);
    made.open_tab("multiples");
    made.apply(GraphsChange::SetMetrics(vec![Metric::Cpu]));
    made.apply(GraphsChange::SetHosts(Some(host_names(1..=3))));
    let chosen = made.model().graphs().choice().clone();
    let (id, _) =
        (0..).map(PlaceId).zip(&made.model().grid().places).find(|(_, place)| place.name == "wn005").unwrap();
    made.apply(Command::ShowGraphs(id));
    let mut window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    assert!(window.query_by_label("graph of wn005, CPU").is_some() && plots(&window).len() == 1);
    assert_eq!(*window.state().model().graphs().choice(), chosen, "what was chosen stays chosen");
    window.get_by_label("All chosen").click();
    window.run_steps(3);
    assert_eq!(plots(&window).len(), 3);
    assert!(window.query_by_label("All chosen").is_none());
}

#[test]
fn why_a_host_has_no_figures_is_shown() {
    let (_source, inbox) = feed::feed();
    let now = synthetic::time_f(NOW_SECS);
    let mut made =
        App::new(synthetic::window::daemon(), Some(inbox), Settings::default(), jiff::tz::TimeZone::UTC, now);
    made.take(now, Update::grid(synthetic::grid(1, 2, 0, 3)));
    made.update(now, 0.0);
    made.open_tab("graphs");
    let [first, second] = &host_names(1..=2)[..] else { panic!("two hosts") };
    let series = std::sync::Arc::<viewer::series::HostSeries>::default();
    let trouble = Some("the sensor of wn001 is gone".to_owned());
    made.take(now, Update::Series { host: first.clone(), series, trouble });
    let mut window = crate::window::window(made, now);
    assert!(window.query_by_label_contains("the sensor of wn001 is gone").is_some(), "{window:?}");
    let series = std::sync::Arc::new(viewer::synthetic::figures::host(second));
    window.state_mut().take(now, Update::Series { host: second.clone(), series, trouble: None });
    window.run_steps(2);
    assert!(window.query_by_label("1 host in trouble").is_some(), "beside the graphs of the other");
}

#[test]
fn keys_move_and_widen_the_graphs_that_are_in_front() {
    let mut made = app(Settings::default(), 2);
    made.open_tab("graphs");
    let mut window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    let mut press = |key: Key| {
        window.key_press(key);
        window.run_steps(2);
        let span = window.state().model().graphs().choice().span;
        (span.secs(), span.back_secs())
    };
    assert_eq!(press(Key::Plus), (240.0, 0.0));
    assert_eq!(press(Key::ArrowLeft), (240.0, 60.0));
    assert_eq!(press(Key::Minus), (300.0, 30.0));
    assert_eq!(press(Key::ArrowRight), (300.0, 0.0));
    press(Key::Minus);
    assert_eq!(press(Key::F), (300.0, 0.0));
}

#[test]
fn a_metric_is_typed_into_the_menu_which_stays_and_esc_closes_it_alone() {
    let mut made = app(Settings::default(), 2);
    made.open_tab("graphs");
    made.select_named("wn001");
    let mut window = crate::window::window(made, synthetic::time_f(NOW_SECS));
    window.get_by_label("5 metrics").click();
    window.run_steps(3);
    window.get_by_label("Load").click();
    window.run_steps(3);
    assert_eq!(window.state().model().graphs().choice().metrics().len(), 4);
    // Without the field below the list of hosts.
    let fields = window.query_all_by_role(Role::TextInput).map(|node| node.rect());
    let fields: Vec<Rect> = fields.filter(|rect| rect.left() > 218.0).collect();
    let lowest =
        fields.iter().max_by(|one, other| one.top().total_cmp(&other.top())).expect("the menu's field");
    assert!(fields.len() >= 2, "that and the search: {fields:?}");
    window.hover_at(lowest.center());
    window.drag_at(lowest.center());
    window.drop_at(lowest.center());
    window.run_steps(3);
    window.event(egui::Event::Text("node_load5".to_owned()));
    window.run_steps(2);
    window.key_press(Key::Enter);
    window.run_steps(3);
    let words: Vec<String> = window
        .state()
        .model()
        .graphs()
        .choice()
        .metrics()
        .iter()
        .map(|metric| metric.word().to_owned())
        .collect();
    assert_eq!(words, ["cpu", "disk", "network", "memory", "node_load5"]);
    window.key_press(Key::Escape);
    window.run_steps(3);
    assert!(window.query_by_label("Memory used, bytes").is_none(), "the menu is closed");
    assert!(window.query_by_label("Close").is_some(), "what is chosen stays chosen");
}
