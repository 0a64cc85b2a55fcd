//! What the window shows, without the window: grid, timeline, filter, selection, and the data of every tab.
//!
//! Pure. Rule: updates arrive by [`Model::take`], and everything that the user does by [`Model::apply`];
//! panels only read. What is to be requested is returned (`request`), not sent. Not here: views (cameras,
//! typed text: `app`), channels (`app::feeds`).

mod change;
mod clock;
mod connection;
mod filter;
mod flock;
mod graph_lines;
mod graphs;
mod grid;
mod jobs;
mod joined_line;
mod request;
mod selection;
pub mod sensor_rows;
mod sensors;
mod served;
mod source;

pub use change::{Change, TimeChange};
pub use connection::Connection;
pub use filter::CallFilter;
pub use flock::{FlockChange, FlockState, HOSTS_USUAL as FLOCK_HOSTS_USUAL, ProcessId, RATES_HZ};
pub use graphs::{Graphs, GraphsChange, HOSTS_USUAL as GRAPHS_HOSTS_USUAL};
pub use grid::PlacedGrid;
pub use jobs::{JobsChange, JobsRange, JobsState};
pub use joined_line::GraphLine;
pub use selection::{Selected, Selection};
pub use sensors::{SensorsChange, SensorsState};
pub use served::ServedCall;
pub use source::Source;

use crate::feed::{Drawn, Update};
use crate::flock::past::Span;
use crate::graphs::Choice;
use crate::grid::Grid;
use crate::grid::call::Call;
use crate::grid::place::{HostState, Part, Place, PlaceId, Report};
use crate::layout::{Layout, Moves};
use crate::scene::{Scene, scene};
use crate::sensors::SILENT_AFTER_SECS;
use crate::timeline::{Mode, Timeline};
use clock::Clock;
use jiff::tz::TimeZone;
use std::net::SocketAddr;
use std::sync::Arc;
use wire::time::Time;

/// What of the settings belongs to the model.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    pub moves: Moves,
    pub graphs: Choice,
    /// Sensors that are watched by their addresses.
    pub sensors: Vec<SocketAddr>,
}

/// Everything that the window shows.
#[derive(Clone)]
pub struct Model {
    connection: Connection,
    zone: TimeZone,
    clock: Clock,
    grid: PlacedGrid,
    scene: Arc<Scene>,
    filter: CallFilter,
    selected: Selected,
    graphs: Graphs,
    flock: FlockState,
    sensors: SensorsState,
    served: ServedCall,
    jobs: JobsState,
    /// The time around which calls were requested last.
    calls_at: Option<Time>,
    /// The result of what the user did last, and when it was known.
    notice: Option<(Time, String)>,
}

impl Model {
    #[must_use]
    pub fn new(source: Source, zone: TimeZone, now: Time, saved: Saved) -> Model {
        Model {
            zone,
            clock: Clock::new(&source, now),
            connection: Connection::new(source),
            grid: PlacedGrid::new(saved.moves),
            scene: Arc::default(),
            filter: CallFilter::default(),
            selected: Selected::default(),
            graphs: Graphs::new(saved.graphs),
            flock: FlockState::default(),
            sensors: SensorsState::new(saved.sensors),
            served: ServedCall::default(),
            jobs: JobsState::default(),
            calls_at: None,
            notice: None,
        }
    }

    /// It is `now`.
    pub fn set_now(&mut self, now: Time) {
        self.clock.set_now(now);
    }

    /// Let `secs` of the user's time pass.
    pub fn tick(&mut self, secs: f64) {
        self.clock.tick(secs);
    }

