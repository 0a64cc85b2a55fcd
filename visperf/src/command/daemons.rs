//! Options and steps shared by `up`, `sensor` and `directory`: the state folder, the listening address, the
//! configuration file.

use crate::allocator;
use crate::exit::Failure;
use crate::harmless::clean;
use crate::host_name;
use crate::output::colors_on_stderr;
use crate::refusal;
use crate::serve::grid::{Grid, Plan};
use crate::state_folder::{self, LISTEN_DEFAULT};
use daemon::config_file::{self, ConfigError};
use daemon::shutdown::GRACE;
use daemon::telemetry::{self, Form};
use jiff::tz::TimeZone;
use rpc::http::config::Listen;
use sensor::journal::lock;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Where a daemon keeps its state and listens.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Places {
    /// State folder, for checkpoints and events [default: /var/lib/visperf for root, else
    /// ~/.local/state/visperf]
    #[arg(long, value_name = "DIR", env = "VISPERF_STATE")]
    pub(crate) state: Option<PathBuf>,
    #[arg(long, value_name = "ADDR", help = format!("Address for queries, port 0 for any free one [default: {LISTEN_DEFAULT}]"))]
    pub(crate) listen: Option<String>,
    /// Local socket for queries, which identifies clients by their user [default: in the state folder]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Log level on standard error: error, warn, info, debug, or a list such as info,sensor=debug
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(crate) log: String,
    /// Write the log as JSON, one object per line
    #[arg(long)]
    pub(crate) log_json: bool,
}

impl Places {
    /// The state folder as an absolute path: clients in other working folders read it.
    pub(crate) fn state(&self) -> PathBuf {
        let folder = self.state.clone().unwrap_or_else(state_folder::usual);
        // Fails only for an empty path, or without a working folder.
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// The absolute path of the local socket, if one was given.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        self.socket.clone().map(|path| std::path::absolute(&path).unwrap_or(path))
    }

    /// The listening address, if one was given.
    pub(crate) fn listen(&self) -> Result<Option<Listen>, Failure> {
        let parse = |text: &String| {
            text.parse()
                .map_err(|error: rpc::http::config::Error| Failure::Usage(format!("--listen: {error}")))
        };
        self.listen.as_ref().map(parse).transpose()
    }

    /// The listening address, or the default.
    pub(crate) fn listen_or_usual(&self) -> Result<Listen, Failure> {
        Ok(self.listen()?.unwrap_or(LISTEN_DEFAULT.into()))
    }

    /// Start logging.
    pub(crate) fn start_telemetry(&self) -> Result<(), Failure> {
        let form = if self.log_json { Form::Json } else { Form::Human };
        telemetry::start(form, &self.log).map_err(|error| Failure::Usage(format!("--log: {error}")))
    }
}

/// A configuration file as written, with a section for each daemon.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFile {
    pub(crate) sensor: Option<sensor::config::RawConfig>,
    pub(crate) directory: Option<directory::config::RawConfig>,
    pub(crate) proxy: Option<proxy::config::RawConfig>,
    pub(crate) overlay: Option<overlay::config::RawConfig>,
}

/// A validated configuration file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) sensor: Option<sensor::config::Config>,
    pub(crate) directory: Option<directory::config::Config>,
    pub(crate) proxy: Option<proxy::config::Config>,
    /// Whether the file turns off encryption at the proxy's listener.
    pub(crate) is_plain_proxy: bool,
    pub(crate) overlay: overlay::config::Config,
    /// Whether the file has an `[overlay]` section.
    pub(crate) has_overlay: bool,
    /// The sensor's section as written, even if it is invalid.
    pub(crate) written: sensor::config::RawConfig,
}

