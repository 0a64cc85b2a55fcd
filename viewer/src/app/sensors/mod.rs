//! The tab of sensors: how each is, and what a person orders of them.
//!
//! Rule: what stops something is asked about first; what came of an order is told. Not here: what stands in a row
//! (`crate::sensors`), the table (`table`), the sensor that is chosen (`chosen`), the question (`confirm`).

mod chosen;
mod confirm;
mod head;
mod table;

use super::theme::Colors;
use super::{App, SILENT_AFTER_SECS, Source};
use crate::export::table::Table;
use crate::feed::{Sensors, Wish};
use crate::flock::sweep::HostName;
use crate::grid::place::{Part, PlaceId};
use crate::live;
use crate::sensors::health::Health;
use crate::sensors::{ADDRESSES_MAX, At, HOSTS_MAX, Order, Row};
use egui::{Rect, Ui, UiBuilder, pos2};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use wire::time::Time;

/// So long after it was last drawn the tab counts as not seen, in seconds.
const UNSEEN_AFTER_SECS: f64 = 3.0;
/// How often all rows are looked at, in microseconds.
const LINES_EVERY_MICROS: i64 = 250_000;
/// Narrower tabs have what is chosen below the table, in points.
const BESIDE_FROM: f32 = 720.0;
/// Width of what is chosen, in points.
const CHOSEN_WIDTH: f32 = 320.0;
/// Its share of the height, where it is below.
const CHOSEN_SHARE: f32 = 0.5;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line {
    /// A sensor that is asked at its address.
    Address(SocketAddr),
    /// A host of the grid.
    Host(PlaceId),
}

/// What came of a sensor last.
#[derive(Clone, Debug, Default)]
struct Known {
    health: Option<(Arc<Health>, Time)>,
    trouble: Option<String>,
}

/// What is known, chosen and typed.
#[derive(Clone, Default)]
pub(super) struct SensorsView {
    known: BTreeMap<At, Known>,
    terms: BTreeMap<String, u64>,
    /// The channels of this viewer's flock, by their hosts.
    own: BTreeMap<HostName, String>,
    seen: Option<Time>,
    wished: Sensors,
    /// The hosts whose rows were drawn last.
    rows_seen: Vec<HostName>,
    chosen: Option<At>,
    asked: Option<confirm::Asked>,
    /// What is typed into a channel's fields: its rate and filter.
    edited: BTreeMap<(At, String), (f64, String)>,
    typed: String,
    wrong: Option<String>,
    only_troubled: bool,
    lines: Vec<Line>,
    counts: head::Counts,
    /// For what the lines are.
    lines_of: Option<(Option<Time>, i64, String, bool, usize)>,
}

impl SensorsView {
    /// What a sensor said of itself at a time, or why it could not be asked.
    pub(super) fn take(&mut self, at_time: Time, at: At, health: Result<Arc<Health>, String>) {
        let known = self.known.entry(at).or_default();
        match health {
            Ok(health) => *known = Known { health: Some((health, at_time)), trouble: None },
            Err(trouble) => known.trouble = Some(trouble),
        }
    }

    /// The term of who represents a domain.
    pub(super) fn take_term(&mut self, domain: String, term: Option<u64>) {
        match term {
            Some(term) => self.terms.insert(domain, term),
            None => self.terms.remove(&domain),
        };
    }

    /// The channel of the flock at a host, or that there is none any more.
    pub(super) fn take_channel(&mut self, host: HostName, subscription: String) {
        self.own.insert(host, subscription);
    }

    /// A channel of the flock is no more; whether it is not another's turn by now.
    pub(super) fn channel_ended(&mut self, host: &HostName, subscription: &str) -> bool {
        let is_it = self.own.get(host).is_some_and(|known| known == subscription);
        is_it && self.own.remove(host).is_some()
    }

    fn health(&self, at: &At) -> Option<&Health> {
        self.known.get(at)?.health.as_ref().map(|(health, _)| health.as_ref())
    }
}

impl App {
    /// Begin to ask sensors now, without waiting for the tab to be drawn.
    pub fn watch_sensors(&mut self) {
        self.sensors.seen = Some(self.now);
        self.wish_sensors();
    }

    /// Choose a sensor.
    pub fn choose_sensor(&mut self, at: Option<At>) {
        self.sensors.chosen = at;
    }

    /// Choose the sensor of a host.
    pub fn choose_sensor_of(&mut self, id: PlaceId) {
        self.sensors.chosen = Some(At::Host(self.host_name(id)));
    }

