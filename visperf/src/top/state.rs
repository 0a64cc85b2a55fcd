//! What the screen shows, and what follows from a key or from what the daemons said.
//!
//! Pure: moments are passed in. Rules: the marked row is a process, wherever it moves; while it is paused the rows stand still,
//! and whether the daemons answer is shown all the same; nothing is signalled before a second key says so.
//! Not here: how it looks (`draw`), asking (`asker`).

use super::filter::Filter;
use super::rows::{self, Id, Order, Place, Process, Totals};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;
use wire::control::Signal;
use wire::time::Moment;

/// Longest filter, in characters: a line of it.
const FILTER_MAX_CHARS: usize = 60;

/// A host as its domain lists it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Host {
    pub(crate) place: Place,
    pub(crate) is_live: bool,
    pub(crate) load: Option<f64>,
    pub(crate) cpu: Option<f64>,
    pub(crate) memory_used: Option<f64>,
    pub(crate) memory_total: Option<f64>,
    /// Why it has no rows, where it was asked and did not answer.
    pub(crate) trouble: Option<String>,
}

/// What the daemons said in one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Round {
    pub(crate) hosts: Vec<Host>,
    pub(crate) processes: Vec<Process>,
    /// Processes there are, also those that were not asked for.
    pub(crate) total: u64,
    /// What is not shown, and why.
    pub(crate) notes: Vec<String>,
    /// Hosts that answered themselves, if only that they have no processes to show.
    pub(crate) answered: usize,
}

/// What comes from the asker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Update {
    /// Everybody answered who could.
    Round(Round),
    /// No one answers: why.
    Lost(String),
    /// An order was given: what came of it.
    Given(Result<String, String>),
}

/// What to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// One host, or all of the domains that were named.
    pub(crate) only: Option<Place>,
    pub(crate) order: Order,
    /// Whether all processes are needed, not those that use most.
    pub(crate) is_filtered: bool,
}

/// What the shell has to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    /// End.
    Quit,
    /// Show this from now on.
    Show(Scope),
    /// Send the process this.
    Give(Id, Signal),
}

/// What the keys mean now.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mode {
    /// Rows.
    Rows,
    /// A filter is typed; what it was before.
    Filter(String),
    /// A host is chosen: its place in the list, of which the first is all of them.
    Hosts(usize),
    /// Whether it is meant is asked.
    Confirm(Box<Process>, Signal),
    /// What the keys do.
    Help,
}

/// Whether the daemons answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Nothing came yet.
    Waiting,
    /// They did, last at this moment.
    Answered(Moment),
    /// They do not since then, and why.
    Lost(Moment, String),
}

/// All of it.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) round: Round,
    /// The rows: filtered and sorted.
    pub(super) shown: Vec<Process>,
    pub(super) order: Order,
    pub(super) filter: String,
    pub(super) only: Option<Place>,
    pub(super) mode: Mode,
    pub(super) is_paused: bool,
    pub(super) link: Link,
    pub(super) interval: Duration,
    /// What came of the last order, until the next key.
    pub(super) said: Option<Result<String, String>>,
    pub(super) marked: Option<Id>,
    /// The first row on the screen, and how many there are.
    pub(super) first: usize,
    pub(super) height: usize,
    totals: Totals,
    started: Moment,
}

impl State {
    /// Nothing is known yet.
    pub(crate) fn new(scope: Scope, filter: String, interval: Duration, now: Moment) -> State {
        State {
            round: Round::default(),
            shown: Vec::new(),
            order: scope.order,
            filter,
            only: scope.only,
            mode: Mode::Rows,
            is_paused: false,
            link: Link::Waiting,
            interval,
            said: None,
            marked: None,
            first: 0,
            height: 0,
            totals: Totals::default(),
            started: now,
        }
    }

    /// What is to be asked.
    pub(crate) fn scope(&self) -> Scope {
        Scope { only: self.only.clone(), order: self.order, is_filtered: !self.filter.is_empty() }
    }

    /// Something came from the asker.
    pub(crate) fn handle_update(&mut self, update: Update, now: Moment) {
        match update {
            Update::Round(mut round) => {
                self.link = Link::Answered(now);
                if !self.is_paused {
                    self.totals.rate(&mut round.processes, now.since(self.started));
                    self.round = round;
                    self.arrange();
                }
            }
            Update::Lost(why) => {
                let since = match self.link {
                    Link::Lost(since, _) => since,
                    Link::Answered(last) => last,
                    Link::Waiting => self.started,
                };
                self.link = Link::Lost(since, why);
            }
            Update::Given(result) => self.said = Some(result),
        }
    }

