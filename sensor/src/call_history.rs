//! History of calls: those that have ended are stored, so that they are known beyond what memory holds.
//!
//! Shell. Rule: logs are followed whatever the database does. Changes that it refuses wait in memory, up to a
//! bound, and the trouble is shown.
//! Not here: the database (`call_store`), queries (`query`).

use crate::history::failure::Failure;
use crate::history::writing::calendar;
use crate::sample::ticker::locked;
use call_store::answer::{Error, Figures};
use call_store::store::{CallLimit, CallStore};
use log_filters::join::Joiner;
use log_filters::join::changes::CallChanges;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// File in the state folder.
const FILE: &str = "call-history/calls.db";

/// Time between two looks for changes.
const PERIOD: Duration = Duration::from_secs(2);

/// Most changes that wait here while the database refuses them; more wait in the joiner, which has its own bound.
const WAITING_MAX: usize = 20_000;

/// Longest wait for the last changes at the end of the sensor.
const END_MAX: Duration = Duration::from_secs(5);

/// The history of a sensor's calls; cheap to clone.
#[derive(Clone)]
pub struct CallHistory(Arc<Shared>);

struct Shared {
    joiner: Arc<Mutex<Joiner>>,
    store: CallStore,
    /// Changes that were taken and are not stored yet.
    waiting: tokio::sync::Mutex<CallChanges>,
    /// Size of the database; `None` before it was opened.
    figures: Mutex<Option<Figures>>,
    failure: Failure,
    lost: AtomicU64,
}

impl CallHistory {
    /// Creates the history of these calls in the state folder; `None` without a limit.
    #[must_use]
    pub fn set_up(
        limit: Option<CallLimit>,
        state: &Path,
        joiner: &Arc<Mutex<Joiner>>,
    ) -> Option<CallHistory> {
        let store = CallStore::new(&state.join(FILE), limit?);
        locked(joiner).collect_changes();
        Some(CallHistory(Arc::new(Shared {
            joiner: Arc::clone(joiner),
            store,
            waiting: tokio::sync::Mutex::default(),
            figures: Mutex::default(),
            failure: Failure::new("call history"),
            lost: AtomicU64::default(),
        })))
    }

    /// Stores changes until `shutdown`.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut due = tokio::time::interval(PERIOD);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = due.tick() => {}
            }
            // A failure is shown in the health, and the changes wait.
            let _ = self.store_changes().await;
        }
    }

    /// Stores the last changes, unless that takes too long.
    pub async fn end(&self) {
        if tokio::time::timeout(END_MAX, self.store_changes()).await.is_err() {
            tracing::warn!("call history: the last changes are not stored; they are at the next start");
        }
    }

    /// Stores what has changed until now.
    ///
    /// # Errors
    /// If the database refuses; the changes wait.
    pub async fn store_changes(&self) -> Result<(), Error> {
        let mut waiting = self.0.waiting.lock().await;
        if waiting.left.len() < WAITING_MAX {
            let mut joiner = locked(&self.0.joiner);
            waiting.extend(joiner.take_changes());
            self.0.lost.store(joiner.changes_lost(), Ordering::Relaxed);
        }
        let is_known = locked(&self.0.figures).is_some() || !self.0.store.path().exists();
        if waiting.is_empty() && is_known {
            return Ok(());
        }
        let applied = self.0.store.apply(&waiting, calendar()).await;
        self.0.failure.set(self.0.store.path(), &applied);
        *locked(&self.0.figures) = Some(applied?);
        waiting.clear();
        Ok(())
    }

    /// The stored calls.
    #[must_use]
    pub fn store(&self) -> &CallStore {
        &self.0.store
    }

    /// Size of the database, once it was opened.
    #[must_use]
    pub fn size(&self) -> Option<Figures> {
        *locked(&self.0.figures)
    }

    /// What is not stored at the moment, and why.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.failure.trouble(None)
    }

    /// Statistics: name and value.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let size = self.size().unwrap_or_default();
        vec![
            ("used_bytes", size.used_bytes),
            ("calls_deleted_total", size.deleted),
            ("changes_lost_total", self.0.lost.load(Ordering::Relaxed)),
        ]
    }
}
