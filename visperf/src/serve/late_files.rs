//! Delayed writes: small files of a state folder that a daemon writes at its start; one that cannot be
//! written now is written later.
//!
//! Shell. Rule: a full disk does not prevent the start of a daemon; files that are not written yet are shown
//! in its health.
//! Not here: the content of the files (`state_dir`, `registration`), events and samples (the sensor's journal
//! waits by itself).

use overlay::whole_file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const RETRY_EVERY: Duration = Duration::from_secs(2);

/// The files that wait; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateFiles(Arc<Mutex<BTreeMap<PathBuf, Late>>>);

#[derive(Clone, Debug)]
struct Late {
    content: Vec<u8>,
    why: String,
}

impl LateFiles {
    /// Replace the content of a file, now or when that is possible.
    pub(crate) fn write(&self, path: &Path, content: Vec<u8>) {
        match whole_file::replace(path, &content) {
            Ok(()) => drop(self.lock().remove(path)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a file of the state folder is written later");
                let late = Late { content, why: error.to_string() };
                self.lock().insert(path.to_owned(), late);
            }
        }
    }

    /// Cancel the write of a file that waits.
    pub(crate) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    /// The files that wait, as sentences.
    pub(crate) fn health(&self) -> Vec<String> {
        let late = self.lock();
        late.iter().map(|(path, late)| format!("cannot write {}: {}", path.display(), late.why)).collect()
    }

    /// Retry until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut retry = tokio::time::interval(RETRY_EVERY);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = retry.tick() => {}
            }
            let files = self.clone();
            // A failing disk can block for long.
            if tokio::task::spawn_blocking(move || files.retry()).await.is_err() {
                return;
            }
        }
    }

    fn retry(&self) {
        let waiting = self.lock().clone();
        for (path, late) in waiting {
            let outcome = whole_file::replace(&path, &late.content);
            let mut files = self.lock();
            match (outcome, files.get_mut(&path)) {
                (Ok(()), Some(held)) if held.content == late.content => {
                    files.remove(&path);
                }
                (Err(error), Some(held)) => held.why = error.to_string(),
                _ => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Late>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_shown_and_written_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent/term");
        let files = LateFiles::default();
        files.write(&path, b"1\n".to_vec());
        assert!(files.health()[0].starts_with("cannot write /"), "{:?}", files.health());
        files.retry();
        assert_eq!(files.health().len(), 1);
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        files.retry();
        assert_eq!(files.health(), Vec::<String>::new());
        assert_eq!(std::fs::read(&path).unwrap(), b"1\n");
    }

    #[test]
    fn the_newest_content_counts_and_what_is_forgotten_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("absent");
        let (term, listen) = (absent.join("term"), absent.join("listen"));
        let files = LateFiles::default();
        files.write(&term, b"1\n".to_vec());
        files.write(&listen, b"x\n".to_vec());
        files.write(&term, b"2\n".to_vec());
        files.forget(&listen);
        std::fs::create_dir(&absent).unwrap();
        files.retry();
        assert_eq!(std::fs::read(&term).unwrap(), b"2\n");
        assert!(!listen.exists());
    }
}
