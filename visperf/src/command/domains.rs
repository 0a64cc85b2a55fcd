//! `visperf domains`: the domains a directory knows.
//!
//! Not here: how records come and go (`directory`).

use crate::cli::Query;
use crate::command::query::{self, Params};
use crate::exit::Failure;
use crate::output::Color;
use crate::output::Output;
use crate::output::figures::{number_of, plain, text_of};
use crate::output::table::{Cell, Table};
use crate::output::times::age;
use serde_json::Value;

/// Print the domains that the directory knows, and where each answers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Only domains whose representative is live
    #[arg(long)]
    live: bool,
}

/// Print the domains.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let state = args.live.then_some("live");
    let answer = query::ask(&args.query, "directory.domains", Params::default().with("state", state))?;
    query::print(&args.query, query::items(&answer, "domains"), "no directory tells of a domain", table)
}

/// Domains as a table, also for the one of `visperf resolve`.
///
/// # Errors
/// If the output fails.
pub(crate) fn table(domains: &[Value], output: &mut Output) -> Result<(), Failure> {
    let mut table =
        Table::new(&["DOMAIN", "HOST", "PORT", "TYPE", "STATE", "AGE", "LEASE", "TERM", "ADDRESSES"])
            .spares(&["ADDRESSES", "TERM", "LEASE", "TYPE"]);
    for domain in domains {
        let state = text_of(domain, "state");
        let span = |name: &str| Cell::figure(number_of(domain, name).map_or(String::new(), age));
        table.row(vec![
            Cell::text(text_of(domain, "domain")).color(Color::Name),
            Cell::text(text_of(domain, "host")),
            Cell::figure(plain(domain.get("port"))),
            Cell::text(text_of(domain, "type")),
            Cell::text(state).color(if state == "live" { Color::Good } else { Color::Caution }),
            span("age"),
            span("lease_remaining"),
            Cell::figure(plain(domain.get("term"))),
            Cell::text(addresses(domain)),
        ]);
    }
    table.print(output)
}

/// Where it answers queries: of a daemon that listens on the loopback interface alone, on which host that is.
fn addresses(domain: &Value) -> String {
    let shown = plain(domain.get("addresses"));
    match shown.contains("//127.") || shown.contains("//[::1]") {
        true => format!("{shown} on {} itself", text_of(domain, "host")),
        false => shown,
    }
}
