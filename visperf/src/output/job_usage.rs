//! Table of what a job used on each host.
//!
//! Pure.

use crate::exit::Failure;
use crate::output::table::{Cell, Table};
use crate::output::times::{between, in_table, offset_now};
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use wire::api::job_usage::HostUsage;
use wire::shown::{tenths, whole_bytes};

/// Most hosts that the page shows.
const HOSTS_SHOWN: usize = 32;

const HEADS: [&str; 13] = [
    "HOST",
    "FROM",
    "FOR",
    "CPU",
    "SYSTEM",
    "PEAK",
    "MEAN",
    "PROCESSES",
    "THREADS",
    "READ",
    "WRITTEN",
    "MAJOR FAULTS",
    "THROTTLED",
];

/// Columns to leave out on a narrow terminal, in this order.
const SPARED: [&str; 9] =
    ["THROTTLED", "MAJOR FAULTS", "SYSTEM", "THREADS", "FROM", "MEAN", "PROCESSES", "WRITTEN", "READ"];

/// Print what a job used on each host, and what is missing; nothing if it was not measured.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_usage(usage: &[HostUsage], zone: &TimeZone, output: &mut Output) -> Result<(), Failure> {
    if usage.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&HEADS).spares(&SPARED).offset(offset_now(zone));
    for one in usage.iter().take(HOSTS_SHOWN) {
        table.row(cells(one, zone, output));
    }
    output.line("")?;
    table.print(output)?;
    for text in notes(usage) {
        output.line(&output.paint(Color::Dim, &text))?;
    }
    Ok(())
}

fn cells(usage: &HostUsage, zone: &TimeZone, output: &Output) -> Vec<Cell> {
    let bytes = |bytes: Option<u64>| Cell::figure(bytes.map_or(String::new(), whole_bytes));
    let some = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let (from, until) = (usage.started.0.secs_f64(), usage.until.0.secs_f64());
    let so_far = if usage.is_over { "" } else { "+" };
    vec![
        Cell::text(&usage.host).color(Color::Name),
        Cell::time(in_table(usage.started.0, zone, output)),
        Cell::figure(format!("{}{so_far}", between(Some(from), Some(until)))),
        Cell::figure(tenths(usage.cpu_secs)),
        Cell::figure(tenths(usage.system_secs)),
        Cell::figure(whole_bytes(usage.peak_memory_bytes)),
        bytes(usage.mean_memory_bytes),
        Cell::figure(usage.processes.to_string()),
        Cell::figure(usage.peak_threads.to_string()),
        bytes(usage.read_bytes),
        bytes(usage.written_bytes),
        Cell::figure(some(usage.major_faults)),
        Cell::figure(usage.throttled_secs.filter(|secs| *secs > 0.0).map_or(String::new(), tenths)),
    ]
}

fn processes(number: u64) -> String {
    if number == 1 { "1 process".to_owned() } else { format!("{number} processes") }
}

/// What the table does not say.
fn notes(usage: &[HostUsage]) -> Vec<String> {
    let sum = |of: fn(&HostUsage) -> Option<u64>| usage.iter().filter_map(of).sum::<u64>();
    let mut notes = Vec::new();
    if usage.len() > HOSTS_SHOWN {
        notes.push(format!("{HOSTS_SHOWN} of {} hosts; --json has all", usage.len()));
    }
    let kills = sum(|usage| usage.memory_kills);
    if kills > 0 {
        notes.push(format!(
            "the kernel killed {} because the memory of the job was used up",
            processes(kills)
        ));
    }
    let missed = sum(|usage| usage.missed_processes);
    if missed > 0 {
        notes.push(format!("without {} that ended before it was measured", processes(missed)));
    }
    if usage.iter().any(|usage| usage.measured_by == "processes") {
        notes.push("memory is the sum over the processes: what they share counts for each".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use wire::api::UnixTime;
    use wire::time::Time;

    fn printed(usage: &[HostUsage], width: Option<usize>) -> String {
        let shared = Capture::default();
        let mut output = Output::into_writer(shared.clone(), width);
        print_usage(usage, &TimeZone::UTC, &mut output).unwrap();
        shared.text()
    }

    fn usage() -> HostUsage {
        HostUsage {
            host: "wn01".to_owned(),
            started: UnixTime(Time::from_micros(1_000_000_000)),
            until: UnixTime(Time::from_micros(1_100_000_000)),
            cpu_secs: 95.0,
            peak_memory_bytes: 3 << 30,
            mean_memory_bytes: Some(2 << 30),
            processes: 7,
            memory_kills: Some(1),
            missed_processes: Some(2),
            measured_by: "control_group".to_owned(),
            ..HostUsage::default()
        }
    }

    #[test]
    fn a_host_has_its_row_and_what_is_missing_is_said() {
        let text = printed(&[usage()], None);
        for part in
            ["wn01", "100s+", "95.0s", "3.0 GiB", "2.0 GiB", "killed 1 process ", "without 2 processes"]
        {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert!(!text.contains("what they share"), "{text}");
        let text =
            printed(&[HostUsage { is_over: true, measured_by: "processes".to_owned(), ..usage() }], Some(80));
        assert!(text.contains("what they share") && !text.contains("100s+"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(printed(&[], None), "");
    }
}