    /// All sensors that are listed.
    pub(super) fn sensors_table(&self) -> Table {
        let columns = vec![
            "sensor",
            "domain",
            "state",
            "heard_secs",
            "lag_bytes",
            "behind",
            "dropped",
            "thinned",
            "slipped",
            "term",
            "troubles",
        ];
        let row = |&line: &Line| {
            let row = self.sensor_row(line);
            let (name, domain) = names(self, line);
            vec![
                name.into(),
                domain.into(),
                row.state.map(crate::grid::place::HostState::word).into(),
                row.heard_secs.into(),
                row.lag_bytes.into(),
                row.behind.into(),
                row.dropped.into(),
                row.thinned.into(),
                row.slipped.into(),
                row.term.into(),
                row.troubles.into(),
            ]
        };
        let (lines, _) = self.lines();
        Table { columns, rows: lines.iter().map(row).collect() }
    }

    /// Say which sensors are to be asked, where that changed.
    pub(super) fn wish_sensors(&mut self) {
        let is_seen =
            self.sensors.seen.is_some_and(|seen| self.now.since(seen).as_secs_f64() < UNSEEN_AFTER_SECS);
        let wanted = if is_seen { self.wanted_sensors() } else { Sensors::default() };
        if wanted == self.sensors.wished {
            return;
        }
        if let Some(inbox) = &self.inbox
            && inbox.wish(Wish::Sensors(wanted.clone()))
        {
            self.sensors.known.retain(|at, _| wanted.sensors.contains(at) || !is_seen);
            self.sensors.wished = wanted;
        }
    }

    /// Those at their addresses, the one that is chosen, and those whose rows are seen.
    fn wanted_sensors(&self) -> Sensors {
        let view = &self.sensors;
        let mut sensors: Vec<At> = self.addresses().into_iter().map(At::Address).collect();
        let hosts = view.rows_seen.iter().take(HOSTS_MAX - 1).cloned().map(At::Host);
        for at in view.chosen.clone().into_iter().chain(hosts) {
            if !sensors.contains(&at) {
                sensors.push(at);
            }
        }
        let names: BTreeSet<&str> = view.rows_seen.iter().map(|host| &*host.domain).collect();
        let domains = names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Sensors { sensors, domains }
    }

    /// The addresses that are watched: that of the daemon which is asked, and those that were added.
    fn addresses(&self) -> Vec<SocketAddr> {
        let own = match &self.source {
            Source::Daemon(address) => address.parse().ok(),
            Source::Log(_) | Source::File(_) | Source::Invented => None,
        };
        let added = self.settings.sensors.iter().copied().filter(|address| Some(*address) != own);
        own.into_iter().chain(added.take(ADDRESSES_MAX)).collect()
    }

    /// What stands in a line.
    fn sensor_row(&self, line: Line) -> Row {
        match line {
            Line::Address(address) => {
                let known = self.sensors.known.get(&At::Address(address));
                let health = known.and_then(|known| known.health.as_ref());
                let health = health.map(|(health, at)| (health.as_ref(), self.now.since(*at).as_secs_f64()));
                let term = health.and_then(|(health, _)| self.sensors.terms.get(&health.domain)).copied();
                Row { term, ..Row::of_address(health, known.and_then(|known| known.trouble.as_deref())) }
            }
            Line::Host(id) => {
                let place = self.drawn.grid.place(id);
                let old_secs = self.grid_at.map_or(0.0, |at| self.now.since(at).as_secs_f64());
                let Some(report) = &place.report else {
                    return Row { state: Some(place.state), ..Row::default() };
                };
                let mut state = place.state;
                let is_live = matches!(self.source, Source::Daemon(_));
                if is_live
                    && state == crate::grid::place::HostState::Live
                    && report.age_secs.is_some_and(|age| age + old_secs > SILENT_AFTER_SECS)
                {
                    state = crate::grid::place::HostState::Silent;
                }
                let at = At::Host(self.host_name(id));
                let mut row = Row::of_host(state, report, old_secs, self.sensors.health(&at));
                row.term = self.sensors.terms.get(&self.drawn.grid.domain(place.domain).name).copied();
                row
            }
        }
    }

    /// The lines of the table, found again four times a second, and when something else is looked for.
    fn find_lines(&mut self) {
        let view = &self.sensors;
        let moment = self.now.micros().div_euclid(LINES_EVERY_MICROS);
        let of = (self.grid_at, moment, self.search.clone(), view.only_troubled, self.addresses().len());
        if view.lines_of.as_ref() == Some(&of) {
            return;
        }
        let (lines, counts) = self.lines();
        (self.sensors.lines, self.sensors.counts, self.sensors.lines_of) = (lines, counts, Some(of));
    }

