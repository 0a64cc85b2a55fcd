//! The tab of graphs: metrics of hosts, in one plot together or in a small one each, over one axis of time.
//!
//! Rule: no one is asked for figures while no graph is seen. Not here: which cells there are and over what span
//! (`crate::graphs`), where figures come from (`live::figures`), the row at the top (`head`), one plot (`plot`).

mod cells;
mod head;
mod marks;
mod plot;
mod together;

use super::settings::Settings;
use super::tabs::{self, Tab};
use super::text::count;
use super::theme::Colors;
use super::{App, Source};
use crate::feed::{Figures, HostSeries, Wish};
use crate::flock::sweep::HostName;
use crate::graphs::metric::Metric;
use crate::graphs::span::Span;
use crate::graphs::{Arrangement, HOSTS_MAX};
use crate::grid::call::Call;
use crate::grid::place::{HostState, Part, PlaceId};
use crate::invented_figures;
use crate::scene::Tone;
use crate::timeline::Mode;
use egui::{Color32, Frame, Margin, RichText, Ui};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::event::Outcome;
use wire::time::Time;

/// Hosts that are shown unless somebody chooses.
const HOSTS_USUAL: usize = 16;
/// So long after they were last drawn graphs count as not seen, in seconds.
const UNSEEN_AFTER_SECS: f64 = 3.0;
/// Who looks farther back than this is given an hour, in seconds.
const LONG_SECS: f64 = 905.0;

/// What is known, and what is pointed at.
#[derive(Clone, Default)]
pub(super) struct GraphsView {
    series: BTreeMap<HostName, Arc<HostSeries>>,
    /// Why hosts cannot be asked, or what is wrong with what they say.
    troubles: BTreeMap<HostName, String>,
    /// The hosts that are shown, and from what that follows.
    hosts: Vec<HostName>,
    /// Their numbers in this order, by their places in the grid.
    places: BTreeMap<PlaceId, usize>,
    hosts_by: Option<(Option<Time>, Option<Vec<HostName>>)>,
    /// What is looked at, whichever hosts were chosen.
    only: Option<Only>,
    wished: Figures,
    seen: Option<Time>,
    /// The moment under the pointer, which all plots show, and when it was there.
    cursor: Option<Time>,
    cursor_next: Option<Time>,
    /// The host whose line is pointed at.
    pointed: Option<HostName>,
    pointed_next: Option<HostName>,
    /// What is typed into the field for one more metric, and what is wrong with it.
    typed: String,
    wrong: Option<String>,
}

/// Hosts that are looked at for a while, and how it was before.
#[derive(Clone)]
struct Only {
    hosts: Vec<HostName>,
    span: Span,
    was_live: bool,
}

impl GraphsView {
    /// Figures that came.
    pub(super) fn take(&mut self, host: HostName, series: Arc<HostSeries>, trouble: Option<String>) {
        match trouble {
            Some(trouble) => self.troubles.insert(host.clone(), trouble),
            None => self.troubles.remove(&host),
        };
        // What one said before it was in trouble stays.
        if !self.troubles.contains_key(&host) || !series.is_empty() {
            self.series.insert(host, series);
        }
    }

    /// The troubles of the hosts that are shown, a line each.
    fn told_troubles(&self) -> Vec<String> {
        let of_host = |host: &HostName| Some(format!("{}: {}", self.name_of(host), self.troubles.get(host)?));
        self.hosts.iter().filter_map(of_host).collect()
    }

    /// Whether there are any.
    pub(super) fn has_figures(&self) -> bool {
        self.hosts.iter().any(|host| self.series.contains_key(host))
    }

    /// The figures of the hosts that are shown.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&HostName, &Arc<HostSeries>)> {
        self.hosts.iter().filter_map(|host| self.series.get_key_value(host))
    }

    fn of(&self, host: &HostName) -> Option<&HostSeries> {
        self.series.get(host).map(Arc::as_ref)
    }

    /// Whether hosts of several domains are shown, so that a name alone may be two.
    fn names_domains(&self) -> bool {
        self.hosts.windows(2).any(|pair| pair[0].domain != pair[1].domain)
    }

    /// A host as it is named over its plot.
    fn name_of(&self, host: &HostName) -> String {
        match self.names_domains() && !host.domain.is_empty() {
            true => format!("{} · {}", host.host, host.domain),
            false => host.host.to_string(),
        }
    }
}

impl App {
    /// The graphs of a host, in their tab; those that were chosen before are a click away.
    pub fn open_graphs(&mut self, id: PlaceId) {
        self.look_at_graphs(vec![self.host_name(id)]);
    }

