//! `visperf filter try`: the events that a filter finds in logs, and the lines that it does not match.
//!
//! Not here: reading the logs and printing the results (`trial`).

use crate::exit::{Failure, Kind};
use crate::filter_sources::{FilterFolders, FilterSources};
use crate::host_name;
use crate::options::Width;
use crate::output::call_table::{call_table, print_rows};
use crate::output::event_lines::EventLines;
use crate::output::{Color, Output, as_answered, note, report, times};
use crate::trial::choice;
use crate::trial::event::{InLog, Place};
use crate::trial::hour_offsets::HourOffsets;
use crate::trial::input::Input;
use crate::trial::log::{LineResult, Log};
use crate::trial::stamps::Stamps;
use crate::trial::summary::{IdleRules, Summary, Writer};
use crate::trial::unknown::Unknown;
use crate::trial::zones::{ZoneOf, of_no_log, zone_of, zone_of_others};
use jiff::tz::TimeZone;
use log_filters::across::AcrossLogs;
use log_filters::engine::Source;
use log_filters::filter::Filter;
use log_filters::join::Joiner;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::api::calls::Call;
use wire::event::Id;
use wire::id::{Generation, SensorKey};
use wire::shown::count;
use wire::time::Time;

/// Calls stored at a time, about 100 MB; in a longer log older calls are dropped and counted.
const CALLS_MAX: usize = 100_000;

/// Run logs through a filter: print events, lines without a matching rule, and unused rules
///
/// Without --filter, the filter is selected by the file's name and first lines. Several logs of one system
/// are joined: a job in the scheduler's log and in a host's log is one call. Logs are only read; nothing is
/// stored, and no daemon is needed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf filter try /var/log/slurm/slurmctld.log
  visperf filter try --calls slurmctld.log slurmd.wn01.log
  visperf filter try --json SchedLog | jq -r 'select(.kind == \"job_end\") | .job'
  zcat old.log.gz | visperf filter try --filter slurmctld -")]
pub(crate) struct Args {
    /// Logs to read; `-` for standard input
    #[arg(value_name = "LOGFILE", required = true)]
    logs: Vec<PathBuf>,
    /// Filter to use: a name from `visperf filter list`, or a file [default: selected by name and content]
    #[arg(long, short, value_name = "NAME-or-FILE")]
    filter: Option<String>,
    /// Time zone of timestamps without one: UTC, +02:00, Europe/Rome [default: that of this machine]
    ///
    /// LOG=ZONE applies to one log, given by its file name or its path; may be repeated.
    #[arg(long = "zone", value_name = "[LOG=]ZONE", value_parser = ZoneOf::parse, allow_hyphen_values = true)]
    zones: Vec<ZoneOf>,
    /// Cluster of the logs, to distinguish job numbers of several clusters
    #[arg(long, value_name = "NAME", default_value = "")]
    cluster: String,
    /// Host that wrote the logs, if they do not name it [default: this machine]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print calls instead of events
    #[arg(long)]
    calls: bool,
    /// Print JSON, one object per line: events (with --calls calls), and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    width: Width,
    /// Print the number of lines that each rule matched
    #[arg(long)]
    rules: bool,
    /// Maximum number of groups of unknown lines to print
    #[arg(long, value_name = "N", default_value_t = 20)]
    unknown: usize,
}

/// State of a trial over all logs.
struct Trial<'a> {
    args: &'a Args,
    sources: FilterSources,
    forced: Option<Arc<Filter>>,
    host: String,
    seen: Time,
    output: Output,
    lines: EventLines,
    /// Zone for shown times: that of the logs that no `--zone` names.
    shown_in: TimeZone,
    joiner: Joiner,
    offsets: HourOffsets,
    /// State shared between the logs.
    across: AcrossLogs,
    /// The logs read so far; what they share with others is dropped with them.
    logs_read: Vec<Log>,
    unknown: Unknown,
    summary: Summary,
    /// Likely mistakes in the filter.
    hints: Vec<String>,
}

