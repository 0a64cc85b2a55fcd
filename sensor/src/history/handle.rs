//! Handle of a history: how queries read it, and what is wrong with it.
//!
//! Not here: who writes it ([`super::sweeps`], [`super::copies`]).

use super::failure::Failure;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::reader::{Reader, State};

/// Waits for a history that is being opened, at most, and how long each lasts.
const OPENING_WAITS_MAX: u32 = 100;
const OPENING_WAIT: Duration = Duration::from_millis(30);

/// Handle by which queries read a history; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    /// Set once the history is open.
    reader: OnceLock<Reader>,
    /// Why the history is not open.
    failure: Failure,
    dropped: AtomicU64,
}

impl Handle {
    /// Creates the handle of a history that is not open yet.
    pub(super) fn new(name: &'static str) -> Handle {
        let (failure, dropped) = (Failure::new(name), AtomicU64::default());
        Handle(Arc::new(Shared { reader: OnceLock::new(), failure, dropped }))
    }

    /// Returns the reader of the stored values.
    ///
    /// # Errors
    /// Why the history is not open.
    pub fn reader(&self) -> Result<&Reader, String> {
        self.0.reader.get().ok_or_else(|| {
            let failure = self.0.failure.present();
            failure.unwrap_or_else(|| "it is being opened; ask again in a second".to_owned())
        })
    }

    /// Blocks for a limited time while the history is being opened, as after a start.
    pub fn await_opening(&self) {
        let is_opening = || self.0.reader.get().is_none() && self.0.failure.present().is_none();
        let waits = (0..OPENING_WAITS_MAX).take_while(|_| is_opening());
        waits.for_each(|_| std::thread::sleep(OPENING_WAIT));
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
        self.0.failure.trouble(self.state().error())
    }

    /// What is held beyond its age, or was deleted before it was exported, as a sentence.
    #[must_use]
    pub fn unexported(&self) -> Option<String> {
        let [_, minute, _] = self.state().tiers;
        let name = self.0.failure.name();
        match minute.files.unexported_segments {
            0 => minute.is_held.then(|| {
                let days = minute.limit.age.as_secs_f64() / 86_400.0;
                format!(
                    "{name}: minutes of more than {days:.1} days are retained, because they are not exported"
                )
            }),
            files => Some(format!(
                "{name}: {files} files of minutes were deleted for space before they were exported; export them, or \
                 raise the budget"
            )),
        }
    }

    /// Lets queries read.
    pub(super) fn opened(&self, reader: Reader) {
        // It is opened once.
        let _ = self.0.reader.set(reader);
    }

    /// Its failure, for those that write it.
    pub(super) fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// Counts a sweep or a minute that is left out.
    pub(super) fn drop_one(&self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}
