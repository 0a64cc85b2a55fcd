//! `sensor.processes`: what runs on the host, as the last sweep saw it.
//!
//! Rule: an answer holds a bounded number of processes, those that use most of what is asked for. The table is held only
//! while those are picked; commands and users' names are read after that, where that may block: names may be asked of a server.
//! Not here: sampling (`process`).

use super::declared;
use super::shape;
use crate::likeness;
use crate::process::details::{self, Users};
use crate::process::procfs::boot_ns;
use crate::process::sampler::Handle;
use crate::process::sight::Sight;
use crate::process::source::View;
use compact_str::CompactString;
use rpc::apart::Apart;
use rpc::fault::Fault;
use rpc::method::{Declaration, Method};
use rpc::params::{Parameter, Params, Type};
use rpc::value::{Name, Value};
use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::process::Process;
use wire::query::Viewer;
use wire::time::Time;

/// By what processes can be ordered: the most first.
const ORDERS: [&str; 5] = ["cpu", "memory", "io", "start", "pid"];

/// Answers made at a time.
const AT_ONCE_MAX: usize = 4;

/// `sensor.processes`; `proc` is where `/proc` is.
#[must_use]
pub fn method(sampler: &Handle, proc: &Path) -> Method {
    let (sampler, proc): (_, Arc<Path>) = (sampler.clone(), proc.into());
    let apart = Apart::new("reading the processes", AT_ONCE_MAX);
    // Looked at once, so that a process has one start as long as the sensor runs, whatever happens to the calendar.
    let booted = booted();
    declared::sensor_processes().handler_for(move |caller, params| {
        let (sampler, proc, apart) = (sampler.clone(), Arc::clone(&proc), apart.clone());
        let viewer = caller.viewer;
        async move { apart.run(move || answer((&sampler, &proc), booted, &params, viewer)).await }
    })
}

pub(super) fn declaration() -> Declaration {
    Declaration::new("sensor.processes", "the processes of this sensor's host, those that use most first")
        .reading()
        .details(
            "cpu is the share of one core used over about the last second; cpu_seconds are the scheduler's, exact to the \
             nanosecond; user_seconds and system_seconds share them out as the kernel's ticks say.",
        )
        .parameter(Parameter::new("name", Type::Text, "only processes of this name; * stands for any characters"))
        .parameter(Parameter::new("user", Type::Text, "only processes of this user: a name or a number"))
        .parameter(Parameter::new("pid", Type::Whole { min: 1, max: 1 << 22 }, "only the process of this number"))
        .parameter(Parameter::new("order", Type::choice(&ORDERS), "by what they are ordered").default("cpu"))
        .parameter(Parameter::new("limit", Type::Whole { min: 1, max: 10_000 }, "at most so many").default(100))
}

/// A process that is shown.
pub(super) struct Picked {
    pub(super) process: Process,
    pub(super) share: Option<f64>,
    pub(super) command: Option<CompactString>,
}

fn answer(
    (sampler, proc): (&Handle, &Path),
    booted: Time,
    params: &Params,
    viewer: Viewer,
) -> Result<Value, Fault> {
    let limit = usize::try_from(params.need_whole("limit")?).unwrap_or(1);
    let wanted = Wanted::new(params, Sight::of(viewer))?;
    let order = params.need_text("order")?;
    let (mut picked, total, sweep) = sampler.look(|view| {
        let mut picked = pick(view, &wanted);
        let total = picked.len();
        sort(&mut picked, order);
        picked.truncate(limit);
        (picked, total, view.table.sweep())
    });
    if sweep.number == 0 {
        return Err(Fault::unavailable("no sweep of the processes has been made yet; ask again in a second"));
    }
    for shown in &mut picked {
        let key = shown.process.key;
        shown.command = details::command(proc, key).or(shown.command.take());
    }
    let mut users = Users::default();
    let status = sampler.status();
    Ok(Value::object([
        ("processes", Value::array(picked.iter().map(|shown| value(shown, booted, Some(&mut users))))),
        ("total", Value::UInt(total as u64)),
        ("time", shape::time(booted.plus(Duration::from_nanos(sweep.begin_ns)))),
        ("source", Value::Text(status.kind.to_string())),
        ("reasons", Value::array(status.reasons.into_iter().map(Value::Text))),
        ("interval", Value::Double(sampler.rate().period().as_secs_f64())),
        ("slipped", Value::UInt(status.slipped_total)),
        ("lost", Value::UInt(status.lost_total)),
    ]))
}

/// Which processes are meant.
struct Wanted {
    name: Option<String>,
    uid: Option<u32>,
    pid: Option<u32>,
    sight: Sight,
}

