//! Changes that the user makes, and their application to the model.
//!
//! Pure. Rule: this is the only place where the user changes the model.

use super::flock::{Following, shortly_before};
use super::{FlockChange, GraphsChange, JobsChange, Model, ProcessId, Selection, SensorsChange};
use crate::flock::sweep::HostName;
use crate::flock::{Flock, HOSTS_MAX};
use crate::graphs::{Arrangement, HOSTS_MAX as GRAPHS_MAX};
use crate::grid::FailureOf;
use crate::grid::call::Call;
use crate::grid::place::{DomainId, PlaceId};
use crate::grid::text::host_key;
use crate::layout::Point;
use crate::served::ServedBy;
use crate::timeline::Mode;
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::time::Time;

/// A change of the model.
#[derive(Clone, Debug)]
pub enum Change {
    Time(TimeChange),
    Search(String),
    Select(Option<Selection>),
    MovePlace(PlaceId, Point),
    MoveDomain(DomainId, Point),
    UndoMoves,
    Graphs(GraphsChange),
    Flock(FlockChange),
    Sensors(SensorsChange),
    Jobs(JobsChange),
    /// Show a text for a while.
    Notify(String),
}

/// A change of the time that is shown.
#[derive(Clone, Copy, Debug)]
pub enum TimeChange {
    Play,
    Pause,
    GoLive,
    /// Go to a time; what was live goes on playing from there.
    GoTo(Time),
    /// Go to a time and pause there; with a daemon also where nothing is known of it yet.
    StopAt(Time),
    SetSpeed(f64),
    /// Zoom the line in by a factor; the time keeps its position.
    Zoom(f64, Time),
    /// Show so many seconds on the line; what the grid has for `None`.
    Show(Option<f64>),
    NextFailure,
}

impl From<TimeChange> for Change {
    fn from(change: TimeChange) -> Change {
        Change::Time(change)
    }
}

impl From<GraphsChange> for Change {
    fn from(change: GraphsChange) -> Change {
        Change::Graphs(change)
    }
}

impl From<FlockChange> for Change {
    fn from(change: FlockChange) -> Change {
        Change::Flock(change)
    }
}

impl From<SensorsChange> for Change {
    fn from(change: SensorsChange) -> Change {
        Change::Sensors(change)
    }
}

impl From<JobsChange> for Change {
    fn from(change: JobsChange) -> Change {
        Change::Jobs(change)
    }
}

impl Model {
    pub fn apply(&mut self, change: impl Into<Change>) {
        match change.into() {
            Change::Time(change) => self.change_time(change),
            Change::Search(text) => {
                self.filter.search(&text, self.grid.grid());
                self.flock.search(&text);
            }
            Change::Select(selection) => self.selected.set(selection, self.grid.grid()),
            Change::MovePlace(id, by) => self.grid.move_place(id, by),
            Change::MoveDomain(id, by) => self.grid.move_domain(id, by),
            Change::UndoMoves => self.grid.undo_moves(),
            Change::Graphs(change) => self.change_graphs(change),
            Change::Flock(change) => self.change_flock(change),
            Change::Sensors(change) => self.sensors.apply(change),
            Change::Jobs(change) => self.jobs.apply(change, self.clock.now()),
            Change::Notify(text) => self.notify(self.now(), text),
        }
    }

    pub(super) fn notify(&mut self, at: Time, text: String) {
        self.notice = Some((at, text));
    }

    pub fn clear_notice(&mut self) {
        self.notice = None;
    }

    fn change_time(&mut self, change: TimeChange) {
        let timeline = self.clock.timeline_mut();
        match change {
            TimeChange::Play => timeline.play(),
            TimeChange::Pause => timeline.pause(),
            TimeChange::GoLive => timeline.go_live(),
            TimeChange::GoTo(time) => timeline.scrub(time),
            TimeChange::StopAt(time) => self.clock.stop_at(time),
            TimeChange::SetSpeed(speed) => timeline.set_speed(speed),
            TimeChange::Zoom(factor, at) => timeline.zoom(factor, at),
            TimeChange::Show(secs) => timeline.show_secs(secs),
            TimeChange::NextFailure => self.go_to_failure(),
        }
    }

    /// Go to the next failure, and select what fails.
    fn go_to_failure(&mut self) {
        let grid = self.grid.grid();
        let Some(failure) = self.clock.timeline_mut().jump_to_failure(&grid.failures) else {
            let text = if grid.failures.is_empty() { "Nothing failed" } else { "Nothing failed after this" };
            return self.notify(self.now(), text.to_owned());
        };
        let selection = match failure.of {
            FailureOf::Call(number) => Selection::Call(grid.calls[number as usize].id.clone()),
            FailureOf::Host(id) => Selection::of_place(grid, id),
        };
        self.selected.set(Some(selection), grid);
    }

    /// Select what has this name once the grid has it, if no grid arrived yet; whether that is so.
    pub fn select_when_known(&mut self, name: &str) -> bool {
        let may_come = self.grid().places.is_empty();
        self.selected.set_pending(may_come.then(|| name.to_owned()));
        may_come
    }

