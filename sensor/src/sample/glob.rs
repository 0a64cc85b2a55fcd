//! Metric name in a query: a literal name, or a glob that matches several.
//!
//! Pure. Not here: labels (`query::metrics`).

use globset::GlobMatcher;

/// Characters that a name does not have, and a glob does.
const SPECIAL: [char; 5] = ['*', '?', '[', '{', '\\'];

/// A metric name or a glob.
#[derive(Debug)]
pub struct Glob(Form);

/// Most queries name one metric, and a comparison costs a fraction of compiling a glob.
#[derive(Debug)]
enum Form {
    Plain(String),
    Glob(GlobMatcher),
}

/// The error for a text that is neither.
#[derive(Debug, thiserror::Error)]
#[error("expected a metric's name or a glob, found {given:?} ({error})")]
pub struct Error {
    given: String,
    error: globset::Error,
}

impl Glob {
    /// Parses a name or a glob.
    ///
    /// # Errors
    /// If it is a malformed glob.
    pub fn new(given: &str) -> Result<Glob, Error> {
        if !given.contains(SPECIAL) {
            return Ok(Glob(Form::Plain(given.to_owned())));
        }
        match globset::Glob::new(given) {
            Ok(glob) => Ok(Glob(Form::Glob(glob.compile_matcher()))),
            Err(error) => Err(Error { given: given.to_owned(), error }),
        }
    }

    /// How every name that matches starts.
    #[must_use]
    pub fn start(&self) -> &str {
        match &self.0 {
            Form::Plain(plain) => plain,
            Form::Glob(glob) => glob.glob().glob().split(SPECIAL).next().unwrap_or_default(),
        }
    }

    /// Whether this name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match &self.0 {
            Form::Plain(plain) => plain == name,
            Form::Glob(glob) => glob.is_match(name),
        }
    }
}
