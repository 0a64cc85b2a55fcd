//! The present failure of a history to store: shown in the sensor's health, and logged once.
//!
//! Not here: what is stored, and when it is tried again (the workers).

use crate::sample::ticker::locked;
use std::fmt::Display;
use std::path::Path;
use std::sync::Mutex;

/// Whether a history stores what is new, and why not.
pub(crate) struct Failure {
    /// Which history, in messages.
    name: &'static str,
    present: Mutex<Option<String>>,
}

impl Failure {
    /// Creates the state of a history that has not failed.
    pub(crate) fn new(name: &'static str) -> Failure {
        Failure { name, present: Mutex::default() }
    }

    /// Notes how storing in `place` ended. A failure is logged, unless it was already present.
    pub(crate) fn set<T, E: Display>(&self, place: &Path, stored: &Result<T, E>) {
        self.note(stored.as_ref().err().map(|error| format!("{}: {error}", place.display())));
    }

    /// Notes a failure, or that there is none.
    pub(crate) fn note(&self, error: Option<String>) {
        let mut present = locked(&self.present);
        if let Some(error) = error.as_ref().filter(|error| present.as_ref() != Some(error)) {
            tracing::warn!("{}", self.sentence(error));
        }
        *present = error;
    }

    /// Returns the name of the history.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the failure without the name of the history.
    pub(crate) fn present(&self) -> Option<String> {
        locked(&self.present).clone()
    }

    /// Returns what is not stored at the moment, and why: the failure noted last, else `other`.
    pub(crate) fn trouble(&self, other: Option<&str>) -> Option<String> {
        let error = self.present().or_else(|| other.map(str::to_owned))?;
        Some(self.sentence(&error))
    }

    fn sentence(&self, error: &str) -> String {
        format!("{}: what is new is in memory only: {error}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_present_until_storing_succeeds() {
        let failure = Failure::new("history");
        assert_eq!(failure.trouble(None), None);
        failure.set(Path::new("/state"), &Err::<(), _>("no space"));
        let expected = "history: what is new is in memory only: /state: no space";
        assert_eq!(failure.trouble(Some("another")).as_deref(), Some(expected));
        failure.set(Path::new("/state"), &Ok::<_, &str>(()));
        assert_eq!(failure.trouble(None), None);
        assert_eq!(
            failure.trouble(Some("another")).as_deref(),
            Some("history: what is new is in memory only: another")
        );
    }
}
