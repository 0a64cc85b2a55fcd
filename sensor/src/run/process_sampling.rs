//! Setup of the process sampler and its taps: detection of new processes for the job lookup, the flight
//! recorder, the process history, the usage of jobs, and the subscriptions. Wiring only.
//!
//! Not here: the other parts of a sensor (`run`).

use super::Error;
use crate::channel::handover;
use crate::channel::hub::Hub;
use crate::channel::scheduler::Lane;
use crate::config::Config;
use crate::job_usage::worker as job_usage;
use crate::process;
use crate::process_history::worker as process_history;
use crate::recorder::{tap, worker};
use crate::sample::host::PROC;
use crate::serving::watch;
use crate::tail;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Result of [`set_up`].
pub(super) struct ProcessSampling {
    pub(super) processes: process::sampler::Sampler,
    pub(super) subscriptions: [handover::HandoverReceiver; Lane::ALL.len()],
    pub(super) recorder: Option<(worker::Worker, worker::Handle)>,
    pub(super) watch: watch::Watch,
    pub(super) serving: watch::Handle,
    pub(super) history: Option<(process_history::Worker, process_history::Handle)>,
    pub(super) usage: (job_usage::Worker, job_usage::Handle),
}

/// Creates the process sampler and its taps.
pub(super) fn set_up(
    chosen: process::source::ChosenSource,
    config: &Config,
    state: &Path,
    tail: &tail::handle::Handle,
    channels: &Hub,
) -> Result<ProcessSampling, Error> {
    let (spotter, watch, serving) = watch::over(PROC.into(), config.job_file_systems.clone());
    let rate = config.recorder.rate(chosen.source.kind());
    let ring = config.recorder.ring.map(tap::Shared::new);
    let mut taps: Vec<Box<dyn process::tap::Tap>> = vec![Box::new(spotter)];
    taps.extend(ring.clone().map(|ring| -> Box<dyn process::tap::Tap> {
        Box::new(tap::RingTap::new(ring, rate, tail.reader().next()))
    }));
    let stored = process_history::set_up(config.history.processes, state, Path::new(PROC), serving.clone());
    let history = stored.map(|(tap, worker, handle)| {
        taps.push(Box::new(tap));
        (worker, handle)
    });
    let series = config.history.job_series;
    let (usage_tap, worker, handle) = job_usage::set_up(state, config.host.clone(), serving.clone(), series);
    taps.push(Box::new(usage_tap));
    let usage = (worker, handle);
    // Last: evaluating subscriptions delays none of the sensor's own taps.
    let taking = Lane::ALL.map(|lane| {
        let (giving, taking) = handover::pair(channels, lane);
        taps.push(Box::new(giving));
        taking
    });
    let processes = process::sampler::Sampler::new(chosen, Path::new(PROC), config.process_rate, taps);
    channels.set_demand(wire::channel::Kind::Process, processes.handle().demand());
    let Some(ring) = ring else {
        let (subscriptions, recorder) = (taking, None);
        return Ok(ProcessSampling { processes, subscriptions, recorder, watch, serving, history, usage });
    };
    let whose = worker::SensorNames {
        domain: config.domain.clone(),
        host: config.host.clone(),
        sensor: tail.sensor(),
    };
    let (folder, recorder) = (state.join("recordings"), config.recorder.clone());
    let (worker, handle, notes) = worker::Worker::open(
        &folder,
        recorder,
        whose,
        ring,
        tail.reader(),
        (processes.handle(), serving.clone(), channels.clone()),
    )?;
    notes.iter().for_each(|note| tracing::warn!("flight recorder: {note}"));
    let (subscriptions, recorder) = (taking, Some((worker, handle)));
    Ok(ProcessSampling { processes, subscriptions, recorder, watch, serving, history, usage })
}

pub(super) async fn record(
    recorder: Option<(worker::Worker, worker::Handle)>,
    watch: watch::Watch,
    shutdown: CancellationToken,
) {
    let asking = watch.run(shutdown.clone());
    match recorder {
        Some((worker, _)) => drop(tokio::join!(worker.run(shutdown), asking)),
        None => asking.await,
    }
}
