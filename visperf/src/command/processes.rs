//! `visperf processes`: what runs on a host, and what it uses.
//!
//! Not here: sampling (`sensor::process`).

use crate::cli::{OfDomain, Place, Query, chosen, user, whole};
use crate::command::call_names;
use crate::command::query::{self, LIMIT_MAX, Params};
use crate::exit::Failure;
use crate::output::figures::{bytes, clock, number_of, share, text_of, whole_bytes};
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now};
use crate::output::{Color, Output, clean, note};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use wire::api::processes::{PID_MAX, Process, ProcessOrder, Processes, ProcessesParams};
use wire::time::Time;

/// Print the processes of a host, those that use most first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf processes
  visperf processes --host wn01 --user mrossi
  visperf processes --name 'python*' --order memory --limit 10
  visperf processes --call slurm:17 --host wn01
  visperf processes --domain UT-ICL --host wn01 --json | jq '.name, .cpu'

CPU is the share of one core over about the last second: four busy threads
have 400 %.")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    place: Place,
    /// Only processes of this name; * stands for any characters
    #[arg(long, value_name = "NAME", value_parser = chosen)]
    name: Option<String>,
    /// Only processes of this user: a name or a number, as that host knows them
    #[arg(long, value_name = "USER", value_parser = user)]
    user: Option<String>,
    /// Only the process of this number
    #[arg(long, value_name = "PID", allow_negative_numbers = true, value_parser = whole(1..=PID_MAX.into()))]
    pid: Option<u64>,
    /// Only those that serve or served this call, with how that is known
    #[arg(long, value_name = "CALL", conflicts_with_all = ["user", "order"])]
    call: Option<String>,
    /// By CPU of late, memory, bytes of storage read and written, start (newest first) or number
    #[arg(long, value_name = "ORDER", default_value = "cpu")]
    order: Order,
    /// At most so many
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=LIMIT_MAX), default_value_t = 30)]
    limit: u64,
}

/// By what they are ordered.
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
        return of_call(args, call);
    }
    let wanted = ProcessesParams {
        name: args.name.clone(),
        user: args.user.clone(),
        pid: args.pid.and_then(|pid| u32::try_from(pid).ok()),
        order: args.order.into(),
        limit: args.limit,
    };
    let answer = query::request(&args.query, &wanted, &args.place.about())?;
    let raw = query::items(&answer.raw, "processes");
    query::print_typed(&args.query, &raw, &answer.typed.processes, "no process fits", table)?;
    query::note_left_out(&answer.raw, "processes");
    if let Some(source) = read_by(&answer.typed).filter(|_| !args.query.json) {
        note(&source);
    }
    Ok(())
}

/// How they are read, and why not otherwise.
fn read_by(answer: &Processes) -> Option<String> {
    let Processes { source, reasons, .. } = answer;
    let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
    (!source.is_empty()).then(|| clean(&format!("read by {source}{why}")).into_owned())
}

/// Print the processes of a call.
fn of_call(args: &Args, call: &str) -> Result<(), Failure> {
    let params = Params::default().with("call", Some(call)).at(&args.place).with("limit", Some(0));
    let answer = query::ask(&args.query, "sensor.call_processes", params)?;
    let is_wanted = |process: &Value| {
        args.pid.is_none_or(|pid| process["pid"].as_u64() == Some(pid))
            && args.name.as_ref().is_none_or(|name| text_of(process, "name") == name)
    };
    let (lives, samples) = (query::items(&answer, "ended"), newest_samples(args, call, &answer)?);
    let processes = query::items(&answer, "processes").into_iter().filter_map(|process| {
        let whole = with_usage(with_end(&process, &lives), &samples);
        is_wanted(&whole).then_some(if args.query.json { process } else { whole })
    });
    let processes: Vec<Value> = processes.collect();
    if processes.is_empty() {
        refuse_unknown(args, call)?;
    }
    let nothing = "no process of this host serves the call, as far as the sensor may see; see --host";
    query::print(&args.query, processes, nothing, table_of_call)
}

