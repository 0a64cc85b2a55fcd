//! In the details of a call: its events, and the processes that served it, sample by sample, for exactly its life.
//!
//! Rule: reduced to the width there is by least and greatest, so that no sample of 64 a second is lost. Not here: asking
//! for them (`live::served`).

use super::flock::Wanted;
use super::text::{count, moment};
use super::theme::{self, Colors};
use super::{App, Source};
use crate::feed::{Inbox, Served, Wish};
use crate::grid::call::Call;
use crate::live::call_events::Event;
use crate::live::served::{Process, ServedBy};
use crate::series::Series;
use egui::{RichText, Ui, Vec2b, vec2};
use egui_plot::{Line, Plot, PlotPoints};
use std::sync::Arc;
use wire::call::State;
use wire::time::Time;

/// How often a call that still works is asked about, in seconds.
const AGAIN_SECS: f64 = 2.0;
/// So long after its end the last samples of a call are there, in seconds.
const SETTLED_SECS: f64 = 5.0;
/// Until a host that could not be asked is asked again, at first and at last, in seconds.
const TROUBLED_AGAIN_SECS: f64 = 4.0;
const TROUBLED_AGAIN_MAX_SECS: f64 = 60.0;
/// An answer that did not come in this time will not come any more, in seconds: a domain and eight hosts, each given up after 35.
const ANSWER_MAX_SECS: f64 = 330.0;
/// Height of a graph, in points.
const HEIGHT: f32 = 84.0;
/// Processes that are listed.
const LISTED: usize = 12;

/// What is known of the processes of the chosen call.
#[derive(Clone, Default)]
pub(super) struct ServedView {
    call: String,
    by: Option<Arc<ServedBy>>,
    /// Its events, and how many there were when they were asked for.
    events: Arc<[Event]>,
    events_asked: Option<u32>,
    asked: Option<Time>,
    /// Whether an answer is waited for.
    is_out: bool,
    /// Answers, one after the other, that lack a host.
    partial: i32,
}

impl ServedView {
    /// What served this call, if that is known.
    pub(super) fn of(&self, call: &str) -> Option<&ServedBy> {
        self.by.as_deref().filter(|_| self.call == call)
    }

    /// Whether a call that goes on as `state` and ended then is to be asked about.
    fn is_due(&self, call: &Call, now: Time, has_processes: bool) -> bool {
        let Some(asked) = self.asked.filter(|_| self.call == call.id) else { return true };
        let since = now.since(asked).as_secs_f64();
        if self.is_out {
            return since > ANSWER_MAX_SECS;
        }
        if self.partial > 0 {
            let pause = TROUBLED_AGAIN_SECS * 2_f64.powi(self.partial.min(8) - 1);
            return since > pause.min(TROUBLED_AGAIN_MAX_SECS);
        }
        let is_settled = call.ended.is_some_and(|ended| asked.since(ended).as_secs_f64() > SETTLED_SECS);
        // One that waits has events alone.
        let is_at_work = call.state == State::Running || call.state == State::Ended && !is_settled;
        since > AGAIN_SECS && (is_at_work && has_processes || self.events_asked != Some(call.events))
    }
}

impl App {
    /// Take what served a call.
    pub(super) fn take_served(&mut self, call: &str, mut by: Arc<ServedBy>) {
        if self.served.call == call {
            if let Some(before) = &self.served.by {
                Arc::make_mut(&mut by).keep(before);
            }
            self.served.is_out = false;
            match &by.events {
                Some(events) => self.served.events = events.as_slice().into(),
                None if by.is_partial => self.served.events_asked = None,
                None => {}
            }
            self.served.partial = if by.is_partial { self.served.partial.saturating_add(1) } else { 0 };
            self.served.by = Some(by);
        }
    }

    /// What is asked of the chosen call, if one is.
    #[must_use]
    pub fn question_of_choice(&self) -> Option<Served> {
        self.selected_call().map(|call| self.question(call, Some(call.events)))
    }

