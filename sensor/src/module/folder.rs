//! What the folder of modules says now.
//!
//! Rules: files are read only where they are trusted, and so is what they name; a mistake in one file is that file's; names are
//! looked at in order, so that of too many files the same ones are left out each time.
//! Not here: what follows from it (`desk`).

use super::spec::{Runs, Spec};
use super::trust::{self, Identity};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most modules: each may give 256 figures, and a report has 16384 of a host.
pub(super) const MODULES_MAX: usize = 32;
/// Longest file of a module, in bytes.
const FILE_LEN_MAX_BYTES: u64 = 64 << 10;

/// What tells a module's file, and what it runs, from later ones.
pub(super) type Identities = (Identity, Identity);

/// Of each file its module, or what is wrong with it.
pub(super) type Found = BTreeMap<String, Result<(Spec, Identities), Wrong>>;

/// Why a file, or the folder, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) why: String,
    /// Of which state of the file; none where it could not be looked at.
    pub(super) of: Option<Identity>,
    /// Whether it may be so for a moment only, as somebody writes: not where others may have written.
    pub(super) is_passing: bool,
}

impl Wrong {
    fn of_trust(error: &trust::Error, of: Option<Identity>) -> Wrong {
        let is_passing = match error {
            // A file that is replaced may be missing for a moment, and a program made before it may be run.
            trust::Error::Look { .. } | trust::Error::NotExecutable(_) => true,
            trust::Error::NoFile(_) | trust::Error::Owner { .. } | trust::Error::Writable { .. } => false,
        };
        Wrong { why: error.to_string(), of, is_passing }
    }
}

/// What is in the folder, and what is wrong with all of it.
///
/// # Errors
/// If it cannot be looked at, or is not trusted: nothing of it is used then.
pub(super) fn found(folder: &Path) -> Result<(Found, Option<String>), Wrong> {
    let failed =
        |wrong: Wrong| Wrong { why: format!("the folder of modules cannot be used: {}", wrong.why), ..wrong };
    let folder = trust::folder(folder).map_err(|error| failed(Wrong::of_trust(&error, None)))?;
    let unread = |error: std::io::Error| failed(Wrong { why: error.to_string(), of: None, is_passing: true });
    let entries = fs::read_dir(folder).map_err(unread)?;
    let is_module = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".toml") && !name.starts_with('.')
    };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_module).collect();
    paths.sort();
    let trouble = (paths.len() > MODULES_MAX).then(|| {
        let (left_out, first) = (paths.len() - MODULES_MAX, paths[MODULES_MAX].display());
        format!("expected at most {MODULES_MAX} modules, found {left_out} more; left out from {first} on")
    });
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let modules = paths.iter().take(MODULES_MAX).map(|path| (name(path), module(path)));
    Ok((modules.collect(), trouble))
}

fn module(path: &Path) -> Result<(Spec, Identities), Wrong> {
    let own = trust::file(path).map_err(|error| Wrong::of_trust(&error, None))?;
    let of = Some(own.identity);
    // Perhaps only half of it is there yet.
    let spec = read(path, &own.path).map_err(|why| Wrong { why, of, is_passing: true })?;
    let runs = match &spec.runs {
        Runs::Executable { program, .. } => trust::executable(program),
        Runs::Wasm { file } => trust::file(file),
    };
    let runs = runs.map_err(|error| Wrong::of_trust(&error, of))?;
    Ok((spec, (own.identity, runs.identity)))
}

/// What the file says that is called `path`, and is at `real`.
fn read(path: &Path, real: &Path) -> Result<Spec, String> {
    let mut text = String::new();
    let read = File::open(real).and_then(|file| file.take(FILE_LEN_MAX_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_LEN_MAX_BYTES {
        return Err(format!("expected a file of at most {FILE_LEN_MAX_BYTES} bytes, found a longer one"));
    }
    Spec::parse(path, &text).map_err(|error| error.to_string())
}
