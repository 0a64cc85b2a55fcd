//! Cache of the processes that serve the jobs and calls that consumers request, updated beside the sampling.
//!
//! Shell. Rules: the sampling thread only looks up a process. A roll is computed again when the table of
//! processes and jobs changed, and each second, because logs report other names of a call; a roll without a
//! consumer is dropped.
//! Not here: which process serves which job (`job_table`), how jobs are matched (`job_matcher`).

use super::job_matcher::JobMatcher;
use super::job_table::Evidence;
use super::watch;
use crate::sample::ticker::locked;
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
pub struct ServingProcesses(Arc<Roster>);

#[derive(Debug)]
struct Roster {
    job: Option<CompactString>,
    call: Option<CompactString>,
    keys: Mutex<Arc<BTreeMap<ProcessKey, Evidence>>>,
}

impl ServingProcesses {
    /// Returns the matching processes now, with the evidence for each.
    #[must_use]
    pub fn now(&self) -> Arc<BTreeMap<ProcessKey, Evidence>> {
        Arc::clone(&locked(&self.0.keys))
    }
}

/// All rolls; cheap to clone.
#[derive(Clone)]
pub struct Rosters(Arc<Shared>);

struct Shared {
    serving: watch::Handle,
    joiner: Arc<Mutex<Joiner>>,
    rosters: Mutex<Vec<Weak<Roster>>>,
}

impl Rosters {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(serving: watch::Handle, joiner: Arc<Mutex<Joiner>>) -> Rosters {
        Rosters(Arc::new(Shared { serving, joiner, rosters: Mutex::default() }))
    }

    /// Returns the processes that serve this job, this call, or both; updated while the result is held.
    #[must_use]
    pub fn of(&self, job: Option<&str>, call: Option<&str>) -> ServingProcesses {
        let roster = Roster { job: job.map(Into::into), call: call.map(Into::into), keys: Mutex::default() };
        self.make(&roster);
        let roster = Arc::new(roster);
        locked(&self.0.rosters).push(Arc::downgrade(&roster));
        ServingProcesses(roster)
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
            let rosters: Vec<Arc<Roster>> = {
                let mut rosters = locked(&self.0.rosters);
                rosters.retain(|roster| roster.strong_count() > 0);
                rosters.iter().filter_map(Weak::upgrade).collect()
            };
            if !rosters.is_empty() {
                let own = self.clone();
                // A busy site has many calls.
                let made =
                    tokio::task::spawn_blocking(move || rosters.iter().for_each(|roster| own.make(roster)))
                        .await;
                if made.is_err() {
                    return;
                }
                tokio::time::sleep(AT_MOST_EVERY).await;
            }
        }
    }

    fn make(&self, roster: &Roster) {
        let joiner = self.0.joiner.lock().unwrap_or_else(PoisonError::into_inner);
        let job = roster.job.as_ref().map(|job| JobMatcher::job(&joiner, job));
        let call = roster.call.as_ref().map(|call| JobMatcher::call(&joiner, call));
        let is_meant =
            |served: &str| [&job, &call].into_iter().flatten().all(|matcher| matcher.is(&joiner, served));
        let keys = self.0.serving.read(|known| {
            let live = known.all().filter(|(_, serves)| serves.end_ns.is_none());
            let matcher = live.filter(|(_, serves)| serves.jobs.iter().any(|served| is_meant(served)));
            matcher.map(|(key, serves)| (key, serves.by)).collect::<BTreeMap<_, _>>()
        });
        *locked(&roster.keys) = Arc::new(keys);
    }
}
