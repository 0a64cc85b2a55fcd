//! Setup of a sensor's modules, if its configuration names a folder of them. Wiring only.
//!
//! Not here: the other parts of a sensor (`run`).

use crate::channel::hub::Hub;
use crate::config::Config;
use crate::journal::reader::Reader;
use crate::module::feed::Sources;
use crate::module::life::RestartPolicy;
use crate::module::worker::{Handle, Worker};
use crate::sample::collector::{Collector, Collectors};
use crate::sample::host::{PROC, collectors};
use crate::sample::sampler::{self, Sampler};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Creates the modules' worker and its handle; `None` if no folder is named.
pub(super) fn open(config: &Config, state: &Path) -> Option<(Worker, Handle)> {
    let folder = config.modules.folder.clone()?;
    Some(Worker::new(folder, state, (&config.domain, &config.host), RestartPolicy::default()))
}

/// Creates the sampler of the host, with the metrics that modules report.
pub(super) fn sampler(config: &Config, modules: Option<&(Worker, Handle)>) -> Sampler {
    let mut all: Vec<Box<dyn Collector>> = collectors(Path::new(PROC));
    all.extend(modules.map(|(_, handle)| handle.figure_cache().collector()));
    Sampler::new(Collectors::new(all), config.sample_rate)
}

/// Runs the modules until `shutdown`.
pub(super) async fn run(
    modules: Option<(Worker, Handle)>,
    (hub, reader, sampler): (Hub, Reader, sampler::Handle),
    shutdown: CancellationToken,
) {
    if let Some((worker, _)) = modules {
        worker.run(Sources { hub, reader, sweeps: sampler.subscribe() }, shutdown).await;
    }
}
