//! In the details of a call: the processes that served it, sample by sample, for exactly its life.
//!
//! Rule: reduced to the width there is by least and greatest, so that no sample of 64 a second is lost. Not here: asking
//! for them (`live::served`).

use super::text::{count, moment};
use super::theme::{self, Colors};
use super::{App, Source};
use crate::feed::{Served, Wish};
use crate::grid::call::Call;
use crate::live::served::{Process, ServedBy};
use crate::series::Series;
use egui::{RichText, Ui, Vec2b, vec2};
use egui_plot::{Line, Plot, PlotPoints};
use std::sync::Arc;
use wire::call::State;
use wire::time::Time;

/// How often a call that still works is asked about, in seconds.
const AGAIN_SECS: f64 = 2.0;
/// Height of a graph, in points.
const HEIGHT: f32 = 84.0;
/// Processes that are listed.
const LISTED: usize = 12;

/// What is known of the processes of the chosen call.
#[derive(Default)]
pub(super) struct ServedView {
    call: String,
    by: Option<Arc<ServedBy>>,
    asked: Option<Time>,
}

impl App {
    /// Take what served a call.
    pub(super) fn take_served(&mut self, call: &str, by: Arc<ServedBy>) {
        if self.served.call == call {
            self.served.by = Some(by);
        }
    }

    /// Ask for the processes of the chosen call, once; again and again while it works.
    pub(super) fn wish_served(&mut self) {
        let (Source::Daemon(_), Some(call)) = (&self.source, self.selected_call()) else { return };
        let is_other = self.served.call != call.id;
        let is_old = self.served.asked.is_none_or(|asked| self.now.since(asked).as_secs_f64() > AGAIN_SECS);
        let began = call.started.or(call.assigned).is_some();
        if !began || !(is_other || (is_old && call.state == State::Running)) {
            return;
        }
        let (id, hosts) = (call.id.clone(), call.hosts.iter().map(|&host| self.host_name(host)).collect());
        let Some(inbox) = &self.flock.inbox else { return };
        if inbox.wish(Wish::Served(Served { call: id.clone(), hosts })) {
            self.served.asked = Some(self.now);
            if is_other {
                (self.served.call, self.served.by) = (id, None);
            }
        }
    }
}

/// Draw them.
pub(super) fn show(app: &App, ui: &mut Ui, colors: Colors, call: &Call) {
    let Some(by) = app.served.by.as_ref().filter(|_| app.served.call == call.id) else { return };
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
    for process in by.processes.iter().take(LISTED) {
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(vec2(9.0, 12.0), egui::Sense::hover());
            let square = egui::Rect::from_center_size(rect.center(), vec2(8.0, 8.0));
            ui.painter().rect_filled(square, 2.0, colors.program(&process.name));
            let text = format!("{} ({}) on {}", process.name, process.pid, process.host);
            ui.add(egui::Label::new(RichText::new(text).size(theme::SMALL)).truncate())
                .on_hover_text(format!("known by {}", process.known_by));
        });
    }
    let more = by.processes.len().saturating_sub(LISTED) as u64 + by.left_out;
    let more = (more > 0).then(|| format!("and {more} more"));
    for line in by.troubles.iter().cloned().chain(more) {
        ui.add(egui::Label::new(RichText::new(line).color(colors.weak).size(theme::SMALL)).wrap());
    }
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
        format!("{}  {}", moment(at, &zone, false), super::graphs::short(point.y))
    });
    Plot::new(title)
        .height(HEIGHT)
        .show_background(false)
        .show_axes(Vec2b::new(false, true))
        .y_axis_formatter(|mark, _| super::graphs::short(mark.value))
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
