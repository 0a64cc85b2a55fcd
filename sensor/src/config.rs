//! Configuration of a sensor: the `[sensor]` section of the configuration file, and what follows from it.
//!
//! Rule: [`RawConfig`] mirrors the file and nothing else; a [`Config`] is valid by construction.
//! Not here: the listen address and the state directory (flags and the composing program set them).

pub mod history;

use crate::archive;
use crate::control;
use crate::findings;
use crate::findings::config::Thresholds;
use crate::module;
use crate::process::source::Kind;
use crate::recorder;
use crate::sample::schedule::Rate;
use crate::tail::path_set::PathSet;
use crate::tail::{self, FirstStart, Spec, Start};
use jiff::tz::TimeZone;
use log_filters::calendar::zone;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use wire::id::{DomainName, HostName};

/// Default rate of sampling the host, in sweeps a second.
pub const SAMPLE_HZ_DEFAULT: f64 = 1.0;
/// Default rate of sampling processes, in sweeps a second.
pub const PROCESS_HZ_DEFAULT: f64 = 1.0;
/// Domain of a sensor whose configuration names none.
pub const DOMAIN_DEFAULT: &str = "local";
/// Allowed sizes of the journal, in MiB: two segments at least.
pub const JOURNAL_MIB_ALLOWED: std::ops::RangeInclusive<u64> = 64..=1 << 20;

/// The `[sensor]` section as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawConfig {
    /// Domain that this host belongs to.
    pub domain: Option<String>,
    /// Name of this host (default: the system's host name).
    pub host: Option<String>,
    /// Folders of the site's own filters; later ones win.
    #[serde(default)]
    pub filters: Vec<PathBuf>,
    /// Time zone of time stamps without one (default: the system's).
    pub zone: Option<String>,
    /// Sampling rate of the host, in Hz.
    pub sample_hz: Option<f64>,
    /// Sampling rate of the host's processes, in Hz.
    pub process_hz: Option<f64>,
    /// Source of process data: `procfs`, `bpf-sweep` or `bpf-changed` (default: the best that works).
    pub process_source: Option<Kind>,
    /// Types of file systems, beside the local ones, on which job files named by processes are read.
    #[serde(default)]
    pub job_file_systems: Vec<String>,
    /// Where to start in logs that are found at the very first start: `beginning` or `end`.
    pub first_start: Option<FirstStartWord>,
    /// Disk space for events, in MiB.
    pub journal_mib: Option<u64>,
    /// History of metrics on disk.
    #[serde(default)]
    pub history: history::RawConfig,
    #[serde(default)]
    pub recorder: recorder::config::RawConfig,
    /// Users whose processes operators may control.
    #[serde(default)]
    pub control: control::config::RawConfig,
    /// Archive of the series of jobs of other hosts.
    #[serde(default)]
    pub archive: archive::config::RawConfig,
    /// Thresholds of findings about jobs.
    #[serde(default)]
    pub findings: findings::config::RawConfig,
    /// Folder of modules.
    #[serde(default)]
    pub modules: module::config::RawConfig,
    #[serde(default)]
    pub tail: Vec<RawTail>,
}

/// One `[[sensor.tail]]` as written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTail {
    /// A file, a glob, or a folder (all files in it); an absolute path.
    pub path: String,
    /// Name of the filter; chosen by file name and first lines if not given.
    pub filter: Option<String>,
    /// Label of the cluster that the log belongs to.
    #[serde(default)]
    pub cluster: String,
    /// Host that the log is from, if not this one.
    pub host: Option<String>,
    /// Time zone of its time stamps.
    pub zone: Option<String>,
    /// Where to start: `beginning`, `end` or `checkpoint` (default).
    pub start: Option<StartWord>,
    /// Folders that symbolic links may lead into.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
}

/// Keywords for [`FirstStart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FirstStartWord {
    /// Read the lines that are there.
    Beginning,
    /// Read only new lines.
    End,
}

/// Keywords for [`Start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartWord {
    /// At the first line.
    Beginning,
    End,
    /// Where the last run stopped.
    Checkpoint,
}

/// A log to follow, with what its filter needs to know.
#[derive(Clone, Debug)]
pub struct Tail {
    /// Settings for the tail.
    pub spec: Spec,
    /// Host that the log is from, if not this one.
    pub host: Option<HostName>,
    /// Time zone of its time stamps, if not the sensor's.
    pub zone: Option<TimeZone>,
}

