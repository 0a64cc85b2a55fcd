//! Drawing of the screen: state of the connection, hosts, rows, and the keys.
//!
//! Pure: it draws into a frame. Rule: outdated data is dimmed, with the time since the last answer above it.
//! Not here: the data (`state`), the columns (`columns`), colours (`theme`).

use super::filter::Filter;
use super::rows::Process;
use super::state::{Host, Link, Mode, State};
use super::theme::Theme;
use crate::harmless::clean;
use crate::output::shortened_within;
use columns::{columns, sorted_by};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, Wrap};
use std::time::Duration;
use wire::shown::{bytes, share};
use wire::time::Moment;

mod columns;

/// Maximum number of lines for the result of a signal.
const RESULT_LINES_MAX: usize = 8;
/// Number of intervals without an answer after which a warning is shown.
const LATE_INTERVALS: u32 = 3;

const HELP: &[&str] = &[
    "c m i t     sort by CPU, memory, input and output, CPU time",
    "/           filter: words that name, command, user, number or host hold,",
    "            or an expression: cpu > 0.5 and name ~ \"^slurm\"",
    "            (Ctrl-U clears the line)",
    "h           choose a host, or all",
    "arrows      mark a process; page up and down, home, end",
    "k K         send the marked process TERM, or KILL (it asks first)",
    "space       pause, and go on",
    "?           this help",
    "q, Ctrl-C   end",
    "",
    "CPU is the share of a core over about the last second: four busy",
    "threads have 400 %. IO/S is what was read from storage and written to",
    "it. Signals are sent as an operator of the domain: docs/control.md.",
];

/// Draw the screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, theme: Theme, now: Moment) {
    let width = frame.area().width;
    let (asked, mistake) = (filter_line(state, width), filter_mistake(state));
    let asked_height = height_of(asked.as_ref().map_or(0, Line::width), width);
    let mistake_height = height_of(mistake.as_ref().map_or(0, |text| text.chars().count()), width);
    let heights = [1, 1, 1, asked_height, mistake_height].map(Constraint::Length);
    let below = foot_height(state, width);
    let heights = heights.into_iter().chain([Constraint::Min(0), Constraint::Length(below)]);
    let areas = Layout::vertical(heights).split(frame.area());
    let [title, link, hosts, filter, below_filter, rows, foot] = areas[..] else { return };
    frame.render_widget(Paragraph::new(title_line(state, theme)), title);
    frame.render_widget(Paragraph::new(link_line(state, theme, now)), link);
    frame.render_widget(Paragraph::new(host_line(state, theme, hosts.width)), hosts);
    if let Some(asked) = asked {
        frame.render_widget(Paragraph::new(asked).wrap(Wrap { trim: false }), filter);
    }
    if let Some(mistake) = mistake {
        let notice = Paragraph::new(Line::styled(mistake, theme.bad()));
        frame.render_widget(notice.wrap(Wrap { trim: true }), below_filter);
    }
    state.fit(usize::from(rows.height.saturating_sub(1)));
    frame.render_widget(table(state, theme, rows.width), rows);
    frame.render_widget(Paragraph::new(foot_line(state, theme)).wrap(Wrap { trim: true }), foot);
    match &state.mode {
        Mode::Help => over(frame, "keys", HELP.iter().map(|line| Line::from(*line)).collect()),
        Mode::Hosts(at) => {
            over(frame, "hosts: arrows, Enter; Esc leaves it", host_list(state, *at, frame.area()))
        }
        Mode::Confirm(process, signal) => over(frame, "is it meant?", question(process, signal.as_str())),
        Mode::Rows | Mode::Filter(_) => {}
    }
}

fn title_line(state: &State, theme: Theme) -> Line<'static> {
    let mut domains: Vec<&str> = state.round.hosts.iter().map(|host| host.place.domain.as_str()).collect();
    domains.dedup();
    let what = match &state.only {
        Some(only) => format!("{} of {}", only.host, only.domain),
        None if domains.is_empty() => "…".to_owned(),
        None => domains.join(", "),
    };
    let mut line = vec![
        Span::styled("visperf top", Theme::head()),
        format!("  {what}  by {}  every {} s", state.order.as_str(), state.interval.as_secs_f64()).into(),
    ];
    if state.is_paused {
        line.push(Span::styled("  PAUSED", theme.caution()));
    }
    Line::from(line)
}

