//! Service of the representative: opens its store to queries and members while its sensor represents the
//! domain, and only then.
//!
//! A sensor that has a store of an earlier term opens it in advance, so that a failover does not wait for
//! the disk.
//! The election calls [`Handle::set_duty`] when the role changes; members' streams arrive through
//! [`Handle::receive`]; queries use [`Handle::ask`] and read events with [`Handle::feed`].
//! Rule: a sensor that does not represent the domain answers nothing and accepts nothing; it retains its
//! store for its next term.
//! Not here: the core ([`super::domain`]) and the thread that owns it (`worker`).

use super::cursor::Feed;
use super::domain::{self, Counts, Domain, Now};
use super::hosts::{ElectionEntry, Role};
use super::session::Session;
use super::watermarks::Watermarks;
use super::worker::{self, Inbox, Query, Stored};
use crate::call_history::{CallHistory, Take};
use crate::history::copies::Copies;
use crate::segments::disk::Directory;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use wire::id::HostName;
use wire::report::{Marks, StoreKey};

/// Most streams that wait to be accepted.
const SESSIONS_MAX: usize = 256;
/// Most queries that wait; beyond them, callers wait to enter the queue.
const QUERIES_MAX: usize = 256;
/// How long a query waits for the store to be opened: opening reads at most one segment.
const OPEN_WITHIN: Duration = Duration::from_secs(5);
/// Delay before a store that could not be opened is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Whether this sensor represents its domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duty {
    /// Another sensor represents it, or none does.
    #[default]
    Rest,
    /// This sensor represents it.
    Serve {
        /// Fencing term.
        term: u64,
    },
}

/// Reason why a query is not answered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotServing {
    /// Another sensor answers for the domain.
    #[error("this sensor does not represent its domain now; ask again in some seconds")]
    Elsewhere,
    /// The store is being opened, or cannot be opened.
    #[error(
        "the store of the domain is not open yet; ask again in a moment, or see daemon.info for what is wrong"
    )]
    Closed,
}

/// Counters and state of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Counters of the core since its store was last opened.
    pub counts: Counts,
    /// Number of members' streams.
    pub links: usize,
    /// Whether the store is opened in advance, while another sensor represents the domain.
    pub is_ready: bool,
    /// Last failure of the store, as a sentence.
    pub trouble: Option<String>,
}

/// Check whether the lease is valid, called before anything is sent as the representative.
pub type Lease = Box<dyn Fn() -> bool + Send + Sync>;

pub(super) struct Shared {
    duty: watch::Sender<Duty>,
    election: watch::Sender<Arc<BTreeMap<HostName, ElectionEntry>>>,
    partial: AtomicBool,
    open: watch::Sender<Option<Open>>,
    lease: OnceLock<Lease>,
    figures: Mutex<Figures>,
    watermarks: Mutex<Watermarks>,
}

/// Channels to the worker thread.
#[derive(Clone)]
struct Open {
    sessions: mpsc::Sender<Session>,
    queries: mpsc::Sender<Query>,
    feed: Feed,
}

impl Open {
    /// Runs a short query on the core.
    async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut Domain, Now) -> T + Send + 'static,
    ) -> Result<T, NotServing> {
        let (reply, replied) = oneshot::channel();
        let asked: Query = Box::new(move |domain, now| {
            // The caller may have gone.
            let _ = reply.send(query(domain, now));
        });
        self.queries.send(asked).await.map_err(|_| NotServing::Elsewhere)?;
        replied.await.map_err(|_| NotServing::Elsewhere)
    }
}

impl Shared {
    pub(super) fn may_serve(&self) -> bool {
        self.lease.get().is_none_or(|holds| holds())
    }

    /// Records a failure of the store, and logs it unless it is the same as before.
    pub(super) fn report_failure(&self, trouble: &str) {
        let mut figures = self.figures();
        if figures.trouble.as_deref() != Some(trouble) {
            tracing::error!(
                trouble,
                "the store of the domain is in trouble; members keep their events meanwhile"
            );
            figures.trouble = Some(trouble.to_owned());
        }
    }

    pub(super) fn clear_failure(&self) {
        self.figures().trouble = None;
    }

    pub(super) fn set_counts(&self, counts: Counts, links: usize) {
        let mut figures = self.figures();
        (figures.counts, figures.links) = (counts, links);
    }

