//! `visperf account list`: the accounts of this host's proxy, and what each may see.
//!
//! Not here: secrets; no hash is ever printed.

use crate::command::membership::State;
use crate::exit::Failure;
use crate::options::Width;
use crate::output::Color;
use crate::output::table::{Cell, Table};
use proxy::account::Account;
use proxy::account_file;
use serde_json::json;
use tunnel::hash::Algorithm;

/// List the accounts of this host's proxy
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    width: Width,
}

/// Print the accounts.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let held = account_file::read(&args.state.open()?);
    let held = held.map_err(|error| Failure::Failed(error.to_string()))?;
    let accounts: Vec<&Account> = held.iter().flat_map(|held| held.all()).collect();
    let mut output = args.width.output();
    if args.json {
        for account in accounts {
            output.json(&json!({
                "name": account.name.as_str(), "rights": account.rights.word(),
                "domains": account.grant.domains.to_string(), "hosts": account.grant.hosts.to_string(),
                "calls": classes(account), "proofs": proofs(account),
            }))?;
        }
        return output.flush();
    }
    let mut table = Table::new(&["NAME", "RIGHTS", "DOMAINS", "HOSTS", "CALLS", "PROVED BY"]);
    for account in accounts {
        table.row(vec![
            Cell::text(account.name.as_str()).color(Color::Name),
            Cell::text(account.rights.word()),
            Cell::text(account.grant.domains.to_string()),
            Cell::text(account.grant.hosts.to_string()),
            Cell::text(classes(account).join(",")),
            Cell::text(proofs(account).join(",")),
        ]);
    }
    table.print(&mut output)?;
    output.flush()
}

fn classes(account: &Account) -> Vec<&'static str> {
    account.grant.classes.iter().map(|class| class.word()).collect()
}

fn proofs(account: &Account) -> Vec<&'static str> {
    let has = |algorithm: &Algorithm| account.proofs.by(*algorithm).is_some();
    [Algorithm::Sha256, Algorithm::Md5].into_iter().filter(has).map(Algorithm::name).collect()
}
