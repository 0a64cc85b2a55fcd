//! The directory's own task: reads the snapshot, ends leases in time, saves, and saves again at the end.
//!
//! Wiring only. Not here: the listener (the composing program serves [`crate::methods`]), registration
//! over the network (the overlay's part).

use crate::config::Config;
use crate::handle::{Clock, Handle};
use crate::registry::Registry;
use crate::snapshot::{self, Snapshot};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// How often ended leases are looked for. Answers are exact in between: they compare with the lease itself.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// Why a directory could not start or end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The snapshot could not be read (the system refused) or written.
    #[error(transparent)]
    Snapshot(#[from] snapshot::Error),
}

/// A directory that is ready to run: its table holds what the snapshot held.
#[derive(Debug)]
pub struct Directory {
    config: Config,
    path: PathBuf,
    handle: Handle,
    /// Whether a snapshot had to be moved aside at the start.
    unreadable_total: u64,
    saved: u64,
}

impl Directory {
    /// Read the snapshot in the folder `state`, which must exist. One that is damaged or of another
    /// version is moved aside, told and counted, and the table starts empty.
    ///
    /// # Errors
    /// If the file is there but the system refuses to read or move it.
    pub fn open(config: Config, state: &Path, clock: impl Clock + 'static) -> Result<Directory, Error> {
        let path = state.join(snapshot::FILE_NAME);
        let handle = Handle::new(Registry::new(config.domains_max), clock);
        let mut unreadable_total = 0;
        match Snapshot::read(&path) {
            Ok(None) => {}
            Ok(Some(snapshot)) => {
                let records = snapshot.kept.len();
                let refused = handle.restore(snapshot);
                tracing::info!(records, refused, "restored as last seen");
            }
            Err(error @ snapshot::Error::Unreadable { .. }) => {
                let aside = snapshot::move_aside(&path)?;
                tracing::error!(%error, aside = %aside.display(), "starting with an empty directory");
                unreadable_total = 1;
            }
            Err(error @ snapshot::Error::File { .. }) => return Err(error.into()),
        }
        let saved = handle.revision();
        Ok(Directory { config, path, handle, unreadable_total, saved })
    }

    /// The table, for whoever registers or resolves.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// How many snapshots could not be read at the start: 0 or 1.
    #[must_use]
    pub fn unreadable_total(&self) -> u64 {
        self.unreadable_total
    }

    /// End leases and save until `shutdown` fires, then save once more.
    ///
    /// # Errors
    /// If the last snapshot cannot be written. One that fails before is logged and tried again.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), Error> {
        let mut expiry = tokio::time::interval(EXPIRY_INTERVAL);
        expiry.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut saving = tokio::time::interval(self.config.snapshot_interval);
        saving.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                _ = expiry.tick() => {
                    for domain in self.handle.expire() {
                        tracing::info!(%domain, "lease ended; last seen from now on");
                    }
                }
                _ = saving.tick() => {
                    if let Err(error) = self.save().await {
                        tracing::warn!(%error, "will be tried again");
                    }
                }
            }
        }
        self.save().await
    }

    async fn save(&mut self) -> Result<(), Error> {
        let revision = self.handle.revision();
        if revision == self.saved {
            return Ok(());
        }
        let snapshot = self.handle.snapshot();
        let path = self.path.clone();
        // Writing waits for the disk, and nothing else on this thread should.
        let written = tokio::task::spawn_blocking(move || snapshot.write(&path)).await;
        written.expect("writing a snapshot does not panic")?;
        self.saved = revision;
        Ok(())
    }
}
