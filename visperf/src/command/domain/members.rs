//! `visperf domain members`: the members with a certificate of the domain, and recent former ones.
//!
//! Not here: which of them are running (`command::hosts`).

use crate::command::membership::{self, State, role_words};
use crate::exit::Failure;
use crate::options::Width;
use crate::output::table::{Cell, Table};
use crate::output::times::{self, brief};
use crate::output::{Color, Output};
use jiff::tz::TimeZone;
use overlay::identity::issuer_store::Member;
use serde_json::json;
use wire::time::Time;

/// List the members of the domain created on this host
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf domain members
  visperf domain members --json | jq -r 'select(.state == \"member\") | .host'")]
pub(crate) struct Args {
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    width: Width,
}

/// Print the members.
///
/// # Errors
/// If no domain was created here, or its files cannot be read.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let now = times::now();
    let members = args.state.domain_files()?.members(now).map_err(membership::failure)?;
    let mut output = args.width.output();
    if !args.json {
        table(&members, now, &mut output)?;
        return output.flush();
    }
    for member in &members {
        let certificate = &member.certificate;
        output.json(&json!({
            "host": certificate.host.as_str(), "key": certificate.peer.to_string(),
            "roles": role_words(certificate.roles), "priority": certificate.priority,
            "serial": certificate.serial.0, "issued": certificate.issued.secs_f64(),
            "expires": certificate.expires.secs_f64(), "state": state_of(member, now),
        }))?;
    }
    output.flush()
}

fn table(members: &[Member], now: Time, output: &mut Output) -> Result<(), Failure> {
    let heads = ["HOST", "STATE", "ROLES", "PRIORITY", "EXPIRES", "SERIAL", "KEY"];
    let mut table = Table::new(&heads).spares(&["SERIAL", "PRIORITY", "KEY"]);
    for member in members {
        let certificate = &member.certificate;
        let state = state_of(member, now);
        let priority = match certificate.priority {
            0 => String::new(),
            priority => priority.to_string(),
        };
        table.row(vec![
            Cell::text(certificate.host.as_str()).color(Color::Name),
            Cell::text(state).color(if state == "member" { Color::Good } else { Color::Bad }),
            Cell::text(certificate.roles.to_string()),
            Cell::figure(priority),
            Cell::whole(brief(certificate.expires, now, &TimeZone::system())),
            Cell::figure(certificate.serial.to_string()),
            Cell::whole(certificate.peer.to_string()),
        ]);
    }
    table.print(output)
}

fn state_of(member: &Member, now: Time) -> &'static str {
    if member.denied {
        "revoked"
    } else if now >= member.certificate.expires {
        "expired"
    } else {
        "member"
    }
}
