//! The tab of the flock: the chart of marks, the list of programs beside it, and what is asked of sensors for them.
//!
//! Rule: no one is asked for processes while neither a flock nor its channels are seen. Not here: where marks are (`crate::flock`), what the chart
//! (`chart`), the list (`list`) and the question before a signal (`kill`) look like.

mod chart;
mod followed;
mod glyphs;
mod head;
mod instances;
mod kill;
mod list;
mod past;
mod pen;

pub(super) use followed::Wanted;
pub(super) use instances::Engine;

use super::theme::Colors;
use super::{App, Source};
use crate::feed::{Altered, Inbox, Watch, Wish};
use crate::flock::chosen::Chosen;
use crate::flock::groups::Group;
use crate::flock::lasso::Lasso;
use crate::flock::measure::Capacity;
use crate::flock::names::NameId;
use crate::flock::sweep::{HostName, Sweep};
use crate::flock::{Flock, HOSTS_MAX, Member};
use crate::grid::place::{DomainId, HostState, Part, PlaceId};
use crate::{invented, invented_flock, live};
use egui::{Rect, Ui, UiBuilder, pos2};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use wire::channel::RATE_MIN_HZ;
use wire::time::Time;

/// Hosts that are watched unless somebody chooses: as many as one chart is easily read of.
const HOSTS_USUAL: usize = 16;
/// Sweeps a second, as can be chosen; the second is usual.
const RATES_HZ: [f64; 4] = [1.0, 10.0, 30.0, 64.0];
/// So long after it was last drawn a flock counts as not seen, in seconds.
const UNSEEN_AFTER_SECS: f64 = 3.0;
/// Narrower tabs have no list, in points.
const LIST_FROM: f32 = 560.0;
/// Invented processes of a host, and from when to when in the invented hour they are swept, once a second.
const INVENTED_PROCESSES: u32 = 48;
const INVENTED_FROM_SECS: f64 = 1_740.0;
const INVENTED_SWEEPS: u32 = 240;
/// Width of the list, in points.
const LIST_WIDTH: f32 = 268.0;

/// When the grid came, the rate where the flock is seen, and the hosts chosen by hand.
type WishedBy = (Option<Time>, Option<u64>, Option<BTreeSet<HostName>>);

/// What the tab shows, and what is chosen in it.
pub(super) struct FlockView {
    pub(super) flock: Flock,
    pub(super) chosen: Chosen,
    pub(super) inbox: Option<Inbox>,
    selected: BTreeSet<Member>,
    lasso: Option<Lasso>,
    open: BTreeSet<NameId>,
    /// The hosts, where somebody chose.
    by_hand: Option<BTreeSet<HostName>>,
    /// The call whose processes are chosen.
    followed: Option<followed::Followed>,
    rate_hz: f64,
    wished: Watch,
    /// What the last wish was made from.
    wished_by: Option<WishedBy>,
    pub(super) seen: Option<Time>,
    /// When its channels were last looked at in the tab of sensors, which keeps them.
    kept: Option<Time>,
    pub(super) troubles: BTreeMap<HostName, String>,
    /// What is known of its hosts' past.
    past: past::Hosts,
    /// Whether the timeline may have to reach farther for it.
    has_new_spans: bool,
    /// The channels that somebody altered.
    altered: BTreeMap<HostName, Altered>,
    hovered: Option<Member>,
    hides_trails: bool,
    asked: Option<kill::Asked>,
    glyphs: Option<glyphs::Glyphs>,
    /// Where there is a graphics card that can draw instances.
    engine: Option<Engine>,
    /// The programs of a moment, which the list shows until the next.
    groups: Option<((Time, usize), Vec<Group>)>,
    /// The processes of those that are open.
    rows: Option<list::Opened>,
    /// They are listed by their names, not by what they use.
    by_name: bool,
    /// What they used at the begin of the span for which their order stands.
    ranks: Option<(Time, BTreeMap<NameId, f64>)>,
}

impl Default for FlockView {
    fn default() -> FlockView {
        FlockView {
            flock: Flock::default(),
            chosen: Chosen::default(),
            inbox: None,
            selected: BTreeSet::new(),
            lasso: None,
            open: BTreeSet::new(),
            by_hand: None,
            followed: None,
            rate_hz: RATES_HZ[1],
            wished: Watch::default(),
            wished_by: None,
            seen: None,
            kept: None,
            troubles: BTreeMap::new(),
            past: past::Hosts::new(),
            has_new_spans: false,
            altered: BTreeMap::new(),
            hovered: None,
            hides_trails: false,
            asked: None,
            glyphs: None,
            engine: None,
            groups: None,
            rows: None,
            by_name: false,
            ranks: None,
        }
    }
}

