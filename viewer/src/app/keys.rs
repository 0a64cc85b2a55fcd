//! Keys of the keyboard, and the commands that they give.
//!
//! Rule: a key that a text field takes does nothing else; while a question is open only Esc does. [`KEYS`]
//! lists every key, for the help.

use super::command::{Command, Commands};
use super::flock;
use super::settings::Look;
use super::tab::{self, Tab};
use crate::model::{Change, FlockChange, GraphsChange, JobsChange, Model, SensorsChange, TimeChange};
use crate::timeline::Mode;
use egui::{Context, Key, Modifiers, Vec2, vec2};

/// Every key, and what it does.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("Space", "play or pause"),
    ("L", "go live"),
    ("N", "jump to the next failure"),
    ("[  ]", "slower, faster"),
    (",  .", "a little back, a little on"),
    ("Home  End", "the beginning, the end"),
    ("F", "show the whole map, or the graphs' usual span"),
    ("+  -", "enlarge, make smaller: the map, or what the graphs show"),
    ("arrows", "move the map, or the graphs' span of time"),
    ("Ctrl F  /", "search"),
    ("1  2  3  4  5  6", "map, calls, graphs, flock, sensors, jobs"),
    ("arrows  Enter", "of the jobs: choose one, open its page"),
    ("G", "graphs together, or small multiples"),
    ("K", "end the chosen process of the flock"),
    ("E  P", "a file of what is shown: a table (CSV), a picture (PNG)"),
    ("H", "hide or show the hosts"),
    ("T", "dark or light"),
    ("Esc", "choose nothing, or close the page of a job"),
];

/// Rows of the table of jobs that a page has.
const JOBS_PAGE: isize = 20;

/// Keys that write a file, and its extension.
pub(super) const FILES: [(Key, &str); 2] = [(Key::E, "csv"), (Key::P, "png")];

/// The commands of the keys of this frame.
pub(super) fn commands(model: &Model, front: Tab, has_question: bool, ctx: &Context) -> Commands {
    let mut commands = Commands::default();
    if ctx.input_mut(|input| input.consume_key(Modifiers::COMMAND, Key::F)) {
        commands.push(Command::FocusSearch);
    }
    // A text field takes the keys, or a menu, which closes at Esc.
    if ctx.egui_wants_keyboard_input() || egui::Popup::is_any_open(ctx) {
        return commands;
    }
    let pressed = |key: Key| ctx.input_mut(|input| input.consume_key(Modifiers::NONE, key));
    if has_question {
        if pressed(Key::Escape) {
            commands.push(Command::CloseQuestion);
        }
        return commands;
    }
    time(model, &pressed, &mut commands);
    match front {
        Tab::Graphs => graphs(model, &pressed, &mut commands),
        Tab::Jobs if model.jobs().page().is_none() => jobs(&pressed, &mut commands),
        Tab::Jobs => {}
        Tab::Map | Tab::Calls | Tab::Flock | Tab::Sensors => map(&pressed, &mut commands),
    }
    for (key, tab) in
        [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6].into_iter().zip(tab::ALL)
    {
        if pressed(key) {
            commands.push(Command::OpenTab(tab));
        }
    }
    for (key, extension) in FILES {
        if pressed(key) {
            commands.push(Command::Export(extension));
        }
    }
    let look = if ctx.theme() == egui::Theme::Dark { Look::Light } else { Look::Dark };
    let others = [
        (Key::Slash, Command::FocusSearch),
        (Key::H, Command::ToggleTree),
        (Key::T, Command::SetLook(look)),
        (Key::G, GraphsChange::SwitchArrangement.into()),
    ];
    for (key, command) in others {
        if pressed(key) {
            commands.push(command);
        }
    }
    if pressed(Key::K)
        && let Some(question) = flock::kill::question_for_selected(model)
    {
        commands.push(Command::Ask(question));
    }
    if front == Tab::Jobs && model.jobs().page().is_some() {
        if pressed(Key::Escape) {
            commands.push(JobsChange::Close);
        }
    } else if pressed(Key::Escape) {
        commands.push(FlockChange::ClearSelection);
        commands.push(SensorsChange::Select(None));
        commands.push(Change::Select(None));
    }
    commands
}

