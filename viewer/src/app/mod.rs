//! The window's contents: what it shows, what is chosen, and how both change.
//!
//! Rule: a frame never waits: what comes is taken from the inbox, what takes long is done by who sends. It keeps no
//! clock; the shell around it (`window`, `picture::headless`) says what time it is. Not here: the window itself.

mod calls;
mod camera;
mod details;
mod exported;
mod files;
mod flock;
mod graphs;
mod keys;
mod map;
mod mesh;
mod notice;
mod question;
mod selection;
mod sensors;
mod served;
pub mod settings;
mod still;
mod tabs;
pub mod text;
pub mod theme;
mod timebar;
mod told;
mod topbar;
mod tree;
pub mod window;

pub use selection::Selection;

use crate::feed::{Drawn, Inbox, Status, Update};
use crate::graphs::Arrangement;
use crate::grid::Grid;
use crate::grid::place::{DomainId, HostState, Place, PlaceId, Report};
use crate::layout::{Layout, Point, layout};
use crate::scene::filter::Filter;
use crate::scene::{Scene, scene};
use crate::sensors::SILENT_AFTER_SECS;
use crate::timeline::Timeline;
use camera::Camera;
use flock::FlockView;
use jiff::tz::TimeZone;
use settings::Settings;
use std::collections::BTreeSet;
use std::sync::Arc;
use tabs::Tab;
use wire::time::Time;

/// Where what is shown comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A log, by its name.
    Log(String),
    /// A daemon, by its address.
    Daemon(String),
    /// A grid that was kept in a file, by the file's name.
    File(String),
    /// Nowhere: it is invented.
    Invented,
}

/// The contents of the window.
pub struct App {
    source: Source,
    zone: TimeZone,
    inbox: Option<Inbox>,
    status: Status,
    /// When the grid and the status came.
    grid_at: Option<Time>,
    status_at: Option<Time>,
    now: Time,
    /// When the window was opened.
    begun: Time,
    drawn: Arc<Drawn>,
    layout: Layout,
    timeline: Timeline,
    /// Whether the timeline has its place: a log's begins when it is first read.
    is_placed: bool,
    scene: Arc<Scene>,
    search: String,
    filter: Filter,
    /// Which calls fit the filter, by their number.
    fits: Vec<bool>,
    selection: Option<Selection>,
    selected_place: Option<PlaceId>,
    selected_call: Option<u32>,
    /// The call that the table of calls has brought into view.
    listed_call: Option<String>,
    /// The name of what is to be chosen when it is there.
    to_select: Option<String>,
    camera: Camera,
    /// What is dragged on the map; nothing where it is the ground.
    dragged: Option<Selection>,
    closed_domains: BTreeSet<String>,
    tabs: egui_tiles::Tree<Tab>,
    /// The tab in which somebody worked last.
    worked_in: Option<Tab>,
    /// The rows of the list of hosts, and of what they are.
    rows: tree::Rows,
    graphs: graphs::GraphsView,
    flock: FlockView,
    sensors: sensors::SensorsView,
    served: served::ServedView,
    notice: Option<(Time, String)>,
    /// What is typed into the field for one more domain.
    domain_typed: String,
    /// The ending of a file into which what is shown is to be written.
    wanted_file: Option<&'static str>,
    /// What is kept from one start to the next.
    pub settings: Settings,
    focus_search: bool,
}

impl App {
    /// What comes from `inbox`, from `now` on.
    #[must_use]
    pub fn new(source: Source, inbox: Option<Inbox>, settings: Settings, zone: TimeZone, now: Time) -> App {
        let timeline = match source {
            Source::Daemon(_) => Timeline::live(now),
            Source::Log(_) | Source::File(_) | Source::Invented => Timeline::of_log(now, now),
        };
        let tabs = settings.tabs.clone().filter(tabs::has_all).unwrap_or_else(tabs::usual);
        App {
            is_placed: matches!(source, Source::Daemon(_)),
            source,
            zone,
            inbox,
            status: Status::Beginning,
            grid_at: None,
            status_at: None,
            now,
            begun: now,
            drawn: Arc::default(),
            layout: Layout::default(),
            timeline,
            scene: Arc::default(),
            search: String::new(),
            filter: Filter::default(),
            fits: Vec::new(),
            selection: None,
            selected_place: None,
            selected_call: None,
            listed_call: None,
            to_select: None,
            camera: Camera::default(),
            dragged: None,
            closed_domains: BTreeSet::new(),
            tabs,
            worked_in: None,
            rows: tree::Rows::default(),
            graphs: graphs::GraphsView::default(),
            flock: FlockView::default(),
            sensors: sensors::SensorsView::default(),
            served: served::ServedView::default(),
            notice: None,
            domain_typed: String::new(),
            wanted_file: None,
            settings,
            focus_search: false,
        }
    }

