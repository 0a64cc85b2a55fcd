//! In the details of a call: its events, and the processes that served it, sample by sample, over its life.
//!
//! Rule: samples are reduced to the width by least and greatest, so that no extreme of 64 a second is lost.
//! Not here: requests for them (`model::served`).

use super::text::{count, moment};
use super::theme::{self, Colors};
use crate::grid::call::Call;
use crate::model::{Model, ProcessId};
use crate::series::Series;
use crate::served::{Event, Process, ServedBy};
use egui::{RichText, Ui, Vec2b, vec2};
use egui_plot::{Line, Plot, PlotPoints};
use wire::time::Time;

/// Height of a graph, in points.
const HEIGHT: f32 = 84.0;
/// Most processes that are listed.
const LISTED: usize = 12;

/// Draw them; returns the process that is clicked.
pub(super) fn show(model: &Model, ui: &mut Ui, colors: Colors, call: &Call) -> Option<ProcessId> {
    let by = model.served().of(&call.id)?;
    events(model, ui, colors, call);
    let mut clicked = None;
    if model.has_processes() && call.started.or(call.assigned).is_some() {
        summary(model, ui, colors, call, by);
        clicked = processes(model, ui, colors, call, by);
    }
    for line in &by.troubles {
        ui.add(egui::Label::new(RichText::new(line).color(colors.weak).size(theme::SMALL)).wrap());
    }
    clicked
}

/// The events of its log lines; more of each under the pointer.
fn events(model: &Model, ui: &mut Ui, colors: Colors, call: &Call) {
    let events = model.served().events();
    if events.is_empty() {
        return;
    }
    ui.add_space(8.0);
    let known = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let head = match call.events > known {
        true => format!("the last {known} of {}", count(call.events, "event")),
        false => count(known, "event"),
    };
    ui.label(RichText::new(head).color(colors.weak).size(theme::SMALL));
    egui::Grid::new("events of a call").num_columns(2).spacing(vec2(10.0, 2.0)).show(ui, |ui| {
        for event in events {
            // Events after the time that is shown are faint.
            let is_ahead = event.time > model.time();
            let time = RichText::new(moment(event.time, model.zone(), false)).font(theme::figures());
            ui.label(time.color(if is_ahead { colors.line } else { colors.weak }));
            let text = RichText::new(title_of(event)).size(theme::SMALL);
            let text = if is_ahead { text.color(colors.weak) } else { text };
            ui.add(egui::Label::new(text).truncate()).on_hover_text(lines_of(event).join("\n"));
            ui.end_row();
        }
    });
}

/// Kind and outcome of an event.
pub(super) fn title_of(event: &Event) -> String {
    let title = format!("{} {}", event.kind.as_str().replace('_', " "), event.outcome);
    title.trim_end().to_owned()
}

/// What else an event has: its log, where it went from and to, and its attributes.
pub(super) fn lines_of(event: &Event) -> Vec<String> {
    let route = match (event.from.as_str(), event.to.as_str()) {
        ("", "") => String::new(),
        (from, "") => format!("from {from}"),
        ("", to) => format!("to {to}"),
        (from, to) => format!("{from} → {to}"),
    };
    [&[event.source.clone(), route][..], &event.attributes].concat()
}

/// Number of processes, and graphs of what they used.
fn summary(model: &Model, ui: &mut Ui, colors: Colors, call: &Call, by: &ServedBy) {
    ui.add_space(8.0);
    let words = |number: usize| count(u32::try_from(number).unwrap_or(u32::MAX), "sample");
    let head = match by.processes.len() {
        0 => "no process of it was recorded".to_owned(),
        1 => format!("1 process, {}", words(usize::try_from(by.samples).unwrap_or(usize::MAX))),
        many => format!("{many} processes, {}", words(usize::try_from(by.samples).unwrap_or(usize::MAX))),
    };
    ui.label(RichText::new(head).color(colors.weak).size(theme::SMALL));
    let life = call.started.or(call.assigned).map(|started| (started, call.ended.unwrap_or(model.now())));
    if let Some((started, ended)) = life.filter(|_| by.samples > 0) {
        let life = (started, ended);
        graph(model, ui, colors, ("CPU, cores", &by.processes, |process| &process.cpu), life);
        graph(model, ui, colors, ("Memory, bytes", &by.processes, |process| &process.memory), life);
    }
    // A host that could not be queried has forgotten nothing.
    if by.forgotten > 0 && !by.is_partial {
        let words = "Of the oldest samples only this window knows still: sensors forget after a minute what no recording keeps.";
        ui.add(egui::Label::new(RichText::new(words).color(colors.weak).size(theme::SMALL)).wrap());
    }
}