    pub(super) fn lock_watermarks(&self) -> MutexGuard<'_, Watermarks> {
        // Each change is complete, so a poisoned lock is safe to use.
        self.watermarks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self) -> MutexGuard<'_, Figures> {
        // Plain numbers, each written completely.
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of the service for other parts of the sensor; cheap to clone.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Sets whether this sensor represents the domain from now on.
    pub fn set_duty(&self, duty: Duty) {
        self.0.duty.send_if_modified(|known| std::mem::replace(known, duty) != duty);
    }

    /// Sets what the election knows of the hosts.
    pub fn set_election(&self, election: BTreeMap<HostName, ElectionEntry>) {
        self.0.election.send_replace(Arc::new(election));
    }

    /// Sets whether hosts may be missing: hosts that another representative has, or that have not been seen
    /// yet.
    pub fn set_partial(&self, partial: bool) {
        self.0.partial.store(partial, Ordering::Relaxed);
    }

    /// See [`Handle::set_partial`].
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.0.partial.load(Ordering::Relaxed)
    }

    /// Adds watermarks of all members' events that the present representative sent, because this sensor may
    /// succeed it.
    pub fn add_watermarks(&self, marks: Marks) {
        self.0.lock_watermarks().take(marks);
    }

    /// Returns whether this host is to succeed the representative.
    #[must_use]
    pub fn is_standby(&self, host: &HostName) -> bool {
        self.0.election.borrow().get(host).is_some_and(|entry| entry.role == Role::Standby)
    }

    /// Sets the lease check; nothing is sent to members while it returns `false`. Without a check the lease
    /// is always valid. To be called once.
    pub fn set_lease(&self, lease: Lease) {
        // A second call changes nothing: there is one election.
        let _ = self.0.lease.set(lease);
    }

    /// Accepts a member's stream. A stream that cannot be accepted is dropped; its member tries again.
    pub fn receive(&self, session: Session) {
        let taken = match &*self.0.open.borrow() {
            Some(open) => open.sessions.try_send(session).is_ok(),
            None => false,
        };
        if !taken {
            tracing::debug!("a member's stream is not taken now");
        }
    }

    /// Waits until streams are accepted.
    pub async fn wait_open(&self) {
        // The service lives as long as this handle.
        let _ = self.0.open.subscribe().wait_for(Option::is_some).await;
    }

    async fn open(&self) -> Result<Open, NotServing> {
        // The lease is acquired a moment before the duty is set.
        let has_right = self.0.lease.get().is_some_and(|holds| holds());
        if *self.0.duty.borrow() == Duty::Rest && !has_right {
            return Err(NotServing::Elsewhere);
        }
        let mut open = self.0.open.subscribe();
        let waited = tokio::time::timeout(OPEN_WITHIN, open.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(open)) => open.clone().ok_or(NotServing::Closed),
            Ok(Err(_)) | Err(_) => Err(NotServing::Closed),
        }
    }

    /// Runs a short query on the core.
    ///
    /// # Errors
    /// If this sensor does not represent the domain now.
    pub async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Domain, Now) -> T + Send + 'static,
    ) -> Result<T, NotServing> {
        self.open().await?.ask(move |domain, now| query(domain, now)).await
    }

    /// Returns how the changes of the domain's calls are taken; there are none while another sensor represents it.
    #[must_use]
    pub fn call_changes(&self) -> Take {
        let shared = Arc::clone(&self.0);
        Box::new(move |limit| {
            let open = shared.open.borrow().clone();
            Box::pin(async move { open?.ask(move |domain, _| domain.take_call_changes(limit)).await.ok() })
        })
    }

    /// Returns the domain's events.
    ///
    /// # Errors
    /// If this sensor does not represent the domain now.
    pub async fn feed(&self) -> Result<Feed, NotServing> {
        self.open().await.map(|open| open.feed)
    }

    /// Waits until this sensor does not represent the domain.
    pub async fn closed(&self) {
        // An error means that the service has ended.
        let _ = self.0.open.subscribe().wait_for(Option::is_none).await;
    }

    /// Returns the counters and state.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.0.figures().clone()
    }
}

/// Panic of the thread that owns the core.
#[derive(Debug, thiserror::Error)]
#[error("the representative's thread ended by a defect; what it acknowledged is on its disk")]
pub struct Defect;

/// The task of the service.
pub struct Service {
    shared: Arc<Shared>,
    config: domain::Config,
    folder: PathBuf,
    stored: Stored,
}

