//! List of the flock's programs; each opens to its processes.
//!
//! Rule: only the visible rows are drawn; the list is of the time that the chart shows, to a quarter of a
//! second, and its order to two seconds, so that rows can be read.

use super::kill;
use crate::app::command::{Command, Commands};
use crate::app::text::{count, elided, percent};
use crate::app::theme::{self, Colors, ROW_HEIGHT};
use crate::flock::Member;
use crate::flock::groups::{Group, Row, groups, most_used_first, rows};
use crate::flock::measure::share;
use crate::flock::names::NameId;
use crate::model::{FlockChange, FlockState, Model};
use egui::{
    Align, Button, Frame, Label, Layout, Margin, Rect, RichText, ScrollArea, Sense, Stroke, Ui, pos2, vec2,
};
use std::collections::{BTreeMap, BTreeSet};
use wire::time::Time;

/// Interval at which the list changes, in microseconds.
const STANDS_MICROS: i64 = 250_000;
/// Interval at which its order changes, in microseconds.
const ORDER_STANDS_MICROS: i64 = 2_000_000;
/// Most processes that are listed of one program.
const ROWS_MAX: usize = 500;
/// A program with at most this many selected processes is open by itself.
const OPENED_MAX: u32 = 20;

/// A row of the list.
enum Line {
    Program(Group),
    Process(Row),
}

/// A moment, and what the processes depend on: their number and the revision of the flock.
type Moment = (Time, usize, u64);

/// The programs of a moment.
struct Programs {
    moment: Moment,
    selected: BTreeSet<Member>,
    groups: Vec<Group>,
}

/// The processes of the open programs, at a moment.
struct Opened {
    moment: Moment,
    open: BTreeSet<NameId>,
    selected: BTreeSet<Member>,
    of: BTreeMap<NameId, Vec<Row>>,
}

/// Cores that programs used at the start of the span for which their order stands.
struct Ranks {
    since: Time,
    revision: u64,
    cores: BTreeMap<NameId, f64>,
}

/// The list.
#[derive(Default)]
pub(super) struct List {
    open: BTreeSet<NameId>,
    /// Whether programs are ordered by name, not by what they use.
    by_name: bool,
    programs: Option<Programs>,
    opened: Option<Opened>,
    ranks: Option<Ranks>,
}

impl List {
    /// A copy for a picture: lists are found again.
    pub(super) fn still(&self) -> List {
        List { open: self.open.clone(), by_name: self.by_name, ..List::default() }
    }

    pub(super) fn show(
        &mut self,
        model: &Model,
        ui: &mut Ui,
        colors: Colors,
        hovered: Option<Member>,
        commands: &mut Commands,
    ) {
        let rect = ui.max_rect();
        ui.painter().rect_filled(rect, 0.0, colors.panel);
        ui.painter().vline(rect.left(), rect.y_range(), Stroke::new(1.0, colors.line));
        let lines = self.lines(model.flock(), model.flock_time());
        Frame::new().inner_margin(Margin { left: 10, right: 6, top: 6, bottom: 6 }).show(ui, |ui| {
            self.head(model, ui, colors, &lines, commands);
            ui.spacing_mut().item_spacing.y = 0.0;
            ScrollArea::vertical().auto_shrink(false).show_rows(ui, ROW_HEIGHT, lines.len(), |ui, seen| {
                for line in &lines[seen] {
                    match line {
                        Line::Program(group) => self.program(model, ui, colors, group),
                        Line::Process(row) => {
                            let is_lit =
                                hovered == Some(row.member) || model.flock().selected().contains(&row.member);
                            process(model, ui, colors, (row, is_lit), commands);
                        }
                    }
                }
            });
        });
    }

