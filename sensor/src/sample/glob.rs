//! Names of metrics as they are asked for: one, or a glob of several.
//!
//! Pure. Not here: labels (`query::metrics`).

use globset::GlobMatcher;

/// A metric's name, or a glob.
#[derive(Debug)]
pub struct Glob(Form);

/// Most questions name one metric, and comparing costs a fraction of compiling a glob.
#[derive(Debug)]
enum Form {
    Plain(String),
    Glob(GlobMatcher),
}

/// A text is none.
#[derive(Debug, thiserror::Error)]
#[error("expected a metric's name or a glob, found {given:?} ({error})")]
pub struct Error {
    given: String,
    error: globset::Error,
}

impl Glob {
    /// What is given.
    ///
    /// # Errors
    /// If it is a glob that is not well formed.
    pub fn new(given: &str) -> Result<Glob, Error> {
        if !given.contains(['*', '?', '[', '{', '\\']) {
            return Ok(Glob(Form::Plain(given.to_owned())));
        }
        match globset::Glob::new(given) {
            Ok(glob) => Ok(Glob(Form::Glob(glob.compile_matcher()))),
            Err(error) => Err(Error { given: given.to_owned(), error }),
        }
    }

    /// Whether this name is meant.
    #[must_use]
    pub fn means(&self, name: &str) -> bool {
        match &self.0 {
            Form::Plain(plain) => plain == name,
            Form::Glob(glob) => glob.is_match(name),
        }
    }
}