impl Tail {
    /// Follows this path with default settings.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Tail {
        Tail { spec: Spec::new(path), host: None, zone: None }
    }
}

/// Checked configuration of a sensor.
#[derive(Clone, Debug)]
pub struct Config {
    pub domain: DomainName,
    pub host: HostName,
    /// Folders of the site's own filters; later ones win.
    pub filters: Vec<PathBuf>,
    /// Time zone of time stamps without one.
    pub zone: TimeZone,
    /// Sampling rate of the host.
    pub sample_rate: Rate,
    /// Sampling rate of its processes.
    pub process_rate: Rate,
    /// Source of process data; `None` is the best that works.
    pub process_source: Option<Kind>,
    /// Types of file systems, beside the local ones, on which job files named by processes are read.
    pub job_file_systems: Vec<String>,
    /// Where to start in logs that are found at the very first start.
    pub first_start: FirstStart,
    /// Disk space for events, in bytes.
    pub journal_bytes: u64,
    /// History of metrics on disk.
    pub history: history::Config,
    /// Place of the exported days of the domain, where queries read what this host does not have any more.
    pub exported: Option<String>,
    pub recorder: recorder::config::Config,
    /// Users whose processes operators may control: none unless listed.
    pub control: control::config::Config,
    /// Archive of the series of jobs of other hosts; `None` if this sensor is none.
    pub archive: Option<archive::config::Config>,
    /// Thresholds of findings about jobs.
    pub findings: Thresholds,
    /// Folder of modules.
    pub modules: module::config::Config,
    pub tails: Vec<Tail>,
}

/// An invalid value of the configuration: its key, and what was expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Path of the key below `[sensor]`; an entry of a list is its index, from 0.
    pub keys: Vec<String>,
    /// What was found and expected.
    pub message: String,
}

impl Error {
    fn new(key: &str, message: impl Into<String>) -> Error {
        Error { keys: vec![key.to_owned()], message: message.into() }
    }

    /// Error in the n-th entry of a list.
    fn of_entry(list: &str, entry: usize, key: Option<&str>, message: impl Into<String>) -> Error {
        let keys = [list.to_owned(), entry.to_string()];
        Error { keys: keys.into_iter().chain(key.map(ToOwned::to_owned)).collect(), message: message.into() }
    }
}

impl Config {
    /// Checks `raw`; `host_name` is the system's name of this host, `system_zone` its time zone.
    ///
    /// # Errors
    /// If values are invalid: all of them.
    pub fn new(raw: RawConfig, host_name: &str, system_zone: TimeZone) -> Result<Config, Vec<Error>> {
        let mut wrong = Errors::default();
        let domain = DomainName::try_from(raw.domain.as_deref().unwrap_or(DOMAIN_DEFAULT));
        let domain = wrong.unless(domain, |message| Error::new("domain", message));
        let host = HostName::try_from(raw.host.as_deref().unwrap_or(host_name));
        let host = wrong.unless(host, |message| Error::new("host", message));
        let own_zone = match raw.zone.as_deref() {
            None | Some("local") => Ok(system_zone),
            Some(name) => zone(name),
        };
        let own_zone = wrong.unless(own_zone, |message| Error::new("zone", message));
        let rate = Rate::from_hz(raw.sample_hz.unwrap_or(SAMPLE_HZ_DEFAULT));
        let sample_rate = wrong.unless(rate, |message| Error::new("sample_hz", message));
        let rate = Rate::of_processes(raw.process_hz.unwrap_or(PROCESS_HZ_DEFAULT));
        let process_rate = wrong.unless(rate, |message| Error::new("process_hz", message));
        let mib = raw.journal_mib.unwrap_or(256);
        if !JOURNAL_MIB_ALLOWED.contains(&mib) {
            wrong.0.push(Error::new("journal_mib", format!("{mib} MiB for events; expected 64 to 1048576")));
        }
        wrong.lists(&raw);
        let history = wrong.section("history", history::Config::new(&raw.history));
        let recorder = wrong.section("recorder", recorder::config::Config::new(raw.recorder));
        let control = wrong.section("control", control::config::Config::new(raw.control));
        let findings = wrong.section("findings", Thresholds::new(&raw.findings));
        let archive = wrong.section("archive", archive::config::Config::new(&raw.archive));
        let modules = wrong.section("modules", module::config::Config::new(raw.modules));
        let tails = raw.tail.iter().enumerate().filter_map(|tail| tail_of(tail, &mut wrong)).collect();
        let first_start = match raw.first_start {
            Some(FirstStartWord::End) => FirstStart::End,
            Some(FirstStartWord::Beginning) | None => FirstStart::Beginning,
        };
        match (
            domain,
            host,
            own_zone,
            sample_rate,
            process_rate,
            recorder.zip(control).zip(modules).zip(history).zip(findings).zip(archive),
        ) {
            (
                Some(domain),
                Some(host),
                Some(zone),
                Some(sample_rate),
                Some(process_rate),
                Some((((((recorder, control), modules), history), findings), archive)),
            ) if wrong.0.is_empty() => Ok(Config {
                domain,
                host,
                filters: raw.filters,
                zone,
                sample_rate,
                process_rate,
                process_source: raw.process_source,
                job_file_systems: raw.job_file_systems,
                first_start,
                journal_bytes: mib << 20,
                history,
                exported: raw.history.exported,
                recorder,
                control,
                archive,
                findings,
                modules,
                tails,
            }),
            _ => Err(wrong.0),
        }
    }