    fn head(&mut self, model: &Model, ui: &mut Ui, colors: Colors, lines: &[Line], commands: &mut Commands) {
        let selected = model.flock().selected().len();
        let followed = model.flock().followed_call();
        let number = || processes_words(u32::try_from(selected).unwrap_or(u32::MAX));
        let text = match (selected, followed) {
            (0, None) => totals(lines),
            (0, Some(call)) => format!("no process of {call} yet"),
            (_, Some(call)) => format!("{} of {call}", number()),
            (_, None) => format!("{} chosen", number()),
        };
        let is_all = selected == 0 && followed.is_none();
        ui.horizontal(|ui| {
            ui.set_min_height(22.0);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if is_all {
                    self.order(ui, colors);
                } else if ui.add(Button::new("Clear").small()).on_hover_text("Esc").clicked() {
                    commands.push(FlockChange::ClearSelection);
                }
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    let text = RichText::new(text).size(theme::SMALL).color(colors.weak);
                    ui.add(Label::new(text).truncate());
                });
            });
        });
    }

    /// Button that changes the order.
    fn order(&mut self, ui: &mut Ui, colors: Colors) {
        let (word, hint) = match self.by_name {
            false => ("cores ⏷", "Those that use most are first; click: by name"),
            true => ("by name ⏷", "By name; click: those that use most first"),
        };
        let text = RichText::new(word).size(theme::SMALL).color(colors.weak);
        if ui.add(Button::new(text).frame(false)).on_hover_text(hint).clicked() {
            self.by_name = !self.by_name;
            self.programs = None;
        }
    }

    /// Programs, and under each open one its processes; the selected ones alone, where some are.
    fn lines(&mut self, state: &FlockState, time: Time) -> Vec<Line> {
        let since = Time::from_micros(time.micros().div_euclid(STANDS_MICROS) * STANDS_MICROS);
        let moment = (since, state.flock().processes(), state.revision());
        let selected = state.selected();
        let is_same = |known: &Programs| known.moment == moment && known.selected == *selected;
        // Of `time`: processes may have started since the start of the moment.
        let programs = self.programs.take().filter(is_same).unwrap_or_else(|| Programs {
            moment,
            selected: selected.clone(),
            groups: self.ordered(state, time),
        });
        let shown = || programs.groups.iter().filter(|group| selected.is_empty() || group.chosen > 0);
        let is_open = |group: &&Group| {
            self.open.contains(&group.name) || (!selected.is_empty() && group.chosen <= OPENED_MAX)
        };
        let open: BTreeSet<NameId> = shown().filter(is_open).map(|group| group.name).collect();
        let opened = opened(self.opened.take(), state, (open, moment), time);
        let mut lines = Vec::new();
        for group in shown() {
            lines.push(Line::Program(group.clone()));
            lines.extend(opened.of.get(&group.name).into_iter().flatten().map(|row| Line::Process(*row)));
        }
        (self.programs, self.opened) = (Some(programs), Some(opened));
        lines
    }

    /// The programs in their order.
    fn ordered(&mut self, state: &FlockState, time: Time) -> Vec<Group> {
        let groups_at = |time| groups(state.flock(), state.filter(), state.selected(), time);
        let mut found = groups_at(time);
        if self.by_name {
            return found;
        }
        let since = Time::from_micros(time.micros().div_euclid(ORDER_STANDS_MICROS) * ORDER_STANDS_MICROS);
        let revision = state.revision();
        let known = self.ranks.take().filter(|known| (known.since, known.revision) == (since, revision));
        let ranks = known.unwrap_or_else(|| {
            let cores = groups_at(since).into_iter().map(|group| (group.name, group.cores)).collect();
            Ranks { since, revision, cores }
        });
        most_used_first(&mut found, &ranks.cores);
        self.ranks = Some(ranks);
        found
    }

    fn program(&mut self, model: &Model, ui: &mut Ui, colors: Colors, group: &Group) {
        let name = model.flock().flock().name(group.name);
        let (rect, response) = row(ui, colors, false);
        let painter = ui.painter();
        let square = Rect::from_center_size(pos2(rect.left() + 9.0, rect.center().y), vec2(9.0, 9.0));
        painter.rect_filled(square, 2.0, colors.program(name));
        let cpu = painter.layout_no_wrap(format!("{:.1}", group.cores), theme::figures(), colors.text);
        let number = painter.layout_no_wrap(group.processes.to_string(), theme::figures(), colors.weak);
        let top = |galley: &egui::Galley| rect.center().y - galley.size().y / 2.0;
        painter.galley(pos2(rect.right() - 6.0 - cpu.size().x, top(&cpu)), cpu, colors.text);
        let number_at = rect.right() - 62.0 - number.size().x;
        painter.galley(pos2(number_at, top(&number)), number, colors.weak);
        let label = elided(painter, name, theme::small(), colors.text, number_at - rect.left() - 30.0);
        painter.galley(pos2(rect.left() + 21.0, top(&label)), label, colors.text);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, name));
        let hint =
            format!("{name}: {}, which use {:.2} cores", processes_words(group.processes), group.cores);
        if response.on_hover_text(hint).clicked() && !self.open.remove(&group.name) {
            self.open.insert(group.name);
        }
    }
}

