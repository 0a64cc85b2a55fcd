//! Columns of the process table: which fit the screen, and their contents.
//!
//! Pure. Rule: a number is never cut. It is written shorter where that is enough, and a column without space
//! is left out, the least needed first; the sort column is left out last except for the PID, and the name
//! never.
//! Not here: drawing (`super`).

use crate::output::figures::clock;
use crate::output::shortened_within;
use crate::top::rows::{Order, Process};
use ratatui::layout::Constraint;
use std::time::Duration;
use wire::shown::{bytes, share};

/// A screen narrower than this shows only the most important columns.
const NARROW_COLUMNS: u16 = 110;
/// Additional width needed to show the hosts beside all other columns.
const HOST_COLUMNS: u16 = 20;
/// Minimum width at which names, and commands, are distinguishable.
const NAME_COLUMNS: u16 = 8;
const COMMAND_COLUMNS: u16 = 16;
/// Columns left out where there is no space, the least needed first.
const SPARES: [&str; 9] = ["THR", "CPU TIME", "STATE", "IO/S", "USER", "HOST", "MEMORY", "CPU", "PID"];

/// A column: head, width, and contents.
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) width: Constraint,
    pub(super) is_figure: bool,
    of: fn(&Process) -> String,
    /// A shorter text, for when the usual one does not fit.
    shorter: fn(&Process) -> String,
}

impl Column {
    fn figure(head: &'static str, width: u16, of: fn(&Process) -> String) -> Column {
        Column { head, width: Constraint::Length(width), is_figure: true, of, shorter: of }
    }

    fn text(head: &'static str, width: Constraint, of: fn(&Process) -> String) -> Column {
        Column { head, width, is_figure: false, of, shorter: of }
    }

    /// The same column with a shorter text for when the usual one does not fit.
    fn or(self, shorter: fn(&Process) -> String) -> Column {
        Column { shorter, ..self }
    }

    /// Text of the cell.
    pub(super) fn cell_text(&self, process: &Process) -> String {
        let text = (self.of)(process);
        let Constraint::Length(width) = self.width else { return text };
        let width = usize::from(width);
        if text.chars().count() <= width {
            return text;
        }
        if !self.is_figure {
            return shortened_within(&text, width).into_owned();
        }
        let shorter = (self.shorter)(process);
        if shorter.chars().count() <= width { shorter } else { "…".to_owned() }
    }

    /// Its minimum width on the screen, including the gap to the next.
    fn needed(&self) -> u16 {
        match (self.width, self.head) {
            (Constraint::Length(width), _) => width + 1,
            (_, "COMMAND") => COMMAND_COLUMNS,
            _ => NAME_COLUMNS,
        }
    }
}

/// Head of the sort column.
pub(super) fn sorted_by(order: Order) -> &'static str {
    match order {
        Order::Cpu => "CPU",
        Order::Memory => "MEMORY",
        Order::Io => "IO/S",
        Order::Time => "CPU TIME",
    }
}

/// The columns that fit a screen of this width.
pub(super) fn columns(width: u16, has_hosts: bool, order: Order) -> Vec<Column> {
    let sorted = sorted_by(order);
    let mut columns = wanted(width, has_hosts, sorted);
    let spares = SPARES.iter().filter(|head| **head != sorted && **head != "PID").chain([&sorted, &"PID"]);
    for spare in spares {
        if columns.iter().map(Column::needed).sum::<u16>() <= width {
            break;
        }
        columns.retain(|column| column.head != *spare);
    }
    columns
}

