//! Marks on the axis of time: calls that started or ended on the hosts that are shown, failures, and in the past starts of
//! their sensors and clocks that were set back.
//!
//! Rule: a frame reads all calls once, for any number of plots. Not here: painting them (`plot`).

use crate::app::theme::Colors;
use crate::graphs::tiles::HostMark;
use crate::grid::call::Call;
use crate::model::Model;
use crate::scene::Tone;
use egui::Color32;
use wire::time::Time;

/// Columns of a graph, each with at most one mark of each kind: more could not be distinguished.
const COLUMNS: usize = 400;

/// What is marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Start or end of a call: at the foot.
    Call,
    /// End of a call that failed: the whole height.
    FailedCall,
    /// Start of the sensor, or a clock that was set back: dashed, the whole height.
    Sensor,
}

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::app) struct Mark {
    pub(super) at: Time,
    pub(super) color: Color32,
    pub(super) kind: Kind,
}

/// The marks of each host that is shown, in the order of hosts.
pub(super) fn of_hosts(model: &Model, (from, to): (Time, Time), colors: Colors) -> Vec<Vec<Mark>> {
    let graphs = model.graphs();
    let mut marks = vec![Marks::new((from, to)); graphs.hosts().len()];
    // The newest where there are too many.
    for call in model.grid().calls.iter().rev() {
        for mark in
            of_call(call, colors).into_iter().flatten().filter(|mark| mark.at >= from && mark.at <= to)
        {
            for number in call.hosts.iter().filter_map(|id| graphs.number_of(*id)) {
                marks[number].add(mark);
            }
        }
    }
    for (host, marks) in graphs.hosts().iter().zip(&mut marks) {
        graphs.host_marks(host, (from, to)).for_each(|mark| marks.add(of_sensor(mark, colors)));
    }
    marks.into_iter().map(|marks| marks.marks).collect()
}

/// The marks of a graph.
#[derive(Clone)]
struct Marks {
    range: (Time, Time),
    marks: Vec<Mark>,
    /// Which columns have a mark of each kind.
    has: [[bool; COLUMNS]; 3],
}

impl Marks {
    fn new(range: (Time, Time)) -> Marks {
        Marks { range, marks: Vec::new(), has: [[false; COLUMNS]; 3] }
    }

    /// Add a mark within the graph, if its column has none of its kind.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn add(&mut self, mark: Mark) {
        let (from, to) = self.range;
        let share = mark.at.since(from).as_secs_f64() / to.since(from).as_secs_f64().max(1e-6);
        let column = ((share * COLUMNS as f64) as usize).min(COLUMNS - 1);
        let has = &mut self.has[mark.kind as usize][column];
        if !std::mem::replace(has, true) {
            self.marks.push(mark);
        }
    }
}

/// The marks of all hosts that are shown, on one graph: a call on several hosts has one.
pub(super) fn together(model: &Model, (from, to): (Time, Time), colors: Colors) -> Vec<Mark> {
    let mut marks = Marks::new((from, to));
    let is_shown = |call: &&Call| call.hosts.iter().any(|id| model.graphs().number_of(*id).is_some());
    for call in model.grid().calls.iter().rev().filter(is_shown) {
        for mark in
            of_call(call, colors).into_iter().flatten().filter(|mark| mark.at >= from && mark.at <= to)
        {
            marks.add(mark);
        }
    }
    for host in model.graphs().hosts() {
        let of_host = model.graphs().host_marks(host, (from, to));
        of_host.for_each(|mark| marks.add(of_sensor(mark, colors)));
    }
    marks.marks
}

fn of_sensor(mark: HostMark, colors: Colors) -> Mark {
    Mark { at: mark.time, color: colors.weak, kind: Kind::Sensor }
}

