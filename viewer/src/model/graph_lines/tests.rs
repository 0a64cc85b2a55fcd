//! Graphs of the last hour: received samples, and the store where there are none.

use super::*;
use crate::feed::Update;
use crate::graphs::tiles::{Happened, HostMark, Point};
use crate::model::{GraphsChange, Saved, TimeChange};
use crate::series::{HostSeries, Series};
use crate::synthetic;
use std::sync::Arc;

const LINE: &str = "load of 1 minute";
/// Now, and the first sample that the sensor has in memory since its restart.
const NOW: f64 = 2_400.0;
const RESTARTED: f64 = 2_300.0;
/// The sensor was stopped so many seconds before that.
const STOPPED_FOR: f64 = 40.0;
/// Received samples and stored ones.
const RECEIVED_VALUE: f64 = 1.0;
const STORED_VALUE: f64 = 2.0;

fn at(secs: f64) -> Time {
    synthetic::time_f(secs)
}

fn host() -> HostName {
    HostName::new("Alpha", "wn01")
}

/// A model whose graphs show the load of a host over this span.
fn model(span_secs: f64) -> Model {
    let now = at(NOW);
    let mut model = Model::new(synthetic::window::daemon(), jiff::tz::TimeZone::UTC, now, Saved::default());
    let grid = synthetic::one_domain(&[synthetic::call("slurm:1", "ada", &["wn01"])]);
    model.take(now, Update::grid(grid));
    model.apply(GraphsChange::SetHosts(Some(vec![host()])));
    model.apply(GraphsChange::SetMetrics(vec![Metric::Load]));
    model.apply(GraphsChange::SetSpan(span_secs));
    model.mark_graphs_seen();
    model
}

/// Have a sample received of each of these seconds.
fn receive(model: &mut Model, secs: std::ops::Range<i32>, trouble: Option<&str>) {
    let mut line = Series::default();
    secs.for_each(|secs| line.push(at(f64::from(secs)), RECEIVED_VALUE));
    let series = Arc::new(HostSeries::from([(LINE.to_owned(), line)]));
    let trouble = trouble.map(str::to_owned);
    model.take(model.now(), Update::Series { host: host(), series, trouble });
}

/// Answer all requests for tiles; returns how many there were. The sensor was stopped before [`RESTARTED`].
fn answer_all(model: &mut Model) -> usize {
    let mut count = 0;
    while let Some(tiles) = model.tiles_request().filter(|tiles| !tiles.is_empty()) {
        model.tiles_requested(tiles.clone());
        for tile in tiles {
            count += 1;
            assert!(count < 50, "requests without end: {tile:?}");
            let (from, to) = tile.range();
            let steps = std::iter::successors(Some(from), |time| Some(time.plus(tile.level.step())));
            let is_there = |time: &Time| *time < at(RESTARTED - STOPPED_FOR) || *time >= at(RESTARTED);
            let steps = steps.take_while(|time| *time < to.min(at(NOW))).filter(is_there);
            let point = |time: Time| Point { time, mean: STORED_VALUE, least: 0.0, greatest: 9.0 };
            let lines = Lines::from([(LINE.to_owned(), steps.map(point).collect())]);
            let lines = Ok(BTreeMap::from([(Metric::Load, lines)]));
            let marks = vec![HostMark { time: at(RESTARTED), happened: Happened::SensorStarted }];
            model.take(model.now(), Update::Tile { tile, lines, oldest: None, ages: None, marks });
        }
    }
    count
}

fn value(model: &Model, secs: f64) -> Option<f64> {
    model
        .graph_values(&host(), &Metric::Load, Shows::Parts, at(secs))
        .into_iter()
        .find_map(|(_, value)| value)
}

