//! `visperf filters`: the filters of a running sensor.
//!
//! Not here: filters without a daemon (`command::filter`).

use crate::client::items;
use crate::command::query;
use crate::exit::Failure;
use crate::options::{Place, Query};
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output};
use wire::api::files::{FiltersParams, LogFilter};

/// Print the log filters of the running sensor (`visperf filter` works without a sensor)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    #[command(flatten)]
    place: Place,
    /// Only the filter of this name, with its text
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Print the filters.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let request = FiltersParams { name: args.name.clone() };
    let answer = query::request(&args.query, &request, &args.place.about())?;
    let raw = items(&answer.raw, "filters");
    let nothing = "the sensor has no such filter";
    query::print_typed(&args.query, &raw, &answer.typed.filters, nothing, |filters, output| match filters {
        [LogFilter { text: Some(text), .. }] => output.line(text.trim_end_matches('\n')),
        _ => table(filters, output),
    })
}

fn table(filters: &[LogFilter], output: &mut Output) -> Result<(), Failure> {
    let mut table = Table::new(&["NAME", "PRODUCT", "RULES", "TESTS", "FROM"]);
    for filter in filters {
        table.row(vec![
            Cell::text(&filter.name).color(Color::Name),
            Cell::text(&filter.product),
            Cell::figure(filter.rules.to_string()),
            Cell::figure(filter.tests.to_string()),
            Cell::text(&filter.origin),
        ]);
    }
    table.print(output)
}
