//! `visperf domain certify`: issues a certificate signed by the root key, for operators and filter-admins.
//!
//! Not here: installing it (`command::join`).

use crate::command::membership::{self, State, role_words};
use crate::exit::Failure;
use crate::output::{Output, note, times};
use overlay::clock;
use overlay::identity::certificate::LIFE_BY_ROOT_MAX;
use overlay::identity::domain_files::DomainFiles;
use overlay::identity::join;
use overlay::identity::peer_clocks::Members;
use serde_json::json;
use std::time::Duration;
use wire::credential::Roles;
use wire::id::{HostName, PeerKey};
use wire::join::Admitted;
use wire::time::Time;

/// Certify a key with the domain's root key: required for operator and filter-admin
///
/// Requires the root key in the state folder (domain/root.key); it may be stored offline at other times. The
/// certificate replaces the previous one of the key: name all its roles. It is not renewed automatically.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf key                                   on the other host: print its key
  visperf domain certify 12D3KooW... --host ws1 --role operator > ws1.cert
  visperf join ws1.cert                         on the other host")]
pub(crate) struct Args {
    /// Key to certify, as `visperf key` prints it on the other host
    #[arg(value_name = "KEY")]
    key: PeerKey,
    /// Host of the key [default: the name under which it is a member]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Role: operator, filter-admin, viewer, publisher, representative, or sensor for the last three; may be
    /// repeated
    #[arg(long, required = true, value_name = "ROLE", value_parser = membership::role)]
    role: Vec<Roles>,
    /// Validity, such as 30d or 12h
    #[arg(long, value_name = "SPAN", default_value = "365d", value_parser = times::span)]
    life: Duration,
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Issue the certificate.
///
/// # Errors
/// If no domain was created here, the root key is not here, or the host belongs to another key.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.life > LIFE_BY_ROOT_MAX {
        let days = LIFE_BY_ROOT_MAX.as_secs() / 86_400;
        return Err(Failure::Usage(format!("--life: a certificate holds {days} days at most")));
    }
    let now = times::now();
    let files = args.state.domain_files()?;
    let host = host_of(args, &files, now)?;
    let roles = membership::roles(&args.role);
    files.check_clock(now, clock::now(), Members::Unknown).map_err(membership::failure)?;
    let chain = files.certify(args.key, host.clone(), roles, args.life, now).map_err(membership::failure)?;
    let denials = files.denials(now).map_err(membership::failure)?;
    let directories = args.state.directories()?;
    let line = join::text(&Admitted { chain, directories, seeds: Vec::new(), denials });
    let mut output = Output::stdout();
    let expires = now.plus(args.life);
    if args.json {
        output.json(&json!({
            "certificate": line, "host": host.as_str(), "key": args.key.to_string(),
            "roles": role_words(roles), "expires": expires.secs_f64(),
        }))?;
        return output.flush();
    }
    output.line(&line)?;
    output.flush()?;
    note(&format!(
        "certified {host} as {roles} until {}; it is of use to {} alone",
        membership::until(expires),
        args.key
    ));
    membership::next(&[("visperf join FILE".to_owned(), "on the other host, with this line in the file")]);
    Ok(())
}

fn host_of(args: &Args, files: &DomainFiles, now: Time) -> Result<HostName, Failure> {
    if let Some(name) = &args.host {
        let host =
            HostName::try_from(name.as_str()).map_err(|error| Failure::Usage(format!("--host: {error}")))?;
        host.check_member().map_err(|error| Failure::Usage(error.to_string()))?;
        return Ok(host);
    }
    let members = files.members(now).map_err(membership::failure)?;
    let known = members.into_iter().find(|member| member.certificate.peer == args.key);
    known.map(|member| member.certificate.host).ok_or_else(|| {
        Failure::Usage(format!("{} is no member yet; name its host with --host NAME", args.key))
    })
}
