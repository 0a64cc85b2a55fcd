//! `visperf config check`: whether a configuration file can be used, before a daemon is started with it.
//!
//! One file has a section for each daemon; each section is read by its daemon's own types, so what this
//! accepts is what the daemon accepts.

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
    /// Read a configuration file as the daemons do, and say whether it can be used
    ///
    /// Ends with 6 if it is refused, and shows all that is wrong, each with its place.
    #[command(after_long_help = "Example:\n  visperf config check /etc/visperf/sensor.toml")]
    Check {
        /// The file
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
/// If it is refused.
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

/// The sections of a file that can be used.
///
/// # Errors
/// All that is wrong with it, and with the filters that it names.
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

/// Whether the filters that the sensor's section names are there, which is noted, and valid, which is reported.
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
        check(&path).map_err(|failure| failure.message().expect("it is told here"))
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
        // The report breaks its lines where the width says, which depends on the path before.
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
