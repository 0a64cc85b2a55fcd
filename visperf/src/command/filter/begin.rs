//! `visperf filter new`: writes a first version of a filter for logs that no filter reads.
//!
//! Rule: its output is a filter that compiles, with the guesses in comments.

use crate::command::membership::quoted;
use crate::exit::Failure;
use crate::output::{Output, note};
use crate::trial::input::Input;
use crate::trial::skeleton::{self, Sample};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Generate a filter for logs that no filter reads yet
///
/// Guesses the timestamp at the start of the lines, and generates a rule for each frequent kind of line, to
/// be completed by hand. The output is a working filter with a test.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:
  visperf filter new myapp /var/log/myapp.log > myapp.toml
  visperf filter try --filter myapp.toml /var/log/myapp.log
  visperf filter new myapp /var/log/myapp/*.log -o myapp.toml")]
pub(crate) struct Args {
    /// Name of the filter: lower case letters, digits and `-`
    #[arg(value_name = "NAME")]
    name: String,
    /// Logs of one product to learn from; `-` for standard input
    #[arg(value_name = "LOGFILE", required = true)]
    logs: Vec<PathBuf>,
    /// File to write, which must not exist [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Write the first version.
///
/// # Errors
/// If a log cannot be read, the name is not valid, or the file exists.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let most = (skeleton::LINES_MAX / args.logs.len()).max(1);
    let logs = args.logs.iter().map(|path| sample(args, path, most)).collect::<Result<Vec<_>, _>>()?;
    let text = skeleton::write(&args.name, &logs)
        .map_err(|error| Failure::Usage(format!("cannot begin a filter: {error}")))?;
    let shown: Vec<String> = args.logs.iter().map(|path| quoted(path)).collect();
    let shown = shown.join(" ");
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
            quoted(path)
        ))
    })?;
    file.write_all(text.as_bytes()).map_err(|error| Failure::of(&what, error))?;
    note(&format!("wrote {0}; try it: visperf filter try --filter {0} {shown}", quoted(path)));
    Ok(())
}

/// The first lines of a log, at most `most`.
fn sample(args: &Args, path: &Path, most: usize) -> Result<Sample, Failure> {
    let cannot_read =
        |error: &dyn std::fmt::Display| Failure::Failed(format!("cannot read {}: {error}", path.display()));
    let mut input = Input::open(path).map_err(|error| cannot_read(&error))?;
    let mut lines = Vec::new();
    while lines.len() < most
        && let Some(line) = input.next_line().map_err(|error| cannot_read(&error))?
    {
        lines.push(line.bytes.to_vec());
    }
    let file_name = match path.file_name().map(|name| name.to_string_lossy().into_owned()) {
        Some(name) if name != "-" => name,
        _ => format!("{}.log", args.name),
    };
    Ok(Sample { file_name, lines })
}
