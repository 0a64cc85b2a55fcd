//! Commands: what panels return after they were drawn.
//!
//! Rule: a panel changes its own view alone; everything else is a command, applied by [`super::App::apply`].

use super::settings::Look;
use super::tab::Tab;
use crate::feed::Kill;
use crate::grid::place::{DomainId, PlaceId};
use crate::model::{Change, FlockChange, GraphsChange, JobsChange, ProcessId, SensorsChange, TimeChange};
use crate::sensors::Order;
use egui::Vec2;

/// A command of a panel.
#[derive(Clone, Debug)]
pub enum Command {
    /// Change the model.
    Change(Change),
    OpenTab(Tab),
    /// Show the graphs of a host in their tab.
    ShowGraphs(PlaceId),
    /// Show the graphs of a call's hosts over its life.
    ShowGraphsOfCall(String),
    AddToGraphs(PlaceId),
    /// Show the processes of a call in the flock, or one of them.
    ShowProcesses(String, Option<ProcessId>),
    ShowDomainOnMap(DomainId),
    ShowWholeMap,
    /// Zoom the map by a factor, around its middle.
    ZoomMap(f32),
    PanMap(Vec2),
    /// Undo the user's moves on the map, and show all of it.
    ResetMap,
    FocusSearch,
    /// Hide or show the list of hosts.
    ToggleTree,
    SetLook(Look),
    /// Write a file of this extension.
    Export(&'static str),
    Ask(Question),
    CloseQuestion,
    /// Show a domain of the grid, or show it no longer.
    AddDomain(String),
    DropDomain(String),
    Order(Order),
    Kill(Kill),
}

impl From<Change> for Command {
    fn from(change: Change) -> Command {
        Command::Change(change)
    }
}

impl From<TimeChange> for Command {
    fn from(change: TimeChange) -> Command {
        Command::Change(change.into())
    }
}

impl From<GraphsChange> for Command {
    fn from(change: GraphsChange) -> Command {
        Command::Change(change.into())
    }
}

impl From<FlockChange> for Command {
    fn from(change: FlockChange) -> Command {
        Command::Change(change.into())
    }
}

impl From<SensorsChange> for Command {
    fn from(change: SensorsChange) -> Command {
        Command::Change(change.into())
    }
}

impl From<JobsChange> for Command {
    fn from(change: JobsChange) -> Command {
        Command::Change(change.into())
    }
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Kind of question: egui's name of its window.
    pub(super) kind: &'static str,
    pub(super) title: String,
    /// Lines about what is asked.
    pub(super) lines: Vec<String>,
    /// What follows from a yes, in small text.
    pub(super) note: &'static str,
    pub(super) answers: Vec<Answer>,
}

/// An answer, and the commands that it gives.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) text: &'static str,
    pub(super) hint: &'static str,
    pub(super) is_dangerous: bool,
    pub(super) commands: Vec<Command>,
}

/// Commands in the order in which they were given.
#[derive(Debug, Default)]
pub(super) struct Commands(Vec<Command>);

impl Commands {
    pub(super) fn push(&mut self, command: impl Into<Command>) {
        self.0.push(command.into());
    }
}

impl IntoIterator for Commands {
    type Item = Command;
    type IntoIter = std::vec::IntoIter<Command>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
