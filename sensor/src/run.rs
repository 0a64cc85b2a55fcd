//! Composition of a sensor: tail, samplers and query methods. Wiring only.
//!
//! Not here: the listener and the directory (in the composing program).

mod modules;
mod own_report;
mod pasts;
mod process_sampling;
mod status;

use crate::archive::Archive;
use crate::channel::handover;
use crate::channel::hub::Hub;
use crate::channel::pump::{self, Pump};
use crate::channel::scheduler::Lane;
use crate::config::Config;
use crate::control;
use crate::filters::{FilterChooser, FilterSet};
use crate::history;
use crate::job_usage;
use crate::journal::reader::Reader;
use crate::module;
use crate::process;
use crate::query;
use crate::query::calls::{KnownCalls, Memory};
use crate::recorder::{store, worker};
use crate::report::link::{self, Link};
use crate::report::own_route::OwnRoute;
use crate::representative::domain;
use crate::representative::service::{self, Duty, Service};
use crate::sample::host::PROC;
use crate::sample::sampler::{self, Sampler};
use crate::sample::ticker;
use crate::serving::roster::Rosters;
use crate::serving::watch;
use crate::tail;
use log_filters::join::Joiner;
use pasts::Pasts;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use tokio_util::sync::CancellationToken;
use wire::id::{HostName, SensorKey};