impl FlockView {
    /// The same, to which nothing comes any more.
    pub(super) fn still(&self) -> FlockView {
        FlockView {
            flock: self.flock.clone(),
            chosen: self.chosen.clone(),
            inbox: None,
            selected: self.selected.clone(),
            lasso: self.lasso.clone(),
            open: self.open.clone(),
            by_hand: self.by_hand.clone(),
            followed: self.followed.clone(),
            rate_hz: self.rate_hz,
            wished: self.wished.clone(),
            wished_by: self.wished_by.clone(),
            seen: self.seen,
            kept: self.kept,
            troubles: self.troubles.clone(),
            past: self.past.clone(),
            has_new_spans: false,
            altered: self.altered.clone(),
            hovered: self.hovered,
            hides_trails: self.hides_trails,
            asked: self.asked.clone(),
            glyphs: None,
            engine: None,
            groups: None,
            rows: None,
            by_name: self.by_name,
            ranks: None,
        }
    }

    /// A host cannot be asked; told of one that is not watched any more, it is no trouble.
    pub(super) fn trouble(&mut self, host: HostName, trouble: String) {
        if self.wished.hosts.contains(&host) {
            self.troubles.insert(host, trouble);
        }
    }

    /// How the channel of a host was altered.
    pub(super) fn take_altered(&mut self, host: &HostName, altered: Option<Altered>) {
        match altered {
            Some(altered) => drop(self.altered.insert(host.clone(), altered)),
            None => drop(self.altered.remove(host)),
        }
    }

    /// The slowest of its hosts' channels, in sweeps a second.
    fn slowest_hz(&self) -> f64 {
        let altered = self.altered.iter().filter(|(host, _)| self.wished.hosts.contains(host));
        altered.map(|(_, altered)| altered.rate_hz).fold(self.rate_hz, f64::min).max(RATE_MIN_HZ)
    }
}

impl App {
    /// Take sweeps of the flock that came at a time.
    pub fn take_sweeps(&mut self, at: Time, sweeps: &[Sweep]) {
        sweeps.iter().for_each(|sweep| self.flock.flock.take(sweep, at));
    }

    /// Where nothing is swept because the grid is invented, invent its processes too, of the middle of its hour.
    pub fn invent_flock(&mut self) {
        if self.source != Source::Invented {
            return;
        }
        let hosts: Vec<HostName> = self.flock_hosts().into_iter().map(|(name, _)| name).collect();
        let begin = invented::time_f(INVENTED_FROM_SECS);
        let step = Duration::from_secs(1);
        self.flock.flock = invented_flock::flock(&hosts, INVENTED_PROCESSES, begin, INVENTED_SWEEPS, step);
    }

    /// Show this flock.
    pub fn show_flock(&mut self, flock: Flock) {
        self.flock.flock = flock;
    }

    /// Look for other processes.
    pub(super) fn search_flock(&mut self, text: &str) {
        self.flock.chosen.search(text);
        (self.flock.groups, self.flock.rows, self.flock.ranks) = (None, None, None);
    }

    /// Whether marks have trails.
    pub fn show_trails(&mut self, shows: bool) {
        self.flock.hides_trails = !shows;
    }

    /// Have marks drawn as instances, by a graphics card that can.
    pub(super) fn draw_instances(&mut self, engine: Option<Engine>) {
        self.flock.engine = engine;
    }

    /// Make marks ready as instances, whoever draws them.
    pub fn make_instances(&mut self) {
        self.flock.engine = Some(Engine::new());
    }

    /// Where sweeps come from.
    pub fn feed_flock(&mut self, inbox: Inbox) {
        self.flock.inbox = Some(inbox);
        self.flock.wished_by = None;
    }

    /// The flock.
    #[must_use]
    pub fn flock(&self) -> &Flock {
        &self.flock.flock
    }

    /// Begin to watch the flock now, without waiting for it to be drawn.
    pub fn watch_flock(&mut self) {
        self.flock.seen = Some(self.now);
        self.wish_flock();
    }

