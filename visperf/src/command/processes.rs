//! `visperf processes`: the processes of a host, and the resources they use.
//!
//! Not here: sampling (`sensor::process`).

#[cfg(feature = "export")]
mod exported;
mod of_call;
mod past;

use crate::client::items;
use crate::command::query::{self, LIMIT_MAX};
use crate::exit::Failure;
use crate::harmless::clean;
use crate::options::{Between, Place, Query, chosen, user, whole};
use crate::output::figures::clock;
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now};
use crate::output::{Color, Output, note};
use jiff::tz::TimeZone;
use wire::api::processes::{PID_MAX, Process, ProcessOrder, Processes, ProcessesParams};
use wire::shown::{share, whole_bytes};

/// Print the processes of a host, highest usage first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf processes
  visperf processes --host wn01 --user mrossi
  visperf processes --name 'python*' --order memory --limit 10
  visperf processes --call slurm:17 --host wn01
  visperf processes --host wn01 --since yesterday --until today
  visperf processes --host wn01 --since 1d --order memory --job slurm:17
  visperf processes --from /srv/grid-history --since 90d --name 'python*'
  visperf processes --domain UT-ICL --host wn01 --json | jq '.name, .cpu'

CPU is the share of one core over about the last second: four busy threads
have 400 %.

With --since or --until: of each minute the 20 processes that used most CPU
time, memory and storage I/O. Others than root and operators see their own.")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    place: Place,
    /// Only processes of this name; * matches any characters
    #[arg(long, value_name = "NAME", value_parser = chosen)]
    name: Option<String>,
    /// Only processes of this user: a name or a user id of that host
    #[arg(long, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// Only the process with this id
    #[arg(long, value_name = "PID", allow_negative_numbers = true, value_parser = whole(1..=PID_MAX.into()))]
    pid: Option<u64>,
    /// Only processes that serve or served this call, with the evidence
    #[arg(long, value_name = "CALL", conflicts_with_all = ["user", "order", "since", "until", "job"])]
    call: Option<String>,
    /// Only processes that served this job, of those of the past: slurm:17
    #[arg(long, value_name = "JOB", value_parser = chosen)]
    job: Option<String>,
    #[command(flatten)]
    between: Between,
    /// Read days that were exported to this place (visperf history export) instead of asking a daemon; of all their
    /// hosts without --host
    #[cfg(feature = "export")]
    #[arg(long, value_name = "PLACE", value_parser = crate::command::history::exported::place, conflicts_with = "call")]
    from: Option<String>,
    /// Sort by recent CPU usage, memory, storage I/O in bytes, start time (newest first) or process id
    #[arg(long, value_name = "ORDER", default_value = "cpu")]
    order: Order,
    /// Maximum number of processes
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=LIMIT_MAX), default_value_t = 30)]
    limit: u64,
}

/// Sort order.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Order {
    Cpu,
    Memory,
    Io,
    Start,
    Pid,
}

impl From<Order> for ProcessOrder {
    fn from(order: Order) -> ProcessOrder {
        match order {
            Order::Cpu => ProcessOrder::Cpu,
            Order::Memory => ProcessOrder::Memory,
            Order::Io => ProcessOrder::Io,
            Order::Start => ProcessOrder::Start,
            Order::Pid => ProcessOrder::Pid,
        }
    }
}

/// Print the processes.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(call) = &args.call {
        return of_call::print(args, call);
    }
    #[cfg(feature = "export")]
    if let Some(place) = &args.from {
        return exported::print(args, place);
    }
    if args.between.since.is_some() || args.between.until.is_some() || args.job.is_some() {
        return past::print(args);
    }
    let wanted = ProcessesParams {
        name: args.name.clone(),
        user: args.user.clone(),
        pid: args.pid.and_then(|pid| u32::try_from(pid).ok()),
        order: args.order.into(),
        limit: args.limit,
    };
    let answer = query::request(&args.query, &wanted, &args.place.about())?;
    let raw = items(&answer.raw, "processes");
    query::print_typed(
        &args.query,
        &raw,
        &answer.typed.processes,
        "no process fits",
        |processes, output| table(processes, args.order, output),
    )?;
    query::note_left_out(raw.len(), answer.typed.total, "processes");
    if let Some(source) = read_by(&answer.typed).filter(|_| !args.query.json) {
        note(&source);
    }
    Ok(())
}

/// Note on the source of the processes, and why other sources cannot be used.
fn read_by(answer: &Processes) -> Option<String> {
    let Processes { source, reasons, .. } = answer;
    let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
    (!source.is_empty()).then(|| clean(&format!("read by {source}{why}")).into_owned())
}

/// The columns that a narrow table goes without: not the one by which it is sorted.
fn spares(columns: &[&'static str], order: Order) -> Vec<&'static str> {
    let sorted = match order {
        Order::Io => "IO",
        Order::Start => "STARTED",
        Order::Cpu | Order::Memory | Order::Pid => "",
    };
    columns.iter().copied().filter(|column| *column != sorted).collect()
}

fn table(processes: &[Process], order: Order, output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["PID", "USER", "STATE", "CPU", "CPU TIME", "MEMORY", "IO", "THREADS", "STARTED", "NAME", "COMMAND"];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads)
        .spares(&spares(&["THREADS", "STARTED", "IO", "CPU TIME", "USER", "COMMAND"], order))
        .offset(offset_now(&zone));
    for process in processes {
        let user = process.user.clone().unwrap_or_else(|| format!("uid {}", process.uid));
        table.row(vec![
            Cell::figure(process.pid.to_string()),
            Cell::text(user),
            Cell::whole(process.state.as_str()).color(Color::Dim),
            Cell::figure(process.cpu.map(share).unwrap_or_default()),
            Cell::figure(cpu_time(process.cpu_seconds)),
            Cell::figure(whole_bytes(process.rss_bytes)),
            Cell::figure(process.io_bytes().map(whole_bytes).unwrap_or_default()),
            Cell::figure(process.threads.to_string()),
            Cell::time(in_table(process.start.0, &zone, output)),
            Cell::text(&process.name).color(Color::Name),
            Cell::text(process.command.as_deref().unwrap_or_default()),
        ]);
    }
    table.print(output)
}

/// CPU time, with hundredths of a second below one hour.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Seconds that a process ran are few and not negative.
fn cpu_time(secs: f64) -> String {
    let hundredths = (secs * 100.0).round().max(0.0) as u64;
    let (whole, part) = (hundredths / 100, hundredths % 100);
    match whole < 3600 {
        true => format!("{}.{part:02}", clock(whole)),
        false => clock(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn how_they_are_read_is_printed_with_the_reason() {
        let printed = |answer: Value| read_by(&serde_json::from_value(answer).expect("an answer"));
        assert_eq!(
            printed(json!({"source": "bpf-changed", "reasons": []})).as_deref(),
            Some("read by bpf-changed")
        );
        let answer = json!({"source": "procfs", "reasons": ["bpf: not permitted", "netlink: no"]});
        assert_eq!(printed(answer).as_deref(), Some("read by procfs: bpf: not permitted; netlink: no"));
        assert_eq!(printed(json!({})), None, "a sensor that does not say");
    }

    #[test]
    fn cpu_time_is_printed_as_clocks_do() {
        for (secs, expected) in
            [(0.0, "0:00.00"), (59.996, "1:00.00"), (61.25, "1:01.25"), (3661.9, "1:01:01")]
        {
            assert_eq!(cpu_time(secs), expected);
        }
    }
}
