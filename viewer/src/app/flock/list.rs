//! The programs of the flock in a list; each opens to its processes.
//!
//! Rule: only the rows that are seen are drawn; what is listed is of the time that the chart shows, to a quarter of a
//! second, and its order to two seconds, so that rows can be read.

use super::{FlockView, kill};
use crate::app::App;
use crate::app::text::{count, elided, percent};
use crate::app::theme::{self, Colors, ROW_HEIGHT};
use crate::flock::chosen::Chosen;
use crate::flock::groups::{Group, Row, groups, most_used_first, rows};
use crate::flock::measure::share;
use crate::flock::names::NameId;
use crate::flock::{Flock, Member};
use egui::{
    Align, Button, Frame, Label, Layout, Margin, Rect, RichText, ScrollArea, Sense, Stroke, Ui, pos2, vec2,
};
use std::collections::{BTreeMap, BTreeSet};
use wire::time::Time;

/// How long the list stands still, in microseconds.
const STANDS_MICROS: i64 = 250_000;
/// How long its order does, in microseconds.
const ORDER_STANDS_MICROS: i64 = 2_000_000;
/// Processes listed of one program.
const ROWS_MAX: usize = 500;
/// A program of which so many processes are chosen at most is open by itself.
const OPENED_MAX: u32 = 20;

/// A row of the list.
enum Line {
    Program(Group),
    Process(Row),
}

/// Draw it.
pub(super) fn show(app: &mut App, ui: &mut Ui, colors: Colors) {
    let rect = ui.max_rect();
    ui.painter().rect_filled(rect, 0.0, colors.panel);
    ui.painter().vline(rect.left(), rect.y_range(), Stroke::new(1.0, colors.line));
    let time = app.flock_time();
    let lines = lines(app, time);
    Frame::new().inner_margin(Margin { left: 10, right: 6, top: 6, bottom: 6 }).show(ui, |ui| {
        head(app, ui, colors, &lines);
        ui.spacing_mut().item_spacing.y = 0.0;
        ScrollArea::vertical().auto_shrink(false).show_rows(ui, ROW_HEIGHT, lines.len(), |ui, seen| {
            for line in &lines[seen] {
                match line {
                    Line::Program(group) => program(app, ui, colors, group),
                    Line::Process(row) => process(app, ui, colors, row),
                }
            }
        });
    });
}

fn head(app: &mut App, ui: &mut Ui, colors: Colors, lines: &[Line]) {
    let (mut programs, mut processes) = (0, 0);
    for line in lines {
        if let Line::Program(group) = line {
            programs += 1;
            processes += group.processes;
        }
    }
    let chosen = app.flock.selected.len();
    let followed = app.flock.followed_call();
    let number = || processes_words(u32::try_from(chosen).unwrap_or(u32::MAX));
    let text = match (chosen, followed) {
        (0, None) => format!("{}, {}", count(programs, "program"), processes_words(processes)),
        (0, Some(call)) => format!("no process of {call} yet"),
        (_, Some(call)) => format!("{} of {call}", number()),
        (_, None) => format!("{} chosen", number()),
    };
    let is_all = chosen == 0 && followed.is_none();
    ui.horizontal(|ui| {
        ui.set_min_height(22.0);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if is_all {
                order(app, ui, colors)
            } else {
                clear(app, ui)
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let text = RichText::new(text).size(theme::SMALL).color(colors.weak);
                ui.add(Label::new(text).truncate());
            });
        });
    });
}

/// By what the programs are listed, and the other way.
fn order(app: &mut App, ui: &mut Ui, colors: Colors) {
    let (word, hint) = match app.flock.by_name {
        false => ("cores ⏷", "Those that use most are first; click: by name"),
        true => ("by name ⏷", "By name; click: those that use most first"),
    };
    let text = RichText::new(word).size(theme::SMALL).color(colors.weak);
    if ui.add(Button::new(text).frame(false)).on_hover_text(hint).clicked() {
        app.flock.by_name = !app.flock.by_name;
        app.flock.groups = None;
    }
}

fn clear(app: &mut App, ui: &mut Ui) {
    if ui.add(Button::new("Clear").small()).on_hover_text("Esc").clicked() {
        app.clear_flock_choice();
    }
}

fn processes_words(number: u32) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{number} processes") }
}