/// Start and end of a call.
fn of_call(call: &Call, colors: Colors) -> [Option<Mark>; 2] {
    let mark = |at: Time, tone: Tone, kind: Kind| Mark { at, color: colors.tone(tone), kind };
    let started = call.started.or(call.assigned).map(|at| mark(at, Tone::Working, Kind::Call));
    let kind = if call.has_failed() { Kind::FailedCall } else { Kind::Call };
    let ended = call.ended.zip(call.outcome);
    [started, ended.map(|(at, outcome)| mark(at, Tone::Over(outcome), kind))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::app::settings::Settings;
    use crate::feed::Update;
    use crate::flock::sweep::HostName;
    use crate::graphs::metric::Metric;
    use crate::graphs::tiles::{Happened, Level, Tiles, View};
    use crate::model::GraphsChange;
    use crate::synthetic;
    use std::collections::BTreeMap;
    use wire::event::Outcome;

    #[test]
    fn calls_are_marked_on_the_hosts_where_they_ran() {
        let mut failed = synthetic::call("slurm:2", "bob", &["wn02"]);
        failed.outcome = Some(Outcome::Failed);
        let calls = [synthetic::call("slurm:1", "ada", &["wn01", "wn02"]), failed];
        let now = synthetic::time_f(90.0);
        let mut app =
            App::new(synthetic::window::log(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
        app.take(now, Update::grid(synthetic::one_domain(&calls)));
        let hosts = ["wn02", "wn01"].map(|name| HostName::new("Alpha", name));
        app.apply(GraphsChange::SetHosts(Some(hosts.into())));
        let marks = |from: f64, to: f64| {
            let of = of_hosts(
                app.model(),
                (synthetic::time_f(from), synthetic::time_f(to)),
                Colors::of(&egui::Context::default()),
            );
            of.iter()
                .map(|marks| (marks.len(), marks.iter().filter(|mark| mark.kind == Kind::FailedCall).count()))
                .collect::<Vec<_>>()
        };
        assert_eq!(marks(0.0, 90.0), [(3, 1), (2, 0)], "two started at once, and one ended badly; one did");
        assert_eq!(marks(0.0, 30.0), [(1, 0), (1, 0)]);
        let whole = (synthetic::time_f(0.0), synthetic::time_f(90.0));
        assert_eq!(
            together(app.model(), whole, Colors::of(&egui::Context::default())).len(),
            3,
            "two started at once"
        );
        assert_eq!(marks(61.0, 90.0), [(0, 0), (0, 0)]);
    }

    #[test]
    fn starts_of_sensors_are_marked_on_their_host() {
        let now = synthetic::time_f(90.0);
        let mut app =
            App::new(synthetic::window::log(), None, Settings::default(), jiff::tz::TimeZone::UTC, now);
        app.take(
            now,
            Update::grid(synthetic::one_domain(&[synthetic::call("slurm:1", "ada", &["wn01", "wn02"])])),
        );
        let hosts = ["wn02", "wn01"].map(|name| HostName::new("Alpha", name));
        app.apply(GraphsChange::SetHosts(Some(hosts.clone().into())));
        let range = (synthetic::time_f(0.0), synthetic::time_f(90.0));
        let view =
            View { hosts: &hosts[..1], metrics: &[Metric::Load], range, level: Level::of_range(range, 400) };
        let tile = Tiles::default().missing(&view, now).remove(0);
        let mark = |secs: f64, happened| HostMark { time: synthetic::time_f(secs), happened };
        let marks = vec![mark(30.0, Happened::SensorStarted), mark(200.0, Happened::ClockSetBack)];
        let (lines, oldest, ages) = (Ok(BTreeMap::new()), None, None);
        app.take(now, Update::Tile { tile, lines, oldest, ages, marks });
        let colors = Colors::of(&egui::Context::default());
        let of_sensors = |marks: &[Mark]| {
            let of_sensors = marks.iter().filter(|mark| mark.kind == Kind::Sensor);
            of_sensors.map(|mark| mark.at).collect::<Vec<_>>()
        };
        let each = of_hosts(app.model(), range, colors);
        assert_eq!((of_sensors(&each[0]), of_sensors(&each[1])), (vec![synthetic::time_f(30.0)], vec![]));
        assert_eq!(of_sensors(&together(app.model(), range, colors)), [synthetic::time_f(30.0)]);
    }
}
