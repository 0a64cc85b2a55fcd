//! The window's contents: a model, panels that read it, and the commands that panels return.
//!
//! Rule: a frame never waits: updates are taken from channels, and slow work is done by the threads that send
//! them. It has no clock: the shell around it (`window`, `picture::headless`) passes the time. Not here: the
//! window itself.

mod calls;
mod camera;
mod cells;
mod command;
mod details;
mod feeds;
mod flock;
mod graphs;
mod jobs;
mod json_view;
mod keys;
mod map;
mod mesh;
mod notice;
mod question;
mod sensors;
mod served;
pub mod settings;
mod tab;
mod tables;
mod tabs;
pub mod text;
pub mod theme;
mod timebar;
mod topbar;
mod tree;

pub use crate::model::{Selection, Source};
pub use command::Command;
pub(crate) use flock::Engine;

use crate::export::table::Table;
use crate::feed::{Inbox, Request, Update};
use crate::flock::Flock;
use crate::graphs::Arrangement;
use crate::grid::place::Part;
use crate::jobs::JobKey;
use crate::model::{Change, FlockChange, GraphsChange, JobsChange, Model, Saved, SensorsChange};
use crate::sensors::{At, Order};
use crate::served::ServedBy;
use command::Commands;
use feeds::Feeds;
use jiff::tz::TimeZone;
use question::QuestionPanel;
use settings::{Look, Settings};
use tab::Tab;
use tabs::Tabs;
use topbar::Topbar;
use tree::TreePanel;
use wire::time::Time;

/// Shown where a request has no room.
const TOO_MANY_REQUESTS: &str = "Too much is asked for already; try again.";

/// The contents of the window.
pub struct App {
    model: Model,
    feeds: Feeds,
    topbar: Topbar,
    tree: TreePanel,
    tabs: Tabs,
    question: QuestionPanel,
    look: Look,
    /// Width and height of the window, in points.
    size: Option<(f32, f32)>,
    /// Extension of the file to write.
    export: Option<&'static str>,
}

impl App {
    /// Contents that show what arrives in `inbox`.
    #[must_use]
    pub fn new(source: Source, inbox: Option<Inbox>, settings: Settings, zone: TimeZone, now: Time) -> App {
        let saved = Saved { moves: settings.moves, graphs: settings.graphs, sensors: settings.sensors };
        App {
            model: Model::new(source, zone, now, saved),
            feeds: Feeds { grid: inbox, flock: None },
            topbar: Topbar::default(),
            tree: TreePanel::new(settings.hides_tree),
            tabs: Tabs::new(settings.tabs),
            question: QuestionPanel::default(),
            look: settings.look,
            size: settings.window,
            export: None,
        }
    }