impl Service {
    /// Creates the service, closed, with its store in `folder`.
    #[must_use]
    pub fn new(folder: PathBuf, config: domain::Config) -> (Service, Handle) {
        let shared = Arc::new(Shared {
            duty: watch::Sender::default(),
            election: watch::Sender::default(),
            partial: AtomicBool::default(),
            open: watch::Sender::new(None),
            lease: OnceLock::new(),
            figures: Mutex::default(),
            watermarks: Mutex::default(),
        });
        (Service { shared: Arc::clone(&shared), config, folder, stored: Stored::default() }, Handle(shared))
    }

    /// Copies the members' minutes while it serves.
    #[must_use]
    pub fn with_copies(self, copies: Option<Copies>) -> Service {
        Service { stored: Stored { copies, ..self.stored }, ..self }
    }

    /// Stores the domain's calls while it serves.
    #[must_use]
    pub fn with_calls(self, calls: Option<CallHistory>) -> Service {
        Service { stored: Stored { calls, ..self.stored }, ..self }
    }

    /// Opens and closes the store as duty changes, until `shutdown`.
    ///
    /// # Errors
    /// If the thread that owns the core panics.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Defect> {
        let mut duty = self.shared.duty.subscribe();
        let mut ready = None;
        loop {
            let wanted = *duty.borrow_and_update();
            if let Duty::Serve { term } = wanted {
                let opened = match ready.take() {
                    Some(domain) => Ok(domain),
                    None => self.open_store().await?,
                };
                self.shared.figures().is_ready = false;
                match opened {
                    Ok(mut domain) => {
                        domain.set_term(term);
                        domain.set_watermarks(self.shared.lock_watermarks().clone());
                        self.serve(domain, duty.clone(), &shutdown).await?;
                        // A sensor that lost the role may be the next to have it.
                        if *duty.borrow() == Duty::Rest && !shutdown.is_cancelled() {
                            continue;
                        }
                    }
                    Err(error) => self.shared.report_failure(&error.to_string()),
                }
            } else if ready.is_none() && self.has_store() {
                // A failure here is reported when the store is needed.
                ready = self.open_store().await?.ok();
                self.shared.figures().is_ready = ready.is_some();
            }
            let again = async {
                match wanted {
                    Duty::Serve { .. } => tokio::time::sleep(RETRY_AFTER).await,
                    Duty::Rest => std::future::pending().await,
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                _ = duty.changed() => {}
                () = again => {}
            }
        }
    }

    fn has_store(&self) -> bool {
        std::fs::read_dir(&self.folder).is_ok_and(|mut entries| entries.next().is_some())
    }

    async fn open_store(&self) -> Result<Result<Domain, domain::OpenError>, Defect> {
        let (folder, config) = (self.folder.clone(), self.config.clone());
        let opening = tokio::task::spawn_blocking(move || {
            let disk = Directory::new(folder).map_err(domain::OpenError::Folder)?;
            let fresh_key = getrandom::u64().map_err(|_| domain::OpenError::Random)?;
            Ok(Domain::open(Arc::new(disk), config, StoreKey(fresh_key))?)
        });
        let opened = opening.await.map_err(|_| Defect)?;
        Ok(opened.map(|(domain, notes)| {
            for note in notes {
                tracing::warn!(note, "the store of the domain was not as it was left");
            }
            self.shared.clear_failure();
            domain
        }))
    }

    /// Serves until the duty ends.
    async fn serve(
        &self,
        domain: Domain,
        duty: watch::Receiver<Duty>,
        shutdown: &CancellationToken,
    ) -> Result<(), Defect> {
        let (sessions_to, sessions) = mpsc::channel(SESSIONS_MAX);
        let (queries_to, queries) = mpsc::channel(QUERIES_MAX);
        let inbox = Inbox { sessions, queries, duty, election: self.shared.election.subscribe() };
        let open = Open { sessions: sessions_to, queries: queries_to, feed: domain.feed() };
        let (shared, ending) = (Arc::clone(&self.shared), shutdown.child_token());
        // Dropping the future that waits for a thread does not end the thread.
        let _ends = ending.clone().drop_guard();
        let runtime = tokio::runtime::Handle::current();
        // A thread of its own for as long as it serves.
        let stored = self.stored.clone();
        let worker = tokio::task::spawn_blocking(move || {
            runtime.block_on(worker::run(domain, stored, shared, inbox, ending))
        });
        self.shared.open.send_replace(Some(open));
        let ended = worker.await;
        self.shared.open.send_replace(None);
        ended.map_err(|_| Defect)
    }
}