/// Refuse a call that the domain does not know. A user who may not see the domain's calls learns only that no process serves it.
fn refuse_unknown(args: &Args, call: &str) -> Result<(), Failure> {
    let whose = OfDomain { domain: args.place.domain.clone() };
    match call_names::check(&args.query, &whose, "domain.calls", call) {
        Err(unknown @ Failure::Usage(_)) => Err(unknown),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The newest samples of the call's processes, in the order of time; none for JSON, which has the processes alone.
fn newest_samples(args: &Args, call: &str, answer: &Value) -> Result<Vec<Value>, Failure> {
    let total = answer.get("total").and_then(Value::as_u64).unwrap_or(0);
    if total == 0 || args.query.json {
        return Ok(Vec::new());
    }
    let params = Params::default()
        .with("call", Some(call))
        .at(&args.place)
        .with("offset", Some(total.saturating_sub(LIMIT_MAX)))
        .with("limit", Some(LIMIT_MAX));
    Ok(query::items(&query::ask(&args.query, "sensor.call_processes", params)?, "samples"))
}

/// A process with what its newest sample says that it uses; of one that ended the share of a core is none.
fn with_usage(mut process: Value, samples: &[Value]) -> Value {
    let is_it = |sample: &&Value| sample["pid"] == process["pid"] && sample["start"] == process["start"];
    let Some(sample) = samples.iter().rev().find(is_it) else { return process };
    let lives = process["ended"].is_null();
    for name in ["cpu", "rss_bytes"].into_iter().filter(|_| lives).chain(USED) {
        process[name] = sample[name].clone();
    }
    process
}

/// What a process used up to now, also after its end.
const USED: [&str; 3] = ["cpu_seconds", "read_bytes", "written_bytes"];

/// The sum of what the processes use; none where nothing is known.
fn sum(processes: &[Value]) -> Option<Value> {
    let mut sum = Map::new();
    for name in ["cpu", "rss_bytes"].into_iter().chain(USED) {
        let known = processes.iter().filter_map(|process| number_of(process, name));
        sum.extend(known.reduce(|one, other| one + other).map(|sum| (name.to_owned(), sum.into())));
    }
    (!sum.is_empty()).then_some(Value::Object(sum))
}

/// The cells CPU, CPU TIME, MEMORY and IO.
fn usage_cells(process: &Value) -> [Cell; 4] {
    let figure = |name: &str| number_of(process, name);
    let io = figure("read_bytes").zip(figure("written_bytes")).map(|(read, written)| read + written);
    [
        figure("cpu").map(share),
        figure("cpu_seconds").map(cpu_time),
        figure("rss_bytes").map(bytes),
        io.map(bytes),
    ]
    .map(|text| Cell::figure(text.unwrap_or_default()))
}

/// A process with what is told of its end: of one that lived shortly nothing else is known.
fn with_end(process: &Value, lives: &[Value]) -> Value {
    let mut whole = process.clone();
    let is_it = |life: &&Value| life["pid"] == process["pid"] && life["start"] == process["start"];
    if let Some(life) = lives.iter().find(is_it) {
        for (to, from) in [
            ("name", "name"),
            ("command", "command"),
            ("status", "status"),
            ("signal", "signal"),
            ("ended", "time"),
        ] {
            if whole[to].is_null() && !life[from].is_null() {
                whole[to] = life[from].clone();
            }
        }
    }
    whole
}

/// `0`, `1`, `signal 9`; empty if it is not known, or it lives.
fn exit(process: &Value) -> String {
    match (process["signal"].as_u64(), process["status"].as_u64()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(status)) => status.to_string(),
        (None, None) => String::new(),
    }
}

fn table_of_call(processes: &[Value], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["PID", "KNOWN BY", "CPU", "CPU TIME", "MEMORY", "IO", "STARTED", "ENDED", "EXIT", "NAME", "COMMAND"];
    let zone = TimeZone::system();
    let mut table =
        Table::new(&heads).spares(&["STARTED", "COMMAND", "IO", "CPU TIME"]).offset(offset_now(&zone));
    for process in processes {
        let figure = |name: &str| number_of(process, name);
        let time = |name: &str, output: &Output| {
            let time = figure(name).map(Time::from_secs_f64);
            time.map(|time| in_table(time, &zone, output)).unwrap_or_default()
        };
        let [cpu, cpu_time, memory, io] = usage_cells(process);
        table.row(vec![
            Cell::figure(figure("pid").map(|pid| pid.to_string()).unwrap_or_default()),
            Cell::whole(text_of(process, "known_by")).color(Color::Dim),
            cpu,
            cpu_time,
            memory,
            io,
            Cell::time(time("start", output)),
            Cell::time(time("ended", output)),
            Cell::whole(exit(process)),
            Cell::text(text_of(process, "name")).color(Color::Name),
            Cell::text(text_of(process, "command")),
        ]);
    }
    if let Some(sum) = sum(processes) {
        let [cpu, cpu_time, memory, io] = usage_cells(&sum);
        let empty = || Cell::whole("");
        table.row(vec![
            Cell::figure("sum"),
            empty(),
            cpu,
            cpu_time,
            memory,
            io,
            empty(),
            empty(),
            empty(),
            empty(),
            empty(),
        ]);
    }
    table.print(output)
}

fn table(processes: &[Process], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["PID", "USER", "STATE", "CPU", "CPU TIME", "MEMORY", "IO", "THREADS", "STARTED", "NAME", "COMMAND"];
    let zone = TimeZone::system();
    let mut table = Table::new(&heads)
        .spares(&["THREADS", "STARTED", "IO", "CPU TIME", "USER", "COMMAND"])
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

/// With hundredths of a second, where there are no hours.
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
    use crate::output::kept::Kept;
    use serde_json::json;

    #[test]
    fn of_one_that_ended_its_end_tells_name_command_and_how() {
        let lives = [
            json!({"pid": 7, "start": 1.25, "time": 2.5, "name": "true", "command": "/bin/true", "status": 0}),
            json!({"pid": 8, "start": 1.5, "time": 2.5, "name": "burn", "command": "burn --hot", "signal": 9}),
        ];
        let processes = [
            json!({"pid": 7, "start": 1.25, "known_by": "parent", "ended": 2.5}),
            json!({"pid": 8, "start": 1.5, "known_by": "parent", "ended": 2.5, "name": "burned"}),
            json!({"pid": 8, "start": 9.0, "known_by": "parent"}),
        ];
        let whole: Vec<Value> = processes.iter().map(|process| with_end(process, &lives)).collect();
        let shared = Kept::default();
        let mut output = Output::into_writer(shared.clone(), None);
        table_of_call(&whole, &mut output).expect("printed");
        output.flush().expect("printed");
        let rows: Vec<Vec<String>> = shared
            .text()
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().skip(4).map(str::to_owned).collect())
            .collect();
        assert_eq!(rows[0], ["0", "true", "/bin/true"], "{}", shared.text());
        assert_eq!(rows[1], ["signal", "9", "burned", "burn", "--hot"], "{}", shared.text());
        assert_eq!(rows[2].len(), 0, "another of that number: {}", shared.text());
    }

    #[test]
    fn of_a_call_what_its_processes_use_is_printed_with_the_sum() {
        let samples = [
            json!({"pid": 7, "start": 1.25, "cpu": 9.0, "cpu_seconds": 1.0, "rss_bytes": 1024, "read_bytes": 0, "written_bytes": 0}),
            json!({"pid": 7, "start": 1.25, "cpu": 0.5, "cpu_seconds": 61.0, "rss_bytes": 2048, "read_bytes": 1024, "written_bytes": 1024}),
            json!({"pid": 8, "start": 1.5, "cpu": 1.0, "cpu_seconds": 2.0, "rss_bytes": 4096}),
            json!({"pid": 9, "start": 9.5, "cpu": 0.25, "cpu_seconds": 1.0, "rss_bytes": 1024}),
        ];
        let processes = [
            json!({"pid": 7, "start": 1.25, "known_by": "cgroup", "name": "burn"}),
            json!({"pid": 8, "start": 1.5, "known_by": "parent", "ended": 2.5, "name": "true"}),
            json!({"pid": 9, "start": 1.0, "known_by": "parent", "name": "another"}),
        ];
        let whole: Vec<Value> =
            processes.iter().map(|process| with_usage(process.clone(), &samples)).collect();
        let shared = Kept::default();
        let mut output = Output::into_writer(shared.clone(), None);
        table_of_call(&whole, &mut output).expect("printed");
        output.flush().expect("printed");
        let text = shared.text();
        let rows: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0][..8], ["7", "cgroup", "50", "%", "1:01.00", "2.0", "KiB", "2.0"], "{text}");
        assert_eq!(rows[1][..3], ["8", "parent", "0:02.00"], "it ended: {text}");
        assert!(rows[2].ends_with(&["another"]) && !text.contains("25 %"), "another of that number: {text}");
        assert_eq!(rows[3], ["sum", "50", "%", "1:03.00", "2.0", "KiB", "2.0", "KiB"], "{text}");
    }

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
    fn cpu_time_is_told_as_clocks_do() {
        for (secs, told) in [(0.0, "0:00.00"), (59.996, "1:00.00"), (61.25, "1:01.25"), (3661.9, "1:01:01")] {
            assert_eq!(cpu_time(secs), told);
        }
    }
}
