//! What the log tells of the hosts that are shown, as marks on the axis of time: calls that began and ended, and those that ended
//! badly.
//!
//! Rule: all calls are looked at once a frame, whatever the number of plots. Not here: painting them (`plot`).

use crate::app::App;
use crate::app::theme::Colors;
use crate::grid::call::Call;
use crate::scene::Tone;
use egui::Color32;
use wire::time::Time;

/// Marks of each kind on one graph; more could not be told apart.
const MARKS_MAX: usize = 400;

/// A moment of a host's calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) at: Time,
    pub(super) color: Color32,
    /// Whether a call ended badly: that is seen over the whole height, others at the foot.
    pub(super) is_failure: bool,
}

/// The marks of the shown hosts in a span, by the hosts' order.
pub(super) fn of_hosts(app: &App, (from, to): (Time, Time), colors: Colors) -> Vec<Vec<Mark>> {
    let view = &app.graphs;
    let mut marks = vec![Vec::new(); view.hosts.len()];
    let mut counts = vec![[0_usize; 2]; view.hosts.len()];
    // Of more than are taken the newest.
    for call in app.drawn.grid.calls.iter().rev() {
        for mark in
            of_call(call, colors).into_iter().flatten().filter(|mark| mark.at >= from && mark.at <= to)
        {
            for number in call.hosts.iter().filter_map(|id| view.places.get(id)) {
                let count = &mut counts[*number][usize::from(mark.is_failure)];
                if *count < MARKS_MAX {
                    *count += 1;
                    marks[*number].push(mark);
                }
            }
        }
    }
    marks
}

/// Those of all shown hosts on one graph: of a call on several hosts once.
pub(super) fn together(app: &App, (from, to): (Time, Time), colors: Colors) -> Vec<Mark> {
    let (mut marks, mut counts) = (Vec::new(), [0_usize; 2]);
    let is_shown = |call: &&Call| call.hosts.iter().any(|id| app.graphs.places.contains_key(id));
    for call in app.drawn.grid.calls.iter().rev().filter(is_shown) {
        for mark in
            of_call(call, colors).into_iter().flatten().filter(|mark| mark.at >= from && mark.at <= to)
        {
            let count = &mut counts[usize::from(mark.is_failure)];
            if *count < MARKS_MAX {
                *count += 1;
                marks.push(mark);
            }
        }
    }
    marks
}

/// When it began at its hosts, and when it ended.
fn of_call(call: &Call, colors: Colors) -> [Option<Mark>; 2] {
    let mark = |at: Time, tone: Tone, is_failure: bool| Mark { at, color: colors.tone(tone), is_failure };
    let begun = call.started.or(call.assigned).map(|at| mark(at, Tone::Working, false));
    let ended = call.ended.zip(call.outcome);
    [begun, ended.map(|(at, outcome)| mark(at, Tone::Over(outcome), call.has_failed()))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Source;
    use crate::app::settings::Settings;
    use crate::feed::Update;
    use crate::flock::sweep::HostName;
    use crate::invented;
    use wire::event::Outcome;

    #[test]
    fn calls_are_marked_on_the_hosts_where_they_ran() {
        let mut failed = invented::call("slurm:2", "bob", &["wn02"]);
        failed.outcome = Some(Outcome::Failed);
        let calls = [invented::call("slurm:1", "ada", &["wn01", "wn02"]), failed];
        let now = invented::time_f(90.0);
        let mut app = App::new(Source::Invented, None, Settings::default(), jiff::tz::TimeZone::UTC, now);
        app.take(now, Update::grid(invented::one_domain(&calls)));
        let hosts = ["wn02", "wn01"].map(|name| HostName::new("Alpha", name));
        app.show_graphs_of(Some(&hosts));
        let marks = |from: f64, to: f64| {
            let of = of_hosts(
                &app,
                (invented::time_f(from), invented::time_f(to)),
                Colors::of(&egui::Context::default()),
            );
            of.iter()
                .map(|marks| (marks.len(), marks.iter().filter(|mark| mark.is_failure).count()))
                .collect::<Vec<_>>()
        };
        assert_eq!(marks(0.0, 90.0), [(4, 1), (2, 0)], "two began and ended, one of them badly; one did");
        assert_eq!(marks(0.0, 30.0), [(2, 0), (1, 0)]);
        let whole = (invented::time_f(0.0), invented::time_f(90.0));
        assert_eq!(together(&app, whole, Colors::of(&egui::Context::default())).len(), 4, "of two calls");
        assert_eq!(marks(61.0, 90.0), [(0, 0), (0, 0)]);
    }
}
