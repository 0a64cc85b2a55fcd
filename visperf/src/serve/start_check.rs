//! Checks before a sensor starts: the filters in the folders, and the requested logs.
//!
//! Rule: what cannot work is refused before anything is opened; what may still appear, such as a missing log,
//! is reported and permitted. Not here: reading logs (`sensor::tail`).

use crate::exit::{Failure, Kind};
use crate::filter_sources::FilterSources;
use crate::output::{colors_on_stderr, note};
use crate::refusal;
use daemon::config_file::{self, ConfigError};
use sensor::config::{RawTail, Tail};
use sensor::tail::follow::AtPath;
use sensor::tail::path_set::PathSet;
use sensor::tail::probe;
use std::path::{Path, PathBuf};

/// Effect of a refused filter in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedFilter {
    /// The start fails: a person starts it, and can correct the filter.
    Refuses,
    /// A service starts without it: one broken file must not end the monitoring of a host.
    IsLeftOut,
}

/// The filters of these folders, as the sensor will read them.
///
/// # Errors
/// If a filter is refused and `refused` is `Refuses` (the filter was already reported), or a folder cannot be
/// read.
pub(crate) fn filters(folders: &[PathBuf], refused: RefusedFilter) -> Result<FilterSources, Failure> {
    let sources = FilterSources::of(folders)?;
    match refused {
        RefusedFilter::Refuses => sound(&sources)?,
        RefusedFilter::IsLeftOut => {}
    }
    Ok(sources)
}

/// Check that none of the filters was refused.
///
/// # Errors
/// If one was; it was already reported.
pub(crate) fn sound(sources: &FilterSources) -> Result<(), Failure> {
    match sources.refused {
        0 => Ok(()),
        _ => Err(Failure::Printed(Kind::Refused)),
    }
}

/// The filter folders of a configuration that exist; a missing one is reported, and may be created with its
/// first filter.
pub(crate) fn present(folders: &[PathBuf]) -> Vec<PathBuf> {
    let (there, missing): (Vec<_>, Vec<_>) = folders.iter().cloned().partition(|folder| folder.is_dir());
    for folder in missing {
        note(&format!("note: the folder of filters {} is not there yet", folder.display()));
    }
    there
}

/// Check that the filters of the tails in a configuration file exist. `tails` are those of the file.
///
/// # Errors
/// The unknown filters, with their positions in the file.
pub(crate) fn known_filters(file: &Path, tails: &[RawTail], sources: &FilterSources) -> Result<(), Failure> {
    let mistakes = unknown_filters(file, tails, sources);
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(Failure::Refused(refusal::configuration(mistakes, colors_on_stderr()))),
    }
}

/// The unknown filters of the tails in a configuration file.
pub(crate) fn unknown_filters(file: &Path, tails: &[RawTail], sources: &FilterSources) -> Vec<ConfigError> {
    let named = tails.iter().map(|tail| (tail.path.as_str(), tail.filter.as_deref()));
    let unknown: Vec<_> = unknown(named, sources).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    match config_file::read(file) {
        Ok(text) => unknown
            .iter()
            .map(|(entry, why)| {
                let keys = ["sensor", "tail", &entry.to_string(), "filter"];
                let hint = "a filter of your own is found in a folder that `filters` of [sensor] names";
                ConfigError::at_key(file, &text, &keys, why, hint)
            })
            .collect(),
        Err(error) => vec![error],
    }
}

/// The tails with an unknown filter: their numbers, and a sentence about each.
fn unknown<'a>(
    tails: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    sources: &FilterSources,
) -> impl Iterator<Item = (usize, String)> {
    tails.enumerate().filter_map(|(entry, (path, filter))| {
        let unknown = sources.unknown(filter?)?;
        Some((entry, format!("expected the name of a filter for {path}: {unknown}")))
    })
}

/// Check the logs of the command line: their filters must exist, the logs may be created later.
///
/// # Errors
/// If one names an unknown filter, or is an invalid glob.
pub(crate) fn named_logs(tails: &[Tail], sources: &FilterSources) -> Result<(), Failure> {
    let named = tails.iter().map(|tail| (tail.spec.glob.as_str(), tail.spec.filter.as_deref()));
    if let Some((_, unknown)) = unknown(named, sources).next() {
        return Err(Failure::Usage(format!(
            "--tail FILE=FILTER: {unknown}; a filter of your own is found in a folder that --filters DIR names"
        )));
    }
    for tail in tails {
        let set = PathSet::new(std::slice::from_ref(&tail.spec))
            .map_err(|error| Failure::Usage(format!("--tail: {error}")))?;
        if let Some(text) = absent(&tail.spec.glob, &set.scan().files) {
            note(&format!("note: {text}"));
        }
    }
    Ok(())
}

/// The reason why a log cannot be read now, if any.
fn absent(given: &str, found: &[(PathBuf, usize)]) -> Option<String> {
    let path = Path::new(given);
    match found {
        [] if given.contains(['*', '?', '[', '{']) => {
            Some(format!("--tail {given}: nothing fits yet; what comes is read from its beginning"))
        }
        _ => found.iter().map(|(path, _)| path.as_path()).chain(found.is_empty().then_some(path)).find_map(
            |path| match probe::open(path, &[PathBuf::from("/")]) {
                Ok(_) | Err(AtPath::File { .. }) => None,
                Err(AtPath::Nothing) if path.is_symlink() => Some(format!(
                    "--tail {}: a link to what is not there yet; it is read as soon as it comes",
                    path.display()
                )),
                Err(AtPath::Nothing) => {
                    Some(format!("--tail {given}: there is no such file yet; it is read as soon as it comes"))
                }
                Err(AtPath::Refused(why)) => Some(format!("--tail {}: {why}", path.display())),
                Err(AtPath::Unknown(why)) => {
                    Some(format!("--tail {}: {why}; it is read as soon as that is mended", path.display()))
                }
            },
        ),
    }
}
