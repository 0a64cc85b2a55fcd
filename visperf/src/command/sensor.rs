//! `visperf sensor`: runs one sensor, as a service does.
//!
//! Not here: opening, binding and draining (`serve::grid`).

use super::daemons::{self, Places};
use crate::exit::Failure;
use crate::filter_sources::{self, FilterFolders};
use crate::host_name;
use crate::output::note;
use crate::serve::grid::Plan;
use crate::serve::start_check::{self, RefusedFilter};
use jiff::tz::TimeZone;
use sensor::config::{Config, RawConfig, RawTail};
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Follow this host's logs, sample it, and answer queries
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf sensor --config /etc/visperf/sensor.toml
  visperf sensor --tail /data/my.log=slurmctld --state ./s --listen 127.0.0.1:0
  visperf sensor --via 12D3KooW...@proxy.example:7318   through a proxy")]
pub(crate) struct Args {
    /// Configuration file; the sensor reads its [sensor] section
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Log to follow: a file, a glob or a folder; =FILTER if the filter does not follow from the name
    ///
    /// A folder selects all logs in it, without rotated copies and subfolders. May be repeated
    #[arg(long, value_name = "FILE[=FILTER]")]
    tail: Vec<String>,
    /// Proxy to dial, as `visperf proxy` prints it; the sensor is then reachable through it; may be repeated
    #[arg(long, value_name = "KEY@HOST:PORT")]
    via: Vec<String>,
    #[command(flatten)]
    filters: FilterFolders,
    #[command(flatten)]
    places: Places,
}

/// Run a sensor until a signal ends it.
///
/// # Errors
/// If it cannot start, or one of its parts fails.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.places.start_telemetry()?;
    let file = daemons::read_file(args.config.as_deref())?;
    let written = file.written.tail;
    let mut config = match file.sensor {
        Some(mut config) => {
            config.filters.extend(args.filters.folders.iter().cloned());
            config
        }
        None => Config { filters: filter_sources::folders(&args.filters), ..plain()? },
    };
    let sources = start_check::filters(&start_check::present(&config.filters), RefusedFilter::IsLeftOut)?;
    if let Some(file) = &args.config {
        start_check::known_filters(file, &written, &sources)?;
    }
    let named = tails(&args.tail)?;
    start_check::named_logs(&named, &sources)?;
    config.tails.extend(named);
    let mut overlay = file.overlay;
    overlay.via.extend(proxies(&args.via)?);
    let plan = Plan {
        state: args.places.state(),
        listen: Some(args.places.listen_or_usual()?),
        socket: args.places.socket(),
        sensor: Some(config),
        directory: None,
        proxy: None,
        overlay,
    };
    daemons::run(async {
        let grid = daemons::open(plan).await?;
        note(&format!("visperf sensor answers on http://{}/RPC2", grid.address()));
        if let Some(membership) = grid.membership_text() {
            note(&membership);
        }
        grid.run(CancellationToken::new(), |_| ()).await.map_err(|error| daemons::failure(&error))
    })
}

/// The proxies named by `--via`.
fn proxies(given: &[String]) -> Result<Vec<wire::join::Directory>, Failure> {
    let raw = overlay::config::RawConfig { via: given.to_vec(), ..Default::default() };
    let config = overlay::config::Config::new(raw);
    config.map(|config| config.via).map_err(|errors| Failure::of_option("--via", &errors))
}

/// Configuration of a sensor without a configuration file.
pub(crate) fn plain() -> Result<Config, Failure> {
    Config::new(RawConfig::default(), &host_name::own(), TimeZone::system()).map_err(|errors| {
        let lines = errors
            .iter()
            .map(|error| format!("{error}; set [sensor] {} in a configuration file", error.keys.join(".")));
        Failure::Failed(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// The tails specified by `--tail`.
///
/// # Errors
/// If one is invalid.
pub(crate) fn tails(given: &[String]) -> Result<Vec<sensor::config::Tail>, Failure> {
    let is_file = |text: &&String| text.rsplit_once('=').is_some_and(|(_, end)| end.ends_with(".toml"));
    if let Some(text) = given.iter().find(is_file) {
        return Err(Failure::Usage(format!(
            "--tail: expected FILE=FILTER with the name of a filter, found a filter's file in {text}; name the \
             folder of that file with --filters DIR, and the filter by the name it gives itself"
        )));
    }
    let raw = given.iter().map(|text| {
        let (path, filter) = match text.rsplit_once('=') {
            Some((path, filter)) if !path.is_empty() && !filter.contains('/') => {
                (path, Some(filter.to_owned()))
            }
            _ => (text.as_str(), None),
        };
        // A path on the command line is relative to the folder in which it was typed.
        RawTail {
            path: std::path::absolute(path).map_or(path.to_owned(), |path| path.display().to_string()),
            filter,
            cluster: String::new(),
            host: None,
            zone: None,
            start: None,
            roots: Vec::new(),
        }
    });
    let raw = RawConfig { tail: raw.collect(), ..RawConfig::default() };
    Config::new(raw, "unused", TimeZone::UTC)
        .map(|config| config.tails)
        .map_err(|errors| Failure::of_option("--tail", &errors))
}
