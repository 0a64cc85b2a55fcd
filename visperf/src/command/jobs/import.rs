//! `visperf jobs import`: jobs of accounting files, stored with those that logs state.
//!
//! Rule: lines become jobs by the log filters, here; the daemon stores each job once, so a file may be given again.
//! Not here: reading the files (`trial`), which job is known already (`call_store`), what is printed (`summary`).

mod batch;
mod json_lines;
mod summary;

use crate::client::Client;
use crate::command::interrupt::Interrupt;
use crate::exit::Failure;
use crate::filter_sources::{FilterFolders, FilterSources};
use crate::host_name;
use crate::options::Query;
use crate::output::{note, times};
use crate::trial::choice;
use crate::trial::input::Input;
use crate::trial::log::{LineResult, Log};
use crate::trial::zones::{ZoneOf, of_no_log, zone_of};
use batch::Batch;
use compact_str::CompactString;
use indicatif::{ProgressBar, ProgressStyle};
use log_filters::across::AcrossLogs;
use log_filters::engine::Source;
use log_filters::filter::Filter;
use log_filters::join::Joiner;
use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use summary::Summary;
use wire::call::{Call, State, StoredCall};
use wire::event::{Id, Kind};
use wire::id::{Generation, SensorKey};
use wire::time::Time;

/// Jobs in memory at a time, about 100 MB. Beyond, the oldest that has ended is passed on: nothing more is expected of it.
const CALLS_MAX: usize = 100_000;

/// Lines between two looks for jobs that are passed on.
const LOOK_EVERY: u64 = 1_000;

/// Store jobs of earlier years, from accounting files
///
/// Reads what `sacct --parsable2` prints, accounting files of Grid Engine, Torque/PBS and LSF, the history of HTCondor, and any
/// other log that a filter reads; the filter is selected as by `visperf filter try`. Also JSON, one job a line, as
/// `visperf jobs --json` prints it. Jobs that are known already are not stored twice: what was not known of them is added. So a
/// file may be given again, also after an error.
///
/// Needs root or an operator, on the host of the sensor that represents the domain. Give files of one system together and
/// in the order of time: a job may begin in one and end in the next.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf jobs import --dry-run sacct-2024.txt
  visperf jobs import --zone Europe/Rome /opt/sge/default/common/accounting
  visperf jobs import /var/spool/pbs/server_priv/accounting/2024*
  visperf jobs import --cluster alpha sacct-alpha.txt
  zcat history.gz | visperf jobs import --filter htcondor-history -
  sacct -aP --format=ALL -S 2024-01-01 -E now | visperf jobs import -
  visperf jobs import --replace --zone Europe/Rome sacct-2024.txt")]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Files to read; `-` for standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Say what would be done, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Replace what was imported of these jobs before, as in another time zone; what logs state remains
    #[arg(long)]
    replace: bool,
    /// Filter to use: a name from `visperf filter list`, or a file [default: selected by name and content]
    #[arg(long, value_name = "NAME-or-FILE")]
    filter: Option<String>,
    /// Time zone of timestamps without one: UTC, +02:00, Europe/Rome [default: that of this machine]
    ///
    /// FILE=ZONE applies to one file, given by its name or its path; may be repeated.
    #[arg(long = "zone", value_name = "[FILE=]ZONE", value_parser = ZoneOf::parse, allow_hyphen_values = true)]
    zones: Vec<ZoneOf>,
    /// Cluster of the jobs, as the sensor's configuration has it for their logs
    #[arg(long, value_name = "NAME", default_value = "")]
    cluster: String,
    #[command(flatten)]
    folders: FilterFolders,
}

/// Import the files.
///
/// # Errors
/// If a file cannot be read, or a job was refused: all others were stored.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let sources = FilterSources::load(&args.folders)?;
    let forced = args.filter.as_deref().map(|name| sources.named_or_file(name)).transpose()?;
    if let Some(file) = of_no_log(&args.zones, &args.files) {
        return Err(Failure::Usage(format!("--zone names `{file}`, which is none of the files")));
    }
    let _interrupt = Interrupt::catch(|| {
        note("interrupted; what was stored remains, and the same command goes on");
    })?;
    let mut batch =
        Batch::new(Client::new(&args.query.target), source(&args.files), args.dry_run, args.replace);
    batch.try_it()?;
    let mut joiner = Joiner::new(CALLS_MAX);
    joiner.collect_changes();
    let (seen, bar) = (times::now(), bar(&args.files));
    let mut import = Import {
        args,
        sources,
        forced,
        seen,
        joiner,
        across: AcrossLogs::default(),
        logs_read: Vec::new(),
        untimed: HashSet::new(),
        batch,
        summary: Summary::default(),
        bar,
    };
    for (number, path) in args.files.iter().enumerate() {
        if let Err(failure) = import.file(number, path) {
            import.bar.finish_and_clear();
            import.summary.note_stored(import.batch.answered());
            return Err(failure);
        }
    }
    import.end()
}

/// A file in messages.
fn shown(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// Name of the files, as the jobs have it.
fn source(files: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    match files {
        [only] if only.as_os_str() == "-" => shown(only),
        [first, .., last] => format!("{} to {}", name(first), name(last)),
        [only] => name(only),
        [] => String::new(),
    }
}

/// Progress over all files, on a terminal.
fn bar(files: &[PathBuf]) -> ProgressBar {
    let len = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes}, {eta} left {wide_msg}");
    ProgressBar::new(files.iter().map(len).sum()).with_style(style.expect("a constant template"))
}

