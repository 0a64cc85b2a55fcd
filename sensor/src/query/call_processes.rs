//! `sensor.call_processes`: the processes that serve or served a call, with their samples during the call.
//!
//! Rule: the result states for each process which job it serves and the evidence. Samples are read from
//! memory, and from the recordings of this boot that overlap the call; the number of recordings is bounded.
//! Not here: which process serves which job (`serving`), which calls there are (`log_filters::join`).

use super::samples::{self, SampleQuery, Samples};
use crate::process::boot_time::{boot_ns, booted};
use crate::process::details;
use crate::process::sampler;
use crate::process::visibility::Visibility;
use crate::recorder::store;
use crate::recorder::worker;
use crate::serving::job_matcher::JobMatcher;
use crate::serving::job_table::{self, ServedJob};
use crate::serving::watch;
use compact_str::CompactString;
use log_filters::join::Joiner;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::api::samples::{self as api, CallProcessesParams, KnownBy, ServingProcess};
use wire::api::{UnixTime, calls};
use wire::call::Call;
use wire::process::{Process, ProcessKey};
use wire::query::Viewer;
use wire::recording::Recording;
use wire::recording::segment::Segment;
use wire::time::Time;

/// Most recordings read for one answer: the newest of those that overlap.
const RECORDINGS_MAX: usize = 4;
/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 4;
/// Tolerance between times in a log and times of processes, in nanoseconds: many logs print whole seconds,
/// and clocks differ.
const SLACK_NS: u64 = 5_000_000_000;

/// Data that the method reads.
#[derive(Clone)]
pub struct CallProcesses {
    pub joiner: Arc<Mutex<Joiner>>,
    /// Which processes serve which jobs.
    pub serving: watch::Handle,
    /// Table of the present processes.
    pub processes: sampler::Handle,
    /// The flight recorder, if it is on.
    pub recorder: Option<worker::Handle>,
    /// Path of `/proc`.
    pub proc: PathBuf,
}

/// Requested call: its names, and its time span.
struct CallQuery {
    meant: JobMatcher,
    call: Option<Call>,
    from_ns: u64,
    to_ns: u64,
    /// Time of boot, by the present calendar.
    booted: Time,
}

impl CallQuery {
    /// Limits the time span to these times.
    fn within(mut self, from: Option<UnixTime>, to: Option<UnixTime>) -> CallQuery {
        let moment_ns =
            |UnixTime(time): UnixTime| u64::try_from(time.since(self.booted).as_nanos()).unwrap_or(u64::MAX);
        self.from_ns = from.map_or(self.from_ns, |from| self.from_ns.max(moment_ns(from)));
        self.to_ns = to.map_or(self.to_ns, |to| self.to_ns.min(moment_ns(to)));
        self
    }
}

/// A process that serves the call.
struct CallProcess {
    by: KnownBy,
    /// Whether every user may see that it serves the job.
    is_public: bool,
    job: CompactString,
    end_ns: Option<u64>,
    row: Option<Process>,
}

impl CallProcess {
    /// Returns whether the viewer may see that it serves the call. If its user is not known, as for a process
    /// that ended before it was sampled, and its environment named the job, only trusted viewers see it.
    fn is_shown(&self, visibility: Visibility) -> bool {
        let uid = self.row.as_ref().map(|row| row.uid);
        match (self.is_public, uid) {
            (true, Some(uid)) => visibility.shows(uid),
            (false, Some(uid)) => visibility.inspects(uid),
            (is_public, None) => is_public && !visibility.is_hiding() || visibility.is_all(),
        }
    }
}

impl CallProcesses {
    /// Creates the method.
    #[must_use]
    pub fn method(&self) -> Method {
        let (own, pool) = (self.clone(), BlockingPool::new("looking for processes", AT_ONCE_MAX));
        // Read once, so that a process has the same start and a sample the same time in all answers.
        let booted = booted();
        typed::method(move |caller, params: CallProcessesParams| {
            let (own, pool, viewer) = (own.clone(), pool.clone(), caller.viewer);
            async move { pool.run(move || own.answer(params, viewer, booted)).await }
        })
    }

    fn answer(
        &self,
        params: CallProcessesParams,
        viewer: Viewer,
        booted: Time,
    ) -> Result<api::CallProcesses, Fault> {
        let (from, to) = (params.samples.from, params.samples.to);
        let mut wanted = SampleQuery::new(params.samples, viewer)?;
        let visibility = Visibility::of(viewer);
        let asked = self.query(&params.call)?.within(from, to);
        let recordings = self.recordings(&asked);
        let mut servers = self.servers(&asked, &recordings);
        servers.retain(|_, server| server.row.is_none() || server.is_shown(visibility));
        wanted.keys = Some(servers.iter().map(|(key, server)| (*key, server.is_public)).collect());
        let mut samples = Samples::between(booted, asked.from_ns, asked.to_ns, &wanted);
        self.play(&mut samples, &asked, &recordings);
        for (key, row) in samples.take_seen() {
            if let Some(server) = servers.get_mut(&key) {
                server.row.get_or_insert(row);
            }
        }
        servers.retain(|_, server| server.is_shown(visibility));
        let (counts, gathered) = (self.serving.counts(), samples.gathered());
        Ok(api::CallProcesses {
            processes: servers.iter().map(|(key, server)| self.to_api(*key, server, booted)).collect(),
            samples: gathered.samples,
            ended: gathered.ended,
            total: gathered.total,
            next: gathered.next,
            unreadable: counts.unreadable_total,
            passed_over: counts.passed_over_total,
            unreadable_segments: gathered.unreadable,
            call: asked.call.as_ref().map(calls::Call::from),
        })
    }

