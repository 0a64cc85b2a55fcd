//! Filter sources: the shipped filters, then those of the users' folders.
//!
//! Rule: a later folder overrides an earlier one by a filter's name: shipped, `/etc/visperf/filters`,
//! `~/.config/visperf/filters`, `VISPERF_FILTERS` or `--filters`. A refused file is reported, and the others
//! are read.
//! Not here: what a filter is (`log_filters`).

use crate::exit::Failure;
use crate::output::{colors_on_stderr, report};
use crate::refusal;
use log_filters::filter::{FILE_LEN_MAX_BYTES, Filter};
use log_filters::registry::Registry;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most files read from one folder; a folder with more was named by mistake.
const FILES_MAX: usize = 1_000;

/// Folders with filters of the user.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FilterFolders {
    /// Folder with your own filters (*.toml); one with the name of a shipped filter replaces it
    ///
    /// May be repeated; the last one has priority. Also read, if they exist: ~/.config/visperf/filters and
    /// /etc/visperf/filters.
    #[arg(
        long = "filters",
        value_name = "DIR",
        env = "VISPERF_FILTERS",
        value_delimiter = ':',
        global = true
    )]
    pub(crate) folders: Vec<PathBuf>,
}

/// The filters that are available, by name, and the files they come from.
#[derive(Debug)]
pub(crate) struct FilterSources {
    pub(crate) registry: Registry,
    origins: BTreeMap<String, PathBuf>,
    /// Number of files that were refused.
    pub(crate) refused: usize,
}

impl FilterSources {
    /// Read all filters. Refused files are reported on standard error.
    ///
    /// # Errors
    /// If a folder that was named cannot be read.
    pub(crate) fn load(given: &FilterFolders) -> Result<FilterSources, Failure> {
        FilterSources::of(&folders(given))
    }

    /// The shipped filters and those of these folders, as [`FilterSources::load`].
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub(crate) fn of(folders: &[PathBuf]) -> Result<FilterSources, Failure> {
        let mut sources =
            FilterSources { registry: Registry::shipped(), origins: BTreeMap::new(), refused: 0 };
        folders.iter().try_for_each(|folder| sources.read_folder(folder))?;
        Ok(sources)
    }

    fn read_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let refuse = |error| {
            let what = format!("cannot read the folder of filters {}", folder.display());
            Failure::of(&what, error)
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(refuse)? {
            let path = entry.map_err(refuse)?.path();
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|extension| extension == "toml") {
                files.push(path);
            }
        }
        if files.len() > FILES_MAX {
            let what = format!("expected at most {FILES_MAX} filters in {}", folder.display());
            return Err(Failure::of(&what, format!("found {}", files.len())));
        }
        files.sort();
        for path in files {
            let text = match read_text(&path) {
                Ok(text) => text,
                Err(failure) => {
                    self.refused += 1;
                    report(&failure.message().unwrap_or_default());
                    continue;
                }
            };
            match self.registry.add(&path.display().to_string(), &text) {
                Ok(filter) => {
                    self.origins.insert(filter.name().to_owned(), path);
                }
                Err(error) => {
                    self.refused += 1;
                    report(&refusal::filter(&error, &text, colors_on_stderr()));
                }
            }
        }
        Ok(())
    }

    /// Origin of a filter: `shipped`, or its file.
    pub(crate) fn origin(&self, name: &str) -> String {
        self.origins.get(name).map_or("shipped".to_owned(), |path| path.display().to_string())
    }

    /// Whether this filter is the shipped one, and not a user's of the same name.
    pub(crate) fn is_shipped(&self, filter: &Arc<Filter>) -> bool {
        let known = self.registry.get(filter.name());
        known.is_some_and(|known| Arc::ptr_eq(known, filter)) && !self.origins.contains_key(filter.name())
    }

    /// The filter with this name or in this file.
    ///
    /// # Errors
    /// [`Failure::Usage`] if there is no such filter; others if the file cannot be read or is refused.
    pub(crate) fn named_or_file(&self, given: &str) -> Result<Arc<Filter>, Failure> {
        if let Some(filter) = self.registry.get(given) {
            return Ok(Arc::clone(filter));
        }
        let path = Path::new(given);
        let looks_like_file = given.contains('/') || path.extension().is_some_and(|ext| ext == "toml");
        if looks_like_file || path.is_file() {
            return read_filter(path).map(|(filter, _)| filter);
        }
        Err(Failure::Usage(self.no_filter(given)))
    }

    /// Error message for a name that no filter has; `None` if one has it.
    pub(crate) fn unknown(&self, name: &str) -> Option<String> {
        let known = self.registry.get(name).is_some();
        (!known).then(|| self.no_filter(name))
    }

    fn no_filter(&self, given: &str) -> String {
        self.registry.no_filter(given)
    }
}

