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
pub(super) type Found = BTreeMap<String, Result<(Spec, Identities), String>>;

/// What is in the folder, and what is wrong with all of it.
///
/// # Errors
/// If it cannot be looked at, or is not trusted: nothing of it is used then.
pub(super) fn found(folder: &Path) -> Result<(Found, Option<String>), String> {
    let failed = |error: &dyn std::fmt::Display| format!("the folder of modules cannot be used: {error}");
    let folder = trust::folder(folder).map_err(|error| failed(&error))?;
    let entries = fs::read_dir(folder).map_err(|error| failed(&error))?;
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

fn module(path: &Path) -> Result<(Spec, Identities), String> {
    let own = trust::file(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = File::open(own.path).and_then(|file| file.take(FILE_LEN_MAX_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_LEN_MAX_BYTES {
        return Err(format!("expected a file of at most {FILE_LEN_MAX_BYTES} bytes, found a longer one"));
    }
    let spec = Spec::parse(path, &text).map_err(|error| error.to_string())?;
    let runs = match &spec.runs {
        Runs::Executable { program, .. } => trust::executable(program),
        Runs::Wasm { file } => trust::file(file),
    };
    Ok((spec, (own.identity, runs.map_err(|error| error.to_string())?.identity)))
}
