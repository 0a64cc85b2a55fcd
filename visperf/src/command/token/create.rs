//! `visperf token create`: prints a line that admits another host to the domain that was created here.
//!
//! Not here: using a token (`command::join`).

use crate::command::membership::{self, State, role_words};
use crate::command::own_addresses;
use crate::exit::Failure;
use crate::host_name;
use crate::output::{Output, note, times};
use crate::state_folder;
use overlay::config::{self, PORT, RawConfig};
use overlay::identity::replace_token::{self, ReplaceSpec};
use overlay::identity::token::{self, Spec};
use serde_json::json;
use std::time::Duration;
use wire::address::Address;
use wire::credential::Roles;
use wire::join::{ADDRESSES_MAX, Directory, Token, TokenType};

/// Create a token and print the command to paste on the other host
///
/// The first hosts that use the token are admitted: send it as you would a password. It expires after its
/// validity, or when the maximum number of hosts has joined. The daemon of this host must be running when
/// they join.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf token create                          one sensor, within 15 minutes
  visperf token create --uses 20 --ttl 1h       twenty of them
  visperf token create --role viewer            read access only
  visperf token create --replace 'wn[0-9]*'     hosts without a disk
  visperf token create --address head.example:7318
  visperf token create --directory 12D3KooW...@dir1.example:7318
  ssh wn01 \"$(visperf token create)\"            make and use it at once")]
pub(crate) struct Args {
    /// Roles of the hosts: sensor (viewer, publisher and representative), or some of these [default: sensor]
    #[arg(long, value_name = "ROLE", value_parser = membership::role)]
    role: Vec<Roles>,
    /// Let these hosts replace a lost key and keep their names: names or patterns (repeat, or separate by
    /// commas)
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    replace: Vec<String>,
    /// Validity, such as 15m, 1h or 7d [default: 15m; with --replace 90d]
    #[arg(long, value_name = "SPAN", value_parser = times::span)]
    ttl: Option<Duration>,
    /// Number of hosts that may join [default: 1; with --replace no limit]
    #[arg(long, value_name = "N")]
    uses: Option<u32>,
    /// Priority in the election of the representative, 0 to 255; higher is preferred
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u8,
    #[arg(long, value_name = "HOST:PORT", help = format!("Address at which joining hosts reach this host's daemon; may be repeated [default: from its configuration, else its name and addresses, port {PORT}]"))]
    address: Vec<Address>,
    /// Directory of the grid [default: the directories known to this host]
    #[arg(long, value_name = "KEY@HOST:PORT")]
    directory: Vec<String>,
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Create a token.
///
/// # Errors
/// If no domain was created here, or the request exceeds the limits of a token.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
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
    let made = match args.replace.is_empty() {
        true => files.create_token(spec(args, roles)?, addresses, directories, times::now()),
        false => files.create_replace_token(replace_spec(args, roles)?, addresses, directories, times::now()),
    };
    let made = made.map_err(membership::failure)?;
    show(args, roles, &made)
}

/// Specification of a join token.
fn spec(args: &Args, roles: Roles) -> Result<Spec, Failure> {
    let life = life(args, token::LIFE, token::LIFE_MAX)?;
    Ok(Spec { roles, priority: args.priority, uses: args.uses.unwrap_or(1), life })
}

/// Specification of a replace token.
fn replace_spec(args: &Args, roles: Roles) -> Result<ReplaceSpec, Failure> {
    let life = life(args, replace_token::LIFE, replace_token::LIFE_MAX)?;
    Ok(ReplaceSpec { hosts: args.replace.clone(), roles, priority: args.priority, uses: args.uses, life })
}

fn life(args: &Args, usual: Duration, max: Duration) -> Result<Duration, Failure> {
    let found = args.ttl.unwrap_or(usual);
    if found <= max {
        return Ok(found);
    }
    let (max, found) = (days(max), days(found));
    Err(Failure::Usage(format!("--ttl: a token is good for {max} at most; found {found}")))
}

fn show(args: &Args, roles: Roles, made: &Token) -> Result<(), Failure> {
    let id = token::id_of(made.secret);
    let text = token::text(made);
    let shown = |addresses: &[Address]| addresses.iter().map(Address::to_string).collect::<Vec<_>>();
    let mut output = Output::stdout();
    if args.json {
        output.json(&json!({
            "token": text, "domain": made.domain.as_str(), "roles": role_words(roles),
            "id": id, "type": type_word(made), "hosts": args.replace, "uses": uses(args),
            "priority": args.priority, "expires": made.expires.secs_f64(), "addresses": shown(&made.addresses),
            "directories": made.directories.iter().map(|directory| {
                json!({ "key": directory.key.to_string(), "addresses": shown(&directory.addresses) })
            }).collect::<Vec<_>>(),
        }))?;
        return output.flush();
    }
    let hosts = match (args.replace.is_empty(), uses(args)) {
        (true, Some(1)) => "one host".to_owned(),
        (true, uses) => format!("{} hosts", uses.unwrap_or_default()),
        (false, None) => format!("hosts {}, in place of lost keys", args.replace.join(", ")),
        (false, Some(uses)) => {
            format!("hosts {}, in place of lost keys, {uses} times", args.replace.join(", "))
        }
    };
    note(&format!("for {hosts}, as {roles}, until {}", membership::until(made.expires)));
    note(&format!("it is revoked by {}", args.state.with(&format!("visperf token revoke {id}"))));
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

/// How often the token may be used; `None` without a limit.
fn uses(args: &Args) -> Option<u32> {
    args.uses.or_else(|| args.replace.is_empty().then_some(1))
}

fn type_word(made: &Token) -> &'static str {
    match made.token_type {
        TokenType::Join => "join",
        TokenType::Replace => "replace",
    }
}

/// A duration of several days: `7 days`, `7 days and 90s`.
fn days(span: Duration) -> String {
    let (days, rest) = (span.as_secs() / 86_400, span.as_secs_f64() % 86_400.0);
    if rest == 0.0 { format!("{days} days") } else { format!("{days} days and {}", wire::shown::age(rest)) }
}

fn addresses(args: &Args) -> Result<Vec<Address>, Failure> {
    if args.address.len() > ADDRESSES_MAX {
        return Err(Failure::Usage(format!("--address: a token holds {ADDRESSES_MAX} addresses at most")));
    }
    if args.address.is_empty() {
        let known = state_folder::reached_at(&args.state.open()?);
        return if known.is_empty() { own_addresses::find(&host_name::own(), PORT) } else { Ok(known) };
    }
    Ok(args.address.clone())
}

fn directories(args: &Args) -> Result<Vec<Directory>, Failure> {
    if args.directory.is_empty() {
        return args.state.directories();
    }
    let raw = RawConfig { directories: args.directory.clone(), ..RawConfig::default() };
    let config = config::Config::new(raw).map_err(|errors| Failure::of_option("--directory", &errors))?;
    Ok(config.directories)
}