/// State of the connection.
fn link_line(state: &State, theme: Theme, now: Moment) -> Line<'static> {
    let secs = |since: Moment| now.since(since).as_secs();
    match &state.link {
        Link::Waiting => Line::styled("waiting for the first answer", theme.caution()),
        Link::Lost(since, why) => {
            let text = format!("NO CONNECTION for {} s, trying again: {}", secs(*since), one_line(why));
            Line::styled(text, theme.bad())
        }
        Link::Answered(last) if now.since(*last) > late_after(state.interval) => {
            Line::styled(format!("NO ANSWER for {} s", secs(*last)), theme.bad())
        }
        Link::Answered(_) => {
            let live = state.round.hosts.iter().filter(|host| host.is_live).count();
            let (all, total, shown) = (state.round.hosts.len(), state.round.total, state.shown.len());
            let mut text = format!("{live} of {all} hosts live, {shown} of {total} processes shown");
            for note in &state.round.notes {
                text = format!("{text}; {note}");
            }
            let is_whole = live == all && state.round.notes.is_empty();
            Line::styled(text, if is_whole { theme.good() } else { theme.caution() })
        }
    }
}

/// Time without an answer after which a warning is shown: a daemon may take a few intervals to answer.
fn late_after(interval: Duration) -> Duration {
    interval.saturating_mul(LATE_INTERVALS).max(Duration::from_secs(3))
}

/// As many hosts as fit, those with the highest load first.
fn host_line(state: &State, theme: Theme, width: u16) -> Line<'static> {
    let mut hosts: Vec<&Host> = state.round.hosts.iter().collect();
    hosts.sort_by(|a, b| b.load.partial_cmp(&a.load).unwrap_or(std::cmp::Ordering::Equal));
    let (mut line, mut left) = (Vec::new(), usize::from(width));
    for (at, host) in hosts.iter().enumerate() {
        let text = host_text_within(host, width);
        let chars = text.chars().count() + 3;
        if chars > left && at > 0 {
            let more = format!("+{}", hosts.len() - at);
            line.push(Span::styled(more, Theme::dim()));
            break;
        }
        left = left.saturating_sub(chars + 4);
        let style = if host.is_live && host.trouble.is_none() { Style::new() } else { theme.caution() };
        line.push(Span::styled(text, style));
        line.push("   ".into());
    }
    Line::from(line)
}

fn host_text(host: &Host) -> String {
    host_text_within(host, u16::MAX)
}

/// A host in a text of this width; values without space are left out.
fn host_text_within(host: &Host, width: u16) -> String {
    if let Some(trouble) = &host.trouble {
        return format!("{}: {}", host.place.host, one_line(trouble));
    }
    if !host.is_live {
        return format!("{} is silent", host.place.host);
    }
    let load = host.load.map(|load| format!(" load {load:.2}"));
    let cpu = host.cpu.map(|cpu| format!(" cpu {}", share(cpu)));
    let memory = host.memory_used.zip(host.memory_total).map(|(used, total)| {
        // A share of the whole or bytes, as the sensor reports it.
        let used = if used <= 1.0 { used * total } else { used };
        format!(" memory {} of {}", bytes(used), bytes(total))
    });
    let mut text = host.place.host.clone();
    for figure in [load, cpu, memory].into_iter().flatten() {
        if text.chars().count() + figure.chars().count() <= usize::from(width) {
            text += &figure;
        }
    }
    text
}

/// The filter, if one is set or being typed; with the keys if they fit.
fn filter_line(state: &State, width: u16) -> Option<Line<'static>> {
    const KEYS: &str = "   (Enter keeps it, Esc takes it back)";
    let is_typed = matches!(state.mode, Mode::Filter(_));
    if state.filter.is_empty() && !is_typed {
        return None;
    }
    let text = format!("{}{}", clean(&state.filter), if is_typed { "_" } else { "" });
    let line = Line::from(vec![Span::styled("filter: ", Theme::head()), text.into()]);
    let has_room = line.width() + KEYS.len() <= usize::from(width);
    let shows_keys = is_typed && has_room && filter_mistake(state).is_none();
    Some(if shows_keys { line + Span::from(KEYS) } else { line })
}

/// The error in the filter, if any.
fn filter_mistake(state: &State) -> Option<String> {
    let error = Filter::new(&state.filter).err()?;
    Some(format!("all are shown, for this is no filter yet: {}", one_line(&error)))
}

