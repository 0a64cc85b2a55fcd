//! Task of the directory: reads the snapshot, ends leases in time, sends questions to the peers, saves
//! periodically and at the end.
//!
//! Wiring only. Not here: the listener (the composing program serves [`crate::methods`]), the streams to
//! other directories (the receiver of [`Output::Ask`] sends the question and returns the answer).

use crate::admission::Admission;
use crate::admitted_file::{self, Watch};
use crate::config::Config;
use crate::handle::{Clock, Handle};
use crate::registry::Registry;
use crate::replicate::{Output, Replicas, TooManyPeers};
use crate::snapshot::{self, Snapshot};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use wire::id::PeerKey;

/// The longest and the shortest sleep between two looks at what is due. Answers are exact in between: they
/// compare with the lease itself; and ten thousand leases do not end in ten thousand looks.
const SLEEP_MAX: Duration = Duration::from_secs(1);
const SLEEP_MIN: Duration = Duration::from_millis(20);

/// Interval at which the file of admitted domains is checked.
const ADMITTED_INTERVAL: Duration = Duration::from_secs(2);

/// Why a directory failed to start or to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The snapshot could not be read (error of the operating system) or written.
    #[error(transparent)]
    Snapshot(#[from] snapshot::Error),
    /// The file of admitted domains could not be read.
    #[error(transparent)]
    Admitted(#[from] admitted_file::Error),
    /// More peer directories than allowed.
    #[error(transparent)]
    Peers(#[from] TooManyPeers),
}

/// Peer directories.
#[derive(Clone, Debug, Default)]
pub struct ReplicaPeers {
    /// Keys of the peers; at most [`crate::replicate::PEERS_MAX`].
    pub peers: Vec<PeerKey>,
    /// Random number that spreads the questions to the peers over time.
    pub seed: u64,
}

/// A directory that is ready to run, with the table restored from the snapshot.
#[derive(Debug)]
pub struct Directory {
    config: Config,
    path: PathBuf,
    handle: Handle,
    /// Number of snapshots that had to be moved aside at the start.
    unreadable_total: u64,
    saved: u64,
    /// File of admitted domains; `None` if only this process registers.
    admitted: Option<Watch>,
}

impl Directory {
    /// Read the snapshot in the folder `state`, which must exist, for a directory with representatives of
    /// this process. A snapshot that is damaged or of another version is moved aside, logged and counted, and
    /// the table starts empty.
    ///
    /// # Errors
    /// If the file exists but cannot be read or moved.
    pub fn open(config: Config, state: &Path, clock: impl Clock + 'static) -> Result<Directory, Error> {
        let (registry, unreadable_total) = restored(&config, state, &clock)?;
        let handle = Handle::new(registry, clock);
        Ok(Directory::ready(config, state, handle, unreadable_total, None))
    }

    /// As [`Directory::open`], for signed statements of admitted domains, and with peer directories.
    ///
    /// # Errors
    /// As [`Directory::open`]; if the list of admitted domains in `state` cannot be read; if there are too
    /// many peers.
    pub fn open_among(
        config: Config,
        state: &Path,
        clock: impl Clock + 'static,
        replica_peers: &ReplicaPeers,
    ) -> Result<Directory, Error> {
        let (watch, kept) = Watch::start(state)?;
        let admission = Admission::new(config.domains.clone(), kept);
        let now = clock.now();
        let (registry, unreadable_total) = restored(&config, state, &clock)?;
        let replicas = Replicas::among(registry, admission, &replica_peers.peers, replica_peers.seed, now)?;
        let handle = Handle::among(replicas, clock);
        Ok(Directory::ready(config, state, handle, unreadable_total, Some(watch)))
    }

    fn ready(
        config: Config,
        state: &Path,
        handle: Handle,
        unreadable_total: u64,
        admitted: Option<Watch>,
    ) -> Directory {
        let saved = handle.revision();
        Directory { config, path: state.join(snapshot::FILE_NAME), handle, unreadable_total, saved, admitted }
    }

    /// The table, for registering and resolving.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Number of snapshots that could not be read at the start: 0 or 1.
    #[must_use]
    pub fn unreadable_total(&self) -> u64 {
        self.unreadable_total
    }

    /// Expire leases and save until `shutdown` fires, then save once more. For a directory without peers.
    ///
    /// # Errors
    /// If the last snapshot cannot be written. An earlier failure is logged, and saving is retried.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let (asks, _nobody) = mpsc::channel(1);
        self.run_among(asks, shutdown).await
    }

    /// As [`Directory::run`], and send every [`Output::Ask`] to `asks`; while that is full, questions fail.
    ///
    /// # Errors
    /// As [`Directory::run`].
    pub async fn run_among(
        mut self,
        asks: mpsc::Sender<Output>,
        shutdown: CancellationToken,
    ) -> Result<(), Error> {
        let mut saving = tokio::time::interval(self.config.snapshot_interval);
        saving.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looking = tokio::time::interval(ADMITTED_INTERVAL);
        looking.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let handle = self.handle.clone();
        let mut sleep = SLEEP_MIN;
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = handle.woken() => sleep = self.act(&asks),
                () = tokio::time::sleep(sleep) => sleep = self.act(&asks),
                _ = looking.tick() => self.look_at_admitted(),
                _ = saving.tick() => {
                    if let Err(error) = self.save().await {
                        tracing::warn!(%error, "will be tried again");
                    }
                }
            }
        }
        self.save().await
    }

    /// Do what is due. Returns how long to sleep then.
    fn act(&self, asks: &mpsc::Sender<Output>) -> Duration {
        let (outputs, next) = self.handle.poll();
        for output in outputs {
            match output {
                Output::Ended(domain) => tracing::info!(%domain, "lease ended; last seen from now on"),
                Output::Ask { to, id, .. } => {
                    if let Err(error) = asks.try_send(output) {
                        tracing::debug!(%to, %error, "another directory is not asked");
                        self.handle.handle_failure(to, id);
                    }
                }
            }
        }
        next.unwrap_or(SLEEP_MAX).clamp(SLEEP_MIN, SLEEP_MAX)
    }

    fn look_at_admitted(&mut self) {
        match self.admitted.as_mut().map(Watch::look) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(list))) => {
                tracing::info!(domains = list.iter().count(), "the list of admitted domains was read again");
                self.handle.admit(list);
            }
            Some(Err(error)) => tracing::warn!(%error, "the previous list of admitted domains stays in use"),
        }
    }

    async fn save(&mut self) -> Result<(), Error> {
        let revision = self.handle.revision();
        if revision == self.saved {
            return Ok(());
        }
        let snapshot = self.handle.snapshot();
        let path = self.path.clone();
        // Writing waits for the disk, so it must not block this thread.
        let written = tokio::task::spawn_blocking(move || snapshot.write(&path)).await;
        written.expect("writing a snapshot does not panic")?;
        self.saved = revision;
        Ok(())
    }
}

/// Restore the table from the snapshot in `state`. Returns it with the number of unreadable snapshots.
fn restored(config: &Config, state: &Path, clock: &impl Clock) -> Result<(Registry, u64), Error> {
    let path = state.join(snapshot::FILE_NAME);
    let mut registry = Registry::new(config.domains_max);
    match Snapshot::read(&path) {
        Ok(None) => Ok((registry, 0)),
        Ok(Some(snapshot)) => {
            let records = snapshot.kept.len();
            let refused = snapshot.take_back(&mut registry, clock.now(), clock.calendar());
            tracing::info!(records, refused, "restored as last seen");
            Ok((registry, 0))
        }
        Err(error @ snapshot::Error::Unreadable { .. }) => {
            let aside = snapshot::move_aside(&path)?;
            tracing::error!(%error, aside = %aside.display(), "starting with an empty directory");
            Ok((registry, 1))
        }
        Err(error @ snapshot::Error::File { .. }) => Err(error.into()),
    }
}
