//! File of a module: what to run, and its resource limits.
//!
//! Pure: callers read the file. Rules: the name of a module is that of its file, without `.toml`; the
//! defaults are as small as suffices for a collector in any language.
//! Not here: which users may have written the file (`trust`).

use super::protocol;
use daemon::config_file::{self, ConfigError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest name of a module, in bytes: it is part of the name of each of its figures.
pub const NAME_LEN_MAX_BYTES: usize = 32;
/// Most arguments, and most environment variables.
pub const ARGUMENTS_MAX: usize = 64;
/// Allowed range of `memory_mib`, in MiB.
const MEMORY_MIB_ALLOWED: std::ops::RangeInclusive<u64> = 1..=4096;
/// Allowed range of `cpu_ms`, in milliseconds per second.
const CPU_MS_ALLOWED: std::ops::RangeInclusive<u32> = 1..=1000;
/// Allowed range of `answer_s`, in seconds: less than the time after which an idle subscription ends.
const ANSWER_S_ALLOWED: std::ops::RangeInclusive<f64> = 0.1..=30.0;

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// An executable in a process of its own.
    Executable {
        /// Path of the executable.
        program: PathBuf,
        arguments: Vec<String>,
        /// User to run as; `None` for the sensor's user.
        user: Option<String>,
        /// Environment variables, besides the few that every module has.
        env: BTreeMap<String, String>,
    },
    /// WebAssembly, in the sensor's process.
    Wasm {
        /// Path of the WebAssembly file.
        file: PathBuf,
    },
}

impl Runs {
    /// Path of the file that runs.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Runs::Executable { program, .. } => program,
            Runs::Wasm { file } => file,
        }
    }
}

/// Resource limits of a module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Memory of each of its processes, in bytes.
    pub memory_bytes: u64,
    /// CPU time in milliseconds per second, on average over about ten seconds.
    pub cpu_ms: u32,
    /// Time for an answer.
    pub answer: Duration,
}

impl Default for Limits {
    /// Enough memory for a program in Python; a twentieth of a core; longer than a busy host needs to answer.
    fn default() -> Limits {
        Limits { memory_bytes: 128 << 20, cpu_ms: 50, answer: Duration::from_secs(5) }
    }
}

/// Specification of a module, as its file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub name: String,
    pub runs: Runs,
    /// Whether the module is to run.
    pub is_on: bool,
    /// Rate of calls to a collector, in Hz; it overrides the rate that the module requests.
    pub rate_hz: Option<f64>,
    pub limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    run: Option<Vec<String>>,
    wasm: Option<PathBuf>,
    user: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    on: Option<bool>,
    rate: Option<f64>,
    memory_mib: Option<u64>,
    cpu_ms: Option<u32>,
    answer_s: Option<f64>,
}

/// Why a module's file is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Invalid file name.
    #[error(
        "expected a file called NAME.toml, where NAME is of a to z, 0 to 9, _ and -, begins with a letter and has at most \
         {NAME_LEN_MAX_BYTES} of them, found {0:?}"
    )]
    Name(String),
    /// Not TOML of the expected form.
    #[error("line {line}: {error}")]
    Form {
        /// Line number, from 1.
        line: usize,
        error: ConfigError,
    },
    /// Invalid value.
    #[error("{0}")]
    Value(String),
}

/// Whether this is a valid name of a module.
#[must_use]
pub fn is_name(name: &str) -> bool {
    name.len() <= NAME_LEN_MAX_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
}

impl Spec {
    /// Parses the content `text` of the file at `path`.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn parse(path: &Path, text: &str) -> Result<Spec, Error> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !is_name(&stem) {
            return Err(Error::Name(stem));
        }
        let raw: Raw = config_file::load(path, text).map_err(|error| {
            let line = text[..error.offset().min(text.len())].matches('\n').count() + 1;
            Error::Form { line, error }
        })?;
        Spec::checked(stem, raw).map_err(Error::Value)
    }

    fn checked(name: String, raw: Raw) -> Result<Spec, String> {
        let limits = limits(&raw)?;
        let rate_hz =
            raw.rate.map(protocol::rate).transpose().map_err(|message| format!("rate: {message}"))?;
        let is_of_process = raw.user.is_some() || !raw.env.is_empty();
        let runs = match (raw.run, raw.wasm) {
            (Some(run), None) => executable(run, raw.user, raw.env)?,
            (None, Some(_)) if is_of_process => {
                return Err(
                    "expected neither user nor env beside wasm, which has no process; leave them out"
                        .to_owned(),
                );
            }
            (None, Some(file)) => Runs::Wasm { file: whole("wasm", file)? },
            (found, _) => {
                let found = if found.is_some() { "both" } else { "neither" };
                return Err(format!(
                    "expected run = [\"/path/of/program\", \"argument\"] or wasm = \"/path\", found {found}"
                ));
            }
        };
        Ok(Spec { name, runs, is_on: raw.on.unwrap_or(true), rate_hz, limits })
    }
}

