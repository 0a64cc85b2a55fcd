//! Tiles: what a view requests, in which order, and what is drawn of what was received.

use super::*;
use proptest::prelude::*;

const NOW_SECS: i64 = 1_800_003_000;

fn at(secs: i64) -> Time {
    Time::from_micros(secs * 1_000_000)
}

fn hosts() -> [HostName; 1] {
    [HostName::new("demo", "wn01")]
}

/// Answer a request with one value a step, the number of its resolution.
fn answer(tiles: &mut Tiles, request: &TileRequest, now: Time) {
    let (from, to) = request.range();
    let step = request.level.step();
    let values = std::iter::successors(Some(from), |time| Some(time.plus(step)));
    #[allow(clippy::cast_precision_loss)]
    let value = request.level.0 as f64;
    let point = |time: Time| Point { time, mean: value, least: value, greatest: value };
    let points: Vec<Point> = values.take_while(|time| *time < to.min(now)).map(point).collect();
    let metrics = request
        .metrics
        .iter()
        .map(|metric| (metric.clone(), Lines::from([(metric.word().to_owned(), points.clone())])));
    tiles.take(request, Ok(metrics.collect()), now);
}

fn view<'a>(hosts: &'a [HostName], range: (Time, Time)) -> View<'a> {
    View { hosts, metrics: &[Metric::Load], range, level: Level::of_range(range, 1_200) }
}

fn drawn(tiles: &Tiles, view: &View<'_>) -> Vec<Point> {
    let (mut lines, _) = tiles.lines(&view.hosts[0], &Metric::Load, view.range, view.level);
    lines.remove("load").map(|pieces| pieces.iter().copied().collect()).unwrap_or_default()
}

#[test]
fn a_view_is_requested_coarse_first_and_once() {
    let (hosts, now) = (hosts(), at(NOW_SECS));
    let mut tiles = Tiles::default();
    let view = view(&hosts, (at(NOW_SECS - 30 * 86_400), at(NOW_SECS - 86_400)));
    assert_eq!(view.level.step(), Duration::from_secs(3_600));
    let requests = tiles.missing(&view, now);
    assert!(requests[0].level > view.level && requests.last().is_some_and(|last| last.level == view.level));
    answer(&mut tiles, &requests[0], now);
    let coarse = drawn(&tiles, &view);
    assert!(!coarse.is_empty() && coarse.len() < 60, "the coarse ones first: {}", coarse.len());
    let fine = tiles.missing(&view, now);
    assert!(fine.iter().all(|request| request.level == view.level), "coarse ones once: {fine:?}");
    for request in &fine {
        answer(&mut tiles, request, now);
    }
    assert!((29 * 24..=29 * 24 + 2).contains(&drawn(&tiles, &view).len()), "{}", drawn(&tiles, &view).len());
    assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(86_400))), [], "the past is asked once");
}

#[test]
fn what_is_zoomed_into_is_drawn_at_once_and_then_finer() {
    let (hosts, now) = (hosts(), at(NOW_SECS));
    let mut tiles = Tiles::default();
    let wide = view(&hosts, (at(NOW_SECS - 5 * 366 * 86_400), now));
    for request in tiles.missing(&wide, now) {
        answer(&mut tiles, &request, now);
    }
    for secs in [86_400 * 200, 86_400 * 3, 7_200, 60, 5] {
        let narrow = view(&hosts, (at(NOW_SECS - 90_000 - secs), at(NOW_SECS - 90_000)));
        let before = tiles.nearest(&hosts[0], &Metric::Load, narrow.range, narrow.level);
        assert!(before.is_some(), "something coarser is there at {secs} s");
        for request in tiles.missing(&narrow, now) {
            answer(&mut tiles, &request, now);
        }
        let (lines, longest) = tiles.lines(&hosts[0], &Metric::Load, narrow.range, narrow.level);
        assert_eq!(longest, narrow.level.step(), "{secs} s");
        assert!(lines["load"].count() <= 1_300, "{secs} s: {}", lines["load"].count());
    }
}

#[test]
fn the_present_is_requested_again_and_a_host_that_failed_later() {
    let (hosts, now) = (hosts(), at(NOW_SECS));
    let mut tiles = Tiles::default();
    let view = view(&hosts, (at(NOW_SECS - 7_200), now));
    for request in tiles.missing(&view, now) {
        answer(&mut tiles, &request, now);
    }
    assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(2))), []);
    let later = tiles.missing(&view, now.plus(Duration::from_secs(20)));
    assert_eq!(later.len(), 1, "the newest alone: {later:?}");
    tiles.take(&later[0], Err("no answer".to_owned()), now.plus(Duration::from_secs(21)));
    assert_eq!(tiles.error_of(&hosts[0]), Some("no answer"));
    assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(25))), []);
    assert_eq!(tiles.missing(&view, now.plus(Duration::from_secs(40))).len(), 1);
}