#[test]
fn what_a_restarted_sensor_has_no_more_in_memory_is_drawn_from_the_store() {
    let mut model = model(600.0);
    assert_eq!(answer_all(&mut model), 0, "nothing is known to be missing before the first answer");
    receive(&mut model, 2_300..2_400, None);
    let count = answer_all(&mut model);
    assert!((1..=4).contains(&count), "{count} tiles");
    let lines = model.graph_lines(&host(), &Metric::Load, Shows::Parts, 1_000);
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    // Seconds after the start of the plot.
    let (start, restarted) = (NOW - 600.0, RESTARTED - (NOW - 600.0));
    assert!(line.points.is_sorted_by(|one, next| one[0] < next[0]), "each time once");
    assert!(line.points[0][0] <= 0.0, "from the start: {:?}", line.points[0]);
    let (stored, received): (Vec<[f64; 2]>, Vec<[f64; 2]>) =
        line.points.iter().partition(|point| point[0] < restarted);
    assert!(stored.iter().all(|point| point[1] == STORED_VALUE) && stored.len() > 400, "{}", stored.len());
    assert!(received.iter().all(|point| point[1] == RECEIVED_VALUE) && received.len() == 100);
    assert_eq!(line.bounds.len(), stored.len(), "samples have no bounds");
    let apart = received[0][0] - stored.last().unwrap()[0];
    assert!(apart > line.joined_secs, "the gap is drawn: {apart} s of {} s", line.joined_secs);
    assert!(line.joined_secs < 5.0, "so is one of a few samples: {} s", line.joined_secs);
    assert_eq!(value(&model, start + 100.0), Some(STORED_VALUE));
    assert_eq!(value(&model, RESTARTED - 15.0), None);
    assert_eq!(value(&model, RESTARTED + 10.0), Some(RECEIVED_VALUE));
    let marks: Vec<HostMark> = model.graphs().host_marks(&host(), model.graph_range()).collect();
    assert_eq!(marks.len(), 1, "the restart is marked");
}

#[test]
fn while_samples_are_received_nothing_is_requested_of_the_store() {
    let mut model = model(600.0);
    receive(&mut model, 1_700..2_400, None);
    assert_eq!(answer_all(&mut model), 0);
    receive(&mut model, 2_300..2_400, None);
    assert!(answer_all(&mut model) > 0);
    for secs in 0..600 {
        let now = f64::from(secs) + NOW;
        model.set_now(at(now));
        model.mark_graphs_seen();
        receive(&mut model, 2_300..2_400 + secs, None);
        let requests = model.tiles_request().map_or(0, |tiles| tiles.len());
        assert_eq!(requests, 0, "the past is requested once, not again after {secs} s");
    }
}

#[test]
fn what_was_not_received_while_a_host_did_not_answer_is_requested_afterwards() {
    let mut model = model(300.0);
    receive(&mut model, 2_000..2_300, None);
    assert_eq!(answer_all(&mut model), 0);
    receive(&mut model, 2_000..2_300, Some("connection refused"));
    receive(&mut model, 2_000..2_398, None);
    assert!(answer_all(&mut model) > 0, "its sensor may have been restarted");
    assert_eq!(value(&model, 2_350.0), Some(RECEIVED_VALUE));
}

#[test]
fn of_a_time_before_what_is_in_memory_the_store_is_drawn() {
    let mut model = model(300.0);
    receive(&mut model, 2_300..2_400, None);
    model.apply(TimeChange::StopAt(at(2_200.0)));
    assert!(answer_all(&mut model) > 0);
    let lines = model.graph_lines(&host(), &Metric::Load, Shows::Parts, 1_000);
    assert!(lines[0].points.len() > 250, "{}", lines[0].points.len());
    let drawn = model.drawn_values();
    let values = &drawn[0].values;
    assert!((299..=301).contains(&values.len()), "{}", values.len());
    assert!(values.iter().all(|(time, _)| *time >= at(1_900.0) && *time <= at(2_200.0)), "{values:?}");
}

#[test]
fn the_values_of_a_table_are_those_that_are_drawn() {
    let mut model = model(60.0);
    receive(&mut model, 1_700..2_400, None);
    model.apply(TimeChange::StopAt(at(2_000.0)));
    let drawn = model.drawn_values();
    let times: Vec<Time> = drawn[0].values.iter().map(|(time, _)| *time).collect();
    let expected: Vec<Time> = (1_940..=2_000).map(|secs| at(f64::from(secs))).collect();
    assert_eq!(times, expected);
    model.apply(TimeChange::GoLive);
    model.apply(GraphsChange::SetSpan(600.0));
    receive(&mut model, 2_300..2_400, None);
    answer_all(&mut model);
    let drawn = model.drawn_values();
    let values = &drawn[0].values;
    assert!(values.is_sorted_by(|one, next| one.0 < next.0));
    let of = |value: f64| values.iter().filter(|(_, found)| *found == value).count();
    assert_eq!((of(RECEIVED_VALUE), of(STORED_VALUE)), (100, 460), "and none while the sensor was stopped");
}
