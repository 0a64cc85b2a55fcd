//! Rolls of who serves the jobs and calls that consumers ask for, kept up beside the sampling.
//!
//! Shell. Rules: the sampling thread only looks a process up; a roll is made again when it became known who serves what, and each
//! second, as logs tell other names of a call; one that no one holds any more is let go.
//! Not here: who serves what (`known`), which jobs are meant (`meant`).

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

/// Until a roll is made again, though nothing became known.
const AT_LEAST_EVERY: Duration = Duration::from_secs(1);
/// Until it is made again after it was.
const AT_MOST_EVERY: Duration = Duration::from_millis(50);

/// The processes that serve what is wanted.
#[derive(Clone, Debug)]
pub struct Served(Arc<Roll>);

#[derive(Debug)]
struct Roll {
    job: Option<CompactString>,
    call: Option<CompactString>,
    keys: Mutex<Arc<BTreeMap<ProcessKey, KnownBy>>>,
}

impl Served {
    /// As they are known now, and how.
    #[must_use]
    pub fn now(&self) -> Arc<BTreeMap<ProcessKey, KnownBy>> {
        Arc::clone(&locked(&self.0.keys))
    }
}

/// All rolls; to be cloned freely.
#[derive(Clone)]
pub struct Rolls(Arc<Shared>);

struct Shared {
    serving: watch::Handle,
    joiner: Arc<Mutex<Joiner>>,
    held: Mutex<Vec<Weak<Roll>>>,
}

impl Rolls {
    /// None yet.
    #[must_use]
    pub fn new(serving: watch::Handle, joiner: Arc<Mutex<Joiner>>) -> Rolls {
        Rolls(Arc::new(Shared { serving, joiner, held: Mutex::default() }))
    }

    /// Who serves this job, this call, or both.
    #[must_use]
    pub fn of(&self, job: Option<&str>, call: Option<&str>) -> Served {
        let roll = Roll { job: job.map(Into::into), call: call.map(Into::into), keys: Mutex::default() };
        self.make(&roll);
        let roll = Arc::new(roll);
        locked(&self.0.held).push(Arc::downgrade(&roll));
        Served(roll)
    }

    /// Keep them up until `shutdown`.
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
                // Calls are many on a busy site.
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
