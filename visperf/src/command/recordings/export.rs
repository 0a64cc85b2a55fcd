//! `visperf recordings export`: prints the samples of a recording for other programs, as csv or JSON.
//!
//! Rule: one row is one process in one sweep; counters are integers. The fields are those of
//! `sensor.recording`.

use super::cut::Part;
use super::file;
use crate::exit::Failure;
use crate::output::{Output, note};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use wire::process::{Life, Process};
use wire::recording::Recording;
use wire::recording::segment::{Item, Player};

/// Columns of the csv table.
const COLUMNS: [&str; 15] = [
    "time",
    "pid",
    "start",
    "parent",
    "uid",
    "name",
    "state",
    "threads",
    "cpu",
    "cpu_seconds",
    "rss_bytes",
    "minor_faults",
    "major_faults",
    "read_bytes",
    "written_bytes",
];

/// Print the samples of a recording as csv or JSON lines
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings export slow.vpr csv > slow.csv
  visperf recordings export slow.vpr csv --from=-1s --to=+1s
  visperf recordings export slow.vpr json | jq 'select(.cpu > 0.5).name'

csv contains the samples. JSON also contains the processes that ended (kind
ended) and the events of the logs (kind event); samples are of kind sample.")]
pub(crate) struct Args {
    /// Recording to export
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format
    #[arg(value_name = "FORM", value_parser = ["csv", "json"])]
    form: String,
    #[command(flatten)]
    part: Part,
}

/// Print the samples.
///
/// # Errors
/// If the file cannot be read, the part is empty, or the output cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let recording = args.part.of(file::read(&args.file)?)?;
    let mut output = Output::stdout().whole();
    let is_csv = args.form == "csv";
    if is_csv {
        output.line(&COLUMNS.join(","))?;
    }
    let (mut player, mut unreadable) = (Player::default(), 0);
    for segment in &recording.segments {
        let mut written = Ok(());
        let read = player.play(segment, |item| {
            written = match item {
                Item::Swept(swept) => swept.rows.iter().enumerate().try_for_each(|(place, row)| {
                    let Some(row) = row else { return Ok(()) };
                    let sample = sample(&recording, swept.sweep.begin_ns, row, swept.share(place));
                    if is_csv { output.line(&line(&sample)) } else { output.json(&sample) }
                }),
                Item::Ended(life) if !is_csv => output.json(&ended(&recording, life)),
                Item::Ended(_) => Ok(()),
            };
            written.is_ok()
        });
        written?;
        unreadable += u32::from(read.is_err());
    }
    if !is_csv {
        recording.events.iter().try_for_each(|event| output.json(&event_json(event)))?;
    }
    output.flush()?;
    if unreadable > 0 {
        note(&format!("{unreadable} segments could be read in part only"));
    }
    Ok(())
}

fn sample(recording: &Recording, at_ns: u64, process: &Process, share: Option<f64>) -> Value {
    let (header, usage) = (&recording.header, &process.usage);
    let mut sample = json!({
        "kind": "sample",
        "time": header.time(at_ns).secs_f64(),
        "pid": process.key.pid,
        "start": header.time(process.key.start_ns).secs_f64(),
        "parent": process.parent,
        "uid": process.uid,
        "name": process.name.as_str(),
        "state": process.state.as_str(),
        "threads": process.threads,
        "cpu_seconds": Duration::from_nanos(usage.cpu_ns).as_secs_f64(),
        "rss_bytes": process.rss_kib << 10,
        "minor_faults": usage.minor_faults,
        "major_faults": usage.major_faults,
    });
    if let Some(share) = share {
        sample["cpu"] = json!(share);
    }
    if let Some(io) = usage.io {
        sample["read_bytes"] = json!(io.read_bytes);
        sample["written_bytes"] = json!(io.written_bytes);
    }
    sample
}

fn ended(recording: &Recording, life: &Life) -> Value {
    let header = &recording.header;
    json!({
        "kind": "ended",
        "time": header.time(life.end_ns).secs_f64(),
        "pid": life.key.pid,
        "start": header.time(life.key.start_ns).secs_f64(),
        "parent": life.parent,
        "uid": life.uid,
        "name": life.name.as_str(),
        "command": life.command.as_str(),
        "status": life.exit_status(),
        "signal": life.signal(),
    })
}

fn event_json(event: &wire::event::Event) -> Value {
    let content = &event.content;
    json!({
        "kind": "event",
        "time": content.time.secs_f64(),
        "seen": event.seen.secs_f64(),
        "event": content.kind.as_str(),
        "id": event.id.to_string(),
        "call": event.call.as_str(),
        "job": content.job.as_str(),
        "outcome": content.outcome.map(wire::event::Outcome::as_str),
    })
}

/// A row of the table; an unknown field is empty.
fn line(sample: &Value) -> String {
    let field = |name: &&str| match sample.get(*name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        Some(value) => value.to_string(),
    };
    COLUMNS.iter().map(field).collect::<Vec<_>>().join(",")
}

/// Quote a field by RFC 4180: only if it contains a separator or a quote.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_separators_are_quoted_and_unknown_fields_are_empty() {
        let sample = json!({"time": 1.5, "pid": 7, "name": "a \"b\", c", "rss_bytes": 4096});
        assert_eq!(line(&sample), "1.5,7,,,,\"a \"\"b\"\", c\",,,,,4096,,,,");
        assert_eq!(quoted("(sd-pam)"), "(sd-pam)");
    }
}
