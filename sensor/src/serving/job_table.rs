//! Table of the jobs that processes serve: those that they name themselves, or else those that their parents
//! serve.
//!
//! Pure: takes new processes and what was read of them. Invariants: a process is identified by its pid and
//! start time, so a recycled pid serves nothing. A process that names a job itself does not inherit its
//! parent's. The newest of the ended processes are retained.
//! Not here: reading (`read`), calls (`query`).

use super::job_names::{ControlGroups, Jobs};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use wire::process::ProcessKey;
use wire::process::delta::PROCESSES_MAX;

/// Most ended processes retained that served a job: some hours of busy hosts, in about 2 MiB.
pub const ENDED_MAX: usize = 16_384;

/// Most processes whose jobs wait to be taken.
const NEWS_MAX: usize = PROCESSES_MAX;

/// Evidence that a process serves a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Its control group is the job's.
    Cgroup,
    /// Its control group is the job's, and its environment has other names of the job.
    CgroupAndEnvironment,
    /// Its environment names the job.
    Environment,
    /// The process that started it serves the job.
    Parent,
}

impl Evidence {
    /// Returns whether every user may see it: the names of control groups are public, an environment is
    /// private to its user (proc(5)).
    #[must_use]
    pub const fn is_public(self) -> bool {
        matches!(self, Evidence::Cgroup)
    }

    /// Returns its name in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Evidence::Cgroup | Evidence::CgroupAndEnvironment => "cgroup",
            Evidence::Environment => "environment",
            Evidence::Parent => "parent",
        }
    }
}

/// A process that was not there before, or that became another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewProcess {
    pub key: ProcessKey,
    /// Pid of its parent.
    pub parent: u32,
}

/// Job that a process serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedJob {
    /// Names of the job, the best first.
    pub jobs: Jobs,
    pub by: Evidence,
    /// User that started the process, or the ancestor that named the job; `None` if it is unknown.
    pub user: Option<u32>,
    /// Control groups of the job, if the middleware put the process, or that ancestor, into them.
    pub groups: Arc<ControlGroups>,
    /// When the process ended, in nanoseconds since boot; `None` while it lives.
    pub end_ns: Option<u64>,
}

#[derive(Debug, Default)]
pub struct JobTable {
    /// Live processes by pid.
    live: HashMap<u32, ProcessKey>,
    serving: BTreeMap<ProcessKey, ServedJob>,
    /// Ended processes, the oldest first.
    ended: VecDeque<ProcessKey>,
    /// Jobs of processes that became known since they were last taken; `None` if they are not collected.
    news: Option<Vec<(ProcessKey, ServedJob)>>,
    news_lost: u64,
}

impl JobTable {
    /// Adds a process with the jobs that it names; `job` is `None` if it names no job.
    pub fn process_started(&mut self, process: NewProcess, job: Option<ServedJob>) {
        let NewProcess { key, parent } = process;
        if self.live.len() < PROCESSES_MAX || self.live.contains_key(&key.pid) {
            self.live.insert(key.pid, key);
        }
        let inherited = || {
            let parent = self.live.get(&parent).filter(|parent| parent.start_ns <= key.start_ns)?;
            Some(ServedJob { by: Evidence::Parent, end_ns: None, ..self.serving.get(parent)?.clone() })
        };
        let is_known = self.serving.contains_key(&key);
        if let Some(job) = job.or_else(|| inherited().filter(|_| !is_known)) {
            match &mut self.news {
                Some(news) if news.len() < NEWS_MAX => news.push((key, job.clone())),
                Some(_) => self.news_lost += 1,
                None => {}
            }
            self.serving.insert(key, job);
        }
    }