/// `2 programs, 7 processes`.
fn totals(lines: &[Line]) -> String {
    let groups = lines.iter().filter_map(|line| match line {
        Line::Program(group) => Some(group.processes),
        Line::Process(_) => None,
    });
    let (programs, processes) = groups.fold((0, 0), |(programs, sum), more| (programs + 1, sum + more));
    format!("{}, {}", count(programs, "program"), processes_words(processes))
}

fn processes_words(number: u32) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{number} processes") }
}

/// The processes of the open programs, found once a moment: each search reads every process.
fn opened(
    known: Option<Opened>,
    state: &FlockState,
    (open, moment): (BTreeSet<NameId>, Moment),
    time: Time,
) -> Opened {
    let selected = state.selected();
    let is_same =
        |known: &Opened| known.moment == moment && known.open == open && known.selected == *selected;
    known.filter(is_same).unwrap_or_else(|| {
        let of = rows(state.flock(), state.filter(), &open, selected, time, ROWS_MAX);
        Opened { moment, open, selected: selected.clone(), of }
    })
}

fn row(ui: &mut Ui, colors: Colors, is_lit: bool) -> (Rect, egui::Response) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    if is_lit || response.hovered() {
        let fill = if is_lit { colors.accent.gamma_multiply(0.18) } else { colors.hover };
        ui.painter().rect_filled(rect, 4.0, fill);
    }
    (rect, response)
}

fn process(
    model: &Model,
    ui: &mut Ui,
    colors: Colors,
    (process, is_lit): (&Row, bool),
    commands: &mut Commands,
) {
    let (member, flock) = (process.member, model.flock().flock());
    let (rect, response) = row(ui, colors, is_lit);
    let host = flock.host_of(member).map_or_else(String::new, |host| host.host.to_string());
    let cpus = flock.capacity_of(member).map_or(0.0, |host| host.cpus);
    let painter = ui.painter();
    let top = |galley: &egui::Galley| rect.center().y - galley.size().y / 2.0;
    let mut right = rect.right() - 6.0;
    for (text, color, width) in [
        (format!("{:.1}", share(process.spots[0].x) * cpus), colors.text, 50.0),
        (format!("{:.0}M", process.rss_bytes / 1_048_576.0), colors.weak, 48.0),
    ] {
        let galley = painter.layout_no_wrap(text, theme::figures(), color);
        painter.galley(pos2(right - galley.size().x, top(&galley)), galley, color);
        right -= width;
    }
    let name = elided(
        painter,
        &format!("{}  {host}", member.pid),
        theme::small(),
        colors.text,
        right - rect.left() - 30.0,
    );
    painter.galley(pos2(rect.left() + 21.0, top(&name)), name, colors.text);
    response.widget_info(|| {
        egui::WidgetInfo::labeled(egui::WidgetType::Button, true, format!("process {}", member.pid))
    });
    if response.clicked() {
        commands.push(FlockChange::SelectMembers(BTreeSet::from([member])));
    }
    let threads =
        if process.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", process.threads) };
    let used = percent(share(process.spots[0].x));
    let response = response.on_hover_text(format!(
        "process {} on {host}: {used} of its cores, {threads}; right click to end it",
        member.pid
    ));
    response.context_menu(|ui| {
        if ui.button("End it …").clicked() {
            if let Some(question) = kill::question(model, member) {
                commands.push(Command::Ask(question));
            }
            ui.close();
        }
    });
}
