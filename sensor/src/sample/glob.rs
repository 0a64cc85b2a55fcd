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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_matches_starts_so() {
        for (given, start) in [
            ("node_load1", "node_load1"),
            ("node_*_total", "node_"),
            ("node_load?", "node_load"),
            ("{node,visperf}_*", ""),
            ("node_load[15]", "node_load"),
            ("node\\_load*", "node"),
            ("*", ""),
        ] {
            let glob = Glob::new(given).expect(given);
            assert_eq!(glob.start(), start, "{given}");
            let names = ["node_load1", "node_load15", "node_load5", "node_cpu_seconds_total", "visperf_up"];
            let mut matching = names.iter().filter(|name| glob.matches(name));
            assert!(matching.all(|name| name.starts_with(glob.start())), "{given}");
            assert!(names.iter().any(|name| glob.matches(name)), "{given}");
        }
    }
}
