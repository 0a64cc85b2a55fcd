//! `visperf filter new`: the beginning of a filter for a log that none reads.
//!
//! Rule: what it writes is a filter that compiles, with guesses as comments.

use crate::exit::Failure;
use crate::output::{Output, note};
use crate::trial::input::Input;
use crate::trial::skeleton;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

/// Write the beginning of a filter for a log that none reads yet
///
/// Guesses the time stamp at the start of the lines and makes a rule of each frequent kind of line, to be
/// filled in. What it prints is a working filter with a test.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:
  visperf filter new myapp /var/log/myapp.log > myapp.toml
  visperf filter try --filter myapp.toml /var/log/myapp.log")]
pub(crate) struct Args {
    /// The filter's name: lower case letters, digits and `-`
    #[arg(value_name = "NAME")]
    name: String,
    /// A log to learn from; `-` is standard input
    #[arg(value_name = "LOGFILE")]
    log: PathBuf,
    /// Write into this file, which must not exist yet, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Write the beginning.
///
/// # Errors
/// If the log cannot be read, the name is none, or the file exists.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let shown = args.log.display();
    let cannot_read =
        |error: &dyn std::fmt::Display| Failure::Failed(format!("cannot read {shown}: {error}"));
    let mut input = Input::open(&args.log).map_err(|error| cannot_read(&error))?;
    let mut lines = Vec::new();
    while lines.len() < skeleton::LINES_MAX
        && let Some(line) = input.next_line().map_err(|error| cannot_read(&error))?
    {
        lines.push(line.bytes.to_vec());
    }
    let file_name = match args.log.file_name().map(|name| name.to_string_lossy().into_owned()) {
        Some(name) if name != "-" => name,
        _ => format!("{}.log", args.name),
    };
    let text = skeleton::write(&args.name, &file_name, &lines)
        .map_err(|error| Failure::Usage(format!("cannot begin a filter: {error}")))?;
    let Some(path) = &args.output else {
        let mut output = Output::stdout();
        output.line(text.trim_end_matches('\n'))?;
        return output.flush();
    };
    let what = format!("cannot write {}", path.display());
    let mut file = std::fs::File::create_new(path).map_err(|error| {
        if error.kind() != ErrorKind::AlreadyExists {
            return Failure::of(&what, error);
        }
        Failure::Failed(format!(
            "{what}: there is such a file already, and it is left as it is; give another name with --output, or remove \
             it first. To go on with it: visperf filter try --filter {} {shown}",
            path.display()
        ))
    })?;
    file.write_all(text.as_bytes()).map_err(|error| Failure::of(&what, error))?;
    note(&format!("wrote {0}; try it: visperf filter try --filter {0} {shown}", path.display()));
    Ok(())
}