    /// How long after they were swept marks are drawn, live: the sweep after a moment must be there for the way to it.
    #[must_use]
    pub fn flock_delay(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.flock.slowest_hz()) + 2 * live::flock::TAKE_EVERY
    }

    /// Whether a process is chosen; where none is, whether it fits the search.
    pub(super) fn is_of_flock_choice(&self, member: Member, name: NameId, host: Option<&HostName>) -> bool {
        let view = &self.flock;
        match view.selected.is_empty() {
            true => view.chosen.fits(&view.flock, name, member.pid, host),
            false => view.selected.contains(&member),
        }
    }

    /// The time at which the flock is drawn.
    pub(super) fn flock_time(&self) -> Time {
        match self.timeline.mode() {
            crate::timeline::Mode::Live => self.timeline.time().minus(self.flock_delay()),
            crate::timeline::Mode::Playing | crate::timeline::Mode::Paused => self.timeline.time(),
        }
    }

    /// Whether the flock is drawn, and moves.
    pub(super) fn is_flock_seen(&self) -> bool {
        self.is_recent(self.flock.seen)
    }

    fn is_recent(&self, moment: Option<Time>) -> bool {
        moment.is_some_and(|moment| self.now.since(moment).as_secs_f64() < UNSEEN_AFTER_SECS)
    }

    /// Whoever looks at the flock's channels in the tab of sensors keeps them, if they are there.
    pub(super) fn keep_flock_for_its_channels(&mut self) {
        if !self.flock.wished.hosts.is_empty() {
            self.flock.kept = Some(self.now);
        }
    }

    /// Say which hosts are to be swept, where that may have changed.
    pub(super) fn wish_flock(&mut self) {
        let is_seen = self.is_flock_seen() || self.is_recent(self.flock.kept);
        let view = &self.flock;
        let by = (self.grid_at, is_seen.then_some(view.rate_hz.to_bits()), view.by_hand.clone());
        if self.flock.wished_by.as_ref() == Some(&by) {
            return;
        }
        let hosts = if is_seen { self.flock_hosts() } else { Vec::new() };
        for (name, capacity) in &hosts {
            self.flock.flock.host(name, *capacity);
        }
        let names: Vec<HostName> = hosts.into_iter().map(|(name, _)| name).collect();
        let is_live = matches!(self.source, Source::Daemon(_));
        if is_seen && is_live && self.flock.flock.keep(&names) {
            self.flock.forget_choice();
        }
        let watch = Watch { rate_hz: if names.is_empty() { 0.0 } else { self.flock.rate_hz }, hosts: names };
        if let Some(inbox) = self.flock.inbox.as_ref().filter(|_| watch != self.flock.wished) {
            if !inbox.wish(Wish::Flock(watch.clone())) {
                return;
            }
            self.flock.troubles.retain(|host, _| watch.hosts.contains(host));
            self.flock.wished = watch;
            self.flock.begin_past_anew();
        }
        self.flock.wished_by = Some(by);
    }

    /// The hosts of the flock, with what they have: those chosen by hand, else the first that are live.
    fn flock_hosts(&self) -> Vec<(HostName, Capacity)> {
        let by_hand = self.flock.by_hand.as_ref();
        let most = if by_hand.is_some() { HOSTS_MAX } else { HOSTS_USUAL };
        let servers = self.servers().filter(|(id, name)| match by_hand {
            Some(chosen) => chosen.contains(name),
            None => self.drawn.grid.place(*id).state == HostState::Live,
        });
        let capacity = |id: PlaceId| {
            let report = self.drawn.grid.place(id).report.as_ref();
            Capacity::of(report.and_then(|report| report.cpus), report.and_then(|report| report.memory_bytes))
        };
        servers.take(most).map(|(id, name)| (name, capacity(id))).collect()
    }

    /// All hosts, by their names in questions.
    pub(super) fn servers(&self) -> impl Iterator<Item = (PlaceId, HostName)> {
        let grid = &self.drawn.grid;
        let servers = (0..).map(PlaceId).zip(&grid.places).filter(|(_, place)| place.part == Part::Server);
        servers.map(|(id, _)| (id, self.host_name(id)))
    }

    /// A host by its names in questions.
    pub(super) fn host_name(&self, id: PlaceId) -> HostName {
        let place = self.drawn.grid.place(id);
        HostName::new(self.domain_name(place.domain), &place.name)
    }

    /// A domain by its name in questions; nothing for the daemon's own, where that has no name.
    pub(super) fn domain_name(&self, id: DomainId) -> &str {
        let name = self.drawn.grid.domain(id).name.as_str();
        if name == live::known::THIS_MACHINE { "" } else { name }
    }
}

/// Draw the tab.
pub(super) fn show(app: &mut App, ui: &mut Ui) {
    app.flock.seen = Some(app.now);
    let colors = Colors::of(ui.ctx());
    let rect = ui.available_rect_before_wrap();
    ui.allocate_rect(rect, egui::Sense::hover());
    ui.painter().rect_filled(rect, 0.0, colors.ground);
    let has_list = rect.width() >= LIST_FROM;
    let right = if has_list { rect.right() - LIST_WIDTH } else { rect.right() };
    let head = Rect::from_min_max(rect.min, pos2(right, rect.top() + head::HEIGHT));
    let chart = Rect::from_min_max(pos2(rect.left(), head.bottom()), pos2(right, rect.bottom()));
    let mut inside = |rect: Rect, name: &str, draw: &mut dyn FnMut(&mut App, &mut Ui)| {
        ui.scope_builder(UiBuilder::new().max_rect(rect).id_salt(name), |ui| {
            ui.set_clip_rect(rect.intersect(ui.clip_rect()));
            draw(app, ui);
        });
    };
    inside(head.shrink2(egui::vec2(12.0, 4.0)), "flock head", &mut |app, ui| head::show(app, ui, colors));
    inside(chart, "flock chart", &mut |app, ui| chart::show(app, ui, colors));
    if has_list {
        let list = Rect::from_min_max(pos2(right, rect.top()), rect.max);
        inside(list, "flock list", &mut |app, ui| list::show(app, ui, colors));
    }
    kill::show(app, ui, colors);
}
