//! Export: tables as CSV and JSON, and a saved grid that another viewer opens.
//!
//! Rule: a file is replaced as a whole (`atomic_file`), so that a partial file is never mistaken for a whole
//! one. Not here: pictures (`picture`).

pub mod grid_file;
pub mod table;

use crate::atomic_file;
use crate::grid::Grid;
use std::path::Path;
use table::Table;

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The extension is unknown.
    #[error("expected a name that ends in .csv, .json or .visperf, found {0}")]
    Ending(String),
    /// It cannot be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Path of the file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Path of the file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// It is no saved grid.
    #[error("expected a file that a viewer has kept, found {found}: {path}")]
    Content {
        /// Path of the file.
        path: String,
        /// What is wrong with it.
        found: String,
    },
}

/// Write the selected or else all shown data, in the format given by the extension.
///
/// # Errors
/// If the extension is unknown, or the file cannot be written; an existing file is unchanged then.
pub fn write(table: &Table, grid: &Grid, path: &Path) -> Result<(), Error> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let text = match ending.as_deref() {
        Some("csv") => table.csv(),
        Some("json") => table.json(),
        Some("visperf") => grid_file::text(grid),
        _ => return Err(Error::Ending(path.display().to_string())),
    };
    atomic_file::replace(path, text.as_bytes())
        .map_err(|error| Error::Write { path: path.display().to_string(), error })
}
