//! `visperf filter show`: prints one filter's text.
//!
//! Rule: the text is printed as it is in its file, so that it can be saved and changed.

use crate::exit::Failure;
use crate::filter_sources::{FilterFolders, FilterSources};
use crate::output::Output;
use serde_json::json;

/// Print the text of a filter, to read it or as the basis of your own
///
/// Redirect it into a file in your own folder of filters and change it there: a filter of the same name
/// overrides the shipped one.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Example:\n  visperf filter show slurmctld > ~/.config/visperf/filters/slurmctld.toml"
)]
pub(crate) struct Args {
    /// Name of the filter, as printed by `visperf filter list`, or a file
    #[arg(value_name = "NAME")]
    name: String,
    /// Print JSON: one object with the text and properties of the filter
    #[arg(long)]
    json: bool,
}

/// Print the filter.
///
/// # Errors
/// If there is no filter of this name, or the output cannot be written.
pub(crate) fn run(args: &Args, folders: &FilterFolders) -> Result<(), Failure> {
    let sources = FilterSources::load(folders)?;
    let filter = sources.named_or_file(&args.name)?;
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({
            "name": filter.name(), "product": filter.product(), "description": filter.description(),
            "versions": filter.versions(), "origin": sources.origin(filter.name()), "rules": filter.rules(),
            "tests": filter.tests(), "names": filter.name_globs(), "paths": filter.paths(),
            "text": filter.text(),
        }))?;
    } else {
        output.line(filter.text().trim_end_matches('\n'))?;
    }
    output.flush()
}