    /// The name to select once the grid has it.
    pub fn take_pending(&mut self) -> Option<String> {
        self.selected.take_pending()
    }

    pub fn set_pending(&mut self, name: String) {
        self.selected.set_pending(Some(name));
    }

    fn change_graphs(&mut self, change: GraphsChange) {
        let choice = self.graphs.choice_mut();
        match change {
            GraphsChange::Arrange(arrangement) => choice.arrangement = arrangement,
            GraphsChange::Scale(scale) => choice.scale = scale,
            GraphsChange::SwitchArrangement => {
                choice.arrangement = match choice.arrangement {
                    Arrangement::Together => Arrangement::Each,
                    Arrangement::Each => Arrangement::Together,
                };
            }
            GraphsChange::ToggleMetric(metric) => choice.toggle(&metric),
            GraphsChange::SetMetrics(metrics) => choice.set_metrics(&metrics),
            GraphsChange::SetHosts(hosts) => self.set_graph_hosts(hosts.as_deref()),
            GraphsChange::SetHost(host, is_shown) => {
                let mut hosts = self.chosen_graph_hosts();
                match is_shown {
                    true => hosts.push(host),
                    false => hosts.retain(|known| *known != host),
                }
                self.set_graph_hosts(Some(&hosts));
            }
            GraphsChange::LeaveVisit => self.leave_visit(),
            GraphsChange::SetSpan(secs) => choice.span.set_secs(secs),
            GraphsChange::Compare(before) => choice.compare(before),
            GraphsChange::ResetSpan => choice.span = crate::graphs::span::Span::default(),
            GraphsChange::Pan(share) => choice.span.pan(share),
            GraphsChange::Zoom(factor, share) => choice.span.zoom(factor, share),
        }
    }

    fn set_graph_hosts(&mut self, hosts: Option<&[HostName]>) {
        self.graphs.choice_mut().set_hosts(hosts);
        self.leave_visit();
    }

    /// The chosen hosts, those that are not in the grid among them; those shown by default where the user did
    /// not choose.
    fn chosen_graph_hosts(&mut self) -> Vec<HostName> {
        self.graphs.choice().hosts().unwrap_or_else(|| {
            self.leave_visit();
            self.graphs.hosts().to_vec()
        })
    }

    fn leave_visit(&mut self) {
        if self.graphs.leave_visit() {
            self.clock.timeline_mut().go_live();
        }
        self.find_graph_hosts();
    }

    fn call(&self, id: &str) -> Option<Call> {
        let number = self.grid().call_named(id)?;
        self.grid().calls.get(number as usize).cloned()
    }

    /// Show the graphs of a host for a while.
    pub fn visit_graphs(&mut self, host: PlaceId) {
        self.visit(vec![self.grid.host_name(host)]);
    }

    /// Show the graphs of a call's hosts over its life; of one that runs, until now.
    pub fn visit_graphs_of_call(&mut self, call: &str) {
        let Some(call) = self.call(call) else { return };
        self.visit(call.hosts.iter().take(GRAPHS_MAX).map(|&id| self.grid.host_name(id)).collect());
        match call.ended {
            Some(ended) => self.clock.stop_at(ended),
            None => self.clock.timeline_mut().go_live(),
        }
        if let Some(started) = call.started.or(call.first()) {
            let life = call.ended.unwrap_or(self.now()).since(started);
            self.graphs.choice_mut().span.set_secs(life.as_secs_f64());
        }
    }

    fn visit(&mut self, hosts: Vec<HostName>) {
        self.graphs.visit(hosts, self.clock.timeline().mode() == Mode::Live);
        self.find_graph_hosts();
    }

    /// Add a host to the graphs.
    pub fn add_to_graphs(&mut self, id: PlaceId) {
        let mut hosts = self.chosen_graph_hosts();
        let host = self.grid.host_name(id);
        if !hosts.contains(&host) && hosts.len() < GRAPHS_MAX {
            hosts.push(host);
        }
        self.set_graph_hosts(Some(&hosts));
    }

    fn change_flock(&mut self, change: FlockChange) {
        match change {
            FlockChange::ToggleMeasure(measure) => self.flock.toggle_measure(measure),
            FlockChange::HideIdle(hides) => self.flock.hide_idle(hides),
            FlockChange::Watch(hosts) => self.flock.watch(hosts),
            FlockChange::SetRate(rate_hz) => self.flock.set_rate(rate_hz),
            FlockChange::SelectMembers(members) => self.flock.select(members),
            FlockChange::ClearSelection => self.clear_flock_selection(),
            FlockChange::Follow(call, only) => {
                if let Some(call) = self.call(&call) {
                    self.follow(&call, only);
                }
            }
            FlockChange::FollowJob { call, domain, hosts, started, ended } => match self.call(&call) {
                Some(call) => self.follow(&call, None),
                None => self.follow_hosts(call, domain, hosts, (started, ended)),
            },
        }
    }

    /// Select no process. After a call was followed the hosts are watched that were watched before, and the
    /// timeline is live again if it was, unless the user went elsewhere since.
    fn clear_flock_selection(&mut self) {
        if self.flock.leave() == Some(self.time()) {
            self.clock.timeline_mut().go_live();
        }
    }