    /// The graphs of a call's hosts over its life, in their tab; of one that goes on, until now.
    pub(super) fn open_graphs_of_call(&mut self, call: &Call) {
        self.look_at_graphs(call.hosts.iter().take(HOSTS_MAX).map(|&id| self.host_name(id)).collect());
        match call.ended {
            Some(ended) => self.stop_at(ended),
            None => self.timeline.go_live(),
        }
        if let Some(begun) = call.started.or(call.first()) {
            let life = call.ended.unwrap_or(self.now).since(begun);
            self.settings.graphs.span.set_secs(life.as_secs_f64());
        }
    }

    fn look_at_graphs(&mut self, hosts: Vec<HostName>) {
        let (span, was_live) = match self.graphs.only.take() {
            Some(before) => (before.span, before.was_live),
            None => (self.settings.graphs.span, self.timeline.mode() == Mode::Live),
        };
        self.graphs.only = Some(Only { hosts, span, was_live });
        self.find_graph_hosts();
        tabs::open(self, Tab::Graphs);
    }

    /// Look at those again that were chosen.
    pub(super) fn leave_only_graphs(&mut self) {
        if let Some(before) = self.graphs.only.take() {
            self.settings.graphs.span = before.span;
            if before.was_live {
                self.timeline.go_live();
            }
        }
        self.find_graph_hosts();
    }

    /// The graphs of a host beside those that are shown already.
    pub(super) fn add_to_graphs(&mut self, id: PlaceId) {
        let mut hosts = self.chosen_graph_hosts();
        let name = self.host_name(id);
        if !hosts.contains(&name) && hosts.len() < HOSTS_MAX {
            hosts.push(name);
        }
        self.show_graphs_of(Some(&hosts));
        tabs::open(self, Tab::Graphs);
    }

    /// Whether a host may have figures: one that only calls name has none, nor has any of a log or a file.
    pub(super) fn has_graphs(&self, id: PlaceId) -> bool {
        let place = self.drawn.grid.place(id);
        let is_of_grid = matches!(self.source, Source::Daemon(_) | Source::Invented);
        is_of_grid && place.part == Part::Server && place.state != HostState::Unknown
    }

    /// Whether a host is one of those chosen.
    pub(super) fn is_in_graphs(&self, id: PlaceId) -> bool {
        let is_it = |hosts: Vec<HostName>| hosts.contains(&self.host_name(id));
        match self.settings.graphs.hosts() {
            Some(chosen) => is_it(chosen),
            None => self.graphs.only.is_none() && is_it(self.graphs.hosts.clone()),
        }
    }

    /// The hosts that are chosen, those that are not there now among them; the usual ones where no one chose.
    fn chosen_graph_hosts(&mut self) -> Vec<HostName> {
        self.settings.graphs.hosts().unwrap_or_else(|| {
            self.leave_only_graphs();
            self.graphs.hosts.clone()
        })
    }

    /// The settings without what is looked at for a while.
    pub(super) fn lasting_settings(&self) -> Settings {
        let mut settings = self.settings.clone();
        settings.graphs.span = self.graphs.only.as_ref().map_or(settings.graphs.span, |before| before.span);
        settings
    }

    /// Show the graphs of these hosts; of the first that are live for nothing.
    pub fn show_graphs_of(&mut self, hosts: Option<&[HostName]>) {
        self.settings.graphs.set_hosts(hosts);
        self.leave_only_graphs();
    }

    /// Begin to ask for figures now, without waiting for them to be drawn.
    pub fn watch_graphs(&mut self) {
        self.graphs.seen = Some(self.now);
        self.wish_figures();
    }

    /// Say whose figures are wanted, where that changed.
    pub(super) fn wish_figures(&mut self) {
        let is_seen =
            self.graphs.seen.is_some_and(|seen| self.now.since(seen).as_secs_f64() < UNSEEN_AFTER_SECS);
        if is_seen {
            self.find_graph_hosts();
        }
        let (from, _) = self.settings.graphs.span.range(self.timeline.time());
        let is_long = self.now.since(from).as_secs_f64() > LONG_SECS;
        let view = &mut self.graphs;
        let figures = match is_seen {
            true => Figures {
                hosts: view.hosts.clone(),
                metrics: self.settings.graphs.metrics(),
                is_long,
                rests: view.hosts.is_empty(),
            },
            false => Figures { rests: true, ..view.wished.clone() },
        };
        let is_other = figures != view.wished && (is_seen || !view.wished.hosts.is_empty());
        if let Some(inbox) = self.inbox.as_ref().filter(|_| is_other)
            && inbox.wish(Wish::Figures(figures.clone()))
        {
            view.series.retain(|host, _| figures.hosts.contains(host));
            view.troubles.retain(|host, _| figures.hosts.contains(host));
            view.wished = figures;
        }
    }