fn usual_folders() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
    let own = own.map(|config| config.join("visperf/filters"));
    std::iter::once(PathBuf::from("/etc/visperf/filters")).chain(own).collect()
}

/// The existing folders of users' filters; a later one overrides an earlier one.
pub(crate) fn folders(given: &FilterFolders) -> Vec<PathBuf> {
    let usual = usual_folders().into_iter().filter(|folder| folder.is_dir());
    usual.chain(given.folders.iter().filter(|folder| !folder.as_os_str().is_empty()).cloned()).collect()
}

/// Read a filter from a file; returns its text too.
///
/// # Errors
/// If the file cannot be read or is refused.
pub(crate) fn read_filter(path: &Path) -> Result<(Arc<Filter>, String), Failure> {
    let text = read_text(path)?;
    match Filter::parse(&path.display().to_string(), &text) {
        Ok(filter) => Ok((Arc::new(filter), text)),
        Err(error) => Err(Failure::Refused(refusal::filter(&error, &text, colors_on_stderr()))),
    }
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let what = || format!("cannot read the filter {}", path.display());
    let file = std::fs::File::open(path).map_err(|error| Failure::of(&what(), error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(Failure::of(&what(), "it is a folder; name a file, or give the folder with --filters"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_LEN_MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::of(&what(), error))?;
    if bytes.len() > FILE_LEN_MAX_BYTES {
        return Err(Failure::of(&what(), format!("expected at most {FILE_LEN_MAX_BYTES} bytes, found more")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::of(&what(), format!("expected UTF-8, found something else at byte {at}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "[filter]\nname = \"slurmctld\"\nproduct = \"Own\"\n[[rule]]\nmatch = '^x'\n";

    #[test]
    fn filters_of_ones_own_win_and_refused_ones_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.toml"), OWN).unwrap();
        std::fs::write(folder.path().join("b.toml"), "nonsense").unwrap();
        std::fs::write(folder.path().join("c.txt"), "not looked at").unwrap();
        let folders = FilterFolders { folders: vec![folder.path().to_owned()] };
        let sources = FilterSources::load(&folders).unwrap();
        assert_eq!(sources.registry.get("slurmctld").unwrap().product(), "Own");
        assert_eq!(sources.origin("slurmctld"), folder.path().join("a.toml").display().to_string());
        assert_eq!(sources.refused, 1);
        assert_eq!(sources.origin("slurmd"), "shipped");
    }

    #[test]
    fn a_folder_that_was_named_must_be_there() {
        let folders = FilterFolders { folders: vec!["/nonexistent/filters".into()] };
        assert_eq!(FilterSources::load(&folders).unwrap_err().code(), 1);
    }

    #[test]
    fn unknown_names_are_answered_with_near_ones() {
        let sources = FilterSources::load(&FilterFolders::default()).unwrap();
        let Err(Failure::Usage(message)) = sources.named_or_file("slurmctl") else { panic!("found") };
        assert!(message.contains("slurmctld"), "{message}");
        let near = |given: &str| sources.unknown(given).unwrap();
        assert!(near("PBS").contains("torque-server") && near("Slurm").contains("slurmd"), "{}", near("PBS"));
        assert!(!near("nope").contains("did you mean"), "{}", near("nope"));
        assert!(!near("").contains("did you mean"), "{}", near(""));
        let slurmctld = sources.named_or_file("slurmctld").unwrap();
        assert!(sources.is_shipped(&slurmctld));
        assert!(!sources.is_shipped(&Arc::new(Filter::parse("slurmctld.toml", slurmctld.text()).unwrap())));
        assert_eq!(sources.named_or_file("./no.toml").unwrap_err().code(), 1);
    }
}