    /// A copy that receives nothing, for a thread that writes it into a file. What is large is shared (the
    /// grid, the figures) but for the flock, which is copied: some tens of milliseconds where it is full.
    #[must_use]
    pub fn still(&self) -> App {
        let mut model = self.model.clone();
        model.clear_notice();
        App {
            model,
            feeds: Feeds::default(),
            topbar: Topbar::default(),
            tree: self.tree.still(),
            tabs: self.tabs.still(),
            question: self.question.clone(),
            look: self.look,
            size: self.size,
            export: None,
        }
    }

    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The settings to save.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            look: self.look,
            moves: self.model.placed().moves().clone(),
            tabs: self.tabs.changed_arrangement(),
            graphs: self.model.graphs().lasting_choice(),
            sensors: self.model.sensors().added().to_vec(),
            hides_tree: self.tree.is_hidden(),
            window: self.size,
        }
    }

    #[must_use]
    pub fn look(&self) -> Look {
        self.look
    }

    /// The window has this width and height, in points.
    pub fn set_size(&mut self, size: (f32, f32)) {
        self.size = Some(size);
    }

    /// Grids, figures and sensors arrive in `inbox`.
    pub fn feed(&mut self, inbox: Inbox) {
        self.feeds.grid = Some(inbox);
    }

    /// Sweeps arrive in `inbox`.
    pub fn feed_flock(&mut self, inbox: Inbox) {
        self.feeds.flock = Some(inbox);
        self.model.forget_flock_request();
    }

    /// Call `waker` when an update arrives.
    pub fn wake_by(&self, waker: impl Fn() + Send + Sync + 'static) {
        self.feeds.wake_by(waker);
    }

    /// Take the updates that arrived, and let the timeline go on: `secs` have passed, and it is `now`.
    pub fn update(&mut self, now: Time, secs: f64) {
        self.model.set_now(now);
        for (at, update) in self.feeds.take() {
            self.take(at, update);
        }
        self.model.tick(secs);
        self.feeds.send_requests(&mut self.model);
        self.model.select_followed();
        self.model.update_scene();
    }

    /// Take an update that arrived at a time.
    pub fn take(&mut self, at: Time, update: Update) {
        let is_grid = matches!(update, Update::Grid(_));
        self.model.take(at, update);
        if is_grid
            && let Some(name) = self.model.take_pending()
            && !self.select_named(&name)
        {
            self.model.set_pending(name);
        }
    }

    /// Draw a frame.
    pub fn ui(&mut self, ui: &mut egui::Ui) {
        let commands = keys::commands(&self.model, self.tabs.front(), self.question.is_open(), ui.ctx());
        self.apply_all(commands);
        let commands = self.topbar.show(&self.model, ui);
        self.apply_all(commands);
        let commands = timebar::show(&self.model, ui);
        self.apply_all(commands);
        let commands = self.tree.show(&self.model, ui);
        self.apply_all(commands);
        let commands = details::show(&self.model, ui);
        self.apply_all(commands);
        self.mark_seen();
        let commands = self.tabs.show(&self.model, ui);
        self.apply_all(commands);
        let commands = self.question.show(ui.ctx());
        self.apply_all(commands);
        notice::show(&self.model, ui);
    }

    /// What is drawn is requested.
    fn mark_seen(&mut self) {
        for tab in self.tabs.visible() {
            match tab {
                Tab::Graphs => self.model.mark_graphs_seen(),
                Tab::Flock => self.model.mark_flock_seen(),
                Tab::Sensors => self.model.mark_sensors_seen(),
                Tab::Jobs => self.model.mark_jobs_seen(),
                Tab::Map | Tab::Calls => {}
            }
        }
    }

    fn apply_all(&mut self, commands: Commands) {
        commands.into_iter().for_each(|command| self.apply(command));
    }

    pub fn apply(&mut self, command: impl Into<Command>) {
        match command.into() {
            Command::Change(change) => self.model.apply(change),
            Command::OpenTab(tab) => self.tabs.open(tab),
            Command::ShowGraphs(host) => {
                self.model.visit_graphs(host);
                self.tabs.open(Tab::Graphs);
            }
            Command::ShowGraphsOfCall(call) => {
                self.model.visit_graphs_of_call(&call);
                self.tabs.open(Tab::Graphs);
            }
            Command::AddToGraphs(host) => {
                self.model.add_to_graphs(host);
                self.tabs.open(Tab::Graphs);
            }
            Command::ShowProcesses(call, process) => {
                self.model.apply(FlockChange::Follow(call, process));
                self.tabs.open(Tab::Flock);
            }
            Command::ShowDomainOnMap(domain) => self.tabs.map().show_domain(&self.model, domain),
            Command::ShowWholeMap => self.tabs.map().show_whole(),
            Command::ZoomMap(factor) => self.tabs.map().zoom(factor),
            Command::PanMap(by) => self.tabs.map().pan(by),
            Command::ResetMap => {
                self.model.apply(Change::UndoMoves);
                self.tabs.map().show_whole();
            }
            Command::FocusSearch => match self.tabs.front() {
                Tab::Jobs => self.tabs.jobs().focus_search(),
                Tab::Map | Tab::Calls | Tab::Graphs | Tab::Flock | Tab::Sensors => self.topbar.focus_search(),
            },
            Command::ToggleTree => self.tree.toggle(),
            Command::SetLook(look) => self.look = look,
            Command::Export(extension) => self.export = Some(extension),
            Command::Ask(question) => self.question.open(question),
            Command::CloseQuestion => self.question.close(),
            Command::AddDomain(name) => self.add_domain(name),
            Command::DropDomain(name) => {
                if !self.send(Request::Drop(name)) {
                    self.notify(TOO_MANY_REQUESTS);
                }
            }
            Command::Order(order) => self.order(order),
            Command::Kill(kill) => self.send_order(Request::Kill(kill)),
        }
    }

    fn add_domain(&mut self, name: String) {
        let is_sent = self.send(Request::Add(name.clone()));
        self.tree.domain_added(&name, is_sent);
        self.tabs.sensors().domain_added(&name, is_sent);
    }

    fn order(&mut self, order: Order) {
        match self.feeds.flock {
            Some(_) => self.send_order(Request::Order(order)),
            None => self.notify("No daemon can execute it: connect to a daemon."),
        }
    }

    fn send_order(&mut self, order: Request) {
        let is_sent = self.send(order);
        self.notify(if is_sent { "Ordered …" } else { TOO_MANY_REQUESTS });
    }

    fn notify(&mut self, text: &str) {
        self.model.apply(Change::Notify(text.to_owned()));
    }

    fn send(&self, request: Request) -> bool {
        self.feeds.send(request, self.model.source())
    }

    /// Request figures now, without waiting for graphs to be drawn.
    pub fn watch_graphs(&mut self) {
        self.model.mark_graphs_seen();
        self.feeds.send_requests(&mut self.model);
    }

    /// Request sweeps now, without waiting for the flock to be drawn.
    pub fn watch_flock(&mut self) {
        self.model.mark_flock_seen();
        self.feeds.send_requests(&mut self.model);
    }

    /// Query sensors now, without waiting for the tab to be drawn.
    pub fn watch_sensors(&mut self) {
        self.model.mark_sensors_seen();
        self.feeds.send_requests(&mut self.model);
    }

    /// Query jobs now, without waiting for the tab to be drawn.
    pub fn watch_jobs(&mut self) {
        self.model.mark_jobs_seen();
        self.feeds.send_requests(&mut self.model);
    }

    /// Open a tab by its keyword: `map`, `calls`, `graphs` (`multiples`: a small graph for each host),
    /// `flock`, `sensors`, `jobs`.
    pub fn open_tab(&mut self, word: &str) {
        let word = match word {
            "multiples" => {
                self.model.apply(GraphsChange::Arrange(Arrangement::Each));
                Tab::Graphs.word()
            }
            word => word,
        };
        if let Some(tab) = tab::ALL.into_iter().find(|tab| tab.word() == word) {
            self.tabs.open(tab);
        }
    }

    /// Select a thing by its name, and show of it what the tab in front shows; if no grid arrived yet, as
    /// soon as one has. Returns whether there is such a thing, or may be.
    pub fn select_named(&mut self, name: &str) -> bool {
        let job = self.model.job_domains().next().map(|domain| JobKey::new(domain, name));
        if let (Tab::Jobs, Some(key)) = (self.tabs.front(), job) {
            self.model.apply(JobsChange::Open(key));
            self.model.take_pending();
            return true;
        }
        let Some(selection) = Selection::named(self.model.grid(), name) else {
            return self.model.select_when_known(name);
        };
        let domains = Selection::domains_with(self.model.grid(), name);
        if let Some(first) = domains.first() {
            self.notify(&format!("{name} is in {} domains; {first}/{name} names one", domains.len()));
        }
        let server = selection.place(self.model.grid());
        let server = server.filter(|id| self.model.grid().place(*id).part == Part::Server);
        let host = server.map(|id| self.model.placed().host_name(id));
        match (self.tabs.front(), server, host) {
            (Tab::Sensors, _, Some(host)) => {
                self.model.apply(SensorsChange::Select(Some(At::Host(host))));
                self.model.take_pending();
                return true;
            }
            (Tab::Graphs, Some(id), _) => self.apply(Command::ShowGraphs(id)),
            (Tab::Flock, _, Some(host)) => self.model.apply(FlockChange::Watch(Some([host].into()))),
            _ => {}
        }
        self.model.apply(Change::Select(Some(selection)));
        if let (Tab::Flock, Some(call)) = (self.tabs.front(), self.model.selected_call()) {
            self.apply(Command::ShowProcesses(call.id.clone(), None));
        }
        true
    }

    pub fn show_flock(&mut self, flock: Flock) {
        self.model.show_flock(flock);
    }

    /// Show the answer of a request for the selected call.
    pub fn show_served(&mut self, by: ServedBy) {
        self.model.show_served(by);
    }

    /// Draw marks with trails, or without.
    pub fn show_trails(&mut self, shows: bool) {
        self.tabs.flock().show_trails(shows);
    }

    /// Draw marks as instances, where a graphics card can.
    pub(crate) fn draw_instances(&mut self, engine: Option<Engine>) {
        self.tabs.flock().draw_instances(engine);
    }

    /// Prepare marks as instances, also where nothing draws them.
    pub fn make_instances(&mut self) {
        self.tabs.flock().draw_instances(Some(Engine::new()));
    }

    /// Why no process is seen at the time that is shown, where that is so.
    #[must_use]
    pub fn why_no_flock(&self) -> Option<String> {
        flock::why_empty(&self.model)
    }

    /// Extension of the file that the user requested, once.
    pub fn take_export(&mut self) -> Option<&'static str> {
        self.export.take()
    }

    /// The rows of the tab in front.
    #[must_use]
    pub fn table(&self) -> Table {
        match self.tabs.front() {
            Tab::Flock if !self.model.flock().flock().is_empty() => tables::processes(&self.model),
            Tab::Graphs if self.model.graphs().has_figures() || self.model.graphs().has_tiles() => {
                tables::series(&self.model)
            }
            Tab::Sensors => self.tabs.sensors_table(&self.model),
            Tab::Jobs if self.model.source().is_daemon() => tables::jobs(&self.model),
            Tab::Map | Tab::Calls | Tab::Graphs | Tab::Flock | Tab::Jobs => tables::calls(&self.model),
        }
    }

    /// What is seen, as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        json_view::json(&self.model)
    }
}
