//! `visperf token`: what lets another host into the domain that was created here.
//!
//! Not here: using one (`command::join`).

use crate::command::daemons;
use crate::command::membership::{self, State, role_words};
use crate::command::own_addresses;
use crate::exit::Failure;
use crate::output::{Output, note, times};
use crate::state_folder;
use clap::Subcommand;
use overlay::config::{self, PORT, RawConfig};
use overlay::identity::token::{self, Wish};
use serde_json::json;
use std::time::Duration;
use wire::address::Address;
use wire::credential::Roles;
use wire::join::{ADDRESSES_MAX, Directory};

/// Make a token that lets another host into the domain
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "Examples:
  visperf token create
  visperf token create --uses 20 --ttl 1h
  visperf token create --role viewer";

#[derive(Debug, Subcommand)]
enum Action {
    Create(Create),
}

/// Make a token and print the line to paste on the other host
///
/// Whoever has the token first is let in: send it as you would a password. It is used up by the hosts that it let in,
/// and stale after its time. The daemon of this host must run when they join.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf token create                          one sensor, within 15 minutes
  visperf token create --uses 20 --ttl 1h       twenty of them
  visperf token create --role viewer            somebody who only looks
  visperf token create --address head.example:7318
  visperf token create --directory 12D3KooW...@dir1.example:7318
  ssh wn01 \"$(visperf token create)\"            make and use it at once")]
pub(crate) struct Create {
    /// Roles that it gives: sensor (viewer, publisher and representative), or some of these [default: sensor]
    #[arg(long, value_name = "ROLE", value_parser = membership::role)]
    role: Vec<Roles>,
    /// How long it is good: 15m, 1h, 7d
    #[arg(long, value_name = "SPAN", default_value = "15m", value_parser = times::span)]
    ttl: Duration,
    /// How many hosts it lets in
    #[arg(long, value_name = "N", default_value_t = 1)]
    uses: u32,
    /// A higher one is preferred where the domain elects its representative (0 to 255)
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u8,
    #[arg(long, value_name = "HOST:PORT", help = format!("Where joiners reach this host's daemon [default: as its configuration says, else its name and addresses, port {PORT}]"))]
    address: Vec<Address>,
    /// A directory of the grid [default: those that this host knows]
    #[arg(long, value_name = "KEY@HOST:PORT")]
    directory: Vec<String>,
    #[command(flatten)]
    state: State,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Run the action.
///
/// # Errors
/// As the action says.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Create(args) => create(args),
    }
}

/// Make one.
///
/// # Errors
/// If no domain was created here, or the wish is more than a token may give.
fn create(args: &Create) -> Result<(), Failure> {
    let files = args.state.domain_files()?;
    let addresses = addresses(args)?;
    let directories = directories(args)?;
    let roles = if args.role.is_empty() { Roles::SENSOR } else { membership::roles(&args.role) };
    if roles.need_root() {
        return Err(Failure::Usage(format!(
            "--role: a token cannot give {roles}: operator and filter-admin are the root's to give, with `{}`",
            args.state.with("visperf domain certify KEY --role ROLE")
        )));
    }
    if args.ttl > token::LIFE_MAX {
        return Err(Failure::Usage(format!(
            "--ttl: a token is good for {} at most; found {}",
            days(token::LIFE_MAX),
            days(args.ttl)
        )));
    }
    let wish = Wish { roles, priority: args.priority, uses: args.uses, life: args.ttl };
    let made = files.create_token(wish, addresses, directories, times::now()).map_err(membership::failure)?;
    let text = token::text(&made);
    let shown = |addresses: &[Address]| addresses.iter().map(Address::to_string).collect::<Vec<_>>();
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({
            "token": text, "domain": made.domain.as_str(), "roles": role_words(roles), "uses": args.uses,
            "priority": args.priority, "expires": made.expires.secs_f64(), "addresses": shown(&made.addresses),
            "directories": made.directories.iter().map(|directory| {
                json!({ "key": directory.key.to_string(), "addresses": shown(&directory.addresses) })
            }).collect::<Vec<_>>(),
        }))?;
        return output.flush();
    }
    let hosts = if args.uses == 1 { "one host".to_owned() } else { format!("{} hosts", args.uses) };
    note(&format!("for {hosts}, as {roles}, until {}", membership::until(made.expires)));
    note(&format!("they reach this host at {}", shown(&made.addresses).join(", ")));
    if !args.state.is_running() {
        note(&format!(
            "this host's daemon does not run yet; they join while it does: {}",
            args.state.start_sensor()
        ));
    }
    note("type on the other host:");
    output.line(&format!("visperf join {text}"))?;
    output.flush()
}

/// A span of several days: `7 days`, `7 days and 90s`.
fn days(span: Duration) -> String {
    let (days, rest) = (span.as_secs() / 86_400, span.as_secs_f64() % 86_400.0);
    if rest == 0.0 { format!("{days} days") } else { format!("{days} days and {}", times::age(rest)) }
}

fn addresses(args: &Create) -> Result<Vec<Address>, Failure> {
    if args.address.len() > ADDRESSES_MAX {
        return Err(Failure::Usage(format!("--address: a token holds {ADDRESSES_MAX} addresses at most")));
    }
    if args.address.is_empty() {
        let told = state_folder::reached_at(&args.state.open()?);
        return if told.is_empty() { own_addresses::find(&daemons::host_name(), PORT) } else { Ok(told) };
    }
    Ok(args.address.clone())
}

fn directories(args: &Create) -> Result<Vec<Directory>, Failure> {
    if args.directory.is_empty() {
        return args.state.directories();
    }
    let raw = RawConfig { directories: args.directory.clone(), ..RawConfig::default() };
    let config = config::Config::new(raw).map_err(|errors| Failure::of_option("--directory", &errors))?;
    Ok(config.directories)
}
