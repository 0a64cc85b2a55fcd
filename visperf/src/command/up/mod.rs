//! `visperf up`: a whole grid on one machine, without configuration; with `--demo`, recorded clusters.
//!
//! Not here: the live view (`live`), the recordings (`crate::demo`), the daemons (`crate::serve`).

mod ended;
mod live;
mod screen;
mod text;

use super::daemons::{self, Places};
use crate::demo::folder::DemoFolder;
use crate::demo::player::Player;
use crate::exit::Failure;
use crate::filter_sources::FilterFolders;
use crate::serve::grid::Plan;
use crate::serve::known_logs;
use crate::serve::start_check::{self, RefusedFilter};
use crate::state_folder;
use sensor::config::{Config, Tail};
use sensor::control;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;
use wire::id::{DomainName, HostName};

/// Start a directory and a sensor on this machine and print what happens
///
/// No configuration is needed: logs of known middleware on this machine are found automatically, --tail adds
/// others, and the machine itself is sampled. Ctrl-C stops it; the next start continues where this one
/// stopped.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf up                                  this machine and its middleware
  visperf up --demo                           recorded clusters, as if now
  visperf up --tail /data/slurmctld.log       one log more
  visperf up --tail ./a.log=mine --filters .  with a filter of your own")]
pub(crate) struct Args {
    /// Replay recorded logs of real Slurm, HTCondor, Grid Engine and GridFTP installations as if live
    #[arg(long)]
    demo: bool,
    /// Speed of the demo, relative to the recording
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = speed, requires = "demo", allow_negative_numbers = true)]
    speed: f64,
    /// Log to follow: a file, a glob or a folder; =FILTER if the filter does not follow from the name
    ///
    /// A folder selects all logs in it, without rotated copies and subfolders. May be repeated
    #[arg(long, value_name = "FILE[=FILTER]")]
    tail: Vec<String>,
    /// Name of the domain [default: local, or demo]
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// Print JSON, one object per line: `started`, `event`, `call`, and with --demo `recording_over`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filters: FilterFolders,
    #[command(flatten)]
    places: Places,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.01..=10_000.0).contains(&speed) => Ok(speed),
        _ => Err("expected a number from 0.01 to 10000".to_owned()),
    }
}

/// Run until a signal ends it.
///
/// # Errors
/// If it cannot start, or one of its parts fails.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    args.places.start_telemetry()?;
    // A demo removes its folder at the end, unless a folder was given.
    let throw_away = match (args.demo, &args.places.state) {
        (true, None) => {
            Some(DemoFolder::new(&std::env::temp_dir()).map_err(|error| daemons::failure(&error))?)
        }
        _ => None,
    };
    let state = throw_away.as_ref().map_or_else(|| args.places.state(), |folder| folder.path().to_owned());
    let player = args.demo.then(|| Player::new(state.join("demo"), args.speed));
    if let Some(player) = &player {
        player.prepare().map_err(|error| daemons::failure(&error))?;
    }
    let config = config(args, player.as_ref())?;
    let is_found = args.places.listen.is_some() || state == state_folder::usual();
    let folder = (state != state_folder::usual()).then(|| std::path::absolute(&state)).transpose();
    let folder = folder.unwrap_or_else(|_| Some(state.clone()));
    let plan = Plan {
        state,
        listen: args.places.listen()?,
        socket: args.places.socket(),
        sensor: Some(config),
        directory: Some(directory::config::Config::default()),
        proxy: None,
        overlay: overlay::config::Config::default(),
    };
    let json = args.json;
    daemons::run(async move {
        let grid = daemons::open(plan).await?;
        let shutdown = CancellationToken::new();
        let live = live::Live::new(&grid, player.as_ref(), (is_found, folder.as_deref()), json)?;
        let (for_live, for_player) = (shutdown.clone(), shutdown.clone());
        let more = move |tasks: &mut daemon::shutdown::Tasks| {
            tasks.spawn("live picture", live.run(for_live));
            if let Some(player) = player {
                tasks.spawn("demo", async move { player.run(for_player).await });
            }
        };
        grid.run(shutdown, more).await.map_err(|error| daemons::failure(&error))
    })
}

fn config(args: &Args, player: Option<&Player>) -> Result<Config, Failure> {
    let mut config = super::sensor::plain()?;
    config.filters = crate::filter_sources::folders(&args.filters);
    // The user that starts this command could end these processes without visperf.
    config.control = control::config::Config::of_user(rustix::process::geteuid().as_raw());
    let domain = args.domain.as_deref().or(args.demo.then_some("demo"));
    if let Some(domain) = domain {
        config.domain =
            DomainName::try_from(domain).map_err(|error| Failure::Usage(format!("--domain: {error}")))?;
    }
    let sources = start_check::filters(&config.filters, RefusedFilter::Refuses)?;
    config.tails = super::sensor::tails(&args.tail)?;
    start_check::named_logs(&config.tails, &sources)?;
    match player {
        Some(player) => config.tails.extend(player.logs().into_iter().map(demo_tail)),
        None => config.tails.extend(known_logs::find(&sources.registry)),
    }
    Ok(config)
}

/// Tail for a recorded log. It has no cluster label, as each product was recorded on one cluster only. The
/// host is the recorded one, never this machine.
fn demo_tail((host, path): (&'static str, PathBuf)) -> Tail {
    let mut tail = Tail::new(globset::escape(&path.display().to_string()));
    tail.zone = Some(jiff::tz::TimeZone::UTC);
    tail.spec.host = Some(host.to_owned());
    tail.host = Some(HostName::try_from(host).expect("a test reads the name of every recorded host"));
    tail
}
