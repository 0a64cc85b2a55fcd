//! `visperf config check`: verifies a configuration file before a daemon is started with it.
//!
//! One file has a section for each daemon. Each section is parsed by its daemon's own types, so this command
//! accepts exactly what the daemon accepts.

use crate::command::daemons::File;
use crate::exit::Failure;
use crate::filter_sources::FilterSources;
use crate::output::{Output, colors_on_stderr};
use crate::refusal;
use crate::serve::start_check;
use clap::Subcommand;
use daemon::config_file::ConfigError;
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
    /// Check a configuration file as the daemons read it
    ///
    /// Exits with 6 if the file is invalid, and prints all errors with their positions.
    #[command(after_long_help = "Example:\n  visperf config check /etc/visperf/sensor.toml")]
    Check {
        /// Configuration file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print JSON: one object with the sections
        #[arg(long)]
        json: bool,
    },
}

/// Check a file.
///
/// # Errors
/// If the file is refused.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Action::Check { file, json } = &args.action;
    let sections = check(file)?;
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

/// The names of the sections of a valid file.
///
/// # Errors
/// Every mistake in the file, and in the filters that it names.
fn check(path: &Path) -> Result<Vec<&'static str>, Failure> {
    let (file, mut mistakes) = File::read(path);
    let filters = filters(path, &file, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(Failure::Refused(refusal::configuration(mistakes, colors_on_stderr())));
    }
    filters?;
    let sections = [
        ("sensor", file.sensor.is_some()),
        ("directory", file.directory.is_some()),
        ("proxy", file.proxy.is_some()),
        ("overlay", file.has_overlay),
    ];
    Ok(sections.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect())
}

/// Check the filters that the sensor's section names: unknown ones are added to `mistakes`, invalid ones are
/// reported.
fn filters(path: &Path, file: &File, mistakes: &mut Vec<ConfigError>) -> Result<(), Failure> {
    let sources = FilterSources::of(&start_check::present(&file.written.filters))?;
    mistakes.extend(start_check::unknown_filters(path, &file.written.tail, &sources));
    start_check::sound(&sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Result<Vec<&'static str>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        check(&path).map_err(|failure| failure.message().expect("it is shown here"))
    }

    #[test]
    fn a_file_is_read_as_the_daemons_read_it() {
        assert_eq!(check_text(""), Ok(vec![]));
        assert_eq!(check_text("[directory]\nsnapshot_secs = 5\n"), Ok(vec!["directory"]));
        assert_eq!(
            check_text("[overlay]\n[directory]\n[sensor]\n[proxy]\nnames = [\"proxy.example\"]\n"),
            Ok(vec!["sensor", "directory", "proxy", "overlay"])
        );
        let wrong = check_text("[directory]\nsnapshot_secs = 0\n").unwrap_err();
        // The report wraps lines at a fixed width, so the breaks depend on the path before.
        assert!(wrong.contains("c.toml:2:17") && wrong.contains("0 seconds between"), "{wrong}");
        let many = check_text(
            "[directory]\nsnapshot_secs = 0\n[overlay]\nlisten = \"here\"\nseeds = [\"a:1\", \"b\"]\nprot = 1\n\
             [sensor]\nsample_hz = 0\n[[sensor.tail]]\npath = \"x\"\nfilter = \"nobodys\"\n",
        );
        let many = many.unwrap_err();
        for place in ["2:17", "4:10", "5:17", "6:1", "8:13", "10:8", "11:10"] {
            assert!(many.contains(&format!("c.toml:{place}")), "{place}: {many}");
        }
        assert!(many.ends_with("\n7 mistakes") && many.matches("error: ").count() == 7, "{many}");
        let unknown = check_text("[directory]\nsnapshot_sec = 5\n").unwrap_err();
        assert!(unknown.contains("did you mean snapshot_secs"), "{unknown}");
    }
}
