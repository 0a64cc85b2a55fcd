//! Earlier runs of a job that was requeued: start, end and hosts of each.
//!
//! Pure. Rule: a run is found by the requeue that ended it, so what is read later, or in another order, belongs to the
//! same run. Not here: the last run (`progress`).

use crate::beginning::Beginning;
use crate::ending::Ending;
use crate::sameness::{hosts_of, same_host};
use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use wire::call::Authority;
use wire::call::job::Run;
use wire::event::Content;
use wire::time::Time;

/// Most runs stored of a job; the newest are.
const RUNS_MAX: usize = 32;

/// Most hosts stored of a run.
const HOSTS_MAX: usize = 1_024;

/// Two logs may print one requeue with times that differ by this.
pub(crate) const SAME_REQUEUE_MICROS: i64 = 2_000_000;

/// A run that a requeue ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EarlierRun {
    /// Time of the requeue.
    pub(crate) requeued: Time,
    pub(crate) beginning: Beginning,
    pub(crate) ending: Ending,
    pub(crate) hosts: Vec<CompactString>,
}

/// Runs before the last one, in the order of their requeues.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct EarlierRuns(Vec<EarlierRun>);

impl EarlierRuns {
    /// Adds a run, or what is new of one that is known.
    pub(crate) fn add(&mut self, mut run: EarlierRun) {
        run.hosts.truncate(HOSTS_MAX);
        match self.0.iter_mut().find(|known| is_same(known.requeued, run.requeued)) {
            Some(known) => known.absorb(&run),
            None => {
                let at = self.0.partition_point(|known| known.requeued <= run.requeued);
                self.0.insert(at, run);
                if self.0.len() > RUNS_MAX {
                    self.0.remove(0);
                }
            }
        }
    }

    /// Drops the run of a requeue that turned out to be none.
    pub(crate) fn remove(&mut self, requeued: Time) {
        self.0.retain(|known| !is_same(known.requeued, requeued));
    }

    /// The run that went on at this time.
    pub(crate) fn at(&mut self, time: Time) -> Option<&mut EarlierRun> {
        self.0.iter_mut().find(|run| time.micros() <= run.requeued.micros() + SAME_REQUEUE_MICROS)
    }

    /// The newest run.
    pub(crate) fn last(&mut self) -> Option<&mut EarlierRun> {
        self.0.last_mut()
    }

    /// Adds the runs of another call that is the same.
    pub(crate) fn absorb(&mut self, other: &EarlierRuns) {
        other.0.iter().for_each(|run| self.add(run.clone()));
    }

    /// The runs as they are shown.
    pub(crate) fn runs(&self) -> Vec<Run> {
        self.0.iter().map(EarlierRun::run).collect()
    }
}

impl EarlierRun {
    /// Processes hosts that an event names.
    pub(crate) fn ran_on(&mut self, content: &Content) {
        self.add_hosts(&hosts_of(content));
    }

    /// Processes an end.
    pub(crate) fn end(&mut self, content: &Content, by: Authority) {
        self.ending.report(content, by);
        self.ran_on(content);
    }

    fn add_hosts(&mut self, hosts: &[CompactString]) {
        for host in hosts {
            if self.hosts.len() < HOSTS_MAX && !self.hosts.iter().any(|known| same_host(known, host)) {
                self.hosts.push(host.clone());
            }
        }
    }

    fn absorb(&mut self, other: &EarlierRun) {
        self.beginning.absorb(&other.beginning);
        self.ending.absorb(&other.ending);
        self.add_hosts(&other.hosts);
    }

    fn run(&self) -> Run {
        // Their order is that of reading.
        let mut hosts = self.hosts.clone();
        hosts.sort_unstable();
        Run {
            started: self.beginning.at(),
            ended: self.ending.at().or(Some(self.requeued)),
            outcome: self.ending.outcome(None),
            hosts,
            code: self.ending.code().clone(),
            signal: self.ending.signal().clone(),
        }
    }
}

fn is_same(one: Time, other: Time) -> bool {
    (one.micros() - other.micros()).abs() <= SAME_REQUEUE_MICROS
}
