//! `visperf token list`: the tokens of the domain that was created here, without their secrets.
//!
//! Not here: the line to paste, which is printed once (`create`).

use crate::command::membership::{self, State, role_words};
use crate::exit::Failure;
use crate::options::Width;
use crate::output::table::{Cell, Table};
use crate::output::times::{self, brief};
use crate::output::{Color, note};
use jiff::tz::TimeZone;
use overlay::identity::replace_token::Listed;
use serde_json::json;
use wire::time::Time;

/// List the valid and recently expired tokens, without their secrets
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf token list
  visperf token list --json | jq -r 'select(.state == \"good\") | .id'")]
pub(crate) struct Args {
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    width: Width,
}

/// Print the tokens.
///
/// # Errors
/// If no domain was created here, or its files cannot be read.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let now = times::now();
    let tokens = args.state.domain_files()?.tokens(now).map_err(membership::failure)?;
    let mut output = args.width.output();
    if args.json {
        for token in &tokens {
            output.json(&json!({
                "id": token.id, "type": type_of(token), "hosts": token.hosts, "roles": role_words(token.roles),
                "used": token.uses, "uses": token.uses_max, "expires": token.expires.secs_f64(),
                "state": state_of(token, now),
            }))?;
        }
        return output.flush();
    }
    if tokens.is_empty() {
        note("there is no token; `visperf token create` makes one");
        return Ok(());
    }
    let mut table = Table::new(&["ID", "TYPE", "STATE", "HOSTS", "ROLES", "USED", "OF", "EXPIRES"]);
    for token in &tokens {
        let state = state_of(token, now);
        table.row(vec![
            Cell::whole(token.id.clone()),
            Cell::text(type_of(token)),
            Cell::text(state).color(if state == "good" { Color::Good } else { Color::Caution }),
            Cell::text(token.hosts.as_ref().map_or_else(|| "any".to_owned(), |hosts| hosts.join(", "))),
            Cell::text(token.roles.to_string()),
            Cell::figure(token.uses.to_string()),
            Cell::figure(token.uses_max.map_or_else(|| "no limit".to_owned(), |uses| uses.to_string())),
            Cell::whole(brief(token.expires, now, &TimeZone::system())),
        ]);
    }
    table.print(&mut output)?;
    output.flush()
}

fn type_of(token: &Listed) -> &'static str {
    if token.hosts.is_some() { "replace" } else { "join" }
}

fn state_of(token: &Listed, now: Time) -> &'static str {
    if token.is_revoked {
        "revoked"
    } else if now >= token.expires {
        "expired"
    } else if token.uses_max.is_some_and(|max| token.uses >= max) {
        "used up"
    } else {
        "good"
    }
}