/// The processes by name; returns the one that is clicked.
fn processes(model: &Model, ui: &mut Ui, colors: Colors, call: &Call, by: &ServedBy) -> Option<ProcessId> {
    let domain = model.placed().domain_name(call.domain);
    let mut clicked = None;
    for process in by.processes.iter().take(LISTED) {
        let id = ProcessId::of(domain, process);
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(vec2(9.0, 12.0), egui::Sense::hover());
            let square = egui::Rect::from_center_size(rect.center(), vec2(8.0, 8.0));
            ui.painter().rect_filled(square, 2.0, colors.program(&process.name));
            let name = if process.name.is_empty() { "?" } else { process.name.as_str() };
            let text = format!("{name} ({}) on {}", process.pid, process.host);
            let color = if id.is_some() { colors.accent } else { colors.text };
            let text = RichText::new(text).size(theme::SMALL).color(color);
            let label = egui::Label::new(text).truncate().sense(egui::Sense::click());
            let hint = format!("known by {}; click: in the flock", process.known_by);
            if ui.add(label).on_hover_text(hint).clicked() {
                clicked.clone_from(&id);
            }
        });
    }
    let more = by.processes.len().saturating_sub(LISTED) as u64 + by.left_out;
    if more > 0 {
        ui.label(RichText::new(format!("and {more} more")).color(colors.weak).size(theme::SMALL));
    }
    clicked
}