    /// Show what was answered of the chosen call.
    pub fn show_answer(&mut self, by: ServedBy) {
        if let Some(call) = self.selected_call() {
            let (call, events_asked) = (call.id.clone(), Some(call.events));
            self.served = ServedView { call: call.clone(), events_asked, ..ServedView::default() };
            self.served.asked = Some(self.now);
            self.take_served(&call, Arc::new(by));
        }
    }

    fn question(&self, call: &Call, events: Option<u32>) -> Served {
        let hosts = call.hosts.iter().map(|&host| self.host_name(host)).collect();
        let domain = self.domain_name(call.domain).to_owned();
        Served { call: call.id.clone(), domain, events, hosts }
    }

    /// Who is asked of calls: daemons, or who reads the logs.
    fn asked_of_calls(&self) -> Option<&Inbox> {
        match self.source {
            Source::Daemon(_) => self.flock.inbox.as_ref(),
            Source::Log(_) => self.inbox.as_ref(),
            Source::File(_) | Source::Invented => None,
        }
    }

    /// Whether there are sensors that know processes of calls.
    pub(super) fn has_processes(&self) -> bool {
        matches!(self.source, Source::Daemon(_))
    }

    /// Ask for the events and processes of the chosen call: while it works again and again, then until its last samples are there, and
    /// where a host could not be asked later each time.
    pub(super) fn wish_served(&mut self) {
        let (asked, Some(call)) = (self.asked_of_calls(), self.selected_call()) else { return };
        let Some(inbox) = asked.filter(|_| self.served.is_due(call, self.now, self.has_processes())) else {
            return;
        };
        let is_other = self.served.call != call.id;
        let number = call.events;
        let are_known = !is_other && self.served.events_asked == Some(number);
        let events = (!are_known).then_some(number);
        let id = call.id.clone();
        if inbox.wish(Wish::Served(self.question(call, events))) {
            if is_other {
                self.served = ServedView { call: id, ..ServedView::default() };
            }
            (self.served.asked, self.served.is_out) = (Some(self.now), true);
            self.served.events_asked = Some(number);
        }
    }
}

/// Draw them. The process that is clicked.
pub(super) fn show(app: &App, ui: &mut Ui, colors: Colors, call: &Call) -> Option<Wanted> {
    let by = app.served.of(&call.id)?;
    events(app, ui, colors, call);
    let mut clicked = None;
    if app.has_processes() && call.started.or(call.assigned).is_some() {
        summary(app, ui, colors, call, by);
        clicked = processes(app, ui, colors, call, by);
    }
    for line in &by.troubles {
        ui.add(egui::Label::new(RichText::new(line).color(colors.weak).size(theme::SMALL)).wrap());
    }
    clicked
}

/// What the lines of logs told of it; more of each under the pointer.
fn events(app: &App, ui: &mut Ui, colors: Colors, call: &Call) {
    let events = &app.served.events;
    if events.is_empty() {
        return;
    }
    ui.add_space(8.0);
    let told = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let head = match call.events > told {
        true => format!("the last {told} of {}", count(call.events, "event")),
        false => count(told, "event"),
    };
    ui.label(RichText::new(head).color(colors.weak).size(theme::SMALL));
    egui::Grid::new("events of a call").num_columns(2).spacing(vec2(10.0, 2.0)).show(ui, |ui| {
        for event in events.iter() {
            // What is not yet at the time that is looked at stands back.
            let is_ahead = event.time > app.timeline.time();
            let time = RichText::new(moment(event.time, &app.zone, false)).font(theme::figures());
            ui.label(time.color(if is_ahead { colors.line } else { colors.weak }));
            let what = format!("{} {}", event.kind.as_str().replace('_', " "), event.outcome);
            let way = match (event.from.as_str(), event.to.as_str()) {
                ("", "") => String::new(),
                (from, "") => format!("from {from}"),
                ("", to) => format!("to {to}"),
                (from, to) => format!("{from} → {to}"),
            };
            let text = RichText::new(what.trim_end()).size(theme::SMALL);
            let text = if is_ahead { text.color(colors.weak) } else { text };
            let told = [&[event.source.clone(), way][..], &event.attributes].concat().join("\n");
            ui.add(egui::Label::new(text).truncate()).on_hover_text(told);
            ui.end_row();
        }
    });
}