fn wanted(width: u16, has_hosts: bool, sorted: &str) -> Vec<Column> {
    let (length, fill) = (Constraint::Length, Constraint::Fill(1));
    let is_wide = width >= NARROW_COLUMNS;
    // A command of a letter or two says nothing: the other columns make space for it.
    let is_roomy = width >= NARROW_COLUMNS + if has_hosts { HOST_COLUMNS } else { 0 };
    let mut columns = Vec::new();
    if has_hosts {
        let host = |process: &Process| process.id.0.host.clone();
        columns.push(Column::text("HOST", length(if is_roomy { 18 } else { 12 }), host));
    }
    columns.push(Column::figure("PID", 7, |process| process.id.1.pid.to_string()));
    let user = |process: &Process| process.user.clone();
    columns.push(Column::text("USER", length(if is_roomy { 12 } else { 8 }), user));
    columns.push(Column::text("STATE", length(8), |process| process.state.clone()));
    columns.push(
        Column::figure("CPU", 6, |process| process.cpu.map(share).unwrap_or_default())
            .or(|process| process.cpu.map(share).unwrap_or_default().replace(' ', "")),
    );
    columns.push(
        Column::figure("MEMORY", 9, |process| bytes(process.rss_bytes))
            .or(|process| whole_units(process.rss_bytes)),
    );
    columns.push(
        Column::figure("IO/S", 9, |process| process.io_rate.map(bytes).unwrap_or_default())
            .or(|process| process.io_rate.map(whole_units).unwrap_or_default()),
    );
    if is_wide || sorted == "CPU TIME" {
        columns.push(
            Column::figure("CPU TIME", 10, |process| cpu_time(process.cpu_secs))
                .or(|process| format!("{:.0} h", (process.cpu_secs / 3600.0).floor())),
        );
    }
    if is_roomy && is_wide {
        let thousands = |process: &Process| format!("{:.0}k", (process.threads / 1000.0).floor());
        columns.push(Column::figure("THR", 4, |process| format!("{:.0}", process.threads)).or(thousands));
    }
    columns
        .push(Column::text("NAME", if is_wide { length(16) } else { fill }, |process| process.name.clone()));
    if is_wide {
        columns.push(Column::text("COMMAND", fill, |process| process.command.clone()));
    }
    columns
}

/// `1018 MiB`: bytes in whole units.
fn whole_units(count: f64) -> String {
    let text = bytes(count);
    match text.split_once(' ').and_then(|(number, unit)| Some((number.parse::<f64>().ok()?, unit))) {
        Some((number, unit)) => format!("{number:.0} {unit}"),
        None => text,
    }
}

fn cpu_time(secs: f64) -> String {
    clock(Duration::from_secs_f64(secs.max(0.0)).as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::state::tests::process;

    #[test]
    fn a_number_is_written_shorter_and_never_cut() {
        let memory = |rss_bytes: f64| {
            let process = Process { rss_bytes, ..process("wn01", 1, 0.5) };
            let columns = columns(80, true, Order::Cpu);
            columns.iter().find(|column| column.head == "MEMORY").map(|column| column.cell_text(&process))
        };
        let mib = f64::from(1 << 20);
        for (rss_bytes, expected) in
            [(999.9, "999.9 MiB"), (1000.0, "1000 MiB"), (1018.1, "1018 MiB"), (1023.96, "1024 MiB")]
        {
            assert_eq!(memory(rss_bytes * mib).as_deref(), Some(expected));
        }
        let mut odd = process("wn01", u32::MAX, 123.0);
        (odd.cpu_secs, odd.threads, odd.user) = (4e7, 12_345.0, "4294967294".to_owned());
        let cells: Vec<String> =
            columns(200, true, Order::Cpu).iter().map(|column| column.cell_text(&odd)).collect();
        assert_eq!(cells[1..6], ["…", "4294967294", "running", "12300%", "4.0 PiB"], "{cells:?}");
        assert_eq!(cells[7..9], ["11111 h", "12k"], "{cells:?}");
        let narrow: Vec<String> =
            columns(80, true, Order::Cpu).iter().map(|column| column.cell_text(&odd)).collect();
        assert_eq!(narrow[2], "4294…294");
    }

    #[test]
    fn a_column_without_room_is_left_out_and_what_is_sorted_by_stays() {
        let heads = |width, has_hosts, order| {
            let columns = columns(width, has_hosts, order);
            columns.iter().map(|column| column.head).collect::<Vec<_>>().join(" ")
        };
        for (width, has_hosts, order, expected) in [
            (80, true, Order::Cpu, "HOST PID USER STATE CPU MEMORY IO/S NAME"),
            (80, true, Order::Time, "HOST PID USER CPU MEMORY IO/S CPU TIME NAME"),
            (40, true, Order::Cpu, "PID CPU MEMORY NAME"),
            (40, false, Order::Io, "PID CPU IO/S NAME"),
            (26, false, Order::Memory, "PID MEMORY NAME"),
            (20, false, Order::Memory, "PID NAME"),
            (5, true, Order::Cpu, "NAME"),
        ] {
            assert_eq!(heads(width, has_hosts, order), expected, "{width}");
        }
    }

    #[test]
    fn a_command_is_readable_wherever_there_is_one() {
        for (width, has_hosts) in (1..200).flat_map(|width| [(width, false), (width, true)]) {
            for order in Order::WORDS.map(Order::of) {
                let columns = columns(width, has_hosts, order);
                let needed: u16 = columns.iter().map(Column::needed).sum();
                assert!(needed <= width || columns.len() == 1, "{needed} of {width}, hosts {has_hosts}");
                assert_eq!(width >= NARROW_COLUMNS, columns.iter().any(|column| column.head == "COMMAND"));
            }
        }
    }
}
