//! Filters of this sensor: the shipped ones and the site's own, and which file gets which.
//!
//! Reads folders of filters at the start. Rule: a refused filter is reported and does not stop the sensor.
//! Not here: what a filter is (`log_filters`).

use crate::config::{Config, Tail};
use crate::tail::interpret::{Filters, Interpret};
use compact_str::CompactString;
use globset::{GlobBuilder, GlobMatcher};
use jiff::tz::TimeZone;
use log_filters::across::AcrossLogs;
use log_filters::engine::{Engine, Source};
use log_filters::filter::{FILE_LEN_MAX_BYTES, Filter};
use log_filters::registry::Registry;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most filter files read from one folder.
const FILES_MAX: usize = 1_000;

/// All filters, the files they are from, and the errors of those that were refused.
#[derive(Clone, Debug)]
pub struct FilterSet {
    registry: Registry,
    origins: BTreeMap<String, PathBuf>,
    refused: Vec<String>,
}

impl FilterSet {
    /// Loads the shipped filters and those in these folders. Later folders win, and each of them wins over
    /// the shipped filters. A folder that does not exist is reported.
    #[must_use]
    pub fn load(folders: &[PathBuf]) -> FilterSet {
        let mut filtering =
            FilterSet { registry: Registry::shipped(), origins: BTreeMap::new(), refused: Vec::new() };
        for folder in folders {
            match files(folder) {
                Ok(files) => files.iter().for_each(|file| filtering.read(file)),
                Err(error) => {
                    filtering.refused.push(format!("folder of filters {}: {error}", folder.display()));
                }
            }
        }
        filtering
    }

    fn read(&mut self, file: &Path) {
        let shown = file.display().to_string();
        let text = match std::fs::metadata(file).and_then(|meta| {
            if meta.len() > FILE_LEN_MAX_BYTES as u64 {
                return Err(std::io::Error::other(format!(
                    "{} bytes; a filter has at most {FILE_LEN_MAX_BYTES}",
                    meta.len()
                )));
            }
            std::fs::read_to_string(file)
        }) {
            Ok(text) => text,
            Err(error) => {
                self.refused.push(format!("filter {shown}: {error}"));
                return;
            }
        };
        match self.registry.add(&shown, &text) {
            Ok(filter) => {
                self.origins.insert(filter.name().to_owned(), file.to_owned());
            }
            Err(error) => self.refused.push(format!("filter {error}")),
        }
    }

    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the file that a filter is from; `None` for a shipped one.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Path> {
        self.origins.get(name).map(PathBuf::as_path)
    }

    /// Returns why filters were refused, as sentences.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") && files.len() < FILES_MAX {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Chooses for each file its filter, host and time zone.
pub struct FilterChooser {
    filtering: Arc<FilterSet>,
    tails: Vec<(GlobMatcher, Option<String>, Option<TimeZone>)>,
    host: String,
    zone: TimeZone,
    /// State that the logs of one product share.
    across: AcrossLogs,
}

impl FilterChooser {
    /// Creates the choice for `config`.
    #[must_use]
    pub fn new(filtering: Arc<FilterSet>, config: &Config) -> FilterChooser {
        let matcher = |tail: &Tail| {
            // A path that is no glob is matched literally; the tail has rejected any other.
            let glob = GlobBuilder::new(&tail.spec.glob).literal_separator(true).build();
            let host = tail.host.as_ref().map(|host| host.as_str().to_owned());
            glob.ok().map(|glob| (glob.compile_matcher(), host, tail.zone.clone()))
        };
        FilterChooser {
            filtering,
            tails: config.tails.iter().filter_map(matcher).collect(),
            host: config.host.as_str().to_owned(),
            zone: config.zone.clone(),
            across: AcrossLogs::default(),
        }
    }

    fn registry(&self) -> &Registry {
        self.filtering.registry()
    }
}

impl Filters for FilterChooser {
    fn choose(&self, wanted: Option<&str>, path: &Path, first: &[u8]) -> Option<CompactString> {
        let filter: Option<&Arc<Filter>> = match wanted {
            Some(name) => self.registry().get(name),
            None => self.registry().choose(&path.file_name()?.to_string_lossy(), first),
        };
        filter.map(|filter| filter.name().into())
    }

    fn interpreter(&self, filter: &str, path: &Path, cluster: &str) -> Option<Box<dyn Interpret>> {
        let filter = self.registry().get(filter)?;
        let tail = self.tails.iter().find(|(glob, _, _)| glob.is_match(path));
        let (host, zone) = match tail {
            Some((_, host, zone)) => (host.clone(), zone.clone()),
            None => (None, None),
        };
        let source = Source {
            file_name: path.file_name()?.to_string_lossy().into_owned(),
            host: host.unwrap_or_else(|| self.host.clone()),
            cluster: cluster.to_owned(),
            zone: zone.unwrap_or_else(|| self.zone.clone()),
        };
        Some(Box::new(Engine::among(Arc::clone(filter), &source, &self.across)))
    }
}
