//! History of calls: those that have ended are stored, so that they are known beyond what memory holds.
//!
//! Shell. Rules: logs are followed whatever the database does. Changes that it refuses wait in memory, up to a
//! bound, and the trouble is shown. A sensor has one of its own logs' calls, and one of its domain's: in that it
//! stores changes while it represents the domain, and copies while it is a standby.
//! Not here: the database (`call_store`), queries (`query`).

use crate::history::failure::Failure;
use crate::history::writing::calendar;
use crate::sample::ticker::locked;
use call_store::answer::{Error, Figures};
use call_store::importing::Import;
use call_store::store::{CallLimit, CallStore};
use log_filters::join::Joiner;
use log_filters::join::changes::{CallChanges, Taken};
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::api::job_import::JobsImported;
use wire::call::StoredCall;
use wire::report::calls::Calls;

/// Name of the file in its folder.
const FILE: &str = "calls.db";

/// Time between two looks for changes.
const PERIOD: Duration = Duration::from_secs(2);

/// Most changes that wait here while the database refuses them; more wait in the joiner, which has its own bound.
const WAITING_MAX: usize = 20_000;

/// Most changes that are taken at a time, so that the joiner is not held for long.
const TAKEN_MAX: usize = 2_000;

/// Longest wait for the last changes at the end of the sensor.
const END_MAX: Duration = Duration::from_secs(5);

/// Takes changes of at most so many calls; `None` while another sensor has the calls.
pub type Take = Box<dyn Fn(usize) -> Pin<Box<dyn Future<Output = Option<Taken>> + Send>> + Send + Sync>;

/// Takes the changes of a sensor's own calls, which are collected from now on.
#[must_use]
pub fn of_own(joiner: &Arc<Mutex<Joiner>>) -> Take {
    locked(joiner).collect_changes();
    let joiner = Arc::clone(joiner);
    Box::new(move |limit| Box::pin(std::future::ready(Some(locked(&joiner).take_changes(limit)))))
}

/// A history of calls; cheap to clone.
#[derive(Clone)]
pub struct CallHistory(Arc<Shared>);

struct Shared {
    take: Take,
    store: CallStore,
    /// Changes that were taken and are not stored yet.
    waiting: tokio::sync::Mutex<CallChanges>,
    /// Size of the database; `None` before it was opened.
    figures: Mutex<Option<Figures>>,
    failure: Failure,
    lost: AtomicU64,
}

impl CallHistory {
    /// Creates a history in this folder; `name` is for messages.
    #[must_use]
    pub fn new(name: &'static str, folder: &Path, limit: CallLimit, take: Take) -> CallHistory {
        CallHistory(Arc::new(Shared {
            take,
            store: CallStore::new(&folder.join(FILE), limit),
            waiting: tokio::sync::Mutex::default(),
            figures: Mutex::default(),
            failure: Failure::new(name),
            lost: AtomicU64::default(),
        }))
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
            while let Ok(false) = self.store_changes().await {
                if shutdown.is_cancelled() {
                    return;
                }
            }
        }
    }

    /// Stores the last changes, unless that takes too long.
    pub async fn end(&self) {
        let last = async { while let Ok(false) = self.store_changes().await {} };
        if tokio::time::timeout(END_MAX, last).await.is_err() {
            tracing::warn!("call history: the last changes are not stored; they are at the next start");
        }
    }

    /// Stores what has changed until now; returns whether that is all, as there may be too much for one time.
    ///
    /// # Errors
    /// If the database refuses; the changes wait.
    pub async fn store_changes(&self) -> Result<bool, Error> {
        // A task of its own: what was taken is not lost if the caller goes.
        let history = self.clone();
        match tokio::spawn(async move { history.store_taken().await }).await {
            Ok(stored) => stored,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The process is ending.
            Err(_) => std::future::pending().await,
        }
    }

    async fn store_taken(&self) -> Result<bool, Error> {
        let mut waiting = self.0.waiting.lock().await;
        let mut is_all = false;
        if waiting.left.len() < WAITING_MAX {
            let taken = (self.0.take)(TAKEN_MAX).await;
            is_all = taken.as_ref().is_none_or(|taken| taken.is_all);
            if let Some(taken) = taken {
                waiting.extend(taken.changes);
                self.0.lost.store(taken.lost, Ordering::Relaxed);
            }
        }
        let is_known = locked(&self.0.figures).is_some() || !self.0.store.path().exists();
        if waiting.is_empty() && is_known && !self.0.store.is_behind() {
            return Ok(is_all);
        }
        self.note(self.0.store.apply(&waiting, calendar()).await)?;
        waiting.clear();
        Ok(is_all)
    }

    /// Stores calls that another sensor has stored.
    ///
    /// # Errors
    /// If the database refuses; they are to be fetched again.
    pub async fn copy(&self, calls: Calls) -> Result<(), Error> {
        self.note(self.0.store.copy(calls, calendar()).await)
    }

    /// Stores jobs of accounting files.
    ///
    /// # Errors
    /// If the database refuses; none of them is stored.
    pub async fn import(&self, jobs: &[StoredCall], how: &Import) -> Result<JobsImported, Error> {
        match self.0.store.import(jobs, how, calendar()).await {
            Ok((imported, figures)) => self.note(Ok(figures)).map(|()| imported),
            Err(error) => Err(error),
        }
    }

    fn note(&self, stored: Result<Figures, Error>) -> Result<(), Error> {
        self.0.failure.set(self.0.store.path(), &stored);
        *locked(&self.0.figures) = Some(stored?);
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
