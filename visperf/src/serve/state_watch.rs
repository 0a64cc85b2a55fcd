//! Watch over the state folder of a running daemon: one that is removed or replaced is logged and shown in the daemon's health.
//!
//! Shell. Rule: nothing is made again there: the files that were removed can only be put back by an operator.
//! Not here: what is compared (`daemon::state_folder`), files that a full disk did not take (`late_files`).

use daemon::state_folder::Landmarks;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is compared: noticed within 10 s, at the cost of a few calls to the system.
const CHECK_EVERY: Duration = Duration::from_secs(3);

/// What is made once, and stays for as long as the folder is used.
const PARTS: [&str; 7] = ["lock", "sensor", "sensor/lock", "sensor/journal", "directory", "proxy", "domain"];

/// The watch; to be cloned freely.
#[derive(Clone, Debug)]
pub(crate) struct StateWatch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: PathBuf,
    landmarks: Landmarks,
    trouble: Mutex<Option<String>>,
}

impl StateWatch {
    /// Of the folder `state`, whose files are open by now.
    pub(crate) fn new(state: &Path) -> StateWatch {
        let landmarks = Landmarks::of(PARTS.iter().map(|part| state.join(part)));
        StateWatch(Arc::new(Inner { state: state.to_owned(), landmarks, trouble: Mutex::default() }))
    }

    /// What is wrong, in sentences.
    pub(crate) fn health(&self) -> Vec<String> {
        self.trouble().iter().cloned().collect()
    }

    /// Compare until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut check = tokio::time::interval(CHECK_EVERY);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = check.tick() => {}
            }
            let watch = self.clone();
            // A disk in trouble can take long.
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
        let said = health().concat();
        assert!(said.contains("/state/lock was removed while this daemon runs"), "{said}");
        assert!(said.contains("or restart this daemon"), "{said}");
        std::fs::rename(&aside, &state).unwrap();
        assert_eq!(health(), Vec::<String>::new());
    }
}