/// How many there are, and what they used together with each other.
fn summary(app: &App, ui: &mut Ui, colors: Colors, call: &Call, by: &ServedBy) {
    ui.add_space(8.0);
    let words = |number: usize| count(u32::try_from(number).unwrap_or(u32::MAX), "sample");
    let head = match by.processes.len() {
        0 => "no process of it was recorded".to_owned(),
        1 => format!("1 process, {}", words(usize::try_from(by.samples).unwrap_or(usize::MAX))),
        many => format!("{many} processes, {}", words(usize::try_from(by.samples).unwrap_or(usize::MAX))),
    };
    ui.label(RichText::new(head).color(colors.weak).size(theme::SMALL));
    let life = call.started.or(call.assigned).map(|begun| (begun, call.ended.unwrap_or(app.now)));
    if let Some((begun, ended)) = life.filter(|_| by.samples > 0) {
        graph(app, ui, colors, ("CPU, cores", &by.processes, |process| &process.cpu), (begun, ended));
        graph(app, ui, colors, ("Memory, bytes", &by.processes, |process| &process.memory), (begun, ended));
    }
    // A host that could not be asked has forgotten nothing.
    if by.forgotten > 0 && !by.is_partial {
        let words = "Of the oldest samples only this window knows still: sensors forget after a minute what no recording keeps.";
        ui.add(egui::Label::new(RichText::new(words).color(colors.weak).size(theme::SMALL)).wrap());
    }
}

