//! `visperf proxy`: runs one proxy, as a service does.
//!
//! Not here: opening, binding and draining (`serve::grid`, `serve::proxy`).

use super::daemons::{self, Places};
use crate::exit::Failure;
use crate::output::note;
use crate::serve::grid::Plan;
use crate::serve::proxy::StartReport;
use proxy::config::{LISTEN_DEFAULT, Tls};
use rpc::http::config::Listen;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Let people and programs outside a firewall query the domains inside
///
/// Clients with an account (`visperf account`) send HTTP requests to /d/DOMAIN/RPC2, /d/DOMAIN/HOST/RPC2, and
/// to the same paths with /api/v1/METHOD. Connections are encrypted except on loopback. The proxy's host
/// joins a domain first, as a viewer, and finds other domains through the directories.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf account add ana --domain UT-ICL
  visperf proxy --door 0.0.0.0:7321
  curl --digest --user ana --cacert certificate.pem \\
      https://proxy.example:7321/d/UT-ICL/api/v1/domain.hosts")]
pub(crate) struct Args {
    /// Configuration file; the proxy reads its [proxy] section
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[arg(long, value_name = "ADDR", help = format!("Address for clients with accounts [default: from the configuration, else {LISTEN_DEFAULT}]"))]
    door: Option<String>,
    #[command(flatten)]
    places: Places,
}

/// Run a proxy until a signal ends it.
///
/// # Errors
/// If it cannot start, or one of its parts fails.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.places.start_telemetry()?;
    let file = daemons::read_file(args.config.as_deref())?;
    let mut config = file.proxy.unwrap_or_default();
    if let Some(text) = &args.door {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(format!("--door: {error}"));
        let listen: Listen = text.parse().map_err(|error: rpc::http::config::Error| usage(&error))?;
        let is_plain = file.is_plain_proxy && config.tls == Tls::Plain;
        config = config.at(listen, is_plain).map_err(|error| usage(&error))?;
    }
    let plan = Plan {
        state: args.places.state(),
        listen: Some(args.places.listen_or_usual()?),
        socket: args.places.socket(),
        sensor: None,
        directory: None,
        proxy: Some(config),
        overlay: file.overlay,
    };
    daemons::run(async {
        let grid = daemons::open(plan).await?;
        note(&format!("visperf proxy answers this host on http://{}/RPC2", grid.address()));
        if let Some(report) = grid.proxy_start_report() {
            print_start(report);
        }
        grid.run(CancellationToken::new(), |_| ()).await.map_err(|error| daemons::failure(&error))
    })
}

fn print_start(report: &StartReport) {
    let scheme = if report.certificate.is_some() { "https" } else { "http" };
    note(&format!("visitors with accounts come in at {scheme}://{}/d/DOMAIN/RPC2", report.address));
    if let Some((fingerprint, path)) = &report.certificate {
        note(&format!("its certificate is {}, SHA-256 {fingerprint}", path.display()));
    }
    if report.accounts == 0 {
        note("there are no accounts yet: visperf account add NAME --domain DOMAIN");
    }
    if report.directories == 0 {
        note(
            "it knows no directory, so it finds no domain: name one as [overlay] directories in the configuration",
        );
    }
    report.contacts.iter().for_each(|contact| note(&format!("daemons inside reach it at {contact}")));
    for contact in &report.web_contacts {
        note(&format!("those that get out by web traffic alone reach it at {contact}"));
    }
}
