//! What is shown, for others: tables as CSV and JSON, and a file of its own that another viewer opens.
//!
//! Rule: a file is written beside its place and moved there, so that a half of one is never taken for one. Not here:
//! pictures (`picture`).

pub mod grid_file;
pub mod table;

use crate::app::App;
use std::path::Path;

/// Why there is no file, or it cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ending says no form.
    #[error("expected a name that ends in .csv, .json or .visperf, found {0}")]
    Ending(String),
    /// It cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Which file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Which file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is no file of a viewer.
    #[error("expected a file that a viewer has kept, found {found}: {path}")]
    Content {
        /// Which file.
        path: String,
        /// What is wrong with it.
        found: String,
    },
}

/// Write what is chosen, else all that is shown, in the form that the name's ending says.
///
/// # Errors
/// If the ending says none, or the file cannot be written; what was there before stays then.
pub fn write(app: &App, path: &Path) -> Result<(), Error> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let text = match ending.as_deref() {
        Some("csv") => app.table().csv(),
        Some("json") => app.table().json(),
        Some("visperf") => grid_file::text(app.grid()),
        _ => return Err(Error::Ending(path.display().to_string())),
    };
    let failed = |error| Error::Write { path: path.display().to_string(), error };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path)).map_err(failed)
}
