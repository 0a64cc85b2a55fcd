//! Error of a refused filter: file, line and column, what was found, what to do.
//!
//! Pure.

use std::fmt;

/// Error in a filter file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Path of the filter file, as given.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1, in characters.
    pub column: usize,
    /// Description of the error, with what was expected.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Error at a byte offset of the filter's text.
    pub(crate) fn at(file: &str, text: &str, byte: usize, message: String) -> Error {
        let before = text.get(..byte.min(text.len())).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Error {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}