    /// Records that a process has ended, with the time in nanoseconds since boot.
    pub fn process_ended(&mut self, key: ProcessKey, end_ns: u64) {
        if self.is_live(key) {
            self.live.remove(&key.pid);
        }
        let Some(serves) = self.serving.get_mut(&key).filter(|serves| serves.end_ns.is_none()) else {
            return;
        };
        serves.end_ns = Some(end_ns);
        self.ended.push_back(key);
        if self.ended.len() > ENDED_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.serving.remove(&oldest);
        }
    }

    /// Records that all processes but these have ended, with the time in nanoseconds since boot.
    pub fn others_ended(&mut self, living: &BTreeSet<ProcessKey>, end_ns: u64) {
        self.live.retain(|_, key| living.contains(key));
        let ended =
            |(key, serves): &(&ProcessKey, &ServedJob)| serves.end_ns.is_none() && !living.contains(*key);
        let ended: Vec<ProcessKey> = self.serving.iter().filter(ended).map(|(key, _)| *key).collect();
        ended.into_iter().for_each(|key| self.process_ended(key, end_ns));
    }

    /// Collects the jobs of processes from now on, for [`JobTable::take_news`].
    pub fn collect_news(&mut self) {
        self.news = Some(Vec::new());
    }

    /// Takes the processes whose job became known since the last time, and how many could not be collected.
    pub fn take_news(&mut self) -> (Vec<(ProcessKey, ServedJob)>, u64) {
        let news = self.news.as_mut().map(std::mem::take).unwrap_or_default();
        (news, std::mem::take(&mut self.news_lost))
    }

    /// Returns whether a process is known and has not ended.
    #[must_use]
    pub fn is_live(&self, key: ProcessKey) -> bool {
        self.live.get(&key.pid) == Some(&key)
    }

    /// Returns what a process serves.
    #[must_use]
    pub fn of(&self, key: ProcessKey) -> Option<&ServedJob> {
        self.serving.get(&key)
    }

    /// Iterates over all processes that serve or served a job, by pid.
    pub fn all(&self) -> impl Iterator<Item = (ProcessKey, &ServedJob)> {
        self.serving.iter().map(|(key, serves)| (*key, serves))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(pid: u32, start_ns: u64) -> ProcessKey {
        ProcessKey { pid, start_ns }
    }

    fn add(table: &mut JobTable, pid: u32, start_ns: u64, parent: u32, job: Option<&str>) {
        let job = job.map(|job| ServedJob {
            jobs: vec![job.into()],
            by: Evidence::Environment,
            user: Some(1000),
            groups: Arc::default(),
            end_ns: None,
        });
        table.process_started(NewProcess { key: key(pid, start_ns), parent }, job);
    }

    fn job(table: &JobTable, pid: u32, start_ns: u64) -> Option<(&str, Evidence)> {
        table.of(key(pid, start_ns)).map(|serves| (serves.jobs[0].as_str(), serves.by))
    }

    #[test]
    fn children_serve_what_their_parents_serve_unless_they_say_otherwise() {
        let mut table = JobTable::default();
        add(&mut table, 10, 1, 1, Some("slurm:171"));
        add(&mut table, 11, 2, 10, None);
        add(&mut table, 12, 3, 11, None);
        add(&mut table, 13, 4, 12, Some("slurm:172"));
        add(&mut table, 20, 5, 1, None);
        assert_eq!(job(&table, 10, 1), Some(("slurm:171", Evidence::Environment)));
        assert_eq!(job(&table, 12, 3), Some(("slurm:171", Evidence::Parent)));
        assert_eq!(job(&table, 13, 4), Some(("slurm:172", Evidence::Environment)));
        assert_eq!(job(&table, 20, 5), None);
    }

    #[test]
    fn a_process_that_becomes_another_program_is_believed_again() {
        let mut table = JobTable::default();
        add(&mut table, 10, 1, 1, None);
        assert_eq!(job(&table, 10, 1), None);
        add(&mut table, 10, 1, 1, Some("slurm:171"));
        add(&mut table, 11, 2, 10, None);
        // It erased its environment, and still serves the same job.
        add(&mut table, 10, 1, 1, None);
        assert_eq!(job(&table, 10, 1), Some(("slurm:171", Evidence::Environment)));
    }

    #[test]
    fn a_recycled_number_serves_nothing_and_what_ended_is_kept() {
        let mut table = JobTable::default();
        add(&mut table, 10, 1, 1, Some("slurm:171"));
        table.process_ended(key(10, 1), 7);
        add(&mut table, 10, 9, 1, None);
        add(&mut table, 11, 10, 10, None);
        assert_eq!((job(&table, 10, 9), job(&table, 11, 10)), (None, None));
        assert_eq!(table.of(key(10, 1)).expect("kept").end_ns, Some(7));
        for pid in 100..100 + u32::try_from(ENDED_MAX).expect("small") {
            add(&mut table, pid, 20, 1, Some("slurm:172"));
            table.process_ended(key(pid, 20), 21);
        }
        assert_eq!((job(&table, 10, 1), table.all().count()), (None, ENDED_MAX));
    }
}
