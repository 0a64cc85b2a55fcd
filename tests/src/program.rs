//! Programs: the `visperf` under test, and those that a test runs next to it.
//!
//! Rule: the program under test is never out of date: if it is missing or older than a source file, it is
//! built. `VISPERF_BIN`, `VISPERF_VIEWER_BIN` and `VISPERF_SYNTHETIC_BIN` name other programs (such as
//! installed ones); then nothing is built.
//! Not here: running a daemon ([`crate::grid`]).

use crate::crates::made_of;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

struct Program {
    name: &'static str,
    package: &'static str,
    /// Environment variable that names another program, which is used as it is.
    variable: &'static str,
}

const VISPERF: Program = Program { name: "visperf", package: "visperf", variable: "VISPERF_BIN" };

const VIEWER: Program = Program { name: "visperf-viewer", package: "viewer", variable: "VISPERF_VIEWER_BIN" };

const SYNTHETIC: Program =
    Program { name: "examples/synthetic-grid", package: "viewer", variable: "VISPERF_SYNTHETIC_BIN" };

/// The root of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is a folder of the workspace")
}

/// A command, without arguments.
#[must_use]
#[allow(clippy::disallowed_methods)] // System tests are about processes; daemons start none.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// The `visperf` under test.
///
/// # Errors
/// If it is missing and cannot be built.
pub fn visperf() -> Result<&'static Path> {
    static FOUND: OnceLock<std::result::Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| find(&VISPERF).map_err(|error| format!("{error:#}")));
    found.as_deref().map_err(|error| anyhow!("{error}"))
}

/// The `visperf-viewer` under test.
///
/// # Errors
/// If it is missing and cannot be built.
pub fn viewer() -> Result<&'static Path> {
    static FOUND: OnceLock<std::result::Result<PathBuf, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| find(&VIEWER).map_err(|error| format!("{error:#}")));
    found.as_deref().map_err(|error| anyhow!("{error}"))
}

/// The viewer's example `synthetic-grid`.
///
/// # Errors
/// If it is missing and cannot be built.
pub fn synthetic_grid() -> Result<PathBuf> {
    find(&SYNTHETIC)
}

/// The `visperf` of the previous version, named by `VISPERF_PREVIOUS`; `.ci/nightly` builds it.
///
/// # Errors
/// If the variable is not set, or names no file.
pub fn previous() -> Result<PathBuf> {
    let named = std::env::var_os("VISPERF_PREVIOUS")
        .context("expected VISPERF_PREVIOUS to name the program of the previous version, found it not set")?;
    let named = PathBuf::from(named);
    ensure!(named.is_file(), "expected visperf at VISPERF_PREVIOUS={}, found none", named.display());
    named.canonicalize().context("VISPERF_PREVIOUS")
}

fn find(wanted: &Program) -> Result<PathBuf> {
    let (name, variable) = (wanted.name, wanted.variable);
    if let Some(named) = std::env::var_os(variable) {
        let named = PathBuf::from(named);
        ensure!(named.is_file(), "expected {name} at {variable}={}, found none", named.display());
        return named.canonicalize().context(variable);
    }
    // target/PROFILE/deps/system-HASH
    let own = std::env::current_exe()?;
    let profile = own.parent().and_then(Path::parent).context("expected this test in target/PROFILE/deps")?;
    let program = profile.join(name);
    if !is_current(&program, &made_of(wanted.package))? {
        build(profile, wanted)?;
        ensure!(program.is_file(), "expected {} after building it, found none", program.display());
    }
    Ok(program)
}

fn build(profile: &Path, Program { name, package, variable, .. }: &Program) -> Result<()> {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace()).args(["build", "--quiet", "--package", package]);
    if let Some(example) = name.strip_prefix("examples/") {
        cargo.args(["--example", example]);
    }
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let advice = format!("build it with `cargo build -p {package}`, or name it with {variable}");
    let ended = cargo.status().with_context(|| format!("cannot run cargo; {advice}"))?;
    if !ended.success() {
        bail!("cargo could not build {name} ({ended}); {advice}");
    }
    Ok(())
}

fn is_current(program: &Path, crates: &[&str]) -> Result<bool> {
    let Ok(built) = program.metadata().and_then(|about| about.modified()) else { return Ok(false) };
    for name in crates {
        let folder = workspace().join(name);
        if has_newer(&folder.join("src"), built)? || has_newer(&folder.join("filters"), built)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_newer(folder: &Path, than: SystemTime) -> Result<bool> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(false) };
    for entry in entries {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_dir() && has_newer(&entry.path(), than)? || about.is_file() && about.modified()? > than {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_newer_source_makes_the_program_old() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        let source = folder.path().join("inner/a.rs");
        std::fs::write(&source, "").unwrap();
        let written = source.metadata().unwrap().modified().unwrap();
        assert!(has_newer(folder.path(), written - Duration::from_secs(1)).unwrap());
        assert!(!has_newer(folder.path(), written).unwrap());
        assert!(!has_newer(&folder.path().join("absent"), written).unwrap());
    }

    #[test]
    fn every_crate_that_is_looked_at_is_there() {
        for program in [VISPERF, VIEWER, SYNTHETIC] {
            let crates = made_of(program.package);
            assert!(crates.contains(&program.package) && crates.contains(&"wire"), "{crates:?}");
            for name in crates {
                assert!(workspace().join(name).join("src").is_dir(), "{name}");
            }
        }
    }
}