/// A small graph with a line for each process, over the life of the call.
fn graph(
    model: &Model,
    ui: &mut Ui,
    colors: Colors,
    (title, processes, series): (&str, &[Process], fn(&Process) -> &Series),
    (started, ended): (Time, Time),
) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let columns = ui.available_width().max(1.0) as usize;
    let width = ended.since(started).as_secs_f64().max(1e-3);
    ui.label(RichText::new(title).color(colors.weak).size(theme::SMALL));
    let zone = model.zone().clone();
    let formatter = egui_plot::CoordinatesFormatter::new(move |point, _| {
        let at = started.plus(std::time::Duration::from_secs_f64(point.x.clamp(0.0, 1e9)));
        format!("{}  {}", moment(at, &zone, false), crate::graphs::axis::short(point.y))
    });
    Plot::new(title)
        .height(HEIGHT)
        .show_background(false)
        .show_axes(Vec2b::new(false, true))
        .y_axis_formatter(|mark, _| crate::graphs::axis::short(mark.value))
        .y_axis_min_width(38.0)
        .grid_color(colors.line)
        .include_x(0.0)
        .include_x(width)
        .include_y(0.0)
        .allow_scroll(false)
        .link_axis(egui::Id::new("served"), Vec2b::new(true, false))
        .link_cursor(egui::Id::new("served"), Vec2b::new(true, false))
        .coordinates_formatter(egui_plot::Corner::RightTop, formatter)
        .show(ui, |plot| {
            for process in processes {
                let points = PlotPoints::from(series(process).reduced(started, ended, columns));
                plot.line(
                    Line::new(process.name.as_str(), points).color(colors.program(&process.name)).width(1.2),
                );
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::app::settings::Settings;
    use crate::feed::{Feed, Request, Update, WakeReason, feed};
    use crate::model::{Change, Selection, Source};
    use crate::synthetic;
    use std::sync::Arc;
    use std::time::Duration;
    use wire::call::State;

    /// Whether the processes of the call are requested at so many seconds of the synthetic hour.
    fn is_requested(app: &mut App, feed: &Feed, secs: f64) -> bool {
        app.update(synthetic::time_f(secs), 0.0);
        match feed.rest(Duration::ZERO) {
            WakeReason::Requested(Request::Served(wanted)) => wanted.call == "slurm:1",
            WakeReason::Requested(_) | WakeReason::Timeout | WakeReason::Closed => false,
        }
    }

    /// A window on a call that ended well at 60 s, selected then.
    fn selected() -> (App, Feed) {
        let source = Source::Daemon("127.0.0.1:7317".into());
        let now = synthetic::time_f(60.0);
        let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now);
        let (feed, inbox) = feed();
        app.feed_flock(inbox);
        app.take(now, Update::grid(synthetic::one_domain(&[synthetic::call("slurm:1", "ada", &["wn01"])])));
        app.apply(Change::Select(Some(Selection::Call("slurm:1".into()))));
        (app, feed)
    }

    fn answer(feed: &Feed, by: ServedBy) {
        feed.send(Update::Served { call: "slurm:1".into(), by: Arc::new(by) });
    }

    #[test]
    fn what_could_not_be_asked_is_asked_again_later_each_time() {
        let (mut app, feed) = selected();
        assert!(is_requested(&mut app, &feed, 70.0));
        assert!(!is_requested(&mut app, &feed, 75.0), "the answer is waited for");
        answer(&feed, ServedBy::troubled("no daemon answers"));
        let asked: Vec<u32> = (76..200)
            .filter(|&secs| {
                let is_requested = is_requested(&mut app, &feed, f64::from(secs));
                if is_requested {
                    answer(&feed, ServedBy::troubled("no daemon answers"));
                }
                is_requested
            })
            .collect();
        assert_eq!(asked, [76, 85, 102, 135, 196]);
        assert!(is_requested(&mut app, &feed, 999.0));
        answer(&feed, ServedBy { events: Some(Vec::new()), ..ServedBy::default() });
        assert!(!is_requested(&mut app, &feed, 2_000.0), "it is known whole");
    }

    #[test]
    fn the_last_samples_of_a_call_that_has_just_ended_are_asked_for() {
        let (mut app, feed) = selected();
        let asked: Vec<u32> = (60..100)
            .filter(|&secs| {
                answer(&feed, ServedBy::default());
                is_requested(&mut app, &feed, f64::from(secs))
            })
            .collect();
        assert_eq!(asked, [60, 63, 66]);
    }

    #[test]
    fn what_was_seen_of_a_call_is_seen_on_when_its_sensors_forget() {
        let (mut app, feed) = selected();
        assert!(is_requested(&mut app, &feed, 60.0));
        let process = Process { pid: 7, name: "burn".into(), ..Process::default() };
        answer(&feed, ServedBy { processes: vec![process], ..ServedBy::default() });
        assert!(is_requested(&mut app, &feed, 63.0));
        answer(&feed, ServedBy::default());
        app.update(synthetic::time_f(64.0), 0.0);
        let seen = |app: &App| app.model().served().of("slurm:1").map_or(0, |by| by.processes.len());
        assert_eq!(seen(&app), 1);
        app.apply(Change::Select(Some(Selection::Call("slurm:2".into()))));
        app.apply(Change::Select(Some(Selection::Call("slurm:1".into()))));
        assert!(!is_requested(&mut app, &feed, 64.0) && seen(&app) == 1, "it is the same call");
    }

    #[test]
    fn of_a_log_the_events_are_asked_for_as_often_as_there_are_more() {
        let now = synthetic::time_f(60.0);
        let (feed, inbox) = feed();
        let source = Source::Log("slurmctld.log".into());
        let mut app = App::new(source, Some(inbox), Settings::default(), jiff::tz::TimeZone::UTC, now);
        let mut call = synthetic::call("slurm:1", "ada", &["wn01"]);
        (call.ended, call.state) = (None, State::Running);
        app.take(now, Update::grid(synthetic::one_domain(std::slice::from_ref(&call))));
        app.apply(Change::Select(Some(Selection::Call("slurm:1".into()))));
        assert!(is_requested(&mut app, &feed, 60.0));
        answer(&feed, ServedBy { events: Some(Vec::new()), ..ServedBy::default() });
        let asked = (61..100).filter(|&secs| is_requested(&mut app, &feed, f64::from(secs))).count();
        assert_eq!(asked, 0, "it runs still, and its log has nothing more");
        call.events += 1;
        app.take(now, Update::grid(synthetic::one_domain(&[call])));
        assert!(is_requested(&mut app, &feed, 101.0));
    }
}