    /// Collects samples from the recordings, and from memory.
    fn play(&self, samples: &mut Samples<'_>, asked: &CallQuery, recordings: &[Recording]) {
        let held = self.recorder.as_ref().map(|recorder| recorder.ring().window(asked.from_ns, asked.to_ns));
        let held = held.unwrap_or_default();
        // Recordings contain copies of segments in the ring.
        let held_ns = held.first().map_or(u64::MAX, |held| held.segment.last_ns);
        let mut next_ns = 0;
        let of_recordings = recordings.iter().flat_map(|recording| &recording.segments);
        for segment in of_recordings.filter(|segment| segment.last_ns < held_ns) {
            next_ns = play_new(samples, segment, next_ns);
        }
        held.iter().for_each(|held| samples.play(&held.segment));
    }

    fn query(&self, id: &str) -> Result<CallQuery, Fault> {
        let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
        let call = joiner.get(id);
        if call.is_none() && !id.contains(':') {
            return Err(Fault::not_found(format!(
                "there is no call {id:?}; give its id as sensor.calls returns it, slurm:17"
            )));
        }
        let meant = JobMatcher::call(&joiner, id);
        drop(joiner);
        // Logs use the present calendar.
        let (now_ns, booted) = (boot_ns(), booted());
        let moment_ns = |time: Time| u64::try_from(time.since(booted).as_nanos()).unwrap_or(u64::MAX);
        let began = call.as_ref().and_then(|call| call.selected.or(call.started).or(call.submitted));
        let ended = call.as_ref().and_then(|call| call.ended);
        let from_ns = began.map_or(0, |began| moment_ns(began).saturating_sub(SLACK_NS));
        let to_ns = ended.map_or(now_ns, |ended| moment_ns(ended).saturating_add(SLACK_NS));
        Ok(CallQuery { meant, call, from_ns, to_ns, booted })
    }

    /// Reads the recordings of this boot that overlap the call, the oldest first.
    fn recordings(&self, asked: &CallQuery) -> Vec<Recording> {
        let Some(recorder) = &self.recorder else { return Vec::new() };
        let paths: Vec<PathBuf> = recorder.store(|store| {
            let overlap = store.list().rev().filter(|kept| {
                let header = &kept.header;
                let is_of_boot = samples::is_one_boot(header.booted, asked.booted);
                is_of_boot && header.from_ns <= asked.to_ns && header.to_ns >= asked.from_ns
            });
            let newest = overlap.take(RECORDINGS_MAX);
            newest.filter_map(|kept| store.get(&kept.header.id)).map(|(_, path)| path).collect()
        });
        // A recording that was deleted meanwhile is skipped.
        paths.iter().rev().filter_map(|path| store::read(path).ok()).collect()
    }

    fn servers(&self, asked: &CallQuery, recordings: &[Recording]) -> BTreeMap<ProcessKey, CallProcess> {
        let mut servers = BTreeMap::new();
        for serving in recordings.iter().flat_map(|recording| &recording.serving) {
            if self.is_of(&serving.job, asked) {
                let by = match serving.known_by.as_str() {
                    "cgroup" => KnownBy::Cgroup,
                    "environment" => KnownBy::Environment,
                    _ => KnownBy::Parent,
                };
                // A recording does not state whether a name is from the control group.
                let server =
                    CallProcess { by, is_public: false, job: serving.job.clone(), end_ns: None, row: None };
                servers.insert(serving.key, server);
            }
        }
        for (key, ServedJob { jobs, by, end_ns, .. }) in self.serving.between(asked.from_ns, asked.to_ns) {
            if let Some(job) = jobs.iter().find(|job| self.is_of(job, asked)) {
                let (by, is_public) = (word_of(by), by.is_public());
                let server = CallProcess { by, is_public, job: job.clone(), end_ns, row: None };
                servers.insert(key, server);
            }
        }
        self.processes.read(|view| {
            for (key, server) in &mut servers {
                server.row = view.table.get(key.pid).filter(|row| row.key == *key).cloned();
            }
        });
        servers
    }

    /// Returns whether a job is the call, by the names that were requested or by one in the logs.
    fn is_of(&self, job: &str, asked: &CallQuery) -> bool {
        asked.meant.is(&self.joiner.lock().unwrap_or_else(PoisonError::into_inner), job)
    }

    fn to_api(&self, key: ProcessKey, server: &CallProcess, booted: Time) -> ServingProcess {
        let time = |moment_ns| UnixTime(booted.plus(Duration::from_nanos(moment_ns)));
        let row = server.row.as_ref();
        let lives = server.end_ns.is_none();
        ServingProcess {
            pid: key.pid,
            start: time(key.start_ns),
            start_ns: key.start_ns,
            known_by: server.by,
            job: server.job.clone(),
            ended: server.end_ns.map(time),
            parent: row.map(|row| row.parent),
            uid: row.map(|row| row.uid),
            name: row.map(|row| row.name.clone()),
            command: lives.then(|| details::command(&self.proc, key)).flatten(),
        }
    }
}

fn word_of(by: job_table::Evidence) -> KnownBy {
    match by {
        job_table::Evidence::Cgroup | job_table::Evidence::CgroupAndEnvironment => KnownBy::Cgroup,
        job_table::Evidence::Environment => KnownBy::Environment,
        job_table::Evidence::Parent => KnownBy::Parent,
    }
}

/// Plays a segment unless it was played before: recordings may overlap, and such a segment ends before
/// `next_ns`.
fn play_new(samples: &mut Samples<'_>, segment: &Segment, next_ns: u64) -> u64 {
    if segment.last_ns < next_ns {
        return next_ns;
    }
    samples.play(segment);
    segment.last_ns + 1
}
