//! The hosts, metrics and span of the graphs, and their figures.
//!
//! Pure. Invariant: hosts are found when the graphs are seen or the choice changes, and figures are stored for the hosts
//! that were requested last. Not here: bounds of a choice (`crate::graphs`), where figures come from
//! (`live::figures`), plots (`app::graphs`).

use super::grid::PlacedGrid;
use crate::feed::Figures;
use crate::flock::sweep::HostName;
use crate::graphs::coverage::Coverage;
use crate::graphs::metric::Metric;
use crate::graphs::span::Span;
use crate::graphs::tiles::{HostMark, TileRequest, Tiles};
use crate::graphs::{Arrangement, Choice, Scale};
use crate::grid::place::{HostState, PlaceId};
use crate::series::HostSeries;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use wire::time::Time;

/// Hosts that are shown unless the user chooses.
pub const HOSTS_USUAL: usize = 16;
/// Graphs are hidden this long after they were last drawn, in seconds.
const HIDDEN_AFTER_SECS: f64 = 3.0;
/// Spans that reach farther back than this are requested by the hour, in seconds, up to an hour.
const LONG_SECS: std::ops::RangeInclusive<f64> = 905.0..=3_605.0;

/// A change of what the graphs show.
#[derive(Clone, Debug)]
pub enum GraphsChange {
    Arrange(Arrangement),
    Scale(Scale),
    SwitchArrangement,
    ToggleMetric(Metric),
    SetMetrics(Vec<Metric>),
    /// Show these hosts; the first live ones for `None`.
    SetHosts(Option<Vec<HostName>>),
    /// Add or remove a host.
    SetHost(HostName, bool),
    /// Return to the hosts that were shown before.
    LeaveVisit,
    SetSpan(f64),
    ResetSpan,
    /// Compare with the time so much earlier.
    Compare(Option<Duration>),
    /// Move the span by a share of its width, or widen it around a share.
    Pan(f64),
    Zoom(f64, f64),
}

/// Hosts shown for a while, and what to return to.
#[derive(Clone)]
struct Visit {
    hosts: Vec<HostName>,
    span: Span,
    was_live: bool,
}

/// State of the graphs.
#[derive(Clone, Default)]
pub struct Graphs {
    choice: Choice,
    visit: Option<Visit>,
    /// The hosts that are shown.
    hosts: Vec<HostName>,
    /// The grid and the choice that the hosts were found for.
    found_for: Option<(Option<Time>, Option<Vec<HostName>>)>,
    /// Their numbers in this order, by their places in the grid.
    numbers: BTreeMap<PlaceId, usize>,
    series: BTreeMap<HostName, Arc<HostSeries>>,
    /// What the series of each host cover.
    coverage: BTreeMap<HostName, Coverage>,
    /// Errors of hosts that could not be queried.
    errors: BTreeMap<HostName, String>,
    requested: Figures,
    tiles: Tiles,
    tiles_requested: Vec<TileRequest>,
    seen_at: Option<Time>,
}

impl Graphs {
    pub(super) fn new(choice: Choice) -> Graphs {
        Graphs { choice, ..Graphs::default() }
    }

    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The choice to save: without what is visited.
    #[must_use]
    pub fn lasting_choice(&self) -> Choice {
        let mut choice = self.choice.clone();
        choice.span = self.visit.as_ref().map_or(choice.span, |visit| visit.span);
        choice
    }

    /// Whether hosts are shown for a while.
    #[must_use]
    pub fn is_visit(&self) -> bool {
        self.visit.is_some()
    }

    /// The hosts that are shown.
    #[must_use]
    pub fn hosts(&self) -> &[HostName] {
        &self.hosts
    }

