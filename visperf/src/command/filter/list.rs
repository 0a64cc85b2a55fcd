//! `visperf filter list`: every available filter.
//!
//! Not here: where filters are searched (`filter_sources`).

use crate::exit::Failure;
use crate::filter_sources::{FilterFolders, FilterSources};
use crate::options::Width;
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output};
use serde_json::json;

/// List all filters: name, product, logs that they read
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    width: Width,
}

/// Print the filters.
///
/// # Errors
/// If a folder of filters cannot be read, or the output cannot be written.
pub(crate) fn run(args: &Args, folders: &FilterFolders) -> Result<(), Failure> {
    let sources = FilterSources::load(folders)?;
    let mut output = args.width.output();
    let mut table =
        Table::new(&["NAME", "PRODUCT", "RULES", "TESTS", "FROM", "FILES"]).spares(&["TESTS", "RULES"]);
    for filter in sources.registry.iter() {
        let origin = sources.origin(filter.name());
        if args.json {
            output.json(&json!({
                "name": filter.name(), "product": filter.product(), "description": filter.description(),
                "versions": filter.versions(), "origin": origin, "rules": filter.rules(),
                "tests": filter.tests(), "names": filter.name_globs(), "paths": filter.paths(),
            }))?;
            continue;
        }
        table.row(vec![
            Cell::text(filter.name()).color(Color::Name),
            Cell::text(filter.product()),
            Cell::figure(filter.rules().to_string()),
            Cell::figure(filter.tests().to_string()),
            Cell::text(origin),
            Cell::text(shown_names(filter.name_globs(), &output)),
        ]);
    }
    if !args.json {
        table.print(&mut output)?;
    }
    output.flush()
}

/// The globs of file names; on a terminal only the first few.
fn shown_names(globs: &[String], output: &Output) -> String {
    const SHOWN: usize = 4;
    if output.width().is_none() {
        return globs.join(" ");
    }
    let mut shown = globs.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(" ");
    if globs.len() > SHOWN {
        shown.push_str(" …");
    }
    shown
}
