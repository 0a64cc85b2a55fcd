//! Rows of the table of sensors.
//!
//! Pure. Rule: a sensor that is watched by its address and is a host of the grid too is counted once. Not
//! here: what a row contains (`crate::sensors`), the table itself (`app::sensors`).

use super::Model;
use crate::grid::place::{HostState, PlaceId};
use crate::live::cache::THIS_MACHINE;
use crate::sensors::{At, Row, SILENT_AFTER_SECS};
use std::net::SocketAddr;

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    /// A sensor by its address.
    Address(SocketAddr),
    /// A host of the grid.
    Host(PlaceId),
}

/// How many sensors there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub all: u32,
    /// Silent or down.
    pub silent: u32,
    pub troubled: u32,
}

impl Counts {
    fn add(&mut self, row: &Row) {
        self.all += 1;
        self.silent += u32::from(matches!(row.state, Some(HostState::Silent | HostState::Down)));
        self.troubled += u32::from(row.is_troubled());
    }
}

/// The lines that fit the search, and the counts of all of these sensors.
#[must_use]
pub fn lines(model: &Model, only_troubled: bool) -> (Vec<Line>, Counts) {
    let search = model.filter().text().split_whitespace().filter(|word| !word.contains(':'));
    let words: Vec<String> = search.map(str::to_lowercase).collect();
    let fits = |name: &str| words.iter().all(|word| name.to_lowercase().contains(word.as_str()));
    let grid = model.grid();
    // Hosts that only logs name have no sensor.
    let hosts = model.placed().servers().filter(|(_, place)| {
        place.report.is_some()
            && (fits(&place.name) || fits(&format!("{} {}", place.name, grid.domain(place.domain).name)))
    });
    let addresses = model.sensor_addresses().into_iter().map(Line::Address);
    let mut counts = Counts::default();
    let mut lines = Vec::new();
    for line in addresses.chain(hosts.map(|(id, _)| Line::Host(id))) {
        let row = row(model, line);
        if !is_host_of_grid(model, line) {
            counts.add(&row);
        }
        if !only_troubled || row.is_troubled() {
            lines.push(line);
        }
    }
    (lines, counts)
}

/// The row of a line.
#[must_use]
pub fn row(model: &Model, line: Line) -> Row {
    let sensors = model.sensors();
    match line {
        Line::Address(address) => {
            let known = sensors.known(&At::Address(address));
            let health = known.and_then(|known| known.health.as_ref());
            let health = health.map(|(health, at)| (health.as_ref(), model.now().since(*at).as_secs_f64()));
            let term = health.and_then(|(health, _)| sensors.term(&health.domain));
            Row { term, ..Row::of_address(health, known.and_then(|known| known.error.as_deref())) }
        }
        Line::Host(id) => {
            let place = model.grid().place(id);
            let Some(report) = &place.report else {
                return Row { state: Some(place.state), ..Row::default() };
            };
            let old_secs = model.grid_age_secs();
            let is_late = report.age_secs.is_some_and(|age| age + old_secs > SILENT_AFTER_SECS);
            let is_silent = place.state == HostState::Live && model.source().is_daemon() && is_late;
            let state = if is_silent { HostState::Silent } else { place.state };
            let health = sensors.health(&At::Host(model.placed().host_name(id)));
            let term = sensors.term(&model.grid().domain(place.domain).name);
            Row { term, ..Row::of_host(state, report, old_secs, health) }
        }
    }
}

/// Where the sensor of a line is queried.
#[must_use]
pub fn at(model: &Model, line: Line) -> At {
    match line {
        Line::Address(address) => At::Address(address),
        Line::Host(id) => At::Host(model.placed().host_name(id)),
    }
}

/// The line of a sensor, if it is watched or in the grid.
#[must_use]
pub fn line(model: &Model, at: &At) -> Option<Line> {
    match at {
        At::Address(address) => model.sensor_addresses().contains(address).then_some(Line::Address(*address)),
        At::Host(host) => model.placed().host(host).map(Line::Host),
    }
}

/// The names of a sensor and of its domain; the latter is empty for a sensor that is in none.
#[must_use]
pub fn names(model: &Model, line: Line) -> (String, String) {
    match line {
        Line::Address(address) => {
            let health = model.sensors().health(&At::Address(address));
            let host = health.map(|health| health.host.clone()).filter(|host| !host.is_empty());
            let domain = health.map_or_else(String::new, |health| health.domain.clone());
            (host.map_or_else(|| address.to_string(), |host| format!("{host} at {address}")), domain)
        }
        Line::Host(id) => {
            let place = model.grid().place(id);
            let domain = &model.grid().domain(place.domain).name;
            (place.name.clone(), if domain == THIS_MACHINE { String::new() } else { domain.clone() })
        }
    }
}

fn is_host_of_grid(model: &Model, line: Line) -> bool {
    let Line::Address(address) = line else { return false };
    let Some(health) = model.sensors().health(&At::Address(address)) else { return false };
    let mut servers = model.placed().servers().filter(|(_, place)| place.report.is_some());
    servers.any(|(_, place)| {
        *place.name == *health.host && *model.grid().domain(place.domain).name == *health.domain
    })
}
