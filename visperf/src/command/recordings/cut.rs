//! `visperf recordings cut`: copies a part of a recording into another recording.
//!
//! Not here: the cutting (`wire::recording`).

use super::file;
use crate::exit::Failure;
use crate::output::{note, times};
use std::path::PathBuf;
use wire::recording::Recording;

/// Cut a part out of a recording
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf recordings cut slow.vpr --from=-5s --to=+2s -o short.vpr
  visperf recordings cut slow.vpr --from 2026-11-20T12:24:17Z -o end.vpr")]
pub(crate) struct Args {
    /// Recording to cut
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    part: Part,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

/// Time range of a recording.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Part {
    /// Start time: seconds before or after the trigger (=-5s, =+2s), or a time as in --since
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// End time, in the same formats
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
}

impl Part {
    /// This part of the recording; all of it without bounds.
    ///
    /// # Errors
    /// If a bound is not a time, or the part is empty.
    pub(super) fn of(&self, recording: Recording) -> Result<Recording, Failure> {
        if self.from.is_none() && self.to.is_none() {
            return Ok(recording);
        }
        let bound = |option: &str, text: &Option<String>, none: u64| match text {
            None => Ok(none),
            Some(text) => moment_ns(text, &recording)
                .map_err(|error| Failure::Usage(format!("--{option} {text}: {error}"))),
        };
        let from_ns = bound("from", &self.from, 0)?;
        let to_ns = bound("to", &self.to, u64::MAX)?;
        let part = recording.cut(from_ns, to_ns);
        if part.segments.is_empty() {
            let zone = jiff::tz::TimeZone::system();
            let shown = |moment_ns: u64| times::shown(recording.header.time(moment_ns), &zone);
            let held = recording.span_ns().map_or_else(
                || "holds no sweep".to_owned(),
                |(first, last)| format!("goes from {} to {}", shown(first), shown(last)),
            );
            return Err(Failure::Usage(format!(
                "the recording {held}, and nothing of it lies between the bounds; its cause was at {}",
                shown(recording.header.at_ns)
            )));
        }
        Ok(part)
    }
}

/// Parse a time; returns nanoseconds since boot.
fn moment_ns(text: &str, recording: &Recording) -> Result<u64, String> {
    let header = &recording.header;
    let nanos = |text: &str| times::span(text).map(|span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(before), _) => Ok(header.at_ns.saturating_sub(nanos(before)?)),
        (_, Some(after)) => Ok(header.at_ns.saturating_add(nanos(after)?)),
        _ => Ok(header.moment_ns(times::parse(text, times::now(), &jiff::tz::TimeZone::system())?)),
    }
}

/// Cut the part out.
///
/// # Errors
/// If the file cannot be read, the part is empty, or it cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    file::refuse_existing(&args.output, args.force)?;
    let part = args.part.of(file::read(&args.file)?)?;
    file::write(&args.output, &part, args.force)?;
    note(&format!("{}: {}", args.output.display(), file::describe(&part)));
    Ok(())
}
