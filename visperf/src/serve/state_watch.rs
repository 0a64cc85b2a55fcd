//! Watch over the state folder of a running daemon: its removal or replacement is logged, and shown in the
//! daemon's health.
//!
//! Shell. Rule: nothing is created again: only an operator can restore the removed files.
//! Not here: the comparison (`daemon::state_folder`), files that could not be written to a full disk
//! (`late_files`).

use daemon::state_folder::Landmarks;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Interval of the check: a removal is noticed within 10 s, at the cost of a few system calls.
const CHECK_EVERY: Duration = Duration::from_secs(3);

/// Parts that are created once, and stay while the folder is used.
const PARTS: [&str; 7] = ["lock", "sensor", "sensor/lock", "sensor/journal", "directory", "proxy", "domain"];

/// The watch; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct StateWatch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: PathBuf,
    landmarks: Landmarks,
    trouble: Mutex<Option<String>>,
}

impl StateWatch {
    /// Watch the folder `state`, whose files are open by now.
    pub(crate) fn new(state: &Path) -> StateWatch {
        let landmarks = Landmarks::of(PARTS.iter().map(|part| state.join(part)));
        StateWatch(Arc::new(Inner { state: state.to_owned(), landmarks, trouble: Mutex::default() }))
    }

    /// The current problem, as a sentence.
    pub(crate) fn health(&self) -> Vec<String> {
        self.trouble().iter().cloned().collect()
    }

    /// Check until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut check = tokio::time::interval(CHECK_EVERY);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = check.tick() => {}
            }
            let watch = self.clone();
            // A failing disk can block for long.
            if tokio::task::spawn_blocking(move || watch.check()).await.is_err() {
                return;
            }
        }
    }

    fn check(&self) {
        let found = self.0.landmarks.missing().map(|(path, why)| {
            format!(
                "{} {why} while this daemon runs: what it writes may be lost when it ends, and a second daemon could start \
                 with the same folder; put the state folder {} back as it was, or restart this daemon",
                path.display(),
                self.0.state.display()
            )
        });
        let before = std::mem::replace(&mut *self.trouble(), found.clone());
        match (before, found) {
            (None, Some(trouble)) => tracing::error!("{trouble}"),
            (Some(_), None) => {
                tracing::warn!(state = %self.0.state.display(), "the state folder is in its place again");
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_folder_is_in_the_health_until_it_is_back() {
        let outside = tempfile::tempdir().unwrap();
        let (state, aside) = (outside.path().join("state"), outside.path().join("aside"));
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("lock"), "").unwrap();
        let watch = StateWatch::new(&state);
        let health = || {
            watch.check();
            watch.health()
        };
        assert_eq!(health(), Vec::<String>::new());
        std::fs::rename(&state, &aside).unwrap();
        let text = health().concat();
        assert!(text.contains("/state/lock was removed while this daemon runs"), "{text}");
        assert!(text.contains("or restart this daemon"), "{text}");
        std::fs::rename(&aside, &state).unwrap();
        assert_eq!(health(), Vec::<String>::new());
    }
}