    /// A key was pressed.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.key_with_control(key.code);
        }
        self.said = None;
        match self.mode.clone() {
            Mode::Rows => self.key_in_rows(key.code),
            Mode::Filter(before) => self.key_in_filter(key.code, before),
            Mode::Hosts(at) => self.key_in_hosts(key.code, at),
            Mode::Confirm(process, signal) => {
                self.mode = Mode::Rows;
                matches!(key.code, KeyCode::Char('y' | 'Y')).then(|| Wish::Give(process.id, signal))
            }
            Mode::Help => {
                self.mode = Mode::Rows;
                None
            }
        }
    }

    fn key_with_control(&mut self, code: KeyCode) -> Option<Wish> {
        match (code, &self.mode) {
            (KeyCode::Char('c'), _) => Some(Wish::Quit),
            (KeyCode::Char('u'), Mode::Filter(_)) => self.change_filter(String::clear),
            _ => None,
        }
    }

    /// All processes are asked for where there is a filter.
    fn change_filter(&mut self, change: impl FnOnce(&mut String)) -> Option<Wish> {
        let was_filtered = self.scope().is_filtered;
        change(&mut self.filter);
        self.arrange();
        (was_filtered != self.scope().is_filtered).then(|| Wish::Show(self.scope()))
    }

    fn key_in_rows(&mut self, code: KeyCode) -> Option<Wish> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
        match code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('c') => return self.sort(Order::Cpu),
            KeyCode::Char('m') => return self.sort(Order::Memory),
            KeyCode::Char('i') => return self.sort(Order::Io),
            KeyCode::Char('t') => return self.sort(Order::Time),
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.mode = Mode::Filter(self.filter.clone()),
            KeyCode::Char('h') => {
                let is_only = |host: &Host| Some(&host.place) == self.only.as_ref();
                self.mode = Mode::Hosts(self.round.hosts.iter().position(is_only).map_or(0, |at| at + 1));
            }
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help,
            KeyCode::Char('k') => self.ask(Signal::Term),
            KeyCode::Char('K') => self.ask(Signal::Kill),
            KeyCode::Up => self.step(-1),
            KeyCode::Down => self.step(1),
            KeyCode::PageUp => self.step(-self.page()),
            KeyCode::PageDown => self.step(self.page()),
            KeyCode::Home => self.step(isize::MIN),
            KeyCode::End => self.step(isize::MAX),
            _ => {}
        }
        None
    }

    fn key_in_filter(&mut self, code: KeyCode, before: String) -> Option<Wish> {
        if matches!(code, KeyCode::Enter | KeyCode::Esc) {
            self.mode = Mode::Rows;
        }
        #[expect(clippy::wildcard_enum_match_arm, reason = "other keys mean nothing while a filter is typed")]
        self.change_filter(|filter| match code {
            KeyCode::Esc => *filter = before,
            KeyCode::Backspace => _ = filter.pop(),
            KeyCode::Char(c) if filter.chars().count() < FILTER_MAX_CHARS => filter.push(c),
            _ => {}
        })
    }

    fn key_in_hosts(&mut self, code: KeyCode, at: usize) -> Option<Wish> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "every other key gives it up")]
        match code {
            KeyCode::Up => self.mode = Mode::Hosts(at.saturating_sub(1)),
            KeyCode::Down => self.mode = Mode::Hosts((at + 1).min(self.round.hosts.len())),
            KeyCode::Enter => {
                self.mode = Mode::Rows;
                let chosen = at.checked_sub(1).and_then(|at| self.round.hosts.get(at));
                self.only = chosen.map(|host| host.place.clone());
                self.arrange();
                return Some(Wish::Show(self.scope()));
            }
            _ => self.mode = Mode::Rows,
        }
        None
    }

    fn sort(&mut self, order: Order) -> Option<Wish> {
        let is_other = self.order.of_sensor() != order.of_sensor();
        self.order = order;
        self.arrange();
        is_other.then(|| Wish::Show(self.scope()))
    }

    fn ask(&mut self, signal: Signal) {
        match self.marked_process() {
            Some(process) => self.mode = Mode::Confirm(Box::new(process.clone()), signal),
            None => self.said = Some(Err("mark a process first: arrow keys".to_owned())),
        }
    }

    /// Filter and sort; the mark stays with its process, and on its row where that is gone.
    fn arrange(&mut self) {
        let row = self.marked_row();
        // While an expression is typed it is not one yet: all are shown, and the mistake is reported.
        let filter = Filter::new(&self.filter).unwrap_or(Filter::Words(Vec::new()));
        let is_here = |process: &&Process| {
            self.only.as_ref().is_none_or(|only| process.id.0 == *only) && filter.passes(process)
        };
        self.shown = self.round.processes.iter().filter(is_here).cloned().collect();
        rows::sort(&mut self.shown, self.order);
        if self.marked.is_some() && self.marked_row().is_none() {
            let last = self.shown.len().saturating_sub(1);
            self.marked = self.shown.get(row.unwrap_or(0).min(last)).map(|process| process.id.clone());
        }
        self.keep_marked_in_sight();
    }

    /// So many rows are on the screen.
    pub(super) fn fit(&mut self, height: usize) {
        self.height = height;
        self.keep_marked_in_sight();
    }

    fn keep_marked_in_sight(&mut self) {
        if let Some(row) = self.marked_row() {
            self.first = self.first.clamp((row + 1).saturating_sub(self.height.max(1)), row);
        }
        self.first = self.first.min(self.shown.len().saturating_sub(self.height));
    }

    pub(super) fn marked_row(&self) -> Option<usize> {
        let marked = self.marked.as_ref()?;
        self.shown.iter().position(|process| process.id == *marked)
    }

    fn marked_process(&self) -> Option<&Process> {
        self.shown.get(self.marked_row()?)
    }

    fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    fn step(&mut self, by: isize) {
        let Some(last) = self.shown.len().checked_sub(1) else { return };
        // The first key marks the first row that is in sight.
        let row = match self.marked_row() {
            Some(row) => row.saturating_add_signed(by).min(last),
            None => self.first.min(last),
        };
        self.marked = self.shown.get(row).map(|process| process.id.clone());
        self.keep_marked_in_sight();
    }
}

#[cfg(test)]
pub(super) mod tests;
