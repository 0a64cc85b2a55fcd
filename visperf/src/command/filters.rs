//! `visperf filters`: the filters that a running sensor has.
//!
//! Not here: filters without a daemon (`command::filter`).

use crate::cli::{Place, Query};
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::figures::{plain, text_of};
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output};
use serde_json::Value;

/// Print the filters that the running sensor has (`visperf filter` works without one)
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
    let params = Params::default().at(&args.place).with("name", args.name.clone());
    let answer = query::ask(&args.query, "sensor.filters", params)?;
    query::print(
        &args.query,
        query::items(&answer, "filters"),
        "the sensor has no such filter",
        |filters, output| match (&args.name, filters) {
            (Some(_), [one]) => output.line(text_of(one, "text").trim_end_matches('\n')),
            _ => table(filters, output),
        },
    )
}

fn table(filters: &[Value], output: &mut Output) -> Result<(), Failure> {
    let mut table = Table::new(&["NAME", "PRODUCT", "RULES", "TESTS", "FROM"]);
    for filter in filters {
        table.row(vec![
            Cell::text(text_of(filter, "name")).color(Color::Name),
            Cell::text(text_of(filter, "product")),
            Cell::figure(plain(filter.get("rules"))),
            Cell::figure(plain(filter.get("tests"))),
            Cell::text(text_of(filter, "origin")),
        ]);
    }
    table.print(output)
}
