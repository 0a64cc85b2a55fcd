//! Handle of a history: how queries read it, and what is wrong with it.
//!
//! Not here: who writes it ([`super::sweeps`], [`super::copies`]).

use crate::sample::ticker::locked;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use store::reader::{Reader, State};

/// Handle by which queries read a history; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    /// Whose history it is, in messages.
    name: &'static str,
    /// Set once the history is open.
    reader: OnceLock<Reader>,
    /// Why the history is not open.
    failure: Mutex<Option<String>>,
    dropped: AtomicU64,
}

impl Handle {
    /// Creates the handle of a history that is not open yet.
    pub(super) fn new(name: &'static str) -> Handle {
        let (failure, dropped) = (Mutex::default(), AtomicU64::default());
        Handle(Arc::new(Shared { name, reader: OnceLock::new(), failure, dropped }))
    }

    /// Returns the reader of the stored values.
    ///
    /// # Errors
    /// Why the history is not open.
    pub fn reader(&self) -> Result<&Reader, String> {
        self.0.reader.get().ok_or_else(|| {
            let failure = locked(&self.0.failure).clone();
            failure.unwrap_or_else(|| "it is being opened; ask again in a second".to_owned())
        })
    }

    /// Returns the state of the store.
    #[must_use]
    pub fn state(&self) -> State {
        self.0.reader.get().map(Reader::state).unwrap_or_default()
    }

    /// Number of sweeps dropped since the start because the disk was too slow, or of minutes that could not be
    /// read.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// What is not stored at the moment, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let state = self.state();
        let failure = locked(&self.0.failure).clone();
        let failure = failure.as_deref().or_else(|| state.error());
        failure.map(|error| format!("{}: what is new is in memory only: {error}", self.0.name))
    }

    /// Whose history it is, in messages.
    pub(super) fn name(&self) -> &'static str {
        self.0.name
    }

    /// Lets queries read.
    pub(super) fn opened(&self, reader: Reader) {
        self.fail(None);
        // It is opened once.
        let _ = self.0.reader.set(reader);
    }

    /// Shows a failure, or that there is none; returns whether it differs from the one before.
    pub(super) fn fail(&self, failure: Option<String>) -> bool {
        let mut known = locked(&self.0.failure);
        let differs = *known != failure;
        *known = failure;
        differs
    }

    /// Counts a sweep or a minute that is left out.
    pub(super) fn drop_one(&self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}