    /// Take an update that arrived at a time.
    pub fn take(&mut self, at: Time, update: Update) {
        match update {
            Update::Grid(drawn) => self.take_grid(at, drawn),
            Update::Status(status) => self.connection.set_status(status, at),
            Update::Series { host, series, trouble } => self.graphs.take(host, series, trouble),
            Update::Tile { tile, lines, oldest, ages, marks } => {
                self.graphs.tiles_mut().add_marks(&tile.host, marks);
                self.take_tile(at, &tile, lines, (oldest, ages));
            }
            Update::Oldest(oldest) => self.clock.reach_back(oldest),
            Update::Sweeps(sweeps) => self.flock.take_sweeps(at, &sweeps),
            Update::Trouble { host, trouble } => self.flock.set_error(host, trouble),
            Update::Served { call, by } => self.served.take(&call, by),
            Update::Sensor { at: sensor, health } => self.sensors.take(at, sensor, health),
            Update::Term { domain, term } => self.sensors.set_term(domain, term),
            Update::StoredSweeps { host, stored } => {
                self.flock.take_past(&host, stored, at);
                self.extend_timeline();
            }
            Update::Channel { host, subscription, altered } => {
                self.flock.set_altered(&host, altered);
                self.sensors.set_channel(host, subscription);
            }
            Update::ChannelEnded { host, subscription } => {
                if self.sensors.end_channel(&host, &subscription) {
                    self.flock.set_altered(&host, None);
                }
            }
            Update::Jobs(update) => self.jobs.take(update, at),
            Update::Notice(text) => self.notify(at, text),
        }
    }

    fn take_grid(&mut self, at: Time, drawn: Arc<Drawn>) {
        self.grid.replace(drawn, at);
        self.extend_timeline();
        self.filter.apply_to(self.grid.grid());
        self.selected.find_in(self.grid.grid());
        if self.graphs.is_seen(self.clock.now()) {
            self.graphs.find_hosts(&self.grid);
        }
    }

    /// Have the timeline reach over everything that is known.
    fn extend_timeline(&mut self) {
        let flock = &self.flock;
        self.clock.extend(self.grid.grid().span(), |first, last| flock.stored_since(first, last));
    }

    /// Select the processes of the followed call that are known by now.
    pub fn select_followed(&mut self) {
        self.flock.select_followed(&self.served);
    }

    /// Compute the scene of the current time.
    pub fn update_scene(&mut self) {
        let timeline = self.clock.timeline();
        self.scene = Arc::new(scene(self.grid.grid(), timeline.time(), timeline.flight_micros(), &|call| {
            self.filter.fits(call as usize)
        }));
    }