    /// Take what came, and let the timeline go on: `secs` have passed, and it is `now`.
    pub fn update(&mut self, now: Time, secs: f64) {
        self.now = now;
        let inboxes = self.inbox.iter().chain(&self.flock.inbox);
        let came: Vec<_> = inboxes.flat_map(Inbox::take).collect();
        for (at, update) in came {
            self.take(at, update);
        }
        self.timeline.tick(secs, now);
        self.wish_flock();
        self.wish_past();
        self.wish_figures();
        self.wish_sensors();
        self.wish_served();
        self.choose_followed();
        self.scene =
            Arc::new(scene(&self.drawn.grid, self.timeline.time(), self.timeline.flight_micros(), &|call| {
                self.fits.get(call as usize).copied().unwrap_or(true)
            }));
    }

    /// Something that came at a time.
    pub fn take(&mut self, at: Time, update: Update) {
        match update {
            Update::Grid(drawn) => {
                self.grid_at = Some(at);
                self.show(drawn);
            }
            Update::Status(status) => {
                self.status_at = Some(at);
                self.status = status;
            }
            Update::Series { host, series, trouble } => self.graphs.take(host, series, trouble),
            Update::Sweeps(sweeps) => self.take_sweeps(at, &sweeps),
            Update::Trouble { host, trouble: Some(trouble) } => self.flock.trouble(host, trouble),
            Update::Trouble { host, trouble: None } => {
                self.flock.troubles.remove(&host);
            }
            Update::Served { call, by } => self.take_served(&call, by),
            Update::Sensor { at: sensor, health } => self.sensors.take(at, sensor, health),
            Update::Term { domain, term } => self.sensors.take_term(domain, term),
            Update::Kept { host, kept } => self.take_kept(at, &host, kept),
            Update::Channel { host, subscription, altered } => {
                self.flock.take_altered(&host, altered);
                self.sensors.take_channel(host, subscription);
            }
            Update::ChannelEnded { host, subscription } => {
                if self.sensors.channel_ended(&host, &subscription) {
                    self.flock.take_altered(&host, None);
                }
            }
            Update::Told(told) => self.notify(at, told),
        }
    }

