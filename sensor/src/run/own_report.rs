//! Inputs of a sensor's own report: its journal, its sweeps and its state.
//!
//! Rule: the host's state is computed when it is reported, never cached.
//! Not here: when it is reported ([`super::link`]).

use super::Status;
use crate::call_history::CallHistory;
use crate::config::Config;
use crate::history::copies::Copies;
use crate::history::handle::Handle as History;
use crate::process::boot_time::boot_id;
use crate::report::copying::CopyInputs;
use crate::report::link::LinkInputs;
use crate::report::outbox::Outbox;
use crate::report::sender::Identity;
use crate::representative::service;
use crate::sample::sampler;
use crate::segments::disk::Directory;
use crate::tail::handle::{Handle, MachineClock};
use crate::tail::ingest::Clock as _;
use compact_str::CompactString;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use wire::at_end::AtEnd;
use wire::id::HostName;
use wire::report::{HostState, Stores};

/// Builds the inputs of the report of a sensor with this configuration and this state directory.
///
/// # Errors
/// If the journal's directory cannot be opened.
pub(super) fn own(
    config: &Config,
    state: &Path,
    tail: &Arc<Handle>,
    sampler: &sampler::Handle,
    status: Status,
    service: service::Handle,
    (history, copies, calls): (Option<History>, Option<Copies>, Option<CallHistory>),
) -> std::io::Result<LinkInputs> {
    let reader = tail.reader();
    let disk = Arc::new(Directory::new(state.join("journal"))?);
    let hosts: BTreeSet<&HostName> = config.tails.iter().filter_map(|tail| tail.host.as_ref()).collect();
    let identity = Identity {
        program: env!("CARGO_PKG_VERSION").into(),
        sensor: tail.sensor(),
        host: config.host.clone(),
        hosts: hosts.into_iter().filter(|host| **host != config.host).cloned().collect(),
        boot: boot_id().into(),
        started: MachineClock.wall(),
        stores: Stores {
            minutes: history.is_some(),
            samples: AtEnd(Some(history.is_some())),
            archive: AtEnd(Some(config.archive.is_some())),
        },
    };
    let (election, host) = (service.clone(), config.host.clone());
    let is_standby = Box::new(move || election.is_standby(&host));
    let (known, acknowledged, awaited) = (Arc::clone(tail), Arc::clone(tail), Arc::clone(tail));
    let figures = sampler.clone();
    Ok(LinkInputs {
        identity,
        outbox: Outbox::new(disk, reader.clone()),
        reader,
        tables: sampler.subscribe(),
        state: Box::new(move || state_of(&status, &figures)),
        acknowledged: Box::new(move || known.status().acknowledged),
        marks: tail.marks(),
        acknowledge: Box::new(move |mark| acknowledged.acknowledge(mark)),
        add_watermarks: Box::new(move |marks| service.add_watermarks(marks)),
        awaits: Box::new(move |waits| awaited.await_durable(waits)),
        copying: Arc::new(CopyInputs {
            own: history,
            copies,
            calls,
            is_standby,
            is_archive: config.archive.is_some(),
        }),
    })
}

fn state_of(status: &Status, sampler: &sampler::Handle) -> HostState {
    let figures = sampler.figures().unwrap_or_default();
    HostState {
        time: MachineClock.wall(),
        load: figures.load,
        cpus: figures.cpus,
        cpu_used: figures.cpu_used,
        memory_total: figures.memory_total,
        memory_used: figures.memory_used,
        uptime: figures.uptime,
        lag_bytes: status.lag_bytes(),
        events_next: status.events_next(),
        health: status.health().into_iter().map(CompactString::from).collect(),
    }
}
