//! `visperf filter test`: runs the tests that filters contain, with a verdict for each.
//!
//! Not here: how a test is run (`log_filters::test_lines`).

use crate::exit::{Failure, Kind};
use crate::filter_sources::{FilterFolders, FilterSources, read_filter};
use crate::harmless::clean;
use crate::output::{Color, Output, report};
use log_filters::filter::Filter;
use log_filters::test_lines;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use wire::shown::count;

/// Run the tests embedded in a filter file
///
/// Prints the result of each test, with its line in the file. Exits with 5 if a test failed, 6 if a filter is
/// invalid.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  visperf filter test myapp.toml\n  visperf filter test slurmctld")]
pub(crate) struct Args {
    /// Filter files, or names of filters
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<String>,
    /// Print JSON, one object per test
    #[arg(long)]
    json: bool,
}

/// Run the tests.
///
/// # Errors
/// The worst failure: a test that failed, or a filter that is refused.
pub(crate) fn run(args: &Args, folders: &FilterFolders) -> Result<(), Failure> {
    let mut output = Output::stdout();
    let mut sources = None;
    let mut worst: Option<Kind> = None;
    for given in &args.filters {
        let filter = match find(given, folders, &mut sources) {
            Ok(filter) => filter,
            Err(failure) => {
                output.flush()?;
                report(&failure.message().unwrap_or_default());
                let kind = if matches!(failure, Failure::Refused(_)) {
                    Kind::Refused
                } else if matches!(failure, Failure::Usage(_)) {
                    Kind::Usage
                } else {
                    Kind::Failed
                };
                worst = worst.max(Some(kind));
                continue;
            }
        };
        if !test(given, &filter, args.json, &mut output)? {
            worst = worst.max(Some(Kind::Tests));
        }
    }
    output.flush()?;
    worst.map_or(Ok(()), |kind| Err(Failure::Printed(kind)))
}

/// Read an existing file; other arguments are looked up by name.
fn find(
    given: &str,
    folders: &FilterFolders,
    sources: &mut Option<FilterSources>,
) -> Result<Arc<Filter>, Failure> {
    if Path::new(given).exists() {
        return read_filter(Path::new(given)).map(|(filter, _)| filter);
    }
    if sources.is_none() {
        *sources = Some(FilterSources::load(folders)?);
    }
    sources.as_ref().expect("set above").named_or_file(given)
}

/// Run the tests of a filter; returns whether all passed.
fn test(given: &str, filter: &Arc<Filter>, json: bool, output: &mut Output) -> Result<bool, Failure> {
    let failures = test_lines::run(filter);
    let tests = tests(filter.text());
    let mut left = failures.iter().peekable();
    for (name, line) in &tests {
        // Failures are in the order of the tests.
        let failure = left.next_if(|failure| failure.test == *name);
        if json {
            output.json(&json!({
                "file": given, "filter": filter.name(), "test": name, "line": line,
                "passed": failure.is_none(), "message": failure.map_or("", |failure| failure.message.as_str()),
            }))?;
            continue;
        }
        let verdict = match failure {
            None => output.paint(Color::Good, "ok    ").into_owned(),
            Some(_) => output.paint(Color::Bad, "FAILED").into_owned(),
        };
        output.line(&format!("{verdict}  {given}:{line}  {}", clean(name)))?;
        for problem in failure.iter().flat_map(|failure| failure.message.lines()) {
            output.line(&format!("          {}", clean(problem)))?;
        }
    }
    if !json {
        let mut sum = format!("{}: {}", filter.name(), count(tests.len() as u64, "test"));
        sum.push_str(&match (tests.len(), failures.len()) {
            (0, _) => "; add [[test]] tables, at least one for every rule that gives an event".to_owned(),
            (_, 0) => ", all passed".to_owned(),
            (_, failed) => format!(", {failed} failed"),
        });
        output.line(&sum)?;
    }
    Ok(failures.is_empty())
}

/// The names of the tests in a filter's text, and the lines where they start.
fn tests(text: &str) -> Vec<(String, usize)> {
    #[derive(Deserialize)]
    struct Tests {
        #[serde(default)]
        test: Vec<Spanned<Named>>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let tests: Tests = toml::from_str(text).unwrap_or(Tests { test: Vec::new() });
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    tests.test.into_iter().map(|test| (test.get_ref().name.clone(), line(test.span().start))).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn tests_are_found_with_their_lines() {
        let text =
            "[filter]\nname = \"x\"\n\n[[test]]\nname = \"one\"\nlines = ''\n[[test]]\nname = \"two\"\n";
        assert_eq!(super::tests(text), [("one".to_owned(), 4), ("two".to_owned(), 7)]);
    }
}