    /// Returns the settings for the tail.
    #[must_use]
    pub fn tail(&self) -> tail::Config {
        let specs = self.tails.iter().map(|tail| tail.spec.clone()).collect();
        let mut config = tail::Config::new(self.host.as_str(), specs);
        config.first_start = self.first_start;
        config.journal.budget_bytes = self.journal_bytes;
        config
    }
}

/// Types of the kernel's own file systems: reading their files runs kernel code.
const OF_KERNEL: [&str; 4] = ["proc", "sysfs", "tracefs", "debugfs"];

fn job_file_system(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > 32 || !name.bytes().all(fits) || OF_KERNEL.contains(&name) {
        return Err(format!(
            "{name:?}: expected a type of file systems as in /proc/filesystems, such as \"nfs4\", and none of the kernel's own"
        ));
    }
    Ok(())
}

/// Errors found so far.
#[derive(Default)]
struct Errors(Vec<Error>);

impl Errors {
    /// Records the errors of lists of names.
    fn lists(&mut self, raw: &RawConfig) {
        for (entry, folder) in raw.filters.iter().enumerate() {
            self.unless(whole(folder), |message| Error::of_entry("filters", entry, None, message));
        }
        for (entry, name) in raw.job_file_systems.iter().enumerate() {
            self.unless(job_file_system(name), |message| {
                Error::of_entry("job_file_systems", entry, None, message)
            });
        }
    }

    /// Returns the value of a section below; `None` after recording its errors.
    fn section<T>(&mut self, name: &str, value: Result<T, Vec<recorder::config::KeyError>>) -> Option<T> {
        value.map_err(|mistakes| self.of_section(name, mistakes)).ok()
    }

    /// Adds the errors of a section below.
    fn of_section(&mut self, section: &str, mistakes: Vec<recorder::config::KeyError>) {
        self.0.extend(mistakes.into_iter().map(|mistake| Error {
            keys: std::iter::once(section.to_owned()).chain(mistake.keys).collect(),
            message: mistake.message,
        }));
    }

    /// Returns the value; `None` after recording its error.
    fn unless<T, E: std::fmt::Display>(
        &mut self,
        value: Result<T, E>,
        named: impl FnOnce(String) -> Error,
    ) -> Option<T> {
        value.map_err(|error| self.0.push(named(error.to_string()))).ok()
    }
}

/// Builds the log of an entry of the list; `None` after recording its errors.
fn tail_of((entry, raw): (usize, &RawTail), wrong: &mut Errors) -> Option<Tail> {
    let named = |key: &'static str| move |message: String| Error::of_entry("tail", entry, Some(key), message);
    let spec = wrong.unless(spec_of(raw), named("path"));
    for (number, root) in raw.roots.iter().enumerate() {
        wrong.unless(whole(root), |message| {
            let mut error = named("roots")(message);
            error.keys.push(number.to_string());
            error
        });
    }
    let host = wrong.unless(raw.host.as_deref().map(HostName::try_from).transpose(), named("host"));
    let own_zone = raw.zone.as_deref().filter(|name| *name != "local");
    let zone = wrong.unless(own_zone.map(zone).transpose(), named("zone"));
    Some(Tail { spec: spec?, host: host?, zone: zone? })
}