    /// The hosts that are shown: those chosen that are still there, else the first that are live.
    fn find_graph_hosts(&mut self) {
        let only = self.graphs.only.as_ref().map(|only| only.hosts.clone());
        let by = (self.grid_at, only.or_else(|| self.settings.graphs.hosts()));
        if self.graphs.hosts_by.as_ref() == Some(&by) {
            return;
        }
        let chosen = by.1.as_ref().map(|chosen| {
            let mut there: Vec<HostName> =
                self.servers().map(|(_, name)| name).filter(|name| chosen.contains(name)).collect();
            there.sort_by_key(|name| chosen.iter().position(|known| known == name));
            there
        });
        let is_live = |id: PlaceId| self.drawn.grid.place(id).state == HostState::Live;
        let wants_none = by.1.as_ref().is_some_and(Vec::is_empty);
        self.graphs.hosts = chosen.filter(|chosen| wants_none || !chosen.is_empty()).unwrap_or_else(|| {
            let live = self.servers().filter(|(id, _)| is_live(*id));
            live.map(|(_, name)| name).take(HOSTS_USUAL).collect()
        });
        let numbers: BTreeMap<&HostName, usize> = self.graphs.hosts.iter().zip(0..).collect();
        let places = self.servers().filter_map(|(id, name)| Some((id, *numbers.get(&name)?))).collect();
        (self.graphs.places, self.graphs.hosts_by) = (places, Some(by));
        if self.source == Source::Invented {
            let view = &mut self.graphs;
            view.series.retain(|host, _| view.hosts.contains(host));
            for host in &view.hosts {
                let invent = || Arc::new(invented_figures::host(host));
                view.series.entry(host.clone()).or_insert_with(invent);
            }
        }
    }

    /// One plot for all hosts, or one for each.
    pub(super) fn switch_graphs(&mut self) {
        let choice = &mut self.settings.graphs;
        choice.arrangement = match choice.arrangement {
            Arrangement::Together => Arrangement::Each,
            Arrangement::Each => Arrangement::Together,
        };
    }
}

/// Draw them.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    app.graphs.seen = Some(app.now);
    app.find_graph_hosts();
    let colors = Colors::of(ui.ctx());
    let frame = Frame::new().fill(colors.ground).inner_margin(Margin::symmetric(12, 8));
    frame.show(ui, |ui| {
        ui.take_available_space();
        head::show(app, ui, colors);
        if let Some(words) = nothing(app) {
            ui.add_space(16.0);
            ui.label(RichText::new(words).color(colors.weak));
            return;
        }
        match app.settings.graphs.arrangement {
            Arrangement::Together => together::show(app, ui, colors),
            Arrangement::Each => cells::show(app, ui, colors),
        }
    });
    let view = &mut app.graphs;
    (view.cursor, view.pointed) = (view.cursor_next.take(), view.pointed_next.take());
}

/// Why there is nothing to see, if so.
fn nothing(app: &App) -> Option<String> {
    let words = match (&app.source, app.graphs.hosts.is_empty()) {
        (Source::Log(_) | Source::File(_), _) => {
            "A log tells of calls, not of load: connect to a daemon to see graphs of hosts."
        }
        (_, true) if app.settings.graphs.hosts().is_some_and(|hosts| hosts.is_empty()) => {
            "No host is chosen."
        }
        (Source::Daemon(_) | Source::Invented, true) => "No host is live: nothing to show.",
        _ if app.settings.graphs.metrics().is_empty() => "No metric is chosen.",
        _ if app.graphs.has_figures() => return None,
        _ => match &app.graphs.told_troubles()[..] {
            [] => "Asking for figures …",
            troubles => return Some(format!("No figures came.\n{}", troubles.join("\n"))),
        },
    };
    Some(words.to_owned())
}

/// The colours of a metric's lines, where they are parts of one host's.
fn color_of(metric: &Metric, at: usize, colors: Colors) -> Color32 {
    let tones = [Tone::Asking, Tone::Working, Tone::Over(Outcome::Timeout)];
    match metric {
        Metric::Named(_) => colors.distinct(at),
        Metric::Cpu | Metric::Disk | Metric::Network | Metric::Memory | Metric::Load => {
            colors.tone(tones[at.min(tones.len() - 1)])
        }
    }
}

/// `1 host`, `2 hosts`.
fn counted(number: usize, what: &str) -> String {
    count(u32::try_from(number).unwrap_or(u32::MAX), what)
}