/// A result is shown whole up to a limit, because it may say what to do.
fn foot_height(state: &State, width: u16) -> u16 {
    let chars = match &state.result {
        Some(Ok(text) | Err(text)) => one_line(text).chars().count(),
        None => 0,
    };
    height_of(chars, width).max(1)
}

/// Number of lines for a text of this many characters.
fn height_of(chars: usize, width: u16) -> u16 {
    if chars <= usize::from(width) {
        return u16::from(chars > 0);
    }
    // Words are not divided, so that a line may hold less than it could.
    let lines = chars.div_ceil(usize::from(width.saturating_sub(10).max(1))).clamp(1, RESULT_LINES_MAX);
    u16::try_from(lines).unwrap_or(1)
}

fn foot_line(state: &State, theme: Theme) -> Line<'static> {
    match &state.result {
        Some(Ok(done)) => Line::styled(one_line(done), theme.good()),
        Some(Err(why)) => Line::styled(one_line(why), theme.bad()),
        None => {
            Line::styled("q quit  c m i t sort  / filter  h host  k kill  space pause  ? help", Theme::dim())
        }
    }
}

fn table(state: &State, theme: Theme, width: u16) -> Table<'static> {
    let columns = columns(width, state.only.is_none() && state.round.hosts.len() > 1, state.order);
    let sorted = sorted_by(state.order);
    let aligned = |text: String, is_figure: bool| match is_figure {
        true => Text::from(text).right_aligned(),
        false => Text::from(text),
    };
    let heads = columns.iter().map(|column| {
        let style = if column.head == sorted { Theme::marked() } else { Style::new() };
        Cell::from(aligned(column.head.to_owned(), column.is_figure)).style(style)
    });
    let is_old = !matches!(state.link, Link::Answered(_));
    let marked = state.marked_row();
    let rows = state.shown.iter().enumerate().skip(state.first).take(state.height).map(|(at, process)| {
        let cells = columns.iter().map(|column| {
            let style = if column.head == "NAME" { theme.name() } else { Style::new() };
            Cell::from(aligned(column.cell_text(process), column.is_figure)).style(style)
        });
        let style = match (Some(at) == marked, is_old) {
            (true, _) => Theme::marked(),
            (false, true) => Theme::dim(),
            (false, false) => Style::new(),
        };
        Row::new(cells.collect::<Vec<_>>()).style(style)
    });
    Table::new(rows.collect::<Vec<_>>(), columns.iter().map(|column| column.width))
        .header(Row::new(heads.collect::<Vec<_>>()).style(Theme::head()))
        .column_spacing(1)
}

/// A text of another program in one line, sanitized.
fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

fn question(process: &Process, signal: &str) -> Vec<Line<'static>> {
    let (place, key) = &process.id;
    vec![
        Line::from(format!("send {signal} to {} ({}) of {}", process.name, key.pid, process.user)),
        Line::from(format!("on {} of {}", place.host, place.domain)),
        Line::from(shortened_within(&process.command, 66).into_owned()),
        Line::from(""),
        Line::styled("y sends it, any other key does not", Theme::head()),
    ]
}

/// The hosts to choose from, scrolled to the current one.
fn host_list(state: &State, at: usize, area: Rect) -> Vec<Line<'static>> {
    let all = std::iter::once("all hosts".to_owned());
    let hosts = state.round.hosts.iter().map(|host| format!("{}  {}", host.place.domain, host_text(host)));
    let height = usize::from(area.height.saturating_sub(4)).max(1);
    let first = (at + 1).saturating_sub(height);
    let lines = all.chain(hosts).enumerate().skip(first).take(height);
    lines
        .map(|(row, text)| Line::styled(text, if row == at { Theme::marked() } else { Style::new() }))
        .collect()
}

/// A box over the rows.
fn over(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'static>>) {
    let area = frame.area();
    let widest = lines.iter().map(Line::width).chain([title.chars().count()]).max().unwrap_or(0);
    let size = |wanted: usize, all: u16| u16::try_from(wanted + 2).unwrap_or(all).min(all);
    let (width, height) = (size(widest + 2, area.width), size(lines.len(), area.height));
    let inside =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let block = Block::bordered().title(format!(" {title} "));
    frame.render_widget(Clear, inside);
    let padded: Vec<Line<'static>> = lines
        .into_iter()
        .map(|line| {
            let mut spans = vec![Span::from(" ")];
            spans.extend(line.spans);
            Line { spans, ..line }
        })
        .collect();
    frame.render_widget(Paragraph::new(padded).block(block), inside);
}

#[cfg(test)]
mod tests;