fn limits(raw: &Raw) -> Result<Limits, String> {
    let usual = Limits::default();
    let memory_mib = raw.memory_mib.unwrap_or(usual.memory_bytes >> 20);
    let cpu_ms = raw.cpu_ms.unwrap_or(usual.cpu_ms);
    let answer_s = raw.answer_s.unwrap_or(usual.answer.as_secs_f64());
    if !MEMORY_MIB_ALLOWED.contains(&memory_mib) {
        return Err(format!("memory_mib: expected 1 to 4096, found {memory_mib}"));
    }
    if !CPU_MS_ALLOWED.contains(&cpu_ms) {
        return Err(format!("cpu_ms: expected 1 to 1000 milliseconds a second, found {cpu_ms}"));
    }
    if !ANSWER_S_ALLOWED.contains(&answer_s) {
        return Err(format!("answer_s: expected 0.1 to 30 seconds, found {answer_s}"));
    }
    Ok(Limits { memory_bytes: memory_mib << 20, cpu_ms, answer: Duration::from_secs_f64(answer_s) })
}

fn executable(run: Vec<String>, user: Option<String>, env: BTreeMap<String, String>) -> Result<Runs, String> {
    let mut run = run.into_iter();
    let program = run.next().ok_or("run: expected a program, found an empty list")?;
    let arguments: Vec<String> = run.collect();
    if arguments.len() > ARGUMENTS_MAX || env.len() > ARGUMENTS_MAX {
        return Err(format!("expected at most {ARGUMENTS_MAX} arguments and as many variables"));
    }
    let is_variable = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
    if let Some(name) = env.keys().find(|name| !is_variable(name)) {
        return Err(format!("env: expected names of variables, found {name:?}"));
    }
    if [&program].into_iter().chain(&arguments).chain(env.values()).any(|text| text.contains('\0')) {
        return Err("expected texts without the character 0 in run and env".to_owned());
    }
    Ok(Runs::Executable { program: whole("run", program.into())?, arguments, user, env })
}

fn whole(key: &str, path: PathBuf) -> Result<PathBuf, String> {
    match path.is_absolute() {
        true => Ok(path),
        false => Err(format!("{key}: expected a path from / on, found {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Spec, String> {
        Spec::parse(Path::new("/etc/visperf/modules/gpu.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_is_enough() {
        let spec = parse("run = ['/usr/bin/gpu', '--all']").expect("good");
        let Runs::Executable { program, arguments, user, env } = &spec.runs else { panic!("an executable") };
        assert_eq!(
            (program.as_path(), arguments.as_slice()),
            (Path::new("/usr/bin/gpu"), &["--all".to_owned()][..])
        );
        assert_eq!((spec.name.as_str(), spec.is_on, spec.limits), ("gpu", true, Limits::default()));
        assert!(user.is_none() && env.is_empty());
        let spec = parse("wasm = '/m.wasm'\non = false\nrate = 0.1\nmemory_mib = 2").expect("good");
        assert_eq!((spec.is_on, spec.rate_hz, spec.limits.memory_bytes), (false, Some(0.1), 2 << 20));
    }

    #[test]
    fn what_cannot_be_meant_is_reported() {
        let check = |text: &str, expected: &str| {
            let message = parse(text).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        };
        check("", "found neither");
        check("run = ['/x']\nwasm = '/y'", "found both");
        check("run = []", "found an empty list");
        check("run = ['gpu']", "run: expected a path from / on, found gpu");
        check("wasm = '/y'\nuser = 'ana'", "neither user nor env beside wasm");
        check("run = ['/x']\n\nmemory = 3", "line 3: ");
        check("run = ['/x']\nmemory_mib = 0", "memory_mib: expected 1 to 4096, found 0");
        check("run = ['/x']\ncpu_ms = 2000", "cpu_ms: expected 1 to 1000");
        check("run = ['/x']\nanswer_s = nan", "answer_s: expected 0.1 to 30");
        check("run = ['/x']\nrate = 100", "rate: expected 0.0003 to 10");
        check("run = ['/x']\nenv = { 'a=b' = 'c' }", "env: expected names");
    }

    #[test]
    fn names_are_such_that_figures_can_bear_them() {
        for good in ["gpu", "a", "gpu_2-b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Gpu", "2gpu", "gpu.x", "../x", "ü", "abcdefghijklmnopqrstuvwxyzabcdefg"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(Spec::parse(Path::new("/m/G P U.toml"), "run = ['/x']").is_err());
    }
}