    /// The lines of the grid as it is now, and how many sensors there are.
    fn lines(&self) -> (Vec<Line>, head::Counts) {
        let words: Vec<String> = self
            .search
            .split_whitespace()
            .filter(|word| !word.contains(':'))
            .map(str::to_lowercase)
            .collect();
        let fits = |name: &str| words.iter().all(|word| name.to_lowercase().contains(word.as_str()));
        let grid = &self.drawn.grid;
        // Hosts that only logs name have no sensor.
        let places = (0..).map(PlaceId).zip(&grid.places);
        let places = places.filter(|(_, place)| place.part == Part::Server && place.report.is_some());
        let hosts = places.filter(|(_, place)| {
            fits(&place.name) || fits(&format!("{} {}", place.name, grid.domain(place.domain).name))
        });
        let all = self.addresses().into_iter().map(Line::Address).chain(hosts.map(|(id, _)| Line::Host(id)));
        let mut counts = head::Counts::default();
        let mut lines = Vec::new();
        for line in all {
            let row = self.sensor_row(line);
            if !self.is_host_of_grid(line) {
                counts.add(&row);
            }
            if !self.sensors.only_troubled || row.is_troubled() {
                lines.push(line);
            }
        }
        (lines, counts)
    }

    /// Whether a sensor that is asked at its address stands among the hosts too: it is one, and counted there.
    fn is_host_of_grid(&self, line: Line) -> bool {
        let Line::Address(address) = line else { return false };
        let Some(health) = self.sensors.health(&At::Address(address)) else { return false };
        let grid = &self.drawn.grid;
        let mut servers =
            grid.places.iter().filter(|place| place.part == Part::Server && place.report.is_some());
        servers.any(|place| *place.name == *health.host && *grid.domain(place.domain).name == *health.domain)
    }

    /// Where a line's sensor is asked.
    fn at_of(&self, line: Line) -> At {
        match line {
            Line::Address(address) => At::Address(address),
            Line::Host(id) => At::Host(self.host_name(id)),
        }
    }

    /// Hand an order over.
    fn order(&mut self, order: Order) {
        let Some(inbox) = &self.flock.inbox else {
            return self.notify(self.now, "Nobody is there to be ordered: connect to a daemon.".to_owned());
        };
        let words = match inbox.wish(Wish::Order(order)) {
            true => "Ordered …",
            false => "Too much is asked for already; try again.",
        };
        self.notify(self.now, words.to_owned());
    }

    /// Whether something is asked about.
    pub(super) fn asks_of_sensor(&self) -> bool {
        self.sensors.asked.is_some()
    }

    /// Leave what is asked about, if something is; whether it was so.
    pub(super) fn leave_sensor_question(&mut self) -> bool {
        self.sensors.asked.take().is_some()
    }
}

/// Draw the tab.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    app.sensors.seen = Some(app.now);
    app.keep_flock_for_its_channels();
    app.find_lines();
    let colors = Colors::of(ui.ctx());
    let rect = ui.available_rect_before_wrap();
    ui.allocate_rect(rect, egui::Sense::hover());
    ui.painter().rect_filled(rect, 0.0, colors.ground);
    let (table, beside) = divided(rect, app.sensors.chosen.is_some());
    let mut inside = |rect: Rect, name: &str, draw: &mut dyn FnMut(&mut App, &mut Ui)| {
        ui.scope_builder(UiBuilder::new().max_rect(rect).id_salt(name), |ui| {
            ui.set_clip_rect(rect.intersect(ui.clip_rect()));
            draw(app, ui);
        });
    };
    inside(table.shrink2(egui::vec2(12.0, 8.0)), "sensors", &mut |app, ui| {
        head::show(app, ui, colors);
        table::show(app, ui, colors);
    });
    if let Some(beside) = beside {
        inside(beside, "chosen sensor", &mut |app, ui| chosen::show(app, ui, colors));
    }
    confirm::show(app, ui, colors);
}

/// The room of the table, and of the sensor that is chosen.
fn divided(rect: Rect, has_chosen: bool) -> (Rect, Option<Rect>) {
    if !has_chosen {
        return (rect, None);
    }
    if rect.width() >= BESIDE_FROM {
        let x = rect.right() - CHOSEN_WIDTH;
        let table = Rect::from_min_max(rect.min, pos2(x, rect.bottom()));
        return (table, Some(Rect::from_min_max(pos2(x, rect.top()), rect.max)));
    }
    let y = rect.bottom() - CHOSEN_SHARE * rect.height();
    let table = Rect::from_min_max(rect.min, pos2(rect.right(), y));
    (table, Some(Rect::from_min_max(pos2(rect.left(), y), rect.max)))
}

/// A host's name, and its domain's; `this machine` where it is in none.
fn names(app: &App, line: Line) -> (String, String) {
    match line {
        Line::Address(address) => {
            let health = app.sensors.health(&At::Address(address));
            let host = health.map(|health| health.host.clone()).filter(|host| !host.is_empty());
            let domain = health.map_or_else(String::new, |health| health.domain.clone());
            (host.map_or_else(|| address.to_string(), |host| format!("{host} at {address}")), domain)
        }
        Line::Host(id) => {
            let place = app.drawn.grid.place(id);
            let domain = &app.drawn.grid.domain(place.domain).name;
            let is_none = domain == live::known::THIS_MACHINE;
            (place.name.clone(), if is_none { String::new() } else { domain.clone() })
        }
    }
}