struct Import<'a> {
    args: &'a Args,
    sources: FilterSources,
    forced: Option<Arc<Filter>>,
    /// Time of reading, which an event has for whose time its line states none.
    seen: Time,
    joiner: Joiner,
    across: AcrossLogs,
    /// The files read so far; what they share with others is dropped with them.
    logs_read: Vec<Log>,
    /// Calls whose end has no time of its own.
    untimed: HashSet<CompactString>,
    batch: Batch,
    summary: Summary,
    bar: ProgressBar,
}

impl Import<'_> {
    fn file(&mut self, number: usize, path: &Path) -> Result<(), Failure> {
        let shown = shown(path);
        let cannot_read =
            |error: &dyn std::fmt::Display| Failure::Failed(format!("cannot read {shown}: {error}"));
        let mut input = Input::open(path).map_err(|error| cannot_read(&error))?;
        let file_name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        if self.forced.is_none() && json_lines::are(input.beginning()) {
            return self.json_lines(&shown, input);
        }
        let registry = &self.sources.registry;
        let (filter, reason) = match &self.forced {
            Some(filter) => (Arc::clone(filter), "as given"),
            None => {
                choice::choose(registry, &shown, &file_name, input.beginning()).map_err(Failure::NoFilter)?
            }
        };
        let chosen = format!("{shown}: filter {} ({}), {reason}", filter.name(), filter.product());
        self.bar.suspend(|| note(&chosen));
        let source = Source {
            file_name,
            host: host_name::own(),
            cluster: self.args.cluster.clone(),
            zone: zone_of(&self.args.zones, path),
        };
        let is_table = filter.reads_tables();
        let mut log = Log::among(filter, &source, &self.across);
        let generation = Generation(u32::try_from(number + 1).unwrap_or(u32::MAX));
        let (before, mut lines) = (self.bar.position(), 0u64);
        while let Some(line) = input.next_line().map_err(|error| cannot_read(&error))? {
            let at = line.offset;
            log.line(line.bytes, at, self.seen, &mut |met| self.take(met, generation, is_table))?;
            lines += 1;
            if lines.is_multiple_of(LOOK_EVERY) {
                self.bar.set_position(before + at);
                self.pass_on(0)?;
            }
        }
        log.end(self.seen, &mut |met| self.take(met, generation, is_table))?;
        self.summary.log(&shown, &log, input.cut_lines);
        self.logs_read.push(log);
        Ok(())
    }

    /// Reads jobs as JSON.
    fn json_lines(&mut self, shown: &str, mut input: Input) -> Result<(), Failure> {
        self.bar.suspend(|| note(&format!("{shown}: JSON, a job a line")));
        let (before, mut number) = (self.bar.position(), 0u64);
        loop {
            let line = input
                .next_line()
                .map_err(|error| Failure::Failed(format!("cannot read {shown}: {error}")))?;
            let Some(line) = line else { return Ok(()) };
            number += 1;
            if number.is_multiple_of(LOOK_EVERY) {
                self.bar.set_position(before + line.offset);
            }
            match json_lines::job(line.bytes) {
                Ok(Some(job)) => {
                    self.summary.job(job.job.ended.map(|time| time.0));
                    self.batch.push(job)?;
                }
                Ok(None) => self.summary.unfinished += u64::from(!line.bytes.is_empty()),
                Err(why) => self.batch.refuse(format!("{shown}, line {number}"), why),
            }
        }
    }

    fn take(&mut self, met: LineResult<'_>, generation: Generation, is_table: bool) -> Result<(), Failure> {
        match met {
            LineResult::Event(found, ..) => {
                let id = Id { sensor: SensorKey(0), generation, offset: found.offset, number: found.number };
                let call = self.joiner.join(found, id);
                if found.content.kind == Kind::JobEnd {
                    match is_table && found.content.ended.is_none() {
                        true => self.untimed.insert(call),
                        false => self.untimed.remove(&call),
                    };
                }
            }
            LineResult::Unknown(line, _) => self.summary.unknown(line),
        }
        Ok(())
    }

    /// Passes on the jobs that are no longer in memory, and so many of those that are.
    fn pass_on(&mut self, limit: usize) -> Result<(), Failure> {
        let changes = self.joiner.take_changes(limit).changes;
        changes.left.iter().try_for_each(|call| self.job(call))
    }

    fn job(&mut self, stored: &StoredCall) -> Result<(), Failure> {
        let is_timed = stored.call.ended != Some(self.seen) && !self.untimed.contains(&stored.call.id);
        match wire::api::job_import::ImportedJob::of(stored).filter(|_| is_timed) {
            Some(job) => {
                self.summary.job(stored.call.ended);
                self.batch.push(job)
            }
            None => {
                self.summary.unfinished += u64::from(stored.call.is_job());
                Ok(())
            }
        }
    }

    fn end(mut self) -> Result<(), Failure> {
        let is_open = |call: &Call| call.state != State::Ended && call.is_job();
        self.summary.unfinished += self.joiner.calls().filter(is_open).count() as u64;
        let passed_on = self.pass_on(usize::MAX).and_then(|()| self.batch.send());
        self.bar.finish_and_clear();
        if let Err(failure) = passed_on {
            self.summary.note_stored(self.batch.answered());
            return Err(failure);
        }
        self.summary.print(self.batch.answered(), self.args.dry_run, &self.args.query)
    }
}
