//! `visperf processes --call`: the processes that serve or served a call, and the resources they use.
//!
//! Not here: how processes are assigned to calls (`sensor::serving`).

use super::{Args, cpu_time};
use crate::client::items;
use crate::command::call_names;
use crate::command::query::{self, LIMIT_MAX};
use crate::exit::Failure;
use crate::options::OfDomain;
use crate::output::table::{Cell, Table};
use crate::output::times::{in_table, offset_now};
use crate::output::{Color, Output};
use ::client::typed::Answered;
use jiff::tz::TimeZone;
use std::collections::HashMap;
use std::ops::Add as _;
use wire::api::UnixTime;
use wire::api::samples::{
    CallProcesses, CallProcessesParams, EndedProcess, Sample, SampleChoice, ServingProcess,
};
use wire::shown::{share, whole_bytes};

/// Note on how to see processes that not every user may see.
pub(super) const MORE: &str = "root and the job's user see more over the daemon's local socket: --state FOLDER, VISPERF_STATE, or --connect unix:FOLDER/sensor.sock";

/// A process, with the usage in its newest sample, and how it ended.
struct Row {
    process: ServingProcess,
    sample: Option<Sample>,
    end: Option<EndedProcess>,
}

/// Print the processes.
pub(super) fn print(args: &Args, call: &str) -> Result<(), Failure> {
    let answer = ask(args, call, SampleChoice { limit: 0, ..SampleChoice::default() })?;
    let samples = newest_samples(args, call, answer.typed.total)?;
    let raw = items(&answer.raw, "processes");
    let all = rows(answer.typed, samples).into_iter().zip(raw);
    let is_wanted = |row: &Row| {
        args.pid.is_none_or(|pid| u64::from(row.process.pid) == pid)
            && args.name.as_ref().is_none_or(|name| row.name() == name)
    };
    let (wanted, raw): (Vec<Row>, Vec<_>) = all.filter(|(row, _)| is_wanted(row)).unzip();
    if wanted.is_empty() {
        refuse_unknown(args, call)?;
    }
    let nothing = match args.query.target.is_anonymous() {
        true => format!("no process of this host serves the call, as far as everybody may see; {MORE}"),
        false => {
            "no process of this host serves the call, as far as the sensor may see; see --host".to_owned()
        }
    };
    query::print_typed(&args.query, &raw, &wanted, &nothing, table)
}

fn ask(args: &Args, call: &str, samples: SampleChoice) -> Result<Answered<CallProcesses>, Failure> {
    query::request(&args.query, &CallProcessesParams { call: call.to_owned(), samples }, &args.place.about())
}

