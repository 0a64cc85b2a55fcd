//! Reader of the folder of modules: its files, parsed, with the errors of each.
//!
//! Rules: a file is read only if it is trusted, and so is the executable it names; an error in one file
//! affects that file alone; files are taken in order of their names, so that of too many the same ones are
//! left out each time.
//! Not here: what follows from it (`worker`).

use super::spec::{Runs, Spec};
use super::trust::{self, Identity};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most modules: each may return 256 figures, and the report of a host has 16384 metrics.
pub(super) const MODULES_MAX: usize = 32;
/// Longest file of a module, in bytes.
const FILE_LEN_MAX_BYTES: u64 = 64 << 10;

/// Identities of a module's file and of its executable, to detect changes.
pub(super) type Identities = (Identity, Identity);

/// The module or the error of each file, by name.
pub(super) type ModuleFiles = BTreeMap<String, Result<(Spec, Identities), FileError>>;

/// Error of a file or of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileError {
    pub(super) why: String,
    /// State of the file with the error; `None` if the file could not be examined.
    pub(super) of: Option<Identity>,
    /// Whether the error may be transient, because the file is being written. Not for errors of trust.
    pub(super) is_passing: bool,
}

impl FileError {
    fn of_trust(error: &trust::Error, of: Option<Identity>) -> FileError {
        let is_passing = match error {
            // During a replacement a file may be missing for a moment, or not yet be executable.
            trust::Error::Look { .. } | trust::Error::NotExecutable(_) => true,
            trust::Error::NoFile(_) | trust::Error::Owner { .. } | trust::Error::Writable { .. } => false,
        };
        FileError { why: error.to_string(), of, is_passing }
    }
}

/// Reads the folder; returns its modules, and an error about the folder as a whole, if any.
///
/// # Errors
/// If the folder cannot be read or is not trusted: then no module is returned.
pub(super) fn read_modules(folder: &Path) -> Result<(ModuleFiles, Option<String>), FileError> {
    let failed = |wrong: FileError| FileError {
        why: format!("the folder of modules cannot be used: {}", wrong.why),
        ..wrong
    };
    let folder = trust::folder(folder).map_err(|error| failed(FileError::of_trust(&error, None)))?;
    let unread =
        |error: std::io::Error| failed(FileError { why: error.to_string(), of: None, is_passing: true });
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

fn module(path: &Path) -> Result<(Spec, Identities), FileError> {
    let own = trust::file(path).map_err(|error| FileError::of_trust(&error, None))?;
    let of = Some(own.identity);
    // The file may be only half written.
    let spec = read(path, &own.path).map_err(|why| FileError { why, of, is_passing: true })?;
    let runs = match &spec.runs {
        Runs::Executable { program, .. } => trust::executable(program),
        Runs::Wasm { file } => trust::file(file),
    };
    let runs = runs.map_err(|error| FileError::of_trust(&error, of))?;
    Ok((spec, (own.identity, runs.identity)))
}

/// Parses the file at `real`, named `path` in error messages.
fn read(path: &Path, real: &Path) -> Result<Spec, String> {
    let mut text = String::new();
    let read = File::open(real).and_then(|file| file.take(FILE_LEN_MAX_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_LEN_MAX_BYTES {
        return Err(format!("expected a file of at most {FILE_LEN_MAX_BYTES} bytes, found a longer one"));
    }
    Spec::parse(path, &text).map_err(|error| error.to_string())
}
