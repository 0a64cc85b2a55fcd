//! Cache of the processes that serve the jobs and calls that consumers request, updated beside the sampling.
//!
//! Shell. Rules: the sampling thread only looks up a process. A roll is computed again when the table of
//! processes and jobs changed, and each second, because logs report other names of a call; a roll without a
//! consumer is dropped.
//! Not here: which process serves which job (`known`), how jobs are matched (`meant`).

use super::known::KnownBy;
use super::meant::Meant;
use super::watch;
use crate::sample::beat::locked;
use compact_str::CompactString;
use log_filters::join::Joiner;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use wire::process::ProcessKey;

/// Longest time until a roll is computed again, although nothing changed.
const AT_LEAST_EVERY: Duration = Duration::from_secs(1);
/// Shortest time between two computations.
const AT_MOST_EVERY: Duration = Duration::from_millis(50);

/// Processes that match a request.
#[derive(Clone, Debug)]
pub struct Served(Arc<Roll>);

#[derive(Debug)]
struct Roll {
    job: Option<CompactString>,
    call: Option<CompactString>,
    keys: Mutex<Arc<BTreeMap<ProcessKey, KnownBy>>>,
}

impl Served {
    /// Returns the matching processes now, with the evidence for each.
    #[must_use]
    pub fn now(&self) -> Arc<BTreeMap<ProcessKey, KnownBy>> {
        Arc::clone(&locked(&self.0.keys))
    }
}

/// All rolls; cheap to clone.
#[derive(Clone)]
pub struct Rolls(Arc<Shared>);

struct Shared {
    serving: watch::Handle,
    joiner: Arc<Mutex<Joiner>>,
    held: Mutex<Vec<Weak<Roll>>>,
}

impl Rolls {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(serving: watch::Handle, joiner: Arc<Mutex<Joiner>>) -> Rolls {
        Rolls(Arc::new(Shared { serving, joiner, held: Mutex::default() }))
    }

    /// Returns the processes that serve this job, this call, or both; updated while the result is held.
    #[must_use]
    pub fn of(&self, job: Option<&str>, call: Option<&str>) -> Served {
        let roll = Roll { job: job.map(Into::into), call: call.map(Into::into), keys: Mutex::default() };
        self.make(&roll);
        let roll = Arc::new(roll);
        locked(&self.0.held).push(Arc::downgrade(&roll));
        Served(roll)
    }

    /// Updates the rolls until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut known = self.0.serving.changes();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                changed = known.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(AT_LEAST_EVERY) => {}
            }
            let held: Vec<Arc<Roll>> = {
                let mut held = locked(&self.0.held);
                held.retain(|roll| roll.strong_count() > 0);
                held.iter().filter_map(Weak::upgrade).collect()
            };
            if !held.is_empty() {
                let own = self.clone();
                // A busy site has many calls.
                let made =
                    tokio::task::spawn_blocking(move || held.iter().for_each(|roll| own.make(roll))).await;
                if made.is_err() {
                    return;
                }
                tokio::time::sleep(AT_MOST_EVERY).await;
            }
        }
    }

    fn make(&self, roll: &Roll) {
        let joiner = self.0.joiner.lock().unwrap_or_else(PoisonError::into_inner);
        let job = roll.job.as_ref().map(|job| Meant::job(&joiner, job));
        let call = roll.call.as_ref().map(|call| Meant::call(&joiner, call));
        let is_meant =
            |served: &str| [&job, &call].into_iter().flatten().all(|meant| meant.is(&joiner, served));
        let keys = self.0.serving.look(|known| {
            let live = known.all().filter(|(_, serves)| serves.end_ns.is_none());
            let meant = live.filter(|(_, serves)| serves.jobs.iter().any(|served| is_meant(served)));
            meant.map(|(key, serves)| (key, serves.by)).collect::<BTreeMap<_, _>>()
        });
        *locked(&roll.keys) = Arc::new(keys);
    }
}