fn time(model: &Model, pressed: &dyn Fn(Key) -> bool, commands: &mut Commands) {
    let timeline = model.timeline();
    let play = match timeline.mode() {
        Mode::Paused => TimeChange::Play,
        Mode::Playing | Mode::Live => TimeChange::Pause,
    };
    let step = std::time::Duration::from_micros(u64::try_from(timeline.flight_micros()).unwrap_or(0));
    let (first, last) = timeline.shown();
    let changes = [
        (Key::Space, play),
        (Key::L, TimeChange::GoLive),
        (Key::N, TimeChange::NextFailure),
        (Key::OpenBracket, TimeChange::SetSpeed(timeline.speed() / 2.0)),
        (Key::CloseBracket, TimeChange::SetSpeed(timeline.speed() * 2.0)),
        (Key::Comma, TimeChange::GoTo(timeline.time().minus(step))),
        (Key::Period, TimeChange::GoTo(timeline.time().plus(step))),
        (Key::Home, TimeChange::GoTo(first)),
        (Key::End, TimeChange::GoTo(last)),
    ];
    for (key, change) in changes {
        if pressed(key) {
            commands.push(change);
        }
    }
}

/// The span of the graphs: a quarter of it at each press, and narrower around its middle.
fn graphs(model: &Model, pressed: &dyn Fn(Key) -> bool, commands: &mut Commands) {
    // A span that ends at the current time stays there.
    let middle = if model.graphs().choice().span.back_secs() > 0.0 { 0.5 } else { 1.0 };
    let changes = [
        (Key::F, GraphsChange::ResetSpan),
        (Key::Plus, GraphsChange::Zoom(1.25, middle)),
        (Key::Equals, GraphsChange::Zoom(1.25, middle)),
        (Key::Minus, GraphsChange::Zoom(0.8, middle)),
        (Key::ArrowLeft, GraphsChange::Pan(0.25)),
        (Key::ArrowRight, GraphsChange::Pan(-0.25)),
    ];
    for (key, change) in changes {
        if pressed(key) {
            commands.push(change);
        }
    }
}

/// The chosen row of the table, and its page.
fn jobs(pressed: &dyn Fn(Key) -> bool, commands: &mut Commands) {
    let changes = [
        (Key::ArrowUp, JobsChange::Move(-1)),
        (Key::ArrowDown, JobsChange::Move(1)),
        (Key::PageUp, JobsChange::Move(-JOBS_PAGE)),
        (Key::PageDown, JobsChange::Move(JOBS_PAGE)),
        (Key::Enter, JobsChange::OpenChosen),
    ];
    for (key, change) in changes {
        if pressed(key) {
            commands.push(change);
        }
    }
}

fn map(pressed: &dyn Fn(Key) -> bool, commands: &mut Commands) {
    let ways: [(Key, Vec2); 4] = [
        (Key::ArrowLeft, vec2(60.0, 0.0)),
        (Key::ArrowRight, vec2(-60.0, 0.0)),
        (Key::ArrowUp, vec2(0.0, 60.0)),
        (Key::ArrowDown, vec2(0.0, -60.0)),
    ];
    let zooms = [(Key::Plus, 1.25), (Key::Equals, 1.25), (Key::Minus, 0.8)];
    let all = [(Key::F, Command::ShowWholeMap)].into_iter();
    let all = all.chain(zooms.map(|(key, factor)| (key, Command::ZoomMap(factor))));
    for (key, command) in all.chain(ways.map(|(key, way)| (key, Command::PanMap(way)))) {
        if pressed(key) {
            commands.push(command);
        }
    }
}