impl File {
    /// Read and check a file: returns its valid sections, and every mistake in the others.
    pub(crate) fn read(path: &Path) -> (File, Vec<ConfigError>) {
        let text = match config_file::read(path) {
            Ok(text) => text,
            Err(error) => return (File::default(), vec![error]),
        };
        let (raw, mut mistakes) = config_file::load_all::<RawFile>(path, &text);
        let raw = raw.unwrap_or_default();
        let has_overlay = raw.overlay.is_some();
        let written = raw.sensor.clone().unwrap_or_default();
        let mut note = |section: &str, way: &[&str], error: &dyn std::fmt::Display| {
            let keys = [&[section], way].concat();
            let hint = match keys.last() {
                Some(&"path") => {
                    "write the whole path of a file, a folder or a glob; of a [ or { that is no wildcard, \\[ or \\{"
                }
                _ => "change the value, or leave the key out for the default",
            };
            mistakes.push(ConfigError::at_key(path, &text, &keys, &error.to_string(), hint));
        };
        let sensor = raw.sensor.and_then(|raw| {
            let config = sensor::config::Config::new(raw, &host_name::own(), TimeZone::system());
            config
                .map_err(|errors| errors.iter().for_each(|error| note("sensor", &words(&error.keys), error)))
                .ok()
        });
        let directory = raw.directory.and_then(|raw| {
            let config = directory::config::Config::new(raw);
            config
                .map_err(|errors| errors.iter().for_each(|error| note("directory", &error.way(), error)))
                .ok()
        });
        let is_plain_proxy = raw.proxy.as_ref().is_some_and(|raw| raw.tls == Some(false));
        let proxy = raw.proxy.and_then(|raw| {
            let config = proxy::config::Config::new(raw);
            config.map_err(|errors| errors.iter().for_each(|error| note("proxy", &error.way(), error))).ok()
        });
        let overlay = overlay::config::Config::new(raw.overlay.unwrap_or_default());
        let overlay = overlay.unwrap_or_else(|errors| {
            errors.iter().for_each(|error| note("overlay", &words(&error.way()), error));
            overlay::config::Config::default()
        });
        (File { sensor, directory, proxy, is_plain_proxy, overlay, has_overlay, written }, mistakes)
    }
}

fn words(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

/// Read the configuration file of a daemon; `None` is an empty file.
///
/// # Errors
/// Every mistake in the file.
pub(crate) fn read_file(path: Option<&Path>) -> Result<File, Failure> {
    let Some(path) = path else { return Ok(File::default()) };
    let (file, mistakes) = File::read(path);
    match mistakes.is_empty() {
        true => Ok(file),
        false => Err(Failure::Refused(refusal::configuration(mistakes, colors_on_stderr()))),
    }
}

/// Run daemons, or other asynchronous work, to completion in a new runtime.
pub(crate) fn run<T, F>(work: F) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    allocator::hand_back_freed().map_err(|error| Failure::of("cannot start a thread", error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of("cannot start the runtime", error))?;
    let outcome = runtime.block_on(work);
    // A thread that is blocked on a disk or a file server must not keep the process alive.
    runtime.shutdown_timeout(GRACE);
    outcome
}

/// Open the daemons of a plan.
///
/// # Errors
/// Why they cannot start.
pub(crate) async fn open(plan: Plan) -> Result<Grid, Failure> {
    let state = plan.state.clone();
    Grid::open(plan).await.map_err(|error| match held(&error) {
        Some(holder) => Failure::Failed(in_use(&state, holder)),
        None => failure(&error),
    })
}

/// The chain of causes, each printed once.
pub(crate) fn failure(error: &anyhow::Error) -> Failure {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Some errors include the text of their cause, others leave it to the caller.
        if !text.contains(&cause) {
            let between = if text.is_empty() { "" } else { ": " };
            text.push_str(between);
            text.push_str(&cause);
        }
    }
    Failure::Failed(text)
}

/// The process that holds the state folder's lock, if that is the error.
fn held(error: &anyhow::Error) -> Option<&str> {
    let lock::Error::Held { holder, .. } = error.downcast_ref()? else { return None };
    Some(holder)
}

fn in_use(state: &Path, holder: &str) -> String {
    let shown = state.display();
    let answers = match state_folder::listen_address(state) {
        Ok(Some(address)) => format!("\n  it answers at {address}: visperf info --state {shown}"),
        Ok(None) | Err(_) => String::new(),
    };
    format!(
        "the state folder {shown} is in use by another visperf\n  {}{answers}\nend that one, or give this one a \
         folder of its own with --state DIR",
        clean(holder)
    )
}
