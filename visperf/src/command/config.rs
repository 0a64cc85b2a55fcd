//! `visperf config check`: whether a configuration file can be used, before a daemon is started with it.
//!
//! One file has a section for each daemon; each section is read by its daemon's own types, so what this
//! accepts is what the daemon accepts.

use crate::exit::Failure;
use crate::output::{Output, colors_on_stderr};
use crate::refusal;
use clap::Subcommand;
use daemon::config_file::{self, ConfigError};
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Check a daemon's configuration file
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Read a configuration file as the daemons do, and say whether it can be used
    ///
    /// Ends with 6 if it is refused, and shows the place.
    #[command(after_long_help = "Example:\n  visperf config check /etc/visperf/visperf.toml")]
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print JSON: one object with the sections
        #[arg(long)]
        json: bool,
    },
}

/// The file as written: a section for each daemon.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    directory: Option<directory::config::RawConfig>,
}

/// Check a file.
///
/// # Errors
/// If it is refused.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Action::Check { file, json } = &args.action;
    let sections =
        check(file).map_err(|error| Failure::Refused(refusal::show(&error, colors_on_stderr())))?;
    let mut output = Output::stdout();
    if *json {
        output.json(&json!({ "file": file.display().to_string(), "sections": sections }))?;
    } else {
        let listed = match sections.as_slice() {
            [] => "no section, so every daemon does as it does by itself".to_owned(),
            some => format!("sections {}", some.join(", ")),
        };
        output.line(&format!("{}: can be used ({listed})", file.display()))?;
    }
    output.flush()
}

/// The sections of a file that can be used.
fn check(path: &Path) -> Result<Vec<&'static str>, ConfigError> {
    let text = config_file::read(path)?;
    let raw: RawFile = config_file::load(path, &text)?;
    let mut sections = Vec::new();
    if let Some(raw) = raw.directory {
        directory::config::Config::try_from(raw).map_err(|error| {
            let hint = "change the value, or leave the key out for the default";
            ConfigError::at_key(path, &text, &["directory", error.key()], &error.to_string(), hint)
        })?;
        sections.push("directory");
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Result<Vec<&'static str>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        check(&path).map_err(|error| refusal::show(&error, false))
    }

    #[test]
    fn a_file_is_read_as_the_daemons_read_it() {
        assert_eq!(check_text(""), Ok(vec![]));
        assert_eq!(check_text("[directory]\nsnapshot_secs = 5\n"), Ok(vec!["directory"]));
        let wrong = check_text("[directory]\nsnapshot_secs = 0\n").unwrap_err();
        assert!(wrong.contains("c.toml:2:17") && wrong.contains("0 seconds between snapshots"), "{wrong}");
        let unknown = check_text("[directory]\nsnapshot_sec = 5\n").unwrap_err();
        assert!(unknown.contains("did you mean snapshot_secs"), "{unknown}");
    }
}