fn spec_of(raw: &RawTail) -> Result<Spec, String> {
    if raw.path.is_empty() {
        return Err("it is empty; expected a file, a folder or a glob".to_owned());
    }
    whole(Path::new(&raw.path))?;
    let path = if Path::new(&raw.path).is_dir() {
        format!("{}/*", globset::escape(raw.path.trim_end_matches('/')))
    } else {
        raw.path.clone()
    };
    let mut spec = Spec::new(path);
    spec.filter.clone_from(&raw.filter);
    spec.cluster.clone_from(&raw.cluster);
    spec.host.clone_from(&raw.host);
    spec.roots.clone_from(&raw.roots);
    spec.start = match raw.start {
        Some(StartWord::Beginning) => Start::Beginning,
        Some(StartWord::End) => Start::End,
        Some(StartWord::Checkpoint) | None => Start::Checkpoint,
    };
    PathSet::new(std::slice::from_ref(&spec)).map_err(|error| error.to_string())?;
    Ok(spec)
}

/// A daemon may be started in any folder: a path must not depend on the working directory.
fn whole(path: &Path) -> Result<(), String> {
    match path.is_absolute() {
        true => Ok(()),
        false => Err(format!(
            "{} is no whole path: which file it means would hang on the folder in which a daemon is started; \
             begin it with /",
            path.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Config, String> {
        let raw: RawConfig = daemon::config_file::load(std::path::Path::new("f"), text).expect("well formed");
        let keys = |errors: Vec<Error>| {
            let keys: Vec<String> = errors.iter().map(|error| error.keys.join(".")).collect();
            keys.join(" ")
        };
        Config::new(raw, "here", TimeZone::UTC).map_err(keys)
    }

    #[test]
    fn defaults_are_sensible() {
        let config = check("").expect("nothing is needed");
        assert_eq!((config.domain.as_str(), config.host.as_str()), ("local", "here"));
        assert!((config.sample_rate.hz() - 1.0).abs() < 1e-9);
        assert_eq!(config.first_start, FirstStart::Beginning);
    }

    #[test]
    fn values_out_of_range_name_their_key() {
        for (text, key) in [
            ("domain = 'a b'", "domain"),
            ("host = ''", "host"),
            ("sample_hz = 1000", "sample_hz"),
            ("sample_hz = nan", "sample_hz"),
            ("process_hz = 1001", "process_hz"),
            ("journal_mib = 1", "journal_mib"),
            ("zone = 'Nowhere/Land'", "zone"),
            ("[[tail]]\npath = ''", "tail.0.path"),
            ("[[tail]]\npath = '/y'\n[[tail]]\npath = '/x'\nzone = 'q'", "tail.1.zone"),
            ("[[tail]]\npath = '/x'\nhost = 'a b'", "tail.0.host"),
            ("[[tail]]\npath = 'x.log'", "tail.0.path"),
            ("[[tail]]\npath = '/x/[ab.log'", "tail.0.path"),
            ("[[tail]]\npath = '/x/{a,b.log'", "tail.0.path"),
            ("[[tail]]\npath = '/x'\nroots = ['/srv', 'srv']", "tail.0.roots.1"),
            (
                "sample_hz = 0\nzone = 'q'\njournal_mib = 1\n[[tail]]\npath = 'x'\nzone = 'q'\n[[tail]]\npath = ''",
                "zone sample_hz journal_mib tail.0.path tail.0.zone tail.1.path",
            ),
            ("filters = ['/etc', 'own']", "filters.1"),
            ("[modules]\nfolder = 'modules'", "modules.folder"),
            ("[findings]\nidle_percent = 101", "findings.idle_percent"),
            ("[control]\nusers = ['ada', 'root']", "control.users.1"),
            (
                "zone = 'q'\n[recorder]\nhz = 0\n[[recorder.triggers]]\nname = 'a'\njob = '('",
                "zone recorder.hz recorder.triggers.0.job",
            ),
        ] {
            assert_eq!(check(text).map(|_| ()), Err(key.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_folder_means_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!("[[tail]]\npath = '{}'", folder.path().display());
        let config = check(&text).expect("good");
        assert!(config.tails[0].spec.glob.ends_with("/*"));
    }
}
