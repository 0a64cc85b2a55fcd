//! `sensor.call_processes`: the processes that serve or served a call, with their samples through its life.
//!
//! Rule: what is claimed and how it is known is told for each process; samples come from memory and from the recordings of
//! this boot that overlap the call's life, a bounded number of them.
//! Not here: who serves what (`serving`), which calls there are (`log_filters::join`).

use super::samples::{self, Samples, Wanted};
use super::shape;
use super::{declared, processes};
use crate::process::details;
use crate::process::procfs::boot_ns;
use crate::process::sampler;
use crate::process::sight::Sight;
use crate::recorder::desk;
use crate::recorder::store;
use crate::serving::known::Serves;
use crate::serving::meant::Meant;
use crate::serving::watch;
use compact_str::CompactString;
use log_filters::join::Joiner;
use rpc::apart::Apart;
use rpc::fault::Fault;
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Params, Type};
use rpc::value::{Name, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::call::Call;
use wire::process::{Process, ProcessKey};
use wire::query::Viewer;
use wire::recording::Recording;
use wire::recording::segment::Segment;
use wire::time::Time;

/// Most recordings looked into for one answer, the newest of those that overlap.
const RECORDINGS_MAX: usize = 4;
/// Answers made at a time.
const AT_ONCE_MAX: usize = 4;
/// How far a log's times may be from the processes', in nanoseconds: many print whole seconds, and clocks differ.
const SLACK_NS: u64 = 5_000_000_000;

/// What the method reads from.
#[derive(Clone)]
pub struct CallProcesses {
    /// The calls.
    pub joiner: Arc<Mutex<Joiner>>,
    /// Who serves what.
    pub serving: watch::Handle,
    /// The processes there are.
    pub processes: sampler::Handle,
    /// The flight recorder, where there is one.
    pub recorder: Option<desk::Handle>,
    /// Where `/proc` is.
    pub proc: PathBuf,
}

pub(super) fn declaration() -> Declaration {
    samples::parameters(
        Declaration::new("sensor.call_processes", "the processes of this sensor's host that serve or served a call")
            .reading()
            .details(
                "known_by says how each is known: cgroup (the middleware's own control group), environment (what the \
                 process was begun with, which its user may have written), parent (begun by such a process). Give \
                 limit 0 to have no samples.",
            )
            .parameter(Parameter::new("call", Type::Text, "which, as sensor.calls tells; slurm:17").required()),
    )
}

/// A call as it is asked for: its names, and when it was.
struct Asked {
    meant: Meant,
    call: Option<Call>,
    from_ns: u64,
    to_ns: u64,
    /// When the host was booted, as the calendar stands.
    booted: Time,
}

/// A process that serves it.
struct Server {
    by: &'static str,
    /// Whether every user may know it.
    is_public: bool,
    job: CompactString,
    end_ns: Option<u64>,
    row: Option<Process>,
}

impl Server {
    /// Whether it is shown that it serves the call. Where its user is not known, as of one that ended before it was sampled, and its
    /// environment named the job, it is shown to the trusted alone.
    fn is_shown(&self, sight: Sight) -> bool {
        let uid = self.row.as_ref().map(|row| row.uid);
        match (self.is_public, uid) {
            (true, Some(uid)) => sight.shows(uid),
            (false, Some(uid)) => sight.inspects(uid),
            (is_public, None) => is_public && !sight.is_hiding() || sight.is_all(),
        }
    }
}

impl CallProcesses {
    /// The method.
    #[must_use]
    pub fn method(&self) -> Method {
        let (own, apart) = (self.clone(), Apart::new("looking for processes", AT_ONCE_MAX));
        // Looked at once, so that a process has one start and a sample one time in all answers.
        let booted = processes::booted();
        declared::sensor_call_processes().handler_for(move |caller, params| {
            let (own, apart, viewer) = (own.clone(), apart.clone(), caller.viewer);
            async move { apart.run(move || own.answer(&params, viewer, booted)).await }
        })
    }

    fn answer(&self, params: &Params, viewer: Viewer, booted: Time) -> Result<Value, Fault> {
        let mut wanted = Wanted::new(params, viewer)?;
        let sight = Sight::of(viewer);
        let asked = self.asked(params.need_text("call")?)?;
        let recordings = self.recordings(&asked);
        let mut servers = self.servers(&asked, &recordings);
        servers.retain(|_, server| server.row.is_none() || server.is_shown(sight));
        wanted.keys = Some(servers.iter().map(|(key, server)| (*key, server.is_public)).collect());
        let mut samples = Samples::between(booted, asked.from_ns, asked.to_ns, &wanted);
        let held = self.recorder.as_ref().map(|recorder| recorder.ring().window(asked.from_ns, asked.to_ns));
        let held = held.unwrap_or_default();
        // Recordings have segments of the ring as they are.
        let held_ns = held.first().map_or(u64::MAX, |held| held.segment.last_ns);
        let mut next_ns = 0;
        let of_recordings = recordings.iter().flat_map(|recording| &recording.segments);
        for segment in of_recordings.filter(|segment| segment.last_ns < held_ns) {
            next_ns = play_new(&mut samples, segment, next_ns);
        }
        held.iter().for_each(|held| samples.play(&held.segment));
        for (key, row) in samples.take_seen() {
            if let Some(server) = servers.get_mut(&key) {
                server.row.get_or_insert(row);
            }
        }
        servers.retain(|_, server| server.is_shown(sight));
        let counts = self.serving.counts();
        let mut members = samples.shown();
        let shown = servers.iter().map(|(key, server)| self.shown(*key, server, booted));
        members.push(("processes".into(), Value::array(shown)));
        members.push(("unreadable".into(), Value::UInt(counts.unreadable_total)));
        members.push(("passed_over".into(), Value::UInt(counts.passed_over_total)));
        members.extend(asked.call.map(|call| (Name::Borrowed("call"), shape::call(&call))));
        Ok(Value::Struct(members))
    }

    fn asked(&self, id: &str) -> Result<Asked, Fault> {
        let joiner = self.joiner.lock().unwrap_or_else(PoisonError::into_inner);
        let call = joiner.get(id);
        if call.is_none() && !id.contains(':') {
            return Err(Fault::not_found(format!(
                "there is no call {id:?}; give its id as sensor.calls tells it, slurm:17"
            )));
        }
        let meant = Meant::call(&joiner, id);
        drop(joiner);
        // Logs tell of the calendar as it stands.
        let (now_ns, booted) = (boot_ns(), processes::booted());
        let moment_ns = |time: Time| u64::try_from(time.since(booted).as_nanos()).unwrap_or(u64::MAX);
        let began = call.as_ref().and_then(|call| call.selected.or(call.started).or(call.submitted));
        let ended = call.as_ref().and_then(|call| call.ended);
        let from_ns = began.map_or(0, |began| moment_ns(began).saturating_sub(SLACK_NS));
        let to_ns = ended.map_or(now_ns, |ended| moment_ns(ended).saturating_add(SLACK_NS));
        Ok(Asked { meant, call, from_ns, to_ns, booted })
    }

    /// Those of this boot that overlap the call's life, the oldest first.
    fn recordings(&self, asked: &Asked) -> Vec<Recording> {
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
        // One that was deleted meanwhile is no loss: there are the others.
        paths.iter().rev().filter_map(|path| store::read(path).ok()).collect()
    }

    fn servers(&self, asked: &Asked, recordings: &[Recording]) -> BTreeMap<ProcessKey, Server> {
        let mut servers = BTreeMap::new();
        for serving in recordings.iter().flat_map(|recording| &recording.serving) {
            if self.is_of(&serving.job, asked) {
                let by = match serving.known_by.as_str() {
                    "cgroup" => "cgroup",
                    "environment" => "environment",
                    _ => "parent",
                };
                // A recording does not say whether a name is of the control group.
                let server =
                    Server { by, is_public: false, job: serving.job.clone(), end_ns: None, row: None };
                servers.insert(serving.key, server);
            }
        }
        for (key, Serves { jobs, by, end_ns }) in self.serving.between(asked.from_ns, asked.to_ns) {
            if let Some(job) = jobs.iter().find(|job| self.is_of(job, asked)) {
                let (by, is_public) = (by.as_str(), by.is_public());
                let server = Server { by, is_public, job: job.clone(), end_ns, row: None };
                servers.insert(key, server);
            }
        }
        self.processes.look(|view| {
            for (key, server) in &mut servers {
                server.row = view.table.get(key.pid).filter(|row| row.key == *key).cloned();
            }
        });
        servers
    }

    /// Whether a job is the call, by its own names or by one that the logs tell.
    fn is_of(&self, job: &str, asked: &Asked) -> bool {
        asked.meant.is(&self.joiner.lock().unwrap_or_else(PoisonError::into_inner), job)
    }

    fn shown(&self, key: ProcessKey, server: &Server, booted: Time) -> Value {
        let time = |moment_ns| shape::time(booted.plus(Duration::from_nanos(moment_ns)));
        let mut members: Vec<(Name, Value)> = vec![
            ("pid".into(), Value::UInt(key.pid.into())),
            ("start".into(), time(key.start_ns)),
            ("start_ns".into(), Value::UInt(key.start_ns)),
            ("known_by".into(), Value::Text(server.by.to_owned())),
            ("job".into(), Value::Text(server.job.to_string())),
        ];
        let mut maybe = |name: &'static str, value: Option<Value>| {
            members.extend(value.map(|value| (Name::Borrowed(name), value)));
        };
        maybe("ended", server.end_ns.map(time));
        let row = server.row.as_ref();
        maybe("parent", row.map(|row| Value::UInt(row.parent.into())));
        maybe("uid", row.map(|row| Value::UInt(row.uid.into())));
        maybe("name", row.map(|row| Value::Text(row.name.to_string())));
        let command = server.end_ns.is_none().then(|| details::command(Path::new(&self.proc), key)).flatten();
        maybe("command", command.map(|command| Value::Text(command.to_string())));
        Value::Struct(members)
    }
}

/// Recordings may overlap: a segment that ends before what was played does is in the one before.
fn play_new(samples: &mut Samples<'_>, segment: &Segment, next_ns: u64) -> u64 {
    if segment.last_ns < next_ns {
        return next_ns;
    }
    samples.play(segment);
    segment.last_ns + 1
}