    /// Show the processes of a call in the flock, or one of them, at a time when it was running.
    fn follow(&mut self, call: &Call, only: Option<ProcessId>) {
        self.clear_flock_selection();
        let hosts = call.hosts.iter().take(HOSTS_MAX).map(|&id| self.grid.host_name(id));
        let hosts: BTreeSet<HostName> = hosts.collect();
        let domain = self.grid.domain_name(call.domain).to_owned();
        let moved_to = self.go_into(call.started.or(call.assigned), call.ended);
        self.flock.follow(Following { call: call.id.clone(), domain, hosts, only, moved_to });
    }

    /// Show the hosts of a job that is not in the grid, at a time when it was running.
    fn follow_hosts(
        &mut self,
        call: String,
        domain: String,
        hosts: Vec<String>,
        run: (Option<Time>, Option<Time>),
    ) {
        self.clear_flock_selection();
        let keys: BTreeSet<String> = hosts.iter().map(|host| host_key(host)).collect();
        let is_its = |name: &HostName| *name.domain == *domain && keys.contains(&host_key(&name.host));
        let hosts = self.grid.server_names().map(|(_, name)| name).filter(is_its).take(HOSTS_MAX).collect();
        let moved_to = self.go_into(run.0, run.1);
        self.flock.follow(Following { call, domain, hosts, only: None, moved_to });
    }

    /// Go to a time when a call was running, unless such a time is shown; returns that time if the timeline
    /// was live.
    fn go_into(&mut self, started: Option<Time>, ended: Option<Time>) -> Option<Time> {
        let started = started?;
        let is_live = self.timeline().mode() == Mode::Live;
        match ended {
            Some(ended) if is_live || !(started..=ended).contains(&self.time()) => {
                self.clock.stop_at(shortly_before(started, ended));
                return is_live.then(|| self.time());
            }
            None if self.time() < started => self.clock.timeline_mut().go_live(),
            Some(_) | None => {}
        }
        None
    }

    /// Show this flock.
    pub fn show_flock(&mut self, flock: Flock) {
        self.flock.replace(flock);
    }

    /// Show the answer of a request for the selected call.
    pub fn show_served(&mut self, by: ServedBy) {
        let now = self.now();
        if let Some(call) = self.selected.call(self.grid.grid()) {
            self.served.show(call, Arc::new(by), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::Update;
    use crate::model::{Saved, Source};
    use crate::synthetic;

    /// A live grid of two hosts at 90 s, with a call on one that ended at 60 s.
    fn model() -> Model {
        let now = synthetic::time_f(90.0);
        let source = Source::Daemon("127.0.0.1:7317".into());
        let mut model = Model::new(source, jiff::tz::TimeZone::UTC, now, Saved::default());
        let calls =
            [synthetic::call("slurm:1", "ada", &["wn02"]), synthetic::call("slurm:2", "bob", &["wn01"])];
        model.take(now, Update::grid(synthetic::one_domain(&calls)));
        model.tick(0.0);
        model
    }

    #[test]
    fn a_visit_of_graphs_is_not_saved_and_leaves_the_timeline_as_it_was() {
        let mut model = model();
        let before = model.graphs().choice().clone();
        model.visit_graphs_of_call("slurm:1");
        assert_eq!((model.time(), model.timeline().mode()), (synthetic::time_f(60.0), Mode::Paused));
        assert_eq!(model.graphs().hosts(), [HostName::new("Alpha", "wn02")]);
        assert_ne!(*model.graphs().choice(), before);
        assert_eq!(model.graphs().lasting_choice(), before);
        model.apply(GraphsChange::LeaveVisit);
        assert_eq!((model.graphs().choice(), model.timeline().mode()), (&before, Mode::Live));
    }

    #[test]
    fn moves_are_in_the_layout_and_undone() {
        let mut model = model();
        let before = model.layout().clone();
        model.apply(Change::MovePlace(PlaceId(0), Point::new(40.0, 0.0)));
        assert_ne!(*model.layout(), before);
        let moved = model.layout().clone();
        let drawn = std::sync::Arc::clone(model.placed().drawn());
        model.take(model.now(), Update::Grid(drawn));
        assert_eq!(*model.layout(), moved, "a new grid has them too");
        model.apply(Change::UndoMoves);
        assert_eq!(*model.layout(), before);
    }

    #[test]
    fn a_name_is_selected_once_the_grid_has_it() {
        let now = synthetic::time_f(90.0);
        let mut model = Model::new(synthetic::window::log(), jiff::tz::TimeZone::UTC, now, Saved::default());
        assert!(model.select_when_known("wn01"));
        assert_eq!(model.take_pending().as_deref(), Some("wn01"));
        model.take(now, Update::grid(synthetic::one_domain(&[synthetic::call("x:1", "ada", &["wn01"])])));
        assert!(!model.select_when_known("wn09"), "the grid is known, and has none");
        assert_eq!(model.take_pending(), None);
    }
}
