//! `visperf processes --since …`: the processes that used most in a past time.
//!
//! Not here: the present ones ([`super`]), what is stored (`sensor::process_history`).

use super::of_call::MORE;
use super::{Args, Order, cpu_time, spares};
use crate::client::items;
use crate::command::query;
use crate::exit::Failure;
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now, shown};
use crate::output::{Color, Output, note};
use jiff::tz::TimeZone;
use wire::api::UnixTime;
use wire::api::process_history::{ProcessHistory, ProcessHistoryParams, TopProcess};
use wire::shown::{share, whole_bytes};

/// Prints the processes.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(super) fn print(args: &Args) -> Result<(), Failure> {
    args.between.check()?;
    let wanted = ProcessHistoryParams {
        since: args.between.since.map(UnixTime),
        until: args.between.until.map(UnixTime),
        name: args.name.clone(),
        user: args.user.clone(),
        pid: args.pid.and_then(|pid| u32::try_from(pid).ok()),
        job: args.job.clone(),
        order: args.order.into(),
        limit: args.limit,
    };
    let answer = query::request(&args.query, &wanted, &args.place.about())?;
    let raw = items(&answer.raw, "processes");
    let nothing = match args.query.target.is_anonymous() {
        true => format!("no process is stored for this time, as far as everybody may see; {MORE}"),
        false => "no process is stored for this time that you may see and that fits".to_owned(),
    };
    query::print_typed(&args.query, &raw, &answer.typed.processes, &nothing, |processes, output| {
        table(processes.iter().map(|process| (None, process)), args.order, output)
    })?;
    query::note_left_out(raw.len(), answer.typed.total, "processes");
    if !args.query.json {
        notes(&answer.typed);
    }
    Ok(())
}

/// Prints processes; with their hosts, if the first has one.
///
/// # Errors
/// If the output cannot be written.
pub(super) fn table<'a>(
    processes: impl Iterator<Item = (Option<&'a str>, &'a TopProcess)>,
    order: Order,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut processes = processes.peekable();
    let has_hosts = processes.peek().is_some_and(|(host, _)| host.is_some());
    let heads = [
        "HOST", "PID", "USER", "CPU TIME", "CPU", "MEMORY", "IO", "MINUTES", "FIRST", "LAST", "ENDED", "JOB",
        "NAME", "COMMAND",
    ];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads[usize::from(!has_hosts)..])
        .spares(&spares(&["MINUTES", "ENDED", "IO", "LAST", "USER", "JOB", "COMMAND"], order))
        .offset(offset_now(&zone));
    for (host, process) in processes {
        let user = process.user.clone().unwrap_or_else(|| format!("uid {}", process.uid));
        let mut row: Vec<Cell> = host.map(|host| Cell::text(host).color(Color::Name)).into_iter().collect();
        row.extend([
            Cell::figure(process.pid.to_string()),
            Cell::text(user),
            Cell::figure(cpu_time(process.cpu_seconds)),
            Cell::figure(share(process.cpu)),
            Cell::figure(
                Some(process.rss_max_bytes).filter(|bytes| *bytes > 0).map(whole_bytes).unwrap_or_default(),
            ),
            Cell::figure(process.io_bytes().map(whole_bytes).unwrap_or_default()),
            Cell::figure(process.minutes.to_string()),
            Cell::time(in_table(process.first.0, &zone, output)),
            Cell::time(in_table(process.last.0, &zone, output)),
            Cell::whole(ended(process)).color(Color::Dim),
            Cell::text(process.job.as_deref().unwrap_or_default()),
            Cell::text(&process.name).color(Color::Name),
            Cell::text(process.command.as_deref().unwrap_or_default()),
        ]);
        table.row(row);
    }
    table.print(output)
}

/// How it ended: `exit 1`, `signal 9`; empty if it did not.
fn ended(process: &TopProcess) -> String {
    match (process.exit_status, process.signal) {
        (Some(status), _) => format!("exit {status}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => String::new(),
    }
}

/// What was read, how far back it reaches, and what is missing.
fn notes(answer: &ProcessHistory) {
    let ProcessHistory { minutes, oldest, missed, damaged_bytes, .. } = answer;
    let reach = oldest.map(|oldest| shown(oldest.0, &TimeZone::system()));
    let nothing = || "nothing is stored yet: a minute is stored when it is over".to_owned();
    let reach = reach.map_or_else(nothing, |oldest| format!("stored since {oldest}"));
    let read = if *minutes == 1 { "1 minute".to_owned() } else { format!("{minutes} minutes") };
    note(&format!("{read} read; {reach}"));
    if *missed > 0 {
        note(&format!("{missed} processes ended that could not be counted"));
    }
    if *damaged_bytes > 0 {
        note(&format!("{damaged_bytes} damaged bytes of the process history are left out"));
    }
}
