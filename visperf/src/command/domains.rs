//! `visperf domains`: the domains that a directory has registered.
//!
//! Not here: how records are registered and expire (`directory`).

use crate::client::items;
use crate::command::query;
use crate::exit::Failure;
use crate::options::Query;
use crate::output::Color;
use crate::output::Output;
use crate::output::table::{Cell, Table};
use ::client::typed::About;
use wire::api::directory::{Domain, DomainState, DomainsParams};
use wire::shown::age;

/// Print the domains known to the directory, with the addresses of their representatives
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: Query,
    /// Only domains with a live representative
    #[arg(long)]
    live: bool,
}

/// Print the domains.
///
/// # Errors
/// If no daemon is reached, or it answers with a fault.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let params = DomainsParams { state: args.live.then_some(DomainState::Live), ..DomainsParams::default() };
    let answer = query::request(&args.query, &params, &About::default())?;
    let raw = items(&answer.raw, "domains");
    query::print_typed(&args.query, &raw, &answer.typed.domains, "no directory knows a domain", table)
}

/// Print domains as a table; `visperf resolve` prints its one domain with it.
///
/// # Errors
/// If the output cannot be written.
pub(crate) fn table(domains: &[Domain], output: &mut Output) -> Result<(), Failure> {
    let mut table =
        Table::new(&["DOMAIN", "HOST", "PORT", "TYPE", "STATE", "AGE", "LEASE", "TERM", "ADDRESSES"])
            .spares(&["ADDRESSES", "TERM", "LEASE", "TYPE"]);
    for domain in domains {
        let is_live = domain.state == DomainState::Live;
        table.row(vec![
            Cell::text(&domain.domain).color(Color::Name),
            Cell::text(&domain.host),
            Cell::figure(domain.port.to_string()),
            Cell::text(&domain.sensor_type),
            Cell::text(domain.state.as_str()).color(if is_live { Color::Good } else { Color::Caution }),
            Cell::figure(age(domain.age_secs)),
            Cell::figure(age(domain.lease_remaining_secs)),
            Cell::figure(domain.term.to_string()),
            Cell::text(addresses(domain)),
        ]);
    }
    table.print(output)
}

/// Addresses at which a domain answers queries; if its daemon listens only on loopback, with the host's name.
fn addresses(domain: &Domain) -> String {
    let shown = domain.addresses.join(",");
    match shown.contains("//127.") || shown.contains("//[::1]") {
        true => format!("{shown} on {} itself", domain.host),
        false => shown,
    }
}
