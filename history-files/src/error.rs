//! Errors: what was expected, what was found, and where.
//!
//! Not here: what a command does about them.

use std::io;

/// Why files cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text names no place.
    #[error("expected a folder, or s3://BUCKET/PREFIX, found {found:?}")]
    Place {
        /// The text.
        found: String,
    },
    /// A folder in which other users may place links.
    #[error("folder {place}: {reason}, so links in it could lead elsewhere; choose a folder of your own")]
    Shared {
        /// The folder.
        place: String,
        /// Why.
        reason: String,
    },
    /// An object store without keys.
    #[error(
        "expected the keys of the object store in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, found no {missing}"
    )]
    Keys {
        /// Name of the variable.
        missing: &'static str,
    },
    /// A variable of the environment that cannot be right.
    #[error("{variable}: expected {expected}, found {found}")]
    Setting {
        /// Name of the variable.
        variable: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is, without secrets.
        found: String,
    },
    /// The object store cannot be used as it is configured.
    #[error("{place}: {}", with_causes(source))]
    Store {
        /// Where.
        place: String,
        /// Why.
        source: object_store::Error,
    },
    /// A file or folder of this machine.
    #[error("{what}: {source}")]
    Io {
        /// What was done, and where.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Rows that cannot be written as a table.
    #[error("{what}: {source}")]
    Parquet {
        /// What was done.
        what: String,
        /// Why it failed.
        source: parquet::errors::ParquetError,
    },
    /// What was read back is not what was written.
    #[error(
        "{path}: {len_bytes} bytes with SHA-256 {found} are stored, expected {expected}: the file is damaged, or another \
         export writes to the same place"
    )]
    Different {
        /// The file.
        path: String,
        /// Its length.
        len_bytes: u64,
        /// SHA-256 of what is stored.
        found: String,
        /// SHA-256 of what was written.
        expected: String,
    },
    /// A file that is no table.
    #[error("{path}: {problem}; visperf history list PLACE --verify checks all files")]
    Table {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The record of a day that cannot be read.
    #[error("{path}: {problem}; delete the file to export the day again")]
    Record {
        /// Where it is.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl Error {
    /// Closure that says what was done when something of this machine failed.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        |source| Error::Io { what, source }
    }

    /// The same for a table.
    pub(crate) fn parquet(what: impl Into<String>) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
        let what = what.into();
        |source| Error::Parquet { what, source }
    }
}

/// An error with what caused it, as far as it does not say that itself.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
