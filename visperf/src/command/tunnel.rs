//! `visperf tunnel`: a local endpoint for a domain behind a proxy, as if its representative ran on this
//! machine.
//!
//! Not here: the tunnel itself (`client::tunnel_client`), its options (`client::via`).

use crate::client::via::Via;
use crate::exit::Failure;
use crate::output::note;
use rpc::http::config::Listen;
use std::net::TcpListener;

/// Default listening address: next to a daemon of this machine.
const LISTEN_DEFAULT: &str = "127.0.0.1:7327";

/// Help text of `--via` for this command.
const VIA: &str = "Proxy and domain: KEY@HOST:PORT/d/DOMAIN or
KEY@HOST:PORT/d/DOMAIN/HOST; the proxy prints its key at its start";

/// Let programs on this machine query a domain through a proxy that cannot read the data
///
/// Scripts in any language, and the viewer, send XML-RPC or JSON to an address of this machine; the requests
/// are encrypted from here to the domain's representative. While the tunnel runs, every program on this
/// machine can use it with the rights of the account.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf tunnel --via 12D3KooW...@proxy.example:443/d/UT-ICL \\
      --account ana --secret ~/.visperf-secret
  curl http://127.0.0.1:7327/api/v1/domain.hosts
  visperf-viewer --directory 127.0.0.1:7327 UT-ICL")]
// The certificate is used only for a proxy's HTTPS listener.
#[command(mut_arg("certificate", |certificate| certificate.hide(true)))]
#[command(mut_arg("via", |via| via.required(true).help(VIA).long_help(VIA)))]
pub(crate) struct Args {
    /// Address for programs, on this machine only
    #[arg(long, value_name = "ADDR", default_value = LISTEN_DEFAULT)]
    listen: Listen,
    #[command(flatten)]
    via: Via,
}

/// Serve local programs until a signal ends it.
///
/// # Errors
/// If the tunnel cannot be opened, or the address is in use.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if !args.listen.is_loopback() {
        return Err(Failure::Usage(format!(
            "--listen: expected an address of this machine alone, found {}: any client that can reach it would query with this account",
            args.listen
        )));
    }
    if !args.via.is_inside() {
        return Err(Failure::Usage(
            "expected --via KEY@HOST:PORT/d/DOMAIN, with the key that the proxy prints at its start"
                .to_owned(),
        ));
    }
    let listener = TcpListener::bind(args.listen.address())
        .map_err(|error| Failure::of(&format!("cannot listen on {}", args.listen), error))?;
    let address = listener.local_addr().map_err(|error| Failure::of("the listener has no address", error))?;
    let opening = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let opening = opening.map_err(|error| Failure::of("cannot start", error))?;
    let client = opening.block_on(args.via.tunnel_client())?;
    let domain = args.via.domain().unwrap_or_default();
    note(&format!("{domain} answers this machine on http://{address}/RPC2 and http://{address}/api/v1"));
    client.serve(listener).map_err(Failure::Failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;

    #[test]
    fn what_only_a_door_needs_is_not_offered() {
        let help = Args::augment_args(clap::Command::new("tunnel")).render_long_help().to_string();
        assert!(help.contains("KEY@HOST:PORT/d/DOMAIN") && help.contains("--http-proxy"), "{help}");
        assert!(!help.contains("--certificate") && !help.contains("HOST:PORT of its listener"), "{help}");
    }
}