/// Programs, and under each that is open its processes; where some are chosen, only those.
fn lines(app: &mut App, time: Time) -> Vec<Line> {
    let moment = Time::from_micros(time.micros().div_euclid(STANDS_MICROS) * STANDS_MICROS);
    let key = (moment, app.flock.flock.processes());
    let view = &mut app.flock;
    let known = view.groups.take().filter(|(known, _)| *known == key).map(|(_, groups)| groups);
    // What is there now may not have been there at the begin of the moment.
    let found = match known {
        Some(known) => known,
        None => listed(view, time),
    };
    let has_choice = !view.selected.is_empty();
    let shown = || found.iter().filter(|group| !has_choice || group.chosen > 0);
    let is_open =
        |group: &&Group| view.open.contains(&group.name) || (has_choice && group.chosen <= OPENED_MAX);
    let open: BTreeSet<NameId> = shown().filter(is_open).map(|group| group.name).collect();
    let rows = opened(view.rows.take(), &view.flock, &view.chosen, (open, &view.selected), (key, time));
    let mut lines = Vec::new();
    for group in shown() {
        lines.push(Line::Program(group.clone()));
        lines.extend(rows.of.get(&group.name).into_iter().flatten().map(|row| Line::Process(*row)));
    }
    (view.groups, view.rows) = (Some((key, found)), Some(rows));
    lines
}

/// The processes of the programs that are open, at a moment.
pub(super) struct Opened {
    key: (Time, usize),
    open: BTreeSet<NameId>,
    selected: BTreeSet<Member>,
    of: BTreeMap<NameId, Vec<Row>>,
}

/// They are looked for once a moment: each look is at every process.
fn opened(
    known: Option<Opened>,
    flock: &Flock,
    wanted: &Chosen,
    (open, selected): (BTreeSet<NameId>, &BTreeSet<Member>),
    (key, time): ((Time, usize), Time),
) -> Opened {
    let is_same = |known: &Opened| known.key == key && known.open == open && known.selected == *selected;
    known.filter(is_same).unwrap_or_else(|| {
        let of = rows(flock, wanted, &open, selected, time, ROWS_MAX);
        Opened { key, open, selected: selected.clone(), of }
    })
}

/// The programs, in their order.
fn listed(view: &mut FlockView, time: Time) -> Vec<Group> {
    let mut found = groups(&view.flock, &view.chosen, &view.selected, time);
    if view.by_name {
        return found;
    }
    let since = Time::from_micros(time.micros().div_euclid(ORDER_STANDS_MICROS) * ORDER_STANDS_MICROS);
    let known = view.ranks.take().filter(|(known, _)| *known == since);
    let (_, ranks) = known.unwrap_or_else(|| {
        let then = groups(&view.flock, &view.chosen, &view.selected, since);
        (since, then.into_iter().map(|group| (group.name, group.cores)).collect())
    });
    most_used_first(&mut found, &ranks);
    view.ranks = Some((since, ranks));
    found
}

fn row(ui: &mut Ui, colors: Colors, is_lit: bool) -> (Rect, egui::Response) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), ROW_HEIGHT), Sense::click());
    if is_lit || response.hovered() {
        let fill = if is_lit { colors.accent.gamma_multiply(0.18) } else { colors.hover };
        ui.painter().rect_filled(rect, 4.0, fill);
    }
    (rect, response)
}

fn program(app: &mut App, ui: &mut Ui, colors: Colors, group: &Group) {
    let name = app.flock.flock.name(group.name).to_owned();
    let is_open = app.flock.open.contains(&group.name);
    let (rect, response) = row(ui, colors, false);
    let painter = ui.painter();
    let square = Rect::from_center_size(pos2(rect.left() + 9.0, rect.center().y), vec2(9.0, 9.0));
    painter.rect_filled(square, 2.0, colors.program(&name));
    let cpu = painter.layout_no_wrap(format!("{:.1}", group.cores), theme::figures(), colors.text);
    let number = painter.layout_no_wrap(group.processes.to_string(), theme::figures(), colors.weak);
    let top = |galley: &egui::Galley| rect.center().y - galley.size().y / 2.0;
    painter.galley(pos2(rect.right() - 6.0 - cpu.size().x, top(&cpu)), cpu, colors.text);
    let number_at = rect.right() - 62.0 - number.size().x;
    painter.galley(pos2(number_at, top(&number)), number, colors.weak);
    let label = elided(painter, &name, theme::small(), colors.text, number_at - rect.left() - 30.0);
    painter.galley(pos2(rect.left() + 21.0, top(&label)), label, colors.text);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::WidgetType::Button, true, name.as_str()));
    let hint = format!("{name}: {}, which use {:.2} cores", processes_words(group.processes), group.cores);
    if response.on_hover_text(hint).clicked() {
        let _ = if is_open { app.flock.open.remove(&group.name) } else { app.flock.open.insert(group.name) };
    }
}

fn process(app: &mut App, ui: &mut Ui, colors: Colors, process: &Row) {
    let member = process.member;
    let is_lit = app.flock.hovered == Some(member) || app.flock.selected.contains(&member);
    let (rect, response) = row(ui, colors, is_lit);
    let host = app.flock.flock.host_of(member).map_or_else(String::new, |host| host.host.to_string());
    let cpus = app.flock.flock.capacity_of(member).map_or(0.0, |host| host.cpus);
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
        app.flock.choose_by_hand(BTreeSet::from([member]));
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
            kill::ask(app, member);
            ui.close();
        }
    });
}
