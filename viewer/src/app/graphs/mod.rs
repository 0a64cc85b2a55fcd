//! The tab of graphs: metrics of hosts over one axis of time, in one plot together or in a small one each.
//!
//! Not here: which hosts and metrics there are and over what span (`model::graphs`), the row at the top
//! (`head`), one plot (`plot`).

mod cells;
mod head;
mod marks;
pub(super) mod plot;
mod together;

use super::command::Commands;
use super::text::count;
use super::theme::Colors;
use crate::flock::sweep::HostName;
use crate::graphs::Arrangement;
use crate::graphs::metric::Metric;
use crate::model::{GraphLine, Model, Source};
use crate::scene::Tone;
use egui::{Color32, Frame, Margin, RichText, Ui};
use wire::event::Outcome;
use wire::time::Time;

/// The graphs.
#[derive(Clone, Default)]
pub(super) struct GraphsPanel {
    /// What the pointer is at, which all plots show.
    pointer: Pointer,
    /// Text of the field for another metric, and what is wrong with it.
    typed: String,
    error: Option<String>,
}

/// What the pointer is at.
#[derive(Clone, Default)]
struct Pointer {
    time: Option<Time>,
    /// The host of the line.
    host: Option<HostName>,
}

impl GraphsPanel {
    pub(super) fn show(&mut self, model: &Model, ui: &mut Ui, commands: &mut Commands) {
        let colors = Colors::of(ui.ctx());
        let frame = Frame::new().fill(colors.ground).inner_margin(Margin::symmetric(12, 8));
        let mut found = Pointer::default();
        frame.show(ui, |ui| {
            ui.take_available_space();
            // In the frame in which the tab is opened by a click.
            if !model.graphs().is_ready() {
                return;
            }
            self.head(model, ui, colors, commands);
            if let Some(host) = head::legend(model, ui, colors, &self.pointer) {
                found.host = Some(host);
            }
            if let Some(text) = empty_text(model) {
                ui.add_space(16.0);
                ui.label(RichText::new(text).color(colors.weak));
                return;
            }
            let mut graphs = Drawing { model, colors, pointer: &self.pointer, found: &mut found, commands };
            match model.graphs().choice().arrangement {
                Arrangement::Together => together::show(&mut graphs, ui),
                Arrangement::Each => cells::show(&mut graphs, ui),
            }
        });
        self.pointer = found;
    }
}

/// What plots are drawn with.
struct Drawing<'a> {
    model: &'a Model,
    colors: Colors,
    /// What the pointer was at in the last frame.
    pointer: &'a Pointer,
    /// What the pointer is at in this frame.
    found: &'a mut Pointer,
    commands: &'a mut Commands,
}

/// Why there is nothing to draw, if so.
fn empty_text(model: &Model) -> Option<String> {
    let graphs = model.graphs();
    let text = match (model.source(), graphs.hosts().is_empty()) {
        (Source::Log(_) | Source::File(_), _) => {
            "A log has calls, not load: connect to a daemon to see graphs of hosts."
        }
        (_, true) if graphs.choice().hosts().is_some_and(|hosts| hosts.is_empty()) => "No host is chosen.",
        (Source::Daemon(_), true) => "No host is live: nothing to show.",
        _ if graphs.choice().metrics().is_empty() => "No metric is chosen.",
        _ if graphs.has_figures() || graphs.has_tiles() => return None,
        _ => match &graphs.errors()[..] {
            [] => "Asking for figures …",
            errors => return Some(format!("No figures came.\n{}", errors.join("\n"))),
        },
    };
    Some(text.to_owned())
}

/// The colour of a metric's line, of one host's parts.
fn color_of(metric: &Metric, at: usize, colors: Colors) -> Color32 {
    let tones = [Tone::Asking, Tone::Working, Tone::Over(Outcome::Timeout)];
    match metric {
        Metric::Named(_) => colors.distinct(at),
        Metric::Cpu | Metric::Disk | Metric::Network | Metric::Memory | Metric::Load => {
            colors.tone(tones[at.min(tones.len() - 1)])
        }
    }
}

/// The colours of lines: of an earlier time the same as of the later line of that name.
fn line_colors(metric: &Metric, lines: &[GraphLine], colors: Colors) -> Vec<Color32> {
    let number = |line: &GraphLine| {
        let now = lines.iter().filter(|line| !line.is_earlier);
        now.clone().position(|one| one.name == line.name).unwrap_or(0)
    };
    lines.iter().map(|line| color_of(metric, number(line), colors)).collect()
}

/// `1 host`, `2 hosts`.
fn counted(number: usize, what: &str) -> String {
    count(u32::try_from(number).unwrap_or(u32::MAX), what)
}