#[test]
fn where_fine_values_are_gone_coarser_ones_are_requested_and_drawn() {
    let (hosts, now) = (hosts(), at(NOW_SECS));
    let ago = |days: i64| at(NOW_SECS - days * 86_400);
    for (days, secs, expected) in [
        (1, 5, Duration::from_millis(100)),
        (1, 7_200, Duration::from_secs(10)),
        (30, 5, Duration::from_secs(60)),
        (30, 7 * 86_400, Duration::from_secs(600)),
        (200, 5, Duration::from_secs(3_600)),
        (200, 7 * 86_400, Duration::from_secs(3_600)),
        (200, 366 * 86_400, Duration::from_secs(86_400)),
    ] {
        let mut tiles = Tiles::default();
        tiles.set_ages(
            &hosts[0],
            Ages { samples: Some(ago(14)), minutes: Some(ago(90)), hours: Some(ago(900)) },
        );
        let end = NOW_SECS - days * 86_400;
        let view = view(&hosts, (at(end - secs), at(end)));
        let requests = tiles.missing(&view, now);
        let finest = requests.iter().map(|request| request.level).min().unwrap();
        assert_eq!(finest.step(), expected, "{secs} s, {days} days ago");
        for request in requests {
            answer(&mut tiles, &request, now);
        }
        let (lines, step) = tiles.lines(&hosts[0], &Metric::Load, view.range, view.level);
        assert_eq!(step, expected, "{secs} s, {days} days ago");
        assert!(
            lines["load"].iter().next().unwrap().time <= view.range.0,
            "a line that starts before the view"
        );
    }
    // All that there is begins within the range.
    let mut tiles = Tiles::default();
    let started = Some(ago(1).plus(Duration::from_secs(700)));
    let ages = Ages { samples: started, minutes: started, hours: Some(ago(1)) };
    tiles.set_ages(&hosts[0], ages);
    assert_eq!(tiles.level_of(&hosts[0], (ago(2), now), Level(2)), Level(2));
    tiles.set_ages(&hosts[0], Ages { samples: None, ..ages });
    assert_eq!(tiles.level_of(&hosts[0], (ago(2), now), Level(2)), Level(3), "minutes");
    let tiles = Tiles::default();
    let range = (ago(800), ago(799));
    assert_eq!(tiles.level_of(&hosts[0], range, Level(0)), Level(0), "nothing was answered yet");
}

#[test]
fn what_may_have_changed_comes_after_what_is_missing() {
    let now = at(NOW_SECS);
    let hosts: Vec<HostName> = (0..40).map(|host| HostName::new("demo", &format!("wn{host}"))).collect();
    let mut tiles = Tiles::default();
    let seen = view(&hosts[..30], (at(NOW_SECS - 7_200), now));
    for request in tiles.missing(&seen, now) {
        answer(&mut tiles, &request, now);
    }
    let more = View { hosts: &hosts, ..seen };
    let later = |secs: u64| now.plus(Duration::from_secs(secs));
    let requests = tiles.missing(&more, later(21));
    let is_new = |request: &TileRequest| hosts[30..].contains(&request.host);
    assert!(requests.iter().any(|request| !is_new(request)), "some may have changed");
    assert!(requests.is_sorted_by_key(|request| !is_new(request)), "{requests:?}");
    let requests = tiles.missing(&more, later(15));
    assert!(requests.iter().all(is_new), "half a second for each host");
}

#[test]
fn what_was_not_looked_at_for_long_is_forgotten() {
    let (hosts, now) = (hosts(), at(NOW_SECS));
    let mut tiles = Tiles::default();
    let mut last = None;
    for back in 0..2_500_i64 {
        let end = NOW_SECS - 86_400 - back * 600;
        let view = view(&hosts, (at(end - 600), at(end)));
        for request in tiles.missing(&view, now) {
            answer(&mut tiles, &request, now);
        }
        last = Some(view.range);
    }
    assert!(tiles.points <= POINTS_MAX, "{}", tiles.points);
    let sum: usize = tiles.tiles.values().map(|tile| count(&tile.lines)).sum();
    assert_eq!(tiles.points, sum);
    let view = view(&hosts, last.unwrap());
    assert_eq!(tiles.missing(&view, now), [], "the last is there");
}

#[test]
fn what_is_looked_at_is_never_forgotten() {
    let hosts: Vec<HostName> = (0..80).map(|host| HostName::new("demo", &format!("wn{host}"))).collect();
    let metrics: Vec<Metric> = (0..8).map(|metric| Metric::Named(format!("m{metric}"))).collect();
    let (now, mut tiles) = (at(NOW_SECS), Tiles::default());
    let range = (at(NOW_SECS - 1_190 * 3_600), at(NOW_SECS - 3_600));
    let view = View { hosts: &hosts, metrics: &metrics, range, level: Level::of_range(range, 1_200) };
    for _ in 0..3 {
        for request in tiles.missing(&view, now) {
            answer(&mut tiles, &request, now);
        }
    }
    assert!(tiles.points > POINTS_MAX, "{}", tiles.points);
    assert_eq!(tiles.missing(&view, now), []);
}

proptest! {
    #[test]
    fn any_view_is_bounded_and_in_order(from in 0_i64..2_000_000_000, secs in 0_i64..400_000_000) {
        let (hosts, now) = (hosts(), at(NOW_SECS));
        let mut tiles = Tiles::default();
        let view = view(&hosts, (at(from), at(from + secs)));
        let requests = tiles.missing(&view, now);
        prop_assert!(requests.len() <= 16, "{}", requests.len());
        for request in &requests {
            prop_assert!(request.range().0 <= now, "nothing of the future");
            answer(&mut tiles, request, now);
        }
        let points = drawn(&tiles, &view);
        prop_assert!(points.windows(2).all(|pair| pair[0].time < pair[1].time), "in order, none twice");
        prop_assert!(points.len() <= 6_000, "{}", points.len());
    }
}
