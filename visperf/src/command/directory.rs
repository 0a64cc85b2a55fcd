//! `visperf directory`: runs one directory, as a service does.
//!
//! Not here: opening, binding and draining (`serve::grid`).

use super::daemons::{self, Places};
use crate::exit::Failure;
use crate::output::note;
use crate::serve::grid::Plan;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Resolve the names of domains to their representatives
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Example:\n  visperf directory --config /etc/visperf/directory.toml --listen 127.0.0.1:7319"
)]
pub(crate) struct Args {
    /// Configuration file; the directory reads its [directory] section
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    places: Places,
}

/// Run a directory until a signal ends it.
///
/// # Errors
/// If it cannot start, or one of its parts fails.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.places.start_telemetry()?;
    let file = daemons::read_file(args.config.as_deref())?;
    let plan = Plan {
        state: args.places.state(),
        listen: Some(args.places.listen_or_usual()?),
        socket: args.places.socket(),
        sensor: None,
        directory: Some(file.directory.unwrap_or_default()),
        proxy: None,
        overlay: file.overlay,
    };
    daemons::run(async {
        let grid = daemons::open(plan).await?;
        note(&format!("visperf directory answers on http://{}/RPC2", grid.address()));
        match grid.directory_contacts() {
            [] => note(
                "it admits no domain, so no other daemon can reach it: list domains in [directory.domains]",
            ),
            contacts => {
                for contact in contacts {
                    note(&format!("other daemons reach it at {contact}"));
                }
            }
        }
        grid.run(CancellationToken::new(), |_| ()).await.map_err(|error| daemons::failure(&error))
    })
}