/// Each by its name. The one that is clicked.
fn processes(app: &App, ui: &mut Ui, colors: Colors, call: &Call, by: &ServedBy) -> Option<Wanted> {
    let mut clicked = None;
    for process in by.processes.iter().take(LISTED) {
        let wanted = app.wanted(call, process);
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(vec2(9.0, 12.0), egui::Sense::hover());
            let square = egui::Rect::from_center_size(rect.center(), vec2(8.0, 8.0));
            ui.painter().rect_filled(square, 2.0, colors.program(&process.name));
            let name = if process.name.is_empty() { "?" } else { process.name.as_str() };
            let text = format!("{name} ({}) on {}", process.pid, process.host);
            let color = if wanted.is_some() { colors.accent } else { colors.text };
            let text = RichText::new(text).size(theme::SMALL).color(color);
            let label = egui::Label::new(text).truncate().sense(egui::Sense::click());
            let hint = format!("known by {}; click: in the flock", process.known_by);
            if ui.add(label).on_hover_text(hint).clicked() {
                clicked.clone_from(&wanted);
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
    app: &App,
    ui: &mut Ui,
    colors: Colors,
    (title, processes, series): (&str, &[Process], fn(&Process) -> &Series),
    (begun, ended): (Time, Time),
) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let columns = ui.available_width().max(1.0) as usize;
    let width = ended.since(begun).as_secs_f64().max(1e-3);
    ui.label(RichText::new(title).color(colors.weak).size(theme::SMALL));
    let zone = app.zone.clone();
    let formatter = egui_plot::CoordinatesFormatter::new(move |point, _| {
        let at = begun.plus(std::time::Duration::from_secs_f64(point.x.clamp(0.0, 1e9)));
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
                let points = PlotPoints::from(series(process).reduced(begun, ended, columns));
                plot.line(
                    Line::new(process.name.as_str(), points).color(colors.program(&process.name)).width(1.2),
                );
            }
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::settings::Settings;
    use crate::app::{Selection, Source};
    use crate::feed::{Feed, Rested, Update, feed};
    use crate::invented;
    use std::time::Duration;

    /// Whether the processes of the call are wished for at so many seconds of the invented hour.
    fn is_wished(app: &mut App, feed: &Feed, secs: f64) -> bool {
        app.update(invented::time_f(secs), 0.0);
        match feed.rest(Duration::ZERO) {
            Rested::Wished(Wish::Served(wanted)) => wanted.call == "slurm:1",
            Rested::Wished(_) | Rested::Whole | Rested::Alone => false,
        }
    }

    /// A window on a call that ended well at 60 s, chosen then.
    fn chosen() -> (App, Feed) {
        let source = Source::Daemon("127.0.0.1:7317".into());
        let now = invented::time_f(60.0);
        let mut app = App::new(source, None, Settings::default(), jiff::tz::TimeZone::UTC, now);
        let (feed, inbox) = feed();
        app.feed_flock(inbox);
        app.take(now, Update::grid(invented::one_domain(&[invented::call("slurm:1", "ada", &["wn01"])])));
        app.select(Some(Selection::Call("slurm:1".into())));
        (app, feed)
    }

    fn answer(feed: &Feed, by: ServedBy) {
        feed.tell(Update::Served { call: "slurm:1".into(), by: Arc::new(by) });
    }

    #[test]
    fn what_could_not_be_asked_is_asked_again_later_each_time() {
        let (mut app, feed) = chosen();
        assert!(is_wished(&mut app, &feed, 70.0));
        assert!(!is_wished(&mut app, &feed, 75.0), "the answer is waited for");
        answer(&feed, ServedBy::troubled("nobody answers"));
        let asked: Vec<u32> = (76..200)
            .filter(|&secs| {
                let is_wished = is_wished(&mut app, &feed, f64::from(secs));
                if is_wished {
                    answer(&feed, ServedBy::troubled("nobody answers"));
                }
                is_wished
            })
            .collect();
        assert_eq!(asked, [76, 85, 102, 135, 196]);
        assert!(is_wished(&mut app, &feed, 999.0));
        answer(&feed, ServedBy { events: Some(Vec::new()), ..ServedBy::default() });
        assert!(!is_wished(&mut app, &feed, 2_000.0), "it is known whole");
    }

    #[test]
    fn the_last_samples_of_a_call_that_has_just_ended_are_asked_for() {
        let (mut app, feed) = chosen();
        let asked: Vec<u32> = (60..100)
            .filter(|&secs| {
                answer(&feed, ServedBy::default());
                is_wished(&mut app, &feed, f64::from(secs))
            })
            .collect();
        assert_eq!(asked, [60, 63, 66]);
    }

    #[test]
    fn what_was_seen_of_a_call_is_seen_on_when_its_sensors_forget() {
        let (mut app, feed) = chosen();
        assert!(is_wished(&mut app, &feed, 60.0));
        let process = Process { pid: 7, name: "burn".into(), ..Process::default() };
        answer(&feed, ServedBy { processes: vec![process], ..ServedBy::default() });
        assert!(is_wished(&mut app, &feed, 63.0));
        answer(&feed, ServedBy::default());
        app.update(invented::time_f(64.0), 0.0);
        let seen = |app: &App| app.served.by.as_ref().map_or(0, |by| by.processes.len());
        assert_eq!(seen(&app), 1);
        app.select(Some(Selection::Call("slurm:2".into())));
        app.select(Some(Selection::Call("slurm:1".into())));
        assert!(!is_wished(&mut app, &feed, 64.0) && seen(&app) == 1, "it is the same call");
    }

    #[test]
    fn of_a_log_the_events_are_asked_for_as_often_as_there_are_more() {
        let now = invented::time_f(60.0);
        let (feed, inbox) = feed();
        let source = Source::Log("slurmctld.log".into());
        let mut app = App::new(source, Some(inbox), Settings::default(), jiff::tz::TimeZone::UTC, now);
        let mut call = invented::call("slurm:1", "ada", &["wn01"]);
        (call.ended, call.state) = (None, State::Running);
        app.take(now, Update::grid(invented::one_domain(std::slice::from_ref(&call))));
        app.select(Some(Selection::Call("slurm:1".into())));
        assert!(is_wished(&mut app, &feed, 60.0));
        answer(&feed, ServedBy { events: Some(Vec::new()), ..ServedBy::default() });
        let asked = (61..100).filter(|&secs| is_wished(&mut app, &feed, f64::from(secs))).count();
        assert_eq!(asked, 0, "it runs still, and its log has nothing more");
        call.events += 1;
        app.take(now, Update::grid(invented::one_domain(&[call])));
        assert!(is_wished(&mut app, &feed, 101.0));
    }
}