impl Wanted {
    fn new(params: &Params, sight: Sight) -> Result<Wanted, Fault> {
        let pid = params.whole("pid")?.and_then(|pid| u32::try_from(pid).ok());
        let uid = params.text("user")?.map(|user| {
            details::uid(user).ok_or_else(|| Fault::not_found(format!("this host has no user {user:?}")))
        });
        Ok(Wanted { name: params.text("name")?.map(ToOwned::to_owned), uid: uid.transpose()?, pid, sight })
    }

    fn fits(&self, process: &Process) -> bool {
        self.sight.shows(process.uid)
            && self.name.as_ref().is_none_or(|name| likeness::means(name, &process.name))
            && self.uid.is_none_or(|uid| uid == process.uid)
            && self.pid.is_none_or(|pid| pid == process.key.pid)
    }
}

fn pick(view: &View, wanted: &Wanted) -> Vec<Picked> {
    let rows = view.table.rows().iter().enumerate();
    let fitting = rows.filter_map(|(place, row)| Some((place, row.as_ref().filter(|row| wanted.fits(row))?)));
    let picked = fitting.filter_map(|(place, row)| {
        Some(Picked {
            process: wanted.sight.seen(row)?,
            share: view.recent.share(&view.table, place),
            command: view.lives.command(row.key).cloned(),
        })
    });
    picked.collect()
}

fn sort(picked: &mut [Picked], order: &str) {
    let io = |shown: &Picked| shown.process.usage.io.map_or(0, |io| io.read_bytes + io.written_bytes);
    match order {
        "memory" => picked.sort_by_key(|shown| Reverse(shown.process.rss_kib)),
        "io" => picked.sort_by_key(|shown| Reverse(io(shown))),
        "start" => picked.sort_by_key(|shown| Reverse(shown.process.key.start_ns)),
        "pid" => picked.sort_by_key(|shown| shown.process.key.pid),
        _ => picked.sort_by(|a, b| {
            let by = |shown: &Picked| (shown.share.unwrap_or(0.0), shown.process.usage.cpu_ns);
            by(b).partial_cmp(&by(a)).unwrap_or(std::cmp::Ordering::Equal)
        }),
    }
}

/// A process as it is shown, with its user's name where `users` can tell it.
pub(super) fn value(shown: &Picked, booted: Time, users: Option<&mut Users>) -> Value {
    let Picked { process, share, command } = shown;
    let usage = &process.usage;
    let (user_ns, system_ns) = usage.shared_out();
    let secs = |ns: u64| Value::Double(Duration::from_nanos(ns).as_secs_f64());
    let mut members: Vec<(Name, Value)> = vec![
        ("pid".into(), Value::UInt(process.key.pid.into())),
        ("start".into(), shape::time(booted.plus(Duration::from_nanos(process.key.start_ns)))),
        ("start_ns".into(), Value::UInt(process.key.start_ns)),
        ("parent".into(), Value::UInt(process.parent.into())),
        ("uid".into(), Value::UInt(process.uid.into())),
        ("name".into(), Value::Text(process.name.to_string())),
        ("state".into(), Value::Text(process.state.as_str().to_owned())),
        ("threads".into(), Value::UInt(process.threads.into())),
        ("cpu_seconds".into(), secs(usage.cpu_ns)),
        ("user_seconds".into(), secs(user_ns)),
        ("system_seconds".into(), secs(system_ns)),
        ("rss_bytes".into(), Value::UInt(process.rss_kib << 10)),
        ("minor_faults".into(), Value::UInt(usage.minor_faults)),
        ("major_faults".into(), Value::UInt(usage.major_faults)),
    ];
    let mut maybe = |name: &'static str, value: Option<Value>| {
        members.extend(value.map(|value| (Name::Borrowed(name), value)));
    };
    let user = users.and_then(|users| users.name(process.uid).map(|name| Value::Text(name.to_owned())));
    maybe("user", user);
    maybe("command", command.as_ref().map(|command| Value::Text(command.to_string())));
    maybe("cpu", share.map(Value::Double));
    maybe("cgroup", process.cgroup.map(Value::UInt));
    maybe("voluntary_switches", usage.switches.map(|switches| Value::UInt(switches.voluntary)));
    maybe("involuntary_switches", usage.switches.map(|switches| Value::UInt(switches.involuntary)));
    maybe("read_bytes", usage.io.map(|io| Value::UInt(io.read_bytes)));
    maybe("written_bytes", usage.io.map(|io| Value::UInt(io.written_bytes)));
    maybe("read_chars", usage.io.map(|io| Value::UInt(io.read_chars)));
    maybe("written_chars", usage.io.map(|io| Value::UInt(io.written_chars)));
    Value::Struct(members)
}

/// When the host was booted, as the calendar stands now.
#[allow(clippy::disallowed_methods)] // The shell that brings times since boot to the calendar.
pub(crate) fn booted() -> Time {
    Time::from(std::time::SystemTime::now()).minus(Duration::from_nanos(boot_ns()))
}