/// Run the trial.
///
/// # Errors
/// The worst failure: a log that cannot be read, or that no filter reads, while the others were processed.
pub(crate) fn run(args: &Args, folders: &FilterFolders) -> Result<(), Failure> {
    let sources = FilterSources::load(folders)?;
    let forced = args.filter.as_deref().map(|name| sources.named_or_file(name)).transpose()?;
    if let Some(log) = of_no_log(&args.zones, &args.logs) {
        return Err(Failure::Usage(format!("--zone names `{log}`, which is none of the logs")));
    }
    let (shown_in, output) = (zone_of_others(&args.zones), args.width.output());
    let mut trial = Trial {
        args,
        sources,
        forced,
        lines: EventLines::new(shown_in.clone(), &output),
        shown_in,
        host: args.host.clone().unwrap_or_else(host_name::own),
        seen: times::now(),
        output,
        joiner: Joiner::new(CALLS_MAX),
        offsets: HourOffsets::default(),
        across: AcrossLogs::default(),
        logs_read: Vec::new(),
        unknown: Unknown::default(),
        summary: Summary::default(),
        hints: Vec::new(),
    };
    let mut worst: Option<Kind> = None;
    let mut read = 0;
    for (number, path) in args.logs.iter().enumerate() {
        match trial.log(number, path) {
            Ok(()) => read += 1,
            Err(closed @ Failure::Closed) => return Err(closed),
            Err(failure) => {
                trial.output.flush()?;
                report(&failure.message().unwrap_or_default());
                let kind =
                    if matches!(failure, Failure::NoFilter(_)) { Kind::NoFilter } else { Kind::Failed };
                worst = Some(worst.map_or(kind, |known| known.min(kind)));
            }
        }
    }
    if read > 0 {
        trial.end()?;
    }
    trial.output.flush()?;
    worst.map_or(Ok(()), |kind| Err(Failure::Printed(kind)))
}

