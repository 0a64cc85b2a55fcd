//! `visperf domain revoke`: revokes a membership.
//!
//! Not here: how other daemons receive the revocation list (the issuer's daemon distributes it).

use crate::command::membership::{self, State};
use crate::exit::Failure;
use crate::output::{Output, note, times};
use overlay::identity::issuer_store::RevocationTarget;
use serde_json::json;
use wire::id::{HostName, PeerKey};

/// Revoke all certificates of a host or key, with immediate effect
///
/// The daemon of this host distributes the new revocation list within a second if it runs, otherwise at its
/// next start. A revoked host can join again with a new token.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf domain revoke wn07
  visperf domain revoke 12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")]
pub(crate) struct Args {
    /// Name of the host, or key of a daemon
    #[arg(value_name = "HOST|KEY")]
    whom: String,
    #[command(flatten)]
    state: State,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Revoke the membership.
///
/// # Errors
/// If no domain was created here, no member has that name, or it is the issuer itself.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let files = args.state.domain_files()?;
    let own = args.state.key()?.peer();
    let target = match args.whom.parse::<PeerKey>() {
        Ok(peer) => RevocationTarget::Peer(peer),
        Err(_) => RevocationTarget::Host(
            HostName::try_from(args.whom.as_str()).map_err(|error| Failure::Usage(error.to_string()))?,
        ),
    };
    let now = times::now();
    let members = files.members(now).map_err(membership::failure)?;
    let is_own = |target: &RevocationTarget| match target {
        RevocationTarget::Peer(peer) => *peer == own,
        RevocationTarget::Host(host) => {
            members.iter().any(|member| member.certificate.host == *host && member.certificate.peer == own)
        }
    };
    if is_own(&target) {
        return Err(Failure::Usage(format!(
            "{} is the issuer itself: without it no host can join or be renewed; to move the issuer, take the root key to \
             another host, type `visperf domain create` with the domain's name there, and revoke {own} there",
            args.whom
        )));
    }
    let is_known = |peer: &PeerKey| members.iter().any(|member| member.certificate.peer == *peer);
    if let RevocationTarget::Peer(peer) = &target
        && !is_known(peer)
    {
        note(&format!("note: {peer} is no member here; it is denied all the same"));
    }
    let revoked = files.revoke(&target, now).map_err(membership::failure)?;
    let mut output = Output::stdout();
    for peer in revoked {
        let host = members.iter().find(|member| member.certificate.peer == peer);
        let host = host.map(|member| member.certificate.host.as_str());
        match args.json {
            true => output.json(&json!({ "host": host, "key": peer.to_string(), "state": "revoked" }))?,
            false => output.line(&format!("revoked {} {peer}", host.unwrap_or("unknown host")))?,
        }
    }
    output.flush()?;
    if !args.state.is_running() {
        note("the daemon of this host does not run: others hear of it once it does");
        membership::next(&[(args.state.start_sensor(), "start it")]);
    }
    Ok(())
}