    /// Whether the hosts were found at all: not before the graphs are first seen.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.found_for.is_some()
    }

    /// The number of a place among the hosts that are shown.
    #[must_use]
    pub fn number_of(&self, place: PlaceId) -> Option<usize> {
        self.numbers.get(&place).copied()
    }

    /// Whether a host is one of those chosen.
    #[must_use]
    pub fn has_host(&self, host: &HostName) -> bool {
        match self.choice.hosts() {
            Some(chosen) => chosen.contains(host),
            None => self.visit.is_none() && self.hosts.contains(host),
        }
    }

    #[must_use]
    pub fn has_figures(&self) -> bool {
        self.hosts.iter().any(|host| self.series.contains_key(host))
    }

    /// The figures of the hosts that are shown.
    pub fn figures(&self) -> impl Iterator<Item = (&HostName, &Arc<HostSeries>)> {
        self.hosts.iter().filter_map(|host| self.series.get_key_value(host))
    }

    #[must_use]
    pub fn series_of(&self, host: &HostName) -> Option<&HostSeries> {
        self.series.get(host).map(Arc::as_ref)
    }

    /// A host's name; with its domain where hosts of several domains are shown.
    #[must_use]
    pub fn title_of(&self, host: &HostName) -> String {
        let has_domains = self.hosts.windows(2).any(|pair| pair[0].domain != pair[1].domain);
        match has_domains && !host.domain.is_empty() {
            true => format!("{} · {}", host.host, host.domain),
            false => host.host.to_string(),
        }
    }

    /// Errors of the hosts that are shown, a line each.
    #[must_use]
    pub fn errors(&self) -> Vec<String> {
        let line = |host: &HostName| {
            let error = self.errors.get(host).map(String::as_str).or_else(|| self.tiles.error_of(host))?;
            Some(format!("{}: {error}", self.title_of(host)))
        };
        self.hosts.iter().filter_map(line).collect()
    }

    /// What the received samples of a host cover; `None` before the first answer.
    pub(super) fn coverage(&self, host: &HostName) -> Option<&Coverage> {
        self.coverage.get(host)
    }

    /// Whether the host's newest values cannot be queried.
    pub(super) fn has_error(&self, host: &HostName) -> bool {
        self.errors.contains_key(host)
    }

    /// Whether anything of the past was received.
    #[must_use]
    pub fn has_tiles(&self) -> bool {
        !self.tiles.is_empty()
    }

    /// Whether tiles were requested and did not arrive yet.
    #[must_use]
    pub fn awaits_tiles(&self) -> bool {
        !self.tiles_requested.is_empty()
    }

    /// What happened to a host in a range, as far as it is known.
    pub fn host_marks(&self, host: &HostName, range: (Time, Time)) -> impl Iterator<Item = HostMark> {
        self.tiles.marks(host, range)
    }

    pub(super) fn tiles(&self) -> &Tiles {
        &self.tiles
    }

    pub(super) fn tiles_mut(&mut self) -> &mut Tiles {
        &mut self.tiles
    }

    /// Whether these are other tiles than those that were requested last.
    pub(super) fn are_new(&self, tiles: &[TileRequest]) -> bool {
        *tiles != self.tiles_requested
    }

    /// A tile was answered: if it is missing still, it is requested again.
    pub(super) fn tile_answered(&mut self, tile: &TileRequest) {
        self.tiles_requested.retain(|requested| requested != tile);
    }

    pub(super) fn tiles_requested(&mut self, tiles: Vec<TileRequest>) {
        self.tiles_requested = tiles;
    }

    pub(super) fn take(&mut self, host: HostName, series: Arc<HostSeries>, error: Option<String>) {
        let has_error = error.is_some();
        let had_error = match error {
            Some(error) => self.errors.insert(host.clone(), error).is_some(),
            None => self.errors.remove(&host).is_some(),
        };
        let metrics = self.choice.metrics();
        let coverage = self.coverage.entry(host.clone()).or_default();
        // Figures from before an error stay.
        if !has_error || !series.is_empty() {
            coverage.update(&series, &metrics);
            self.series.insert(host, series);
        }
        if has_error && !had_error {
            coverage.interrupt();
        }
    }

    /// Show these hosts for a while.
    pub(super) fn visit(&mut self, hosts: Vec<HostName>, is_live: bool) {
        let (span, was_live) = match self.visit.take() {
            Some(before) => (before.span, before.was_live),
            None => (self.choice.span, is_live),
        };
        self.visit = Some(Visit { hosts, span, was_live });
    }

    /// End the visit; whether the timeline was live before.
    pub(super) fn leave_visit(&mut self) -> bool {
        let Some(visit) = self.visit.take() else { return false };
        self.choice.span = visit.span;
        visit.was_live
    }

    pub(super) fn choice_mut(&mut self) -> &mut Choice {
        &mut self.choice
    }

    /// Find the hosts to show: the chosen ones that are in the grid, else the first live ones.
    pub(super) fn find_hosts(&mut self, grid: &PlacedGrid) {
        let visited = self.visit.as_ref().map(|visit| visit.hosts.clone());
        let key = (grid.received_at(), visited.or_else(|| self.choice.hosts()));
        if self.found_for.as_ref() == Some(&key) {
            return;
        }
        let chosen = key.1.clone();
        self.found_for = Some(key);
        let wants_none = chosen.as_ref().is_some_and(Vec::is_empty);
        let mut there: Vec<(PlaceId, HostName)> = Vec::new();
        for name in chosen.into_iter().flatten() {
            let place = grid.host(&name).filter(|id| there.iter().all(|(known, _)| known != id));
            there.extend(place.map(|id| (id, name)));
        }
        let is_chosen = wants_none || !there.is_empty();
        let live = || grid.servers().filter(|(_, place)| place.state == HostState::Live).take(HOSTS_USUAL);
        let shown = match is_chosen {
            true => there,
            false => live().map(|(id, _)| (id, grid.host_name(id))).collect(),
        };
        self.numbers = shown.iter().zip(0..).map(|((id, _), number)| (*id, number)).collect();
        self.hosts = shown.into_iter().map(|(_, name)| name).collect();
    }

    pub(super) fn mark_seen(&mut self, now: Time) {
        self.seen_at = Some(now);
    }

    pub(super) fn is_seen(&self, now: Time) -> bool {
        self.seen_at.is_some_and(|at| now.since(at).as_secs_f64() < HIDDEN_AFTER_SECS)
    }

    /// The figures to request, where they differ from those that were requested last.
    pub(super) fn request(&self, time: Time, now: Time) -> Option<Figures> {
        let is_seen = self.is_seen(now);
        let (from, _) = self.choice.span.range(time);
        let figures = match is_seen {
            true => Figures {
                hosts: self.hosts.clone(),
                metrics: self.choice.metrics(),
                is_long: LONG_SECS.contains(&now.since(from).as_secs_f64()),
                rests: self.hosts.is_empty(),
            },
            false => Figures { rests: true, ..self.requested.clone() },
        };
        let is_other = figures != self.requested && (is_seen || !self.requested.hosts.is_empty());
        is_other.then_some(figures)
    }

    /// A request was sent.
    pub(super) fn requested(&mut self, figures: Figures) {
        self.series.retain(|host, _| figures.hosts.contains(host));
        self.coverage.retain(|host, _| figures.hosts.contains(host));
        self.errors.retain(|host, _| figures.hosts.contains(host));
        self.requested = figures;
    }
}