impl Trial<'_> {
    fn log(&mut self, number: usize, path: &Path) -> Result<(), Failure> {
        let shown = path.display().to_string();
        let cannot_read =
            |error: &dyn std::fmt::Display| Failure::Failed(format!("cannot read {shown}: {error}"));
        let mut input = Input::open(path).map_err(|error| cannot_read(&error))?;
        let file_name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let filter = self.filter(&shown, &file_name, input.beginning())?;
        if let Some(odd) = choice::no_text(input.beginning()) {
            self.print_doubt(&format!("warning: {shown}: {odd}"))?;
        }
        let source = Source {
            file_name,
            host: self.host.clone(),
            cluster: self.args.cluster.clone(),
            zone: zone_of(&self.args.zones, path),
        };
        let mut log = Log::among(Arc::clone(&filter), &source, &self.across);
        let generation = Generation(u32::try_from(number + 1).unwrap_or(u32::MAX));
        let seen = self.seen;
        let mut stamps = Stamps::expected(filter.text());
        let mut take = |met: LineResult<'_>| self.take(met, number, generation, &shown, filter.name());
        while let Some(line) = input.next_line().map_err(|error| cannot_read(&error))? {
            stamps.line(line.bytes);
            log.line(line.bytes, line.offset, seen, &mut take)?;
        }
        log.end(seen, &mut take)?;
        let writer = match self.sources.is_shipped(&filter) {
            true => Writer::Ours,
            false => Writer::Reader,
        };
        self.summary.log(&filter, writer, &log);
        if let Some(doubt) = self.doubt(&shown, &filter, &log) {
            self.print_doubt(&doubt)?;
        }
        if log.counters().lines > 0 && writer == Writer::Reader {
            self.hints.extend(stamps.missing(&shown));
        }
        if input.cut_lines > 0 {
            note(&format!(
                "{shown}: {} longer than 1 MiB, only the beginning read",
                count(input.cut_lines, "line")
            ));
        }
        self.logs_read.push(log);
        Ok(())
    }

    /// Warning that a log whose filter was chosen by name or content has another format.
    fn doubt(&self, shown: &str, filter: &Filter, log: &Log) -> Option<String> {
        let counters = log.counters();
        let (records, unknown) = (counters.taken + counters.unknown, counters.unknown);
        (self.forced.is_none() && records > 0 && unknown * 2 > records).then(|| {
            format!(
                "warning: {shown} may be no log of {}: no rule of {} took {unknown} of its {}; name another filter \
                 with --filter (`visperf filter list`)",
                filter.product(),
                filter.name(),
                count(records, "record")
            )
        })
    }

    fn print_doubt(&mut self, doubt: &str) -> Result<(), Failure> {
        if self.args.json {
            note(doubt);
            return Ok(());
        }
        let doubt = self.output.paint(Color::Caution, doubt).into_owned();
        self.output.line(&doubt)
    }

    /// Choose the filter for a log, and print the choice.
    fn filter(&mut self, shown: &str, file_name: &str, beginning: &[u8]) -> Result<Arc<Filter>, Failure> {
        let registry = &self.sources.registry;
        let (filter, reason) = match &self.forced {
            Some(filter) => (Arc::clone(filter), "as given"),
            None => choice::choose(registry, shown, file_name, beginning).map_err(Failure::NoFilter)?,
        };
        let line = format!("{shown}: filter {} ({}), {reason}", filter.name(), filter.product());
        if self.args.json {
            note(&line);
        } else {
            let line = self.output.paint(Color::Head, &line).into_owned();
            self.output.line(&line)?;
        }
        Ok(filter)
    }

    fn take(
        &mut self,
        met: LineResult<'_>,
        number: usize,
        generation: Generation,
        file: &str,
        filter: &str,
    ) -> Result<(), Failure> {
        let (found, line, last_line) = match met {
            LineResult::Event(found, first, last) => (found, first, last),
            LineResult::Unknown(line, text) => {
                self.unknown.add(number, line, text);
                return Ok(());
            }
        };
        let id = Id { sensor: SensorKey(0), generation, offset: found.offset, number: found.number };
        let call = self.joiner.join(found, id);
        self.summary.event(found.content.kind);
        if let Some(keys) = &found.keys {
            self.offsets.event(number, &keys.scope, &found.content, self.seen);
        }
        if self.args.calls {
            return Ok(());
        }
        let place = Place { host: &self.host, file, filter, line, last_line };
        let event = InLog::new(found, id, &call, self.seen, &place);
        if self.args.json {
            return self.output.json(&as_answered(&event)?);
        }
        let line = self.lines.line(&event.event, &self.output);
        self.output.line(&line)
    }

    /// Print the results over all logs: calls, unknown lines, sums.
    fn end(&mut self) -> Result<(), Failure> {
        if self.args.calls {
            let mut calls = self.joiner.calls().map(|call| Call::from(&call));
            match self.args.json {
                true => calls.try_for_each(|call| self.output.json(&as_answered(&call)?))?,
                false => {
                    print_rows(call_table(&self.shown_in), calls, &self.shown_in, None, &mut self.output)?
                }
            }
        }
        if self.args.json {
            return Ok(());
        }
        let files: Vec<String> = self.args.logs.iter().map(|path| path.display().to_string()).collect();
        self.output.line("")?;
        self.unknown.print(self.args.unknown, &files, &mut self.output)?;
        self.output.line("")?;
        let idle = if self.forced.is_some() { IdleRules::Listed } else { IdleRules::Counted };
        self.summary.print(&self.joiner, idle, &mut self.output)?;
        if self.args.rules {
            self.summary.print_rules(&mut self.output)?;
        }
        let hints = std::mem::take(&mut self.hints);
        let of_zones = self.offsets.hints(|log| files[log].clone());
        hints.iter().chain(&of_zones).try_for_each(|hint| self.output.line(hint))
    }
}