/// Reason why a sensor could not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The logs cannot be followed.
    #[error(transparent)]
    Tail(#[from] tail::Error),
    /// The host cannot be sampled.
    #[error(transparent)]
    Sample(#[from] ticker::Error),
    /// Its processes cannot be read from the source in the configuration.
    #[error("process_source: {0}")]
    Process(#[from] process::source::Error),
    /// The folder of recordings cannot be opened.
    #[error("recordings: {0}")]
    Recorder(#[from] store::Error),
    /// The folder of the archive cannot be used.
    #[error("archive: {0}; check the folder `archive` in the state folder, or turn [sensor.archive] off")]
    Archive(std::io::Error),
    /// The thread of the history panicked.
    #[error("storing the history ended by a defect: {0}")]
    History(tokio::task::JoinError),
    /// Two methods have the same name.
    #[error(transparent)]
    Method(#[from] rpc::dispatch::method::Error),
    /// The journal cannot be read for the report.
    #[error("the journal cannot be read for the report: {0}; check the state directory")]
    Report(std::io::Error),
    /// The representative's thread panicked.
    #[error(transparent)]
    Representative(#[from] service::Defect),
    /// The thread that follows the logs has ended.
    #[error(
        "following the logs ended by a defect; the journal is as after a crash and the next start goes on from it"
    )]
    TailEnded,
}

/// An open sensor: it follows logs; it samples and reports in [`Sensor::run`].
pub struct Sensor {
    config: Config,
    filtering: Arc<FilterSet>,
    joiner: Arc<Mutex<Joiner>>,
    tail: Arc<tail::handle::Handle>,
    sampler: Sampler,
    processes: process::sampler::Sampler,
    pasts: Pasts,
    /// `None` if the configuration turns it off.
    recorder: Option<(worker::Worker, worker::Handle)>,
    serving: (watch::Watch, watch::Handle),
    channels: Hub,
    flowing: (Pump, Rosters, [handover::HandoverReceiver; Lane::ALL.len()]),
    /// `None` if the configuration names no folder of modules.
    modules: Option<(module::worker::Worker, module::worker::Handle)>,
    control: control::worker::Handle,
    service: Service,
    representative: service::Handle,
    /// `None` once it was taken by a caller that has a transport to the representative.
    link: Option<Link>,
    reporting: link::LinkStatus,
    address: Arc<OnceLock<String>>,
    daemon_health: Arc<DaemonHealth>,
    /// Cancels queries that wait.
    ending: CancellationToken,
}

/// Handle for health and statistics of a running sensor.
#[derive(Clone)]
pub struct Status {
    filtering: Arc<FilterSet>,
    tail: Arc<tail::handle::Handle>,
    sampler: sampler::Handle,
    processes: process::sampler::Handle,
    serving: watch::Handle,
    channels: Hub,
    pasts: pasts::Handles,
    recorder: Option<worker::Handle>,
    modules: Option<module::worker::Handle>,
    /// `None` while the sensor is being built.
    report: Option<(link::LinkStatus, service::Handle)>,
    daemon_health: Arc<DaemonHealth>,
}

/// Failures of the rest of the daemon, once they can be read.
type DaemonHealth = OnceLock<Box<dyn Fn() -> Vec<String> + Send + Sync>>;

/// Adds the logs that the sensor writes itself.
fn with_own_logs(mut following: tail::Config, state: &Path) -> tail::Config {
    following.files.extend([control::trail::spec(state), job_usage::usage_log::spec(state)]);
    following
}

impl Sensor {
    /// Opens the state directory and starts to follow the logs.
    ///
    /// # Errors
    /// If another process has the state directory, or if it cannot be used.
    pub fn open(config: Config, state: &Path) -> Result<Sensor, Error> {
        // Before anything else allocates memory: reading the kernel's types takes some for a moment.
        let chosen = process::source::choose(Path::new(PROC), config.process_source)?;
        tracing::info!(source = %chosen.source.kind(), reasons = ?chosen.reasons, "processes are read");
        let filtering = Arc::new(FilterSet::load(&config.filters));
        let joiner = Arc::new(Mutex::new(Joiner::default()));
        let choice = FilterChooser::new(Arc::clone(&filtering), &config);
        let following = with_own_logs(config.tail(), state);
        let tail =
            tail::handle::Handle::start(following, state, Box::new(choice), Box::new(Arc::clone(&joiner)))?;
        let modules = modules::open(&config, state);
        let mut sampler = modules::sampler(&config, modules.as_ref());
        let (service, representative) = Service::new(state.join("domain"), domain::Config::default());
        let sources = (&mut sampler, &joiner, &representative);
        let pasts = Pasts::set_up(config.history, state, config.host.clone(), sources);
        let tail = Arc::new(tail);
        let channels = Hub::default();
        let sampling = process_sampling::set_up(chosen, &config, state, &tail, &channels)?;
        let (processes, recorder, serving) = (sampling.processes, sampling.recorder, sampling.serving);
        let pasts = pasts.with_processes(sampling.history, sampling.usage).with_archive(&config, state)?;
        let rolls = Rosters::new(serving.clone(), Arc::clone(&joiner));
        channels.set_rosters(rolls.clone());
        let pump = Pump::new(&channels, tail.reader(), Arc::clone(&joiner));
        let control =
            control::worker::Handle::new(config.control.clone(), state, config.host.clone(), Path::new(PROC));
        let daemon_health = Arc::new(DaemonHealth::new());
        let status = Status {
            filtering: Arc::clone(&filtering),
            tail: Arc::clone(&tail),
            sampler: sampler.handle(),
            processes: processes.handle(),
            serving: serving.clone(),
            channels: channels.clone(),
            pasts: pasts.handles(),
            recorder: recorder.as_ref().map(|(_, handle)| handle.clone()),
            modules: modules.as_ref().map(|(_, handle)| handle.clone()),
            report: None,
            daemon_health: Arc::clone(&daemon_health),
        };
        let service = service.with_copies(pasts.copies()).with_calls(pasts.domain_calls());
        let stored = (pasts.own(), pasts.copies(), pasts.domain_calls());
        let own =
            own_report::own(&config, state, &tail, &sampler.handle(), status, representative.clone(), stored)
                .map_err(Error::Report)?;
        let link = Link::new(own);
        Ok(Sensor {
            config,
            filtering,
            joiner,
            tail,
            sampler,
            processes,
            pasts,
            recorder,
            serving: (sampling.watch, serving),
            channels,
            flowing: (pump, rolls, sampling.subscriptions),
            modules,
            control,
            service,
            representative,
            reporting: link.status(),
            link: Some(link),
            address: Arc::new(OnceLock::new()),
            daemon_health,
            ending: CancellationToken::new(),
        })
    }

    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    #[must_use]
    pub fn key(&self) -> SensorKey {
        self.tail.sensor()
    }

    /// Returns a reader of its events.
    #[must_use]
    pub fn events(&self) -> Reader {
        self.tail.reader()
    }

    #[must_use]
    pub fn calls(&self) -> Arc<Mutex<Joiner>> {
        Arc::clone(&self.joiner)
    }

    /// Returns the handle for health and statistics.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            filtering: Arc::clone(&self.filtering),
            tail: Arc::clone(&self.tail),
            sampler: self.sampler.handle(),
            processes: self.processes.handle(),
            serving: self.serving.1.clone(),
            channels: self.channels.clone(),
            pasts: self.pasts.handles(),
            recorder: self.recorder(),
            modules: self.modules(),
            report: Some((self.reporting.clone(), self.representative.clone())),
            daemon_health: Arc::clone(&self.daemon_health),
        }
    }

    /// Returns the history of its metrics, if the configuration has one.
    #[must_use]
    pub fn history(&self) -> Option<history::handle::Handle> {
        self.pasts.own()
    }

    /// Lets queries read these exported days; once.
    pub fn set_exported(&self, days: Box<dyn history::exported::ExportedDays>) {
        self.pasts.exported().set(days);
    }

    /// Returns the copies of its domain's history, if the configuration has them.
    #[must_use]
    pub fn copies(&self) -> Option<history::copies::Copies> {
        self.pasts.copies()
    }

    /// Returns its archive, if it is one; the caller that has a transport to other hosts runs it.
    #[must_use]
    pub fn archive(&self) -> Option<Archive> {
        self.pasts.archive()
    }

    /// Returns its flight recorder, if the configuration has one.
    #[must_use]
    pub fn recorder(&self) -> Option<worker::Handle> {
        self.recorder.as_ref().map(|(_, handle)| handle.clone())
    }

    /// Returns its modules, if the configuration names a folder of them.
    #[must_use]
    pub fn modules(&self) -> Option<module::worker::Handle> {
        self.modules.as_ref().map(|(_, handle)| handle.clone())
    }

    /// Returns the executor of signed commands, for the caller that sets how they are verified.
    #[must_use]
    pub fn control(&self) -> control::worker::Handle {
        self.control.clone()
    }

    /// Returns its representative service, for the caller that runs the election.
    #[must_use]
    pub fn representative(&self) -> service::Handle {
        self.representative.clone()
    }

    /// Takes its report, for a caller that has a transport to the representative and runs the report. It can
    /// be taken once; a sensor whose report is not taken represents itself.
    pub fn take_report(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// Sets the source of failures of the rest of the daemon; they are reported with this host's health.
    pub fn set_daemon_health(&self, ask: impl Fn() -> Vec<String> + Send + Sync + 'static) {
        // A second call changes nothing: a daemon is composed once.
        let _ = self.daemon_health.set(Box::new(ask));
    }

    /// Sets the address at which it answers, once that is known.
    pub fn set_address(&self, address: String) {
        // A second address changes nothing: a daemon binds once.
        let _ = self.address.set(address);
    }

    /// Returns its methods.
    ///
    /// # Errors
    /// If two have the same name, which a test rules out.
    pub fn methods(&self) -> Result<rpc::dispatch::method::Registry, Error> {
        let mut registry = rpc::dispatch::method::Registry::new();
        let (reader, joiner) = (self.tail.reader(), Arc::clone(&self.joiner));
        let events = query::events::Events::new(reader, joiner, self.ending.clone());
        let tail = Arc::clone(&self.tail);
        let calls = KnownCalls { memory: Memory::Own(Arc::clone(&self.joiner)), history: self.pasts.calls() };
        // If its report was not taken, it is the whole domain.
        let is_alone = self.link.is_some();
        let of_domain = KnownCalls {
            memory: Memory::Domain(self.representative.clone()),
            history: self.pasts.domain_calls(),
        };
        let domain = query::domain::Domain {
            domain: self.config.domain.clone(),
            host: self.config.host.clone(),
            address: Arc::clone(&self.address),
            service: self.representative.clone(),
            own: is_alone.then(|| query::domain::OwnLogs {
                calls: Arc::clone(&self.joiner),
                next: self.tail.reader().next(),
            }),
            calls: if is_alone { calls.clone() } else { of_domain },
            thresholds: self.config.findings,
        };
        let of_domain = match is_alone {
            true => events.method_of_domain(),
            false => {
                let (service, ending) = (self.representative.clone(), self.ending.clone());
                query::domain_events::Events::new(service, ending).method()
            }
        };
        let methods = [
            events.method(),
            query::calls::method(&calls),
            query::call_processes::CallProcesses {
                joiner: Arc::clone(&self.joiner),
                serving: self.serving.1.clone(),
                processes: self.processes.handle(),
                recorder: self.recorder(),
                proc: PROC.into(),
            }
            .method(),
            query::past_processes::method(self.recorder()),
            query::process_history::method(self.pasts.processes()),
            query::job_series::method(self.pasts.series(), self.archive(), self.config.host.clone()),
            query::archive::method(self.archive()),
            query::archive::copy_method(self.pasts.series(), self.archive()),
            query::metrics::method(&self.sampler.handle(), self.history()),
            query::history::method(self.history(), self.config.host.clone(), self.pasts.exported().clone()),
            query::processes::method(&self.processes.handle(), Path::new(PROC)),
            query::control::method(&self.control),
            query::files::files_method(&self.config, move || tail.files()),
            query::files::filters_method(&self.filtering),
            of_domain,
            query::domain_metrics::method(&self.representative),
            query::domain_history::Past {
                service: self.representative.clone(),
                copies: self.copies(),
                alone: self.history().filter(|_| is_alone),
                exported: self.pasts.exported().clone(),
            }
            .method(),
        ];
        let recorder = self.recorder();
        let methods = methods.into_iter().chain(domain.methods()).chain(query::recordings::methods(recorder));
        let channels = query::channels::Channels { hub: self.channels.clone(), ending: self.ending.clone() };
        let methods = methods.chain(channels.methods()).chain(query::modules::methods(self.modules()));
        for method in methods {
            registry.add(method)?;
        }
        Ok(registry)
    }

    /// Runs until `shutdown`; then reads the rest of the logs and makes it durable.
    ///
    /// # Errors
    /// If a part ended that should not have.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let Sensor {
            config,
            tail,
            sampler,
            processes,
            pasts,
            recorder,
            serving,
            channels,
            flowing: (pump, rolls, subscriptions),
            modules,
            service,
            representative,
            link,
            ending,
            ..
        } = self;
        let watched = Arc::clone(&tail);
        let mut look = tokio::time::interval(std::time::Duration::from_secs(1));
        let showing = pump::show_host(channels.clone(), sampler.handle().subscribe(), shutdown.clone());
        let (pumping, serving_rolls) = (pump.run(shutdown.clone()), rolls.run(shutdown.clone()));
        let sources = (channels, tail.reader(), sampler.handle());
        let extending = modules::run(modules, sources, shutdown.clone());
        let storing = pasts.start(&shutdown);
        // A sensor that is alone has all of its domain's history.
        let service = if link.is_some() { service.with_copies(None).with_calls(None) } else { service };
        let (sampling, representing) = (sampler.run(shutdown.clone()), service.run(shutdown.clone()));
        let sweeping = processes.run(shutdown.clone());
        let [plain, scripted] = subscriptions.map(|lane| lane.run(shutdown.clone()));
        let recording = process_sampling::record(recorder, serving.0, shutdown.clone());
        let reporting = report_to_itself(link, representative, config.host, shutdown);
        let result = {
            let working = async {
                tokio::try_join!(
                    async { sampling.await.map_err(Error::from) },
                    async { sweeping.await.map_err(Error::from) },
                    async { tokio::try_join!(plain, scripted).map(drop).map_err(Error::from) },
                    async { representing.await.map_err(Error::from) },
                    async { pumping.await.map_err(Error::from) },
                    async {
                        tokio::join!(recording, extending, showing, serving_rolls);
                        Ok(())
                    },
                    async {
                        reporting.await;
                        Ok(())
                    },
                )
            };
            tokio::pin!(working);
            loop {
                tokio::select! {
                    result = &mut working => break result.map(|_| ()),
                    _ = look.tick() => if !watched.is_running() {
                        break Err(Error::TailEnded);
                    },
                }
            }
        };
        ending.cancel();
        drop(watched);
        let drained = tokio::task::spawn_blocking(move || tail.stop()).await;
        drained.map_err(|_| Error::TailEnded)?;
        storing.end().await.map_err(Error::History)?;
        result
    }
}

/// Runs the report of a sensor that represents itself; does nothing if its report was taken.
async fn report_to_itself(
    link: Option<Link>,
    service: service::Handle,
    host: HostName,
    shutdown: CancellationToken,
) {
    if let Some(link) = link {
        service.set_duty(Duty::Serve { term: 0 });
        // Its journal and its calls answer for the domain: nothing is stored or joined twice.
        link.without_events().run(OwnRoute { service, host }, shutdown).await;
    }
}