    #[must_use]
    pub fn source(&self) -> &Source {
        self.connection.source()
    }

    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The time zone in which times are shown.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        self.clock.timeline()
    }

    /// The time that is shown.
    #[must_use]
    pub fn time(&self) -> Time {
        self.clock.timeline().time()
    }

    #[must_use]
    pub fn grid(&self) -> &Grid {
        self.grid.grid()
    }

    #[must_use]
    pub fn placed(&self) -> &PlacedGrid {
        &self.grid
    }

    #[must_use]
    pub fn layout(&self) -> &Layout {
        self.grid.layout()
    }

    /// Age of the grid, in seconds.
    #[must_use]
    pub fn grid_age_secs(&self) -> f64 {
        self.clock.secs_since(self.grid.received_at())
    }

    #[must_use]
    pub fn scene(&self) -> &Arc<Scene> {
        &self.scene
    }

    #[must_use]
    pub fn filter(&self) -> &CallFilter {
        &self.filter
    }

    #[must_use]
    pub fn selected(&self) -> &Selected {
        &self.selected
    }

    #[must_use]
    pub fn selection(&self) -> Option<&Selection> {
        self.selected.get()
    }

    /// Whether the thing of this name is selected.
    #[must_use]
    pub fn is_selected(&self, name: &str) -> bool {
        self.selection().is_some() && self.selection() == Selection::named(self.grid(), name).as_ref()
    }

    #[must_use]
    pub fn selected_call(&self) -> Option<&Call> {
        self.selected.call(self.grid.grid())
    }

    #[must_use]
    pub fn graphs(&self) -> &Graphs {
        &self.graphs
    }

    #[must_use]
    pub fn flock(&self) -> &FlockState {
        &self.flock
    }

    #[must_use]
    pub fn sensors(&self) -> &SensorsState {
        &self.sensors
    }

    #[must_use]
    pub fn sensor_addresses(&self) -> Vec<SocketAddr> {
        self.sensors.addresses(self.connection.source())
    }

    #[must_use]
    pub fn served(&self) -> &ServedCall {
        &self.served
    }

    #[must_use]
    pub fn jobs(&self) -> &JobsState {
        &self.jobs
    }

    #[must_use]
    pub fn notice(&self) -> Option<(Time, &str)> {
        self.notice.as_ref().map(|(at, text)| (*at, text.as_str()))
    }

    /// Whether a call is known at the time that is shown, and fits the filter.
    #[must_use]
    pub fn is_shown(&self, number: usize, call: &Call) -> bool {
        self.filter.fits(number) && call.first().is_some_and(|first| first <= self.time())
    }

    /// The report of a host's sensor, unless another time is shown: figures are those of now alone.
    #[must_use]
    pub fn report_of<'a>(&self, place: &'a Place) -> Option<&'a Report> {
        let timeline = self.clock.timeline();
        let behind = timeline.span().1.since(timeline.time());
        let is_now = match self.source() {
            Source::Daemon(_) | Source::File(_) => behind.as_secs_f64() < SILENT_AFTER_SECS,
            Source::Log(_) => true,
        };
        place.report.as_ref().filter(|_| is_now)
    }

    /// State of a place at the time that is shown; live, a host without a report for a while is silent.
    #[must_use]
    pub fn state_of(&self, place: &Place) -> HostState {
        let state = place.state_at(self.time());
        let is_live = self.clock.timeline().mode() == Mode::Live;
        let age = place.report.as_ref().and_then(|report| report.age_secs).filter(|_| is_live);
        match age {
            Some(age) if state == HostState::Live && age + self.grid_age_secs() > SILENT_AFTER_SECS => {
                HostState::Silent
            }
            _ => state,
        }
    }

    /// Whether a host may have figures: one that only calls name has none, nor has any of a log or a file.
    #[must_use]
    pub fn has_graphs(&self, id: PlaceId) -> bool {
        let place = self.grid().place(id);
        self.source().is_daemon() && place.part == Part::Server && place.state != HostState::Unknown
    }

    /// The time at which the flock is drawn.
    #[must_use]
    pub fn flock_time(&self) -> Time {
        match self.clock.timeline().mode() {
            Mode::Live => self.time().minus(self.flock.delay()),
            Mode::Playing | Mode::Paused => self.time(),
        }
    }

    /// The spans that sensors have sweeps of, while the flock is seen.
    pub fn flock_spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.flock.spans(self.now())
    }

    /// The time nearest to `time` that a sensor has sweeps of.
    #[must_use]
    pub fn nearest_stored(&self, time: Time) -> Option<Time> {
        self.flock.nearest_stored(self.clock.timeline(), time, self.now())
    }

    /// Whether something moves.
    #[must_use]
    pub fn moves(&self) -> bool {
        match self.clock.timeline().mode() {
            Mode::Paused => false,
            Mode::Playing => true,
            Mode::Live => {
                let has_flock = self.flock.is_seen(self.now()) && !self.flock.flock().is_empty();
                has_flock || !self.scene.marks.is_empty() || !self.scene.edges.is_empty()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    /// Panels depend on the model, never the other way round.
    #[test]
    fn no_file_of_the_model_names_the_window() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model");
        let mut folders = vec![folder];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                    continue;
                }
                files += 1;
                let text = std::fs::read_to_string(&entry).unwrap();
                let names = [concat!("eg", "ui"), concat!("ef", "rame"), concat!("crate::", "app")];
                for name in names {
                    assert!(!text.contains(name), "{} names {name}", entry.display());
                }
            }
        }
        assert!(files > 10, "found only {files} files");
    }
}