/// Refuse a call that the domain does not know. A user without permission to see the domain's calls gets only
/// the message that no process serves it.
fn refuse_unknown(args: &Args, call: &str) -> Result<(), Failure> {
    let whose = OfDomain { domain: args.place.domain.clone() };
    match call_names::check(&args.query, &whose, false, call) {
        Err(Failure::Usage(unknown)) if args.query.target.is_anonymous() => {
            Err(Failure::Usage(format!("{unknown}; {MORE}")))
        }
        Err(unknown @ Failure::Usage(_)) => Err(unknown),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The newest samples of the call's processes, in chronological order; none for JSON, which has only the
/// processes.
fn newest_samples(args: &Args, call: &str, total: u64) -> Result<Vec<Sample>, Failure> {
    if total == 0 || args.query.json {
        return Ok(Vec::new());
    }
    let offset = total.saturating_sub(LIMIT_MAX);
    let newest = SampleChoice { offset, limit: LIMIT_MAX, ..SampleChoice::default() };
    Ok(ask(args, call, newest)?.typed.samples)
}

/// Key of a process: its pid and start time, which are the same in all lists of an answer.
fn key(pid: u32, start: UnixTime) -> (u32, i64) {
    (pid, start.0.micros())
}

fn rows(answer: CallProcesses, samples: Vec<Sample>) -> Vec<Row> {
    // Of several samples of a process, the last one is used.
    let mut newest: HashMap<_, _> =
        samples.into_iter().map(|sample| (key(sample.pid, sample.start), sample)).collect();
    let mut ends: HashMap<_, _> =
        answer.ended.into_iter().map(|end| (key(end.pid, end.start), end)).collect();
    let row = |process: ServingProcess| {
        let key = key(process.pid, process.start);
        Row { sample: newest.remove(&key), end: ends.remove(&key), process }
    };
    answer.processes.into_iter().map(row).collect()
}

impl Row {
    fn name(&self) -> &str {
        let of_end = || self.end.as_ref().map(|end| &end.name);
        self.process.name.as_ref().or_else(of_end).map(|name| name.as_str()).unwrap_or_default()
    }

    fn command(&self) -> &str {
        let of_end = || self.end.as_ref().map(|end| &end.command);
        self.process.command.as_ref().or_else(of_end).map(|command| command.as_str()).unwrap_or_default()
    }

    fn ended(&self) -> Option<UnixTime> {
        self.process.ended.or(self.end.as_ref().map(|end| end.time))
    }

    /// `0`, `1`, `signal 9`; empty if it is not known, or the process is running.
    fn exit(&self) -> String {
        match self.end.as_ref().map(|end| (end.signal, end.status)) {
            Some((Some(signal), _)) => format!("signal {signal}"),
            Some((None, Some(status))) => status.to_string(),
            Some((None, None)) | None => String::new(),
        }
    }

    fn usage(&self) -> Usage {
        let Some(sample) = &self.sample else { return Usage::default() };
        let lives = self.ended().is_none();
        Usage {
            cpu: sample.cpu.filter(|_| lives),
            cpu_secs: Some(sample.cpu_seconds),
            rss_bytes: lives.then_some(sample.rss_bytes),
            io_bytes: sample
                .read_bytes
                .zip(sample.written_bytes)
                .map(|(read, written)| read.saturating_add(written)),
        }
    }
}

/// Resource usage of a process, or a sum of several; the totals are also set for a process that ended.
#[derive(Clone, Copy, Default)]
struct Usage {
    cpu: Option<f64>,
    cpu_secs: Option<f64>,
    rss_bytes: Option<u64>,
    io_bytes: Option<u64>,
}

impl Usage {
    fn plus(self, other: Usage) -> Usage {
        fn sum<T: Copy>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
            one.zip(other).map(|(one, other)| add(one, other)).or(one).or(other)
        }
        Usage {
            cpu: sum(self.cpu, other.cpu, f64::add),
            cpu_secs: sum(self.cpu_secs, other.cpu_secs, f64::add),
            rss_bytes: sum(self.rss_bytes, other.rss_bytes, u64::saturating_add),
            io_bytes: sum(self.io_bytes, other.io_bytes, u64::saturating_add),
        }
    }

    /// The columns CPU, CPU TIME, MEMORY and IO.
    fn cells(self) -> [Cell; 4] {
        [
            self.cpu.map(share),
            self.cpu_secs.map(cpu_time),
            self.rss_bytes.map(whole_bytes),
            self.io_bytes.map(whole_bytes),
        ]
        .map(|text| Cell::figure(text.unwrap_or_default()))
    }
}

fn table(rows: &[Row], output: &mut Output) -> Result<(), Failure> {
    let heads =
        ["PID", "KNOWN BY", "CPU", "CPU TIME", "MEMORY", "IO", "STARTED", "ENDED", "EXIT", "NAME", "COMMAND"];
    let zone = TimeZone::system();
    let mut table =
        Table::new(&heads).spares(&["STARTED", "COMMAND", "IO", "CPU TIME"]).offset(offset_now(&zone));
    for row in rows {
        let [cpu, cpu_time, memory, io] = row.usage().cells();
        let ended = row.ended().map(|UnixTime(time)| in_table(time, &zone, output)).unwrap_or_default();
        table.row(vec![
            Cell::figure(row.process.pid.to_string()),
            Cell::whole(row.process.known_by.as_str()).color(Color::Dim),
            cpu,
            cpu_time,
            memory,
            io,
            Cell::time(in_table(row.process.start.0, &zone, output)),
            Cell::time(ended),
            Cell::whole(row.exit()),
            Cell::text(row.name()).color(Color::Name),
            Cell::text(row.command()),
        ]);
    }
    if rows.iter().any(|row| row.sample.is_some()) {
        let sum = rows.iter().map(Row::usage).fold(Usage::default(), Usage::plus);
        let [cpu, cpu_time, memory, io] = sum.cells();
        let empty = || Cell::whole("");
        let rest = std::iter::repeat_with(empty).take(5);
        let cells = [Cell::figure("sum"), empty(), cpu, cpu_time, memory, io];
        table.row(cells.into_iter().chain(rest).collect());
    }
    table.print(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use serde_json::{Value, json};

    /// The printed rows, without the head.
    fn printed(processes: Value, ended: Value, samples: Value) -> Vec<String> {
        let answer = json!({ "processes": processes, "ended": ended });
        let answer: CallProcesses = serde_json::from_value(answer).expect("an answer");
        let samples: Vec<Sample> = serde_json::from_value(samples).expect("samples");
        let shared = Capture::default();
        let mut output = Output::into_writer(shared.clone(), None);
        table(&rows(answer, samples), &mut output).expect("printed");
        output.flush().expect("printed");
        shared.text().lines().skip(1).map(str::to_owned).collect()
    }

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn of_one_that_ended_its_end_gives_name_command_and_how() {
        let ended = json!([
            {"pid": 7, "start": 1.25, "time": 2.5, "name": "true", "command": "/bin/true", "status": 0},
            {"pid": 8, "start": 1.5, "time": 2.5, "name": "burn", "command": "burn --hot", "signal": 9},
        ]);
        let processes = json!([
            {"pid": 7, "start": 1.25, "known_by": "parent", "ended": 2.5},
            {"pid": 8, "start": 1.5, "known_by": "parent", "ended": 2.5, "name": "burned"},
            {"pid": 8, "start": 9.0, "known_by": "parent"},
        ]);
        let lines = printed(processes, ended, json!([]));
        assert_eq!(words(&lines[0])[4..], ["0", "true", "/bin/true"], "{lines:#?}");
        assert_eq!(words(&lines[1])[4..], ["signal", "9", "burned", "burn", "--hot"], "{lines:#?}");
        assert_eq!(words(&lines[2]).len(), 3, "another of that number: {lines:#?}");
    }

    #[test]
    fn of_a_call_what_its_processes_use_is_printed_with_the_sum() {
        let samples = json!([
            {"pid": 7, "start": 1.25, "cpu": 9.0, "cpu_seconds": 1.0, "rss_bytes": 1024, "read_bytes": 0, "written_bytes": 0},
            {"pid": 7, "start": 1.25, "cpu": 0.5, "cpu_seconds": 61.0, "rss_bytes": 2048, "read_bytes": 1024, "written_bytes": 1024},
            {"pid": 8, "start": 1.5, "cpu": 1.0, "cpu_seconds": 2.0, "rss_bytes": 4096},
            {"pid": 9, "start": 9.5, "cpu": 0.25, "cpu_seconds": 1.0, "rss_bytes": 1024},
            {"pid": 10, "start": 1.0, "cpu": 1.0, "cpu_seconds": 0.5, "rss_bytes": 9192},
        ]);
        let processes = json!([
            {"pid": 7, "start": 1.25, "known_by": "cgroup", "name": "burn"},
            {"pid": 8, "start": 1.5, "known_by": "parent", "ended": 2.5, "name": "true"},
            {"pid": 9, "start": 1.0, "known_by": "parent", "name": "another"},
            {"pid": 10, "start": 1.0, "known_by": "parent", "name": "recorded"},
        ]);
        // The end of a process that only a recording contains is only in the list of ended processes.
        let ended = json!([{"pid": 10, "start": 1.0, "time": 2.5, "name": "recorded", "status": 0}]);
        let lines = printed(processes, ended, samples);
        let expected = ["7", "cgroup", "50", "%", "1:01.00", "2.0", "KiB", "2.0"];
        assert_eq!(words(&lines[0])[..8], expected, "{lines:#?}");
        assert_eq!(words(&lines[1])[..3], ["8", "parent", "0:02.00"], "it ended: {lines:#?}");
        assert!(lines[2].ends_with("another") && !lines.concat().contains("25 %"), "another of that number");
        assert_eq!(words(&lines[3])[..3], ["10", "parent", "0:00.50"], "it ended: {lines:#?}");
        let sum = ["sum", "50", "%", "1:03.50", "2.0", "KiB", "2.0", "KiB"];
        assert_eq!(words(&lines[4]), sum, "{lines:#?}");
    }
}
