//! State of the screen, and its changes by keys and by answers of the daemons.
//!
//! Pure: times are passed in. Rules: the marked row is a process, wherever it moves; while paused the rows do
//! not change, but the state of the connection is still shown; a signal is sent only after a second key
//! confirms it.
//! Not here: drawing (`draw`), requests (`querier`).

use super::filter::Filter;
use super::rows::{self, Id, Order, Place, Process, Totals};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;
use wire::control::Signal;
use wire::time::Moment;

/// Maximum length of a filter, in characters: one line.
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
    /// Why it has no rows, if it was asked and did not answer.
    pub(crate) trouble: Option<String>,
}

/// Answers of one round of requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Round {
    pub(crate) hosts: Vec<Host>,
    pub(crate) processes: Vec<Process>,
    /// Total number of processes, including those that were not requested.
    pub(crate) total: u64,
    /// What is not shown, and why.
    pub(crate) notes: Vec<String>,
    /// Hosts that answered, even if only that they have no processes to show.
    pub(crate) answered: usize,
}

/// Message from the querier.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Update {
    /// A round is complete.
    Round(Round),
    /// No daemon answers, and why.
    Lost(String),
    /// Result of a signal.
    Given(Result<String, String>),
}

/// What to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// One host, or all hosts of the domains.
    pub(crate) only: Option<Place>,
    pub(crate) order: Order,
    /// Whether all processes are needed, not just those that use most.
    pub(crate) is_filtered: bool,
}

/// Action for the caller after a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Quit,
    /// Show this from now on.
    Show(Scope),
    /// Send this signal to the process.
    Give(Id, Signal),
}

/// Input mode: the meaning of the keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mode {
    Rows,
    /// A filter is being typed; the previous one is restored by Esc.
    Filter(String),
    /// A host is being chosen: position in the list, which starts with "all hosts".
    Hosts(usize),
    /// Confirmation of a signal.
    Confirm(Box<Process>, Signal),
    /// The help.
    Help,
}

/// State of the connection to the daemons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// No answer yet.
    Waiting,
    /// Time of the last answer.
    Answered(Moment),
    /// Time since when no daemon answers, and why.
    Lost(Moment, String),
}

/// The state.
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
    /// Result of the last signal, until the next key.
    pub(super) result: Option<Result<String, String>>,
    pub(super) marked: Option<Id>,
    /// The first visible row, and the number of visible rows.
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
            result: None,
            marked: None,
            first: 0,
            height: 0,
            totals: Totals::default(),
            started: now,
        }
    }

    /// What to request.
    pub(crate) fn scope(&self) -> Scope {
        Scope { only: self.only.clone(), order: self.order, is_filtered: !self.filter.is_empty() }
    }

    /// Process a message from the querier.
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
            Update::Given(result) => self.result = Some(result),
        }
    }

    /// Process a key.
    pub(crate) fn handle_key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.key_with_control(key.code);
        }
        self.result = None;
        match self.mode.clone() {
            Mode::Rows => self.key_in_rows(key.code),
            Mode::Filter(before) => self.key_in_filter(key.code, before),
            Mode::Hosts(at) => self.key_in_hosts(key.code, at),
            Mode::Confirm(process, signal) => {
                self.mode = Mode::Rows;
                matches!(key.code, KeyCode::Char('y' | 'Y')).then(|| Action::Give(process.id, signal))
            }
            Mode::Help => {
                self.mode = Mode::Rows;
                None
            }
        }
    }

    fn key_with_control(&mut self, code: KeyCode) -> Option<Action> {
        match (code, &self.mode) {
            (KeyCode::Char('c'), _) => Some(Action::Quit),
            (KeyCode::Char('u'), Mode::Filter(_)) => self.change_filter(String::clear),
            _ => None,
        }
    }

    /// With a filter all processes are requested.
    fn change_filter(&mut self, change: impl FnOnce(&mut String)) -> Option<Action> {
        let was_filtered = self.scope().is_filtered;
        change(&mut self.filter);
        self.arrange();
        (was_filtered != self.scope().is_filtered).then(|| Action::Show(self.scope()))
    }

    fn key_in_rows(&mut self, code: KeyCode) -> Option<Action> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
        match code {
            KeyCode::Char('q') => return Some(Action::Quit),
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

    fn key_in_filter(&mut self, code: KeyCode, before: String) -> Option<Action> {
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

    fn key_in_hosts(&mut self, code: KeyCode, at: usize) -> Option<Action> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "every other key gives it up")]
        match code {
            KeyCode::Up => self.mode = Mode::Hosts(at.saturating_sub(1)),
            KeyCode::Down => self.mode = Mode::Hosts((at + 1).min(self.round.hosts.len())),
            KeyCode::Enter => {
                self.mode = Mode::Rows;
                let chosen = at.checked_sub(1).and_then(|at| self.round.hosts.get(at));
                self.only = chosen.map(|host| host.place.clone());
                self.arrange();
                return Some(Action::Show(self.scope()));
            }
            _ => self.mode = Mode::Rows,
        }
        None
    }

    fn sort(&mut self, order: Order) -> Option<Action> {
        let is_other = self.order.of_sensor() != order.of_sensor();
        self.order = order;
        self.arrange();
        is_other.then(|| Action::Show(self.scope()))
    }

    fn ask(&mut self, signal: Signal) {
        match self.marked_process() {
            Some(process) => self.mode = Mode::Confirm(Box::new(process.clone()), signal),
            None => self.result = Some(Err("mark a process first: arrow keys".to_owned())),
        }
    }

    /// Filter and sort; the mark stays with its process, or on its row if the process is gone.
    fn arrange(&mut self) {
        let row = self.marked_row();
        // An expression is incomplete while it is typed: all rows are shown, and the error is displayed.
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

    /// Set the number of visible rows.
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
        // The first key marks the first visible row.
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