    /// Draw a frame.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        keys::take(self, ui);
        topbar::show(self, ui);
        timebar::show(self, ui);
        tree::show(self, ui);
        details::show(self, ui);
        tabs::show(self, ui);
        notice::show(self, ui);
    }

    /// The ending of a file into which somebody wants what is shown written, once.
    pub fn take_wanted_file(&mut self) -> Option<&'static str> {
        self.wanted_file.take()
    }

    /// Whether a frame must follow at once: something moves.
    #[must_use]
    pub fn moves(&self) -> bool {
        use crate::timeline::Mode;
        match self.timeline.mode() {
            Mode::Paused => false,
            Mode::Playing => true,
            Mode::Live => {
                let has_flock = self.is_flock_seen() && !self.flock().is_empty();
                has_flock || !self.scene.marks.is_empty() || !self.scene.edges.is_empty()
            }
        }
    }

    /// Go to a time and stay there.
    pub fn stop_at(&mut self, time: Time) {
        self.timeline.scrub(time);
        self.timeline.pause();
    }

    /// The timeline.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// What is shown.
    #[must_use]
    pub fn grid(&self) -> &Grid {
        &self.drawn.grid
    }

    /// What is to be seen now.
    #[must_use]
    pub fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.scene)
    }

    /// Whom to wake when something comes.
    pub fn wake_by(&self, waker: impl Fn() + Send + Sync + 'static) {
        let waker = Arc::new(waker);
        for inbox in self.inbox.iter().chain(&self.flock.inbox) {
            let waker = Arc::clone(&waker);
            inbox.wake_by(move || waker());
        }
    }

    /// Look for other calls.
    pub fn search(&mut self, text: &str) {
        text.clone_into(&mut self.search);
        self.filter = Filter::parse(text);
        self.search_flock(text);
        self.fits.clear();
        if !self.filter.is_empty() {
            let grid = &self.drawn.grid;
            self.fits = grid.calls.iter().map(|call| self.filter.fits(grid, call)).collect();
        }
    }

    /// What is wrong with the words that are looked for, if anything is.
    #[must_use]
    pub fn wrong_words(&self) -> Option<String> {
        let wrong = self.filter.wrong.first()?;
        Some(format!("found {wrong}, {}", self.filter.expected()?))
    }

    /// Enlarge the map around its middle.
    pub fn enlarge(&mut self, factor: f32) {
        self.camera.enlarge(factor, self.camera.view().center());
    }

    /// Where all but sweeps comes from.
    pub fn feed(&mut self, inbox: Inbox) {
        self.inbox = Some(inbox);
    }

    /// Bring the tab of this word to the front: `map`, `calls`, `graphs` (`multiples`: a small graph for each host), `flock`, `sensors`.
    pub fn open_tab(&mut self, word: &str) {
        let word = match word {
            "multiples" => {
                self.settings.graphs.arrangement = Arrangement::Each;
                Tab::Graphs.word()
            }
            word => word,
        };
        if let Some(tab) = tabs::ALL.into_iter().find(|tab| tab.word() == word) {
            tabs::open(self, tab);
        }
    }

    /// Put the arrangement of tabs into the settings, if it is not the usual one.
    fn remember_tabs(&mut self) {
        self.settings.tabs = (self.tabs != tabs::usual()).then(|| self.tabs.clone());
    }

    fn show(&mut self, drawn: Arc<Drawn>) {
        self.layout = match self.settings.moves.is_empty() {
            true => drawn.layout.clone(),
            false => layout(&drawn.grid, &self.settings.moves),
        };
        self.drawn = drawn;
        self.reach();
        let search = std::mem::take(&mut self.search);
        self.search(&search);
        self.find_selection();
        self.select_what_came();
    }

    /// Have the timeline reach over all that is known.
    fn reach(&mut self) {
        let is_live = self.timeline.can_be_live();
        let span = self.drawn.grid.span().or(is_live.then_some((self.begun, self.now)));
        let Some((first, last)) = span else { return };
        if self.is_placed {
            let last = if is_live { self.now.max(last) } else { last };
            let first = self.kept_since(first, last);
            // Who went back stays there, also where nothing is known of it any more.
            let is_back = self.timeline.mode() != crate::timeline::Mode::Live;
            let first = if is_live && is_back { first.min(self.timeline.time()) } else { first };
            self.timeline.reach(first, last);
        } else {
            self.timeline = Timeline::of_log(first, last);
            self.is_placed = true;
        }
    }

    /// What its sensor tells of a place, unless the time that is looked at is another: figures are those of now alone.
    fn report_of<'a>(&self, place: &'a Place) -> Option<&'a Report> {
        let behind = self.timeline.span().1.since(self.timeline.time());
        let is_now = match self.source {
            Source::Daemon(_) | Source::File(_) => behind.as_secs_f64() < SILENT_AFTER_SECS,
            Source::Log(_) | Source::Invented => true,
        };
        place.report.as_ref().filter(|_| is_now)
    }

    /// How a place is at the time that is looked at; now, one that has said nothing for a while is silent.
    fn state_of(&self, place: &Place) -> HostState {
        let state = place.state_at(self.timeline.time());
        let is_now = self.timeline.mode() == crate::timeline::Mode::Live;
        let age = place.report.as_ref().and_then(|report| report.age_secs).filter(|_| is_now);
        let came = self.grid_at.map_or(0.0, |at| self.now.since(at).as_secs_f64());
        match age {
            Some(age) if state == HostState::Live && age + came > SILENT_AFTER_SECS => HostState::Silent,
            _ => state,
        }
    }

    fn move_place(&mut self, id: PlaceId, by: Point) {
        self.settings.moves.place(&self.drawn.grid, id, by);
        self.layout = layout(&self.drawn.grid, &self.settings.moves);
    }

    fn move_domain(&mut self, id: DomainId, by: Point) {
        self.settings.moves.domain(&self.drawn.grid, id, by);
        self.layout = layout(&self.drawn.grid, &self.settings.moves);
    }

    fn undo_moves(&mut self) {
        self.settings.moves.clear();
        self.layout = self.drawn.layout.clone();
        self.camera.show_whole();
    }

    /// What to say where there is nothing to draw: what is, and what to do.
    fn empty_words(&self) -> (String, String) {
        match (&self.source, &self.status) {
            (_, Status::Lost { what }) => ("No connection".to_owned(), format!("{what}. Trying again.")),
            (_, Status::Beginning) => match &self.source {
                Source::Daemon(address) => (format!("Asking {address} …"), String::new()),
                Source::Log(name) | Source::File(name) => (format!("Reading {name} …"), String::new()),
                Source::Invented => ("Nothing is invented".to_owned(), "Try --invent 3x40.".to_owned()),
            },
            (Source::Log(_), _) => (
                "No call in this log".to_owned(),
                "Either nothing happened, or another filter reads it: name one with --filter.".to_owned(),
            ),
            (Source::Daemon(_) | Source::File(_) | Source::Invented, _) => (
                "No host and no call yet".to_owned(),
                "Hosts appear when their sensors report, calls when middleware writes of them.".to_owned(),
            ),
        }
    }
}
