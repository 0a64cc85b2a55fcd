//! `sensor.processes`: the processes of the host, as of the last sweep.
//!
//! Rule: an answer has a bounded number of processes, those with the largest values in the requested order.
//! The table is locked only while those are selected. Commands and users' names are read after that, where it
//! may block: names may come from a server.
//! Not here: sampling (`process`).

use crate::process::boot_time;
use crate::process::details::{self, Users};
use crate::process::sampler::Handle;
use crate::process::source::View;
use crate::process::visibility::Visibility;
use compact_str::CompactString;
use rpc::dispatch::blocking_pool::BlockingPool;
use rpc::dispatch::method::Method;
use rpc::dispatch::typed;
use rpc::fault::Fault;
use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::api::UnixTime;
use wire::api::processes::{self as api, ProcessOrder, Processes, ProcessesParams};
use wire::name_match;
use wire::process::Process;
use wire::query::Viewer;
use wire::time::Time;

/// Most answers computed at the same time.
const AT_ONCE_MAX: usize = 4;

/// `sensor.processes`; `proc` is the path of `/proc`.
#[must_use]
pub fn method(sampler: &Handle, proc: &Path) -> Method {
    let (sampler, proc): (_, Arc<Path>) = (sampler.clone(), proc.into());
    let pool = BlockingPool::new("reading the processes", AT_ONCE_MAX);
    // Read once, so that a process has the same start as long as the sensor runs, even if the calendar is
    // set.
    let booted = boot_time::booted();
    typed::method(move |caller, params: ProcessesParams| {
        let (sampler, proc, pool) = (sampler.clone(), Arc::clone(&proc), pool.clone());
        let viewer = caller.viewer;
        async move { pool.run(move || answer((&sampler, &proc), booted, &params, viewer)).await }
    })
}

/// A process of the answer.
struct SelectedProcess {
    process: Process,
    share: Option<f64>,
    command: Option<CompactString>,
}

fn answer(
    (sampler, proc): (&Handle, &Path),
    booted: Time,
    params: &ProcessesParams,
    viewer: Viewer,
) -> Result<Processes, Fault> {
    let wanted = ProcessQuery::new(params, Visibility::of(viewer))?;
    let (mut picked, total, sweep) = sampler.read(|view| {
        let mut picked = pick(view, &wanted);
        let total = picked.len();
        sort(&mut picked, params.order);
        picked.truncate(usize::try_from(params.limit).unwrap_or(usize::MAX));
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
    Ok(Processes {
        processes: picked.into_iter().map(|picked| to_api(picked, booted, &mut users)).collect(),
        total: total as u64,
        time: UnixTime(booted.plus(Duration::from_nanos(sweep.begin_ns))),
        source: status.kind.to_string(),
        reasons: status.reasons,
        interval_secs: sampler.rate().period().as_secs_f64(),
        slipped: status.slipped_total,
        lost: status.lost_total,
    })
}

/// Returns the uid of the requested user. May block: the system may query a server for names.
pub(super) fn wanted_uid(user: Option<&str>) -> Result<Option<u32>, Fault> {
    let look_up =
        |user| details::uid(user).ok_or_else(|| Fault::not_found(format!("this host has no user {user:?}")));
    user.map(look_up).transpose()
}

/// Requested processes.
struct ProcessQuery<'a> {
    params: &'a ProcessesParams,
    uid: Option<u32>,
    visibility: Visibility,
}

impl<'a> ProcessQuery<'a> {
    fn new(params: &'a ProcessesParams, visibility: Visibility) -> Result<ProcessQuery<'a>, Fault> {
        Ok(ProcessQuery { params, uid: wanted_uid(params.user.as_deref())?, visibility })
    }

    fn fits(&self, process: &Process) -> bool {
        let ProcessesParams { name, pid, .. } = self.params;
        self.visibility.shows(process.uid)
            && name.as_ref().is_none_or(|name| name_match::matches(name, &process.name))
            && self.uid.is_none_or(|uid| uid == process.uid)
            && pid.is_none_or(|pid| pid == process.key.pid)
    }
}

fn pick(view: &View, wanted: &ProcessQuery<'_>) -> Vec<SelectedProcess> {
    let rows = view.table.rows().iter().enumerate();
    let fitting = rows.filter_map(|(place, row)| Some((place, row.as_ref().filter(|row| wanted.fits(row))?)));
    let picked = fitting.filter_map(|(place, row)| {
        Some(SelectedProcess {
            process: wanted.visibility.redact(row)?,
            share: view.recent.share(&view.table, place),
            command: view.lives.command(row.key).cloned(),
        })
    });
    picked.collect()
}

fn sort(picked: &mut [SelectedProcess], order: ProcessOrder) {
    let io =
        |shown: &SelectedProcess| shown.process.usage.io.map_or(0, |io| io.read_bytes + io.written_bytes);
    match order {
        ProcessOrder::Memory => picked.sort_by_key(|shown| Reverse(shown.process.rss_kib)),
        ProcessOrder::Io => picked.sort_by_key(|shown| Reverse(io(shown))),
        ProcessOrder::Start => picked.sort_by_key(|shown| Reverse(shown.process.key.start_ns)),
        ProcessOrder::Pid => picked.sort_by_key(|shown| shown.process.key.pid),
        ProcessOrder::Cpu => picked.sort_by(|a, b| {
            let by = |shown: &SelectedProcess| (shown.share.unwrap_or(0.0), shown.process.usage.cpu_ns);
            by(b).partial_cmp(&by(a)).unwrap_or(std::cmp::Ordering::Equal)
        }),
    }
}

fn to_api(picked: SelectedProcess, booted: Time, users: &mut Users) -> api::Process {
    let SelectedProcess { process, share, command } = picked;
    let user = users.name(process.uid).map(ToOwned::to_owned);
    api::Process { user, command, cpu: share, ..api::Process::of(&process, booted) }
}
